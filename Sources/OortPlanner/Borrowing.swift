/// Contents that are made of another item's bytes at the service and are not sent yet (`BorrowedContent`):
/// a copy that the service is to make, a temporary file that took over an identity, a changed part of a
/// large file over another item's revision.
///
/// They go out before that other item is changed or deleted.
extension Push {
    /// Whether this plan sends the contents that are made of an item's bytes.
    func areBorrowersSent(_ position: Int) -> Bool {
        (borrowers[position] ?? []).allSatisfy { borrower in
            let isSent =
                trees.items[borrower].remote == nil
                ? placing[borrower] : contentAction(borrower)?.sendsContent == true
            return isSent && areBorrowersSent(borrower)
        }
    }

    /// Puts what is made of an item's bytes before what changes or deletes the item.
    func requireBorrowers(
        before changed: [Int: Int],
        _ deleted: [Int: Int],
        placed: [Int: Int],
        in order: inout OperationOrder
    ) {
        for (owner, borrowers) in borrowers.sorted(by: { $0.key < $1.key }) {
            for last in [changed[owner], deletion(of: owner, deleted)].compactMap(\.self) {
                for borrower in borrowers {
                    let operation =
                        trees.items[borrower].remote == nil ? placed[borrower] : changed[borrower]
                    if let operation { order.require(operation, before: last) }
                }
            }
        }
    }

    /// The operation that deletes an item, by itself or with a folder that it lies in.
    private func deletion(of position: Int, _ deleted: [Int: Int]) -> Int? {
        var next = position
        while deleting[next] {
            if let operation = deleted[next] { return operation }
            guard let place = trees.items[next].remote?.place,
                let folder = trees.index[place.parent]
            else { return nil }
            next = folder
        }
        return nil
    }

    /// Whether a backup's new place becomes free only after its heir was sent.
    ///
    /// So it is when a file is restored from its backup while the damaged one takes the backup's name, or
    /// the name of an item that takes the backup's name.
    func mustSend(_ heir: Int, beforeMoving backup: Int) -> Bool {
        var lenders: Set<Int> = []
        var owner = trees.owner(ofContentAt: heir)
        guard owner != nil else { return false }
        while let position = owner, lenders.insert(position).inserted {
            lenders.formUnion(chain(above: trees.items[position].remote?.place))
            owner = trees.owner(ofContentAt: position)
        }
        var position = backup
        for _ in trees.items.indices {
            guard let place = trees.items[position].local?.place,
                let occupant = occupant(of: place, for: position)
            else { return false }
            if trees.items[occupant].local == nil { return lenders.contains(occupant) }
            position = occupant
        }
        return false
    }
}

extension Trees {
    /// For each item, the positions of those whose content is still to be sent and is made of its bytes at
    /// the service.
    func borrowers() -> [Int: [Int]] {
        var borrowers: [Int: [Int]] = [:]
        for position in items.indices {
            guard let owner = owner(ofContentAt: position), !borrows(owner, from: position) else {
                continue
            }
            borrowers[owner, default: []].append(position)
        }
        return borrowers
    }

    /// The item whose bytes at the service another item's content is made of, where that content is still
    /// to be sent.
    func owner(ofContentAt position: Int) -> Int? {
        let item = items[position]
        guard let local = item.local, let borrowed = item.borrowed,
            let owner = index[borrowed.owner],
            items[owner].remote?.content?.revision == borrowed.revision
        else { return nil }
        if let remote = item.remote, local.hasSameContent(as: remote) { return nil }
        return owner
    }

    /// Whether an heir's content is made of another item's bytes, and that item's content of the
    /// original's: if the heir had the original's identity, each would wait for the other.
    func closesCircle(_ heir: Int, inheriting original: Int) -> Bool {
        guard let owner = owner(ofContentAt: heir), owner != original else { return false }
        return borrows(owner, from: original)
    }

    /// Whether an item's content is made of another item's bytes, directly or through items between.
    ///
    /// In a circle none could be sent first.
    private func borrows(_ position: Int, from other: Int) -> Bool {
        var next: Int? = position
        for _ in items.indices {
            guard let now = next else { return false }
            if now == other { return true }
            next = owner(ofContentAt: now)
        }
        return false
    }
}
