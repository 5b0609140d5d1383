import OortModel

/// How often the push of each item failed, and in which ways; forgotten with the process.
///
/// A pure value.
struct PushFailures {
    /// Failures in a row, which decide the next wait.
    private var tries: [Inode: Int] = [:]
    /// How often the service said that a file's content, of this hash, arrived damaged.
    private var damages: [Inode: (hash: String?, count: Int)] = [:]
    /// Items that the service does not copy, or not today: their bytes are sent instead.
    private var uncopied: Set<Inode> = []
    /// How often in a row an item was no longer as the plan saw it.
    private var stale: [Inode: Int] = [:]

    /// How often a content may arrive damaged.
    private static let mostDamages = 3

    /// Counts a failure of an item; returns how many there are in a row.
    mutating func failed(_ inode: Inode) -> Int {
        let count = (tries[inode] ?? 0) + 1
        tries[inode] = count
        return count
    }

    /// Takes back the last failure of an item: the item did not cause it.
    mutating func pardon(_ inode: Inode) { tries[inode] = (tries[inode] ?? 1) - 1 }

    /// The wait after an item's next failure is short again.
    mutating func forget(_ inode: Inode) { tries[inode] = nil }

    /// The wait after any item's next failure is short again.
    mutating func forgetAll() { tries = [:] }

    /// The push of an item went through.
    mutating func succeeded(_ inode: Inode) {
        tries[inode] = nil
        damages[inode] = nil
        uncopied.remove(inode)
    }

    /// Counts that content of this hash arrived damaged; returns whether it is not to be sent again.
    ///
    /// Each arrival is a revision, and a service keeps a limited number of these.
    mutating func arrivedDamaged(_ inode: Inode, hash: String?) -> Bool {
        let known = damages[inode].flatMap { $0.hash == hash ? $0.count : nil } ?? 0
        damages[inode] = (hash, known + 1)
        return known + 1 >= Self.mostDamages
    }

    // MARK: Copies at the service

    /// Whether the service may be asked to copy for an item.
    func mayBeCopied(_ inode: Inode) -> Bool { !uncopied.contains(inode) }

    /// The bytes of an item are sent from now on; returns whether a copy was allowed until now.
    @discardableResult
    mutating func sendsBytes(_ inode: Inode) -> Bool { uncopied.insert(inode).inserted }

    /// The service may be asked to copy for an item again.
    mutating func copies(_ inode: Inode) { uncopied.remove(inode) }

    // MARK: Plans that do not fit

    /// Whether an item was no longer as its plan saw it, and is to be planned for anew.
    var hasStale: Bool { !stale.isEmpty }

    /// Counts that an item was no longer as the plan saw it; returns how often in a row.
    mutating func foundStale(_ inode: Inode) -> Int {
        let rounds = (stale[inode] ?? 0) + 1
        stale[inode] = rounds
        return rounds
    }

    /// An item was as the plan saw it.
    mutating func foundCurrent(_ inode: Inode) { stale[inode] = nil }

    /// Forgets stale items that no plan names any more.
    mutating func keepStale(of planned: Set<Inode>) {
        if !stale.isEmpty { stale = stale.filter { planned.contains($0.key) } }
    }
}
