import OortCatalog
import OortModel

/// What was asked of the service and not answered: whether there may be any, which of it the service is
/// asked about now, and when it is asked about the rest.
///
/// The intents themselves are in the catalog. A pure value; moments are milliseconds since 1970.
struct UnansweredIntents {
    /// Whether something may have been asked of the service that nobody answered, that is not under way
    /// and that nobody asks about: what an earlier process left, or a lost answer.
    var mayExist = true
    /// What the service is being asked about, and whether that is of a large content.
    private var asked: [Inode: Bool] = [:]
    /// When to ask again about what the service could not be asked about.
    private var nextLooks: [Inode: Int64] = [:]
    /// When files that were sent were not found where they were sent to: a run of the feed that begins
    /// later tells what became of them.
    private var missing: [Inode: UInt64] = [:]

    /// Bytes of a content that may have to be read for as long as many questions take.
    private let large: Int64

    /// How many large contents are asked about at once: more would only make all of them take longer.
    private static let mostLarge = 4

    /// Nothing is known yet; a content above so many bytes is a large one.
    init(largeAbove bytes: Int64) { large = bytes }

    /// What the service is asked about from now on, each round one after the other: a large content by
    /// itself, for it may have to be read whole, and all that is small in one.
    ///
    /// What is asked about ends one by one (`ended`). `underWay` is what an operation is under way for,
    /// `lastRun` when the feed's last run was begun.
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

    /// The service could not be asked about an item: it is not before this moment.
    mutating func delay(_ inode: Inode, until moment: Int64) { nextLooks[inode] = moment }

    /// What the service could not be asked about it may be asked at once.
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
