import OortModel

/// What was asked of the service and not answered: whether there may be any, and when the service is
/// asked what became of each.
///
/// The intents themselves are in the catalog. A pure value; moments are milliseconds since 1970.
struct UnansweredIntents {
    /// Whether something may have been asked of the service that nobody answered and that is not under
    /// way: what an earlier process left, or a lost answer.
    var mayExist = true
    /// Whether the service is being asked what became of them.
    var isAsking = false
    /// When to ask again about what the service could not be asked about.
    private var nextLooks: [Inode: Int64] = [:]
    /// When files that were sent were not found where they were sent to: a run of the feed that begins
    /// later tells what became of them.
    private var missing: [Inode: UInt64] = [:]

    /// Whether the service can be asked about an item now; `lastRun` is when the feed's last run was
    /// begun.
    func isDue(_ inode: Inode, at now: Int64, lastRun: UInt64) -> Bool {
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
