/// How much one search looks at, so that its answer comes at once also where very much fits.
struct SearchBounds: Sendable {
    /// So many that fit are enough to choose the best from.
    var enough = 1000
    /// So many items are all looked at, whether the index finds them or filters leave them.
    var few = 1000
    /// So many are looked at, the latest first, where there are more and enough was found to be shown.
    var some = 5000
    /// The same where less was found than is to be shown.
    var most = 300_000
    /// So many inodes that filters leave are listed, to be compared with what the index finds.
    var listed = 50_000
    /// So many folders that filters leave are.
    var folders = 10_000
}
