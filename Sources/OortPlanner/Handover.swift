import OortModel

extension Planner {
    /// Programs save by writing a temporary file and renaming it over the original: the file that
    /// has the name now takes over the identity of the one that had it, and with it the history and
    /// the share links.
    ///
    /// An original that was kept as a backup is `Push`'s business (`duplicate`), once its heir is
    /// an item that only this side knows.
    func handovers(_ trees: Trees, postponed: [Bool]) -> [LocalStep] {
        var steps: [LocalStep] = []
        var places: [PlaceKey: Int]?
        for (position, original) in trees.items.enumerated() {
            let isBackup = original.isBackup
            guard original.leavesIdentity, !original.isFolder, !original.isBusy,
                !original.hasNews, let remote = original.remote
            else { continue }
            if places == nil { places = trees.localPlaces() }
            guard let successor = places?[trees.key(remote.place, of: original)],
                successor != position
            else { continue }
            let heir = trees.items[successor]
            guard heir.isReadyToInherit, heir.canInherit,
                trees.areOfOneKind(original, heir),
                !trees.closesCircle(successor, inheriting: position)
            else { continue }
            // Whether it closes a circle is known once the others have their identities.
            if heir.borrowed != nil, !steps.isEmpty { continue }
            if !isBackup {
                steps.append(.handOver(from: original.inode, to: heir.inode))
            } else if !heir.isBornHere, original.isReadyToMove, !postponed[position] {
                steps.append(.renounce(heir.inode))
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

    /// Whether a file that has its name now may take over its identity: it was deleted, or stays as a
    /// backup.
    var leavesIdentity: Bool { local == nil && !isTrashed || isBackup }

    /// Whether it was renamed within its folder and is otherwise as the service has it: what
    /// programs do with an original that stays as a backup.
    var isBackup: Bool {
        guard !isFolder, let local, let remote, local.place != remote.place else { return false }
        return local.place.parent == remote.place.parent && local.hasSameContent(as: remote)
    }

    /// Whether nothing holds back that its place at the service changes, or that it leaves that.
    ///
    /// Who has a removed file open may still read of it what is not here.
    var isReadyToMove: Bool {
        isSettled && isPushable && !isBusy && !isBeingWritten && !hasNews
            && (local != nil || !isOpen)
    }

    /// Whether it may take over another item's identity now.
    var isReadyToInherit: Bool {
        !isFolder && isReadyToMove && local?.content != nil
    }
}
