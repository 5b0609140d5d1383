import OortCatalog
import OortModel

/// The staged contents whose hash the plan needs: which are read next, and when enough are hashed that
/// a plan is worth making.
///
/// A pure value; moments are milliseconds since 1970.
struct HashQueue {
    /// The largest content, in bytes, that shares a call with others; no plan waits for a larger one.
    private let smallUpload: Int64
    /// After how many hashes a plan is made, although more are being computed: enough to fill all calls
    /// that may be under way, and no more than are worth waiting for.
    private let mostNew: Int

    /// Contents that are not begun, the smallest last.
    private var waiting: [UnhashedContent] = []
    /// Contents that are being read, with their sizes.
    private var reading: [ContentID: Int64] = [:]
    /// How many contents were read, with or without success, since the last plan.
    private var newHashes = 0
    /// When a content's hash was last begun or done.
    private var last: Int64 = 0
    /// When a content is read again whose failure could not even be stored in the catalog.
    private var nextTries: [ContentID: Int64] = [:]

    private static let mostReading = 4
    /// How long a plan waits for the next hash of many small contents, milliseconds.
    private static let longestPause: Int64 = 1000

    /// An empty queue for a service of these traits.
    init(_ traits: ProviderTraits) {
        smallUpload = traits.batchSizes.largestUpload
        mostNew = min(1000, traits.batchSizes.upload * max(1, traits.maximumWritesInFlight))
    }

    /// Whether no content is being read, and none waits.
    var isEmpty: Bool { waiting.isEmpty && reading.isEmpty }

    /// Another plan needs the hashes of these contents.
    mutating func load(_ contents: [UnhashedContent]) {
        waiting = contents.sorted { $0.size > $1.size }
        newHashes = 0
    }

    /// The contents to read from now on.
    mutating func next(at now: Int64) -> [ContentID] {
        var new: [ContentID] = []
        while reading.count < Self.mostReading, let next = waiting.popLast() {
            // Every plan lists a content again whose failure could not be stored.
            guard nextTries[next.content] ?? 0 <= now, reading[next.content] == nil else {
                continue
            }
            reading[next.content] = next.size
            last = now
            new.append(next.content)
        }
        return new
    }

    /// The moment until which a plan waits, so that small contents that are hashed one after the other
    /// share calls; nil where it waits for none.
    ///
    /// A content that takes long (its bytes have to be fetched) delays no plan.
    func delaysPlan(at now: Int64) -> Int64? {
        let latest = last + Self.longestPause
        guard isReadingSmall, newHashes < mostNew, (last...latest).contains(now) else { return nil }
        return latest
    }

    /// The reading of a content has ended.
    ///
    /// - Returns: whether a plan is due: one plan covers many small contents, and does not wait for large
    ///   ones.
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

    /// Contents that could not be hashed may be read again at once.
    mutating func retryAll() { nextTries = [:] }

    private var isReadingSmall: Bool {
        reading.values.contains { $0 <= smallUpload }
            || waiting.last.map { $0.size <= smallUpload } ?? false
    }
}
