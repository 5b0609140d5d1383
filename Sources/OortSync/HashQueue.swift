import OortCatalog
import OortModel

/// The staged contents whose hash the plan needs: which are read next, and when enough are hashed that
/// a plan is worth making.
///
/// A pure value; moments are milliseconds since 1970.
struct HashQueue {
    /// What goes up in one call with others at most, bytes: one that is larger is waited for by nobody.
    private let smallUpload: Int64
    /// After how many hashes a plan is made, though more are under way: as many as fill all calls that
    /// may be under way, and no more than are worth waiting for.
    private let mostNew: Int

    /// Those that are not begun, the smallest last.
    private var waiting: [UnhashedContent] = []
    /// Those that are being read, with their sizes.
    private var reading: [ContentID: Int64] = [:]
    /// How many hashes were stored since the last plan.
    private var newHashes = 0
    /// When a content's hash was last begun or done.
    private var last: Int64 = 0
    /// When a content is read again of which not even the catalog knows that it could not be hashed.
    private var nextTries: [ContentID: Int64] = [:]

    private static let mostReading = 4
    /// How long a plan waits for the next hash of many small contents, milliseconds.
    private static let longestPause: Int64 = 1000

    /// An empty queue for a service of these traits.
    init(_ traits: ProviderTraits) {
        smallUpload = traits.batchSizes.largestUpload
        mostNew = min(1000, traits.batchSizes.upload * max(1, traits.maximumWritesInFlight))
    }

    /// Whether no content is read, or is to be.
    var isEmpty: Bool { waiting.isEmpty && reading.isEmpty }

    /// Another plan needs these.
    mutating func load(_ contents: [UnhashedContent]) {
        waiting = contents.sorted { $0.size > $1.size }
        newHashes = 0
    }

    /// The contents to read from now on.
    mutating func next(at now: Int64) -> [ContentID] {
        var new: [ContentID] = []
        while reading.count < Self.mostReading, let next = waiting.popLast() {
            // A failure that could not be stored is listed again by every plan.
            guard nextTries[next.content] ?? 0 <= now, reading[next.content] == nil else {
                continue
            }
            reading[next.content] = next.size
            last = now
            new.append(next.content)
        }
        return new
    }

    /// The moment until which a plan waits, so that small contents which are hashed one after the other go
    /// up in the same calls; nil where none is waited for.
    ///
    /// One that takes long (its bytes have to be fetched) holds nothing up.
    func delaysPlan(at now: Int64) -> Int64? {
        let latest = last + Self.longestPause
        guard isReadingSmall, newHashes < mostNew, (last...latest).contains(now) else { return nil }
        return latest
    }

    /// A content is not read any more.
    ///
    /// - Returns: whether a plan is due: one for many small contents, which waits for nothing large.
    mutating func ended(_ content: ContentID, at now: Int64) -> Bool {
        reading[content] = nil
        newHashes += 1
        last = now
        return !isReadingSmall || newHashes >= mostNew
    }

    /// A content was hashed.
    mutating func succeeded(_ content: ContentID) { nextTries[content] = nil }

    /// A content is not read again before this moment.
    mutating func delay(_ content: ContentID, until moment: Int64) { nextTries[content] = moment }

    /// What could not be hashed may be read again at once.
    mutating func retryAll() { nextTries = [:] }

    private var isReadingSmall: Bool {
        reading.values.contains { $0 <= smallUpload }
            || waiting.last.map { $0.size <= smallUpload } ?? false
    }
}
