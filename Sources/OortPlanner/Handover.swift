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
            guard !original.isBusy, !original.hasNews,
                let successor = trees.heir(of: position, &places)
            else { continue }
            let heir = trees.items[successor]
            guard heir.isReadyToInherit else { continue }
            // Whether this heir would close a circle is known only after the other handovers.
            if heir.borrowed != nil, !steps.isEmpty { continue }
            if !original.isBackup {
                steps.append(.handOver(from: original.inode, to: heir.inode))
            } else if !heir.isBornHere, original.isReadyToMove, !postponed[position] {
                steps.append(.renounce(heir.inode))
            }
        }
        return steps
    }
}

extension Trees {
    /// The file that has another one's name now and takes over its identity, now or later; nil where there
    /// is none.
    ///
    /// `places` are the local ones, which are found when they are first needed.
    func heir(of position: Int, _ places: inout [PlaceKey: Int]?) -> Int? {
        let original = items[position]
        guard original.leavesIdentity, !original.isFolder, let remote = original.remote else {
            return nil
        }
        let known = places ?? localPlaces()
        places = known
        guard let heir = known[key(remote.place, of: original)], heir != position,
            items[heir].canInherit, areOfOneKind(original, items[heir]),
            !closesCircle(heir, inheriting: position)
        else { return nil }
        return heir
    }
}

extension ItemState {
    /// Whether the item may take over another one's identity, now or later: a file that was made here, or a
    /// program's temporary file that was sent a short while ago.
    var canInherit: Bool {
        !isFolder && local?.content != nil && (isBornHere || isRecent && isMisplaced)
    }

    /// Whether the file that has this one's name now may take over its identity: this one was deleted, or
    /// stays as a backup.
    var leavesIdentity: Bool { local == nil && !isTrashed || isBackup }

    /// Whether it was renamed within its folder and is otherwise as the service has it: what
    /// programs do with an original that stays as a backup.
    var isBackup: Bool {
        guard !isFolder, let local, let remote, local.place != remote.place else { return false }
        return local.place.parent == remote.place.parent && local.hasSameContent(as: remote)
    }

    /// Whether the item may be moved or deleted at the service now.
    ///
    /// A removed file that a program has open is not deleted there yet: the program may still read bytes
    /// that are not here.
    var isReadyToMove: Bool {
        isSettled && isPushable && !isBusy && !isBeingWritten && !hasNews
            && (local != nil || !isOpen)
    }

    /// Whether it may take over another item's identity now.
    var isReadyToInherit: Bool {
        !isFolder && isReadyToMove && local?.content != nil
    }
}
