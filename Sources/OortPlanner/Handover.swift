import OortModel

extension Planner {
    /// Programs save by writing a temporary file and renaming it over the original: the file that
    /// has the name now takes over the identity of the one that had it, and with it the history and
    /// the share links.
    ///
    /// An original that was kept as a backup is `Push`'s business (`duplicate`).
    func handovers(_ trees: Trees) -> [LocalStep] {
        var steps: [LocalStep] = []
        var places: [PlaceKey: Int]?
        for original in trees.items where original.local == nil {
            guard !original.isFolder, !original.isBusy, !original.hasNews,
                let remote = original.remote
            else { continue }
            if places == nil { places = trees.localPlaces() }
            guard let position = places?[trees.key(remote.place)] else { continue }
            let heir = trees.items[position]
            if heir.isReadyToInherit, heir.canInherit {
                steps.append(.handOver(from: original.inode, to: heir.inode))
            }
        }
        return steps
    }
}

extension ItemState {
    /// Whether it may take over another item's identity, now or when it is ready: a file that was
    /// made here, or a program's temporary file that we sent a short while ago.
    var canInherit: Bool {
        !isFolder && local?.content != nil && (isBornHere || isRecent && isMisplaced)
    }

    /// Whether it may take over another item's identity now.
    var isReadyToInherit: Bool {
        !isFolder && isSettled && isPushable && !isBusy && !isOpen && !hasNews
            && local?.content != nil
    }
}
