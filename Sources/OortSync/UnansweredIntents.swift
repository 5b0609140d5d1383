import OortCatalog
import OortModel

/// Operations without an answer: whether there may be any, which of them the service is being asked about,
/// and when it is asked about the others.
///
/// The intents themselves are in the catalog. A pure value; moments are milliseconds since 1970.
struct UnansweredIntents {
    /// Whether there may be an operation without an answer that is neither under way nor being asked about:
    /// one that an earlier process left, or whose answer was lost.
    var mayExist = true
    /// The items that the service is being asked about, and whether each has a large content.
    private var asked: [Inode: Bool] = [:]
    /// When to ask again about items that the service could not be asked about.
    private var nextLooks: [Inode: Int64] = [:]
    /// Files that were not where they were sent to, by the ordinal after which a run of the feed must begin
    /// to report what became of them.
    private var missing: [Inode: UInt64] = [:]

    /// A content above so many bytes is large: reading it may take as long as many questions.
    private let large: Int64

    /// How many large contents are asked about at once: more would only make all of them take longer.
    private static let mostLarge = 4

    /// Nothing is known yet; a content above so many bytes is a large one.
    init(largeAbove bytes: Int64) { large = bytes }

    /// The items that the service is asked about from now on, in rounds: a large content has one of its
    /// own, for it may have to be read whole, and all small ones share one.
    ///
    /// The questions of a round are asked one after the other and end one by one (`ended`). `underWay` has
    /// the items of operations under way; `lastRun` is the ordinal of the feed's last complete run.
    mutating func next(
        of open: [OpenIntent],
        underWay: Set<Inode>,
        at now: Int64,
        lastRun: UInt64
    ) -> [[Inode]] {
        let isAskingSmall = asked.values.contains(false)
        var rounds: [[Inode]] = []
        var small: [Inode] = []
        for intent in open where asked[intent.inode] == nil {
            let isLarge = intent.size > large
            let hasPlace =
                isLarge ? asked.values.count { $0 } < Self.mostLarge : !isAskingSmall
            guard hasPlace, !underWay.contains(intent.inode),
                isDue(intent.inode, at: now, lastRun: lastRun)
            else {
                mayExist = true
                continue
            }
            asked[intent.inode] = isLarge
            if isLarge { rounds.append([intent.inode]) } else { small.append(intent.inode) }
        }
        if !small.isEmpty { rounds.append(small) }
        return rounds
    }

    /// The service is not asked about an item any more, whatever came of it.
    mutating func ended(_ inode: Inode) { asked[inode] = nil }

    /// Whether the service can be asked about an item now.
    private func isDue(_ inode: Inode, at now: Int64, lastRun: UInt64) -> Bool {
        let isFeedAwaited = missing[inode].map { lastRun < $0 } ?? false
        return nextLooks[inode] ?? 0 <= now && !isFeedAwaited
    }

    /// The service could not be asked about an item: it is asked again at this moment, not before.
    mutating func delay(_ inode: Inode, until moment: Int64) { nextLooks[inode] = moment }

    /// All items that the service could not be asked about may be asked about at once.
    mutating func retryAll() { nextLooks = [:] }

    /// A file is not where it was sent to; the ordinal after which a run of the feed has to begin.
    mutating func isMissing(_ inode: Inode, since ordinal: UInt64) -> UInt64 {
        let since = missing[inode] ?? ordinal
        missing[inode] = since
        return since
    }

    /// It is known where a file is, or that there is none.
    mutating func isFound(_ inode: Inode) { missing[inode] = nil }

    /// It is known what became of all that was asked about an item.
    mutating func settled(_ inode: Inode) {
        nextLooks[inode] = nil
        missing[inode] = nil
    }
}
