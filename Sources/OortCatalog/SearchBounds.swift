/// How much one search looks at, so that its answer comes at once even if very much fits.
struct SearchBounds: Sendable {
    /// How many matching items are enough to choose the best from.
    var enough = 1000
    /// Up to how many items are all looked at, whether the index found them or filters left them.
    var few = 1000
    /// How many are looked at, the latest first, where there are more and enough was found to be shown.
    var some = 5000
    /// The same where less was found than should be shown.
    var most = 300_000
    /// How many inodes that filters leave are listed, to be compared with what the index finds.
    var listed = 50_000
    /// How many folders that filters leave are listed.
    var folders = 10_000
}
