import OortModel
import OortPlanner

/// Plans, and their steps in the local tree.
extension SimulatedClient {
    /// Merges all news and makes a new plan of what is left to do.
    mutating func makePlan() {
        plan = []
        for round in 0... {
            guard round < 50 else {
                failure = "merging does not end"
                return
            }
            let next = planning(planner, input())
            guard next.local.isEmpty else {
                if recordsCalls { calls.append("local \(next.local)") }
                apply(next.local)
                continue
            }
            plan = next.remote
            break
        }
        endLoans()
        done = Array(repeating: false, count: plan.count)
        started = done
        failure = failure ?? sharedName()
    }

    /// What an item that may be gone shares its name with: a folder shows nothing twice for a moment
    /// because only half of the news have come.
    private func sharedName() -> String? {
        for row in rows.values where row.missedAt != nil {
            guard let place = row.state.local?.place else { continue }
            let others = localChildren(place.parent).filter {
                $0.state.inode != row.state.inode
                    && service.key($0.state.local?.place.name ?? "") == service.key(place.name)
            }
            if let other = others.first, service.kind != .duplicateNames {
                return "\(row.state.inode) and \(other.state.inode) are both \(place)"
            }
        }
        return nil
    }

    /// What an item is made of that another one has.
    private func borrowed(_ row: Row) -> BorrowedContent? {
        guard let source = row.loan?.source, source.item != row.id,
            let owner = inode(ofID: source.item)
        else { return nil }
        return BorrowedContent(owner: owner, revision: Revision(String(source.revision)))
    }

    /// What is at rest has its own bytes at the service.
    private mutating func endLoans() {
        guard rows.values.contains(where: { $0.loan != nil }) else { return }
        for state in input() where rows[state.inode]?.loan != nil && planner.mayRest(state) {
            rows[state.inode]?.loan = nil
            rows[state.inode]?.state.local?.content = state.remote?.content
        }
    }

    /// What may or may not have happened to an item must be known before it is planned for.
    func input() -> [ItemState] {
        var states: [ItemState] = []
        for inode in rows.keys.sorted() {
            guard let row = rows[inode] else { continue }
            var state = row.state
            state.mayBeGone = row.missedAt != nil
            state.isBusy =
                state.isBusy || row.mustLook || row.attempt != nil || state.mayBeGone
            switch row.attempt {
            case .createFolder(let place), .upload(let place, _), .duplicate(let place, _):
                state.expected = place
            case .move, .replace, .delete, .setAttributes, nil: break
            }
            state.isRecent = row.isOurs && row.id != nil && !state.isFolder && row.loan == nil
            state.borrowed = borrowed(row)
            states.append(state)
        }
        let heirs: [Inode] = rows.values.compactMap { row in
            if case .duplicate(_, let heir) = row.attempt { heir } else { nil }
        }
        for index in states.indices where heirs.contains(states[index].inode) {
            states[index].isBusy = true
        }
        return states
    }

    mutating func apply(_ steps: [LocalStep]) {
        for step in steps {
            switch step {
            case .forget(let inode): rows[inode] = nil
            case .detach(let inode):
                rows[inode]?.state.remote = nil
                rows[inode]?.state.synced = nil
                rows[inode]?.id = nil
                rows[inode]?.enumeration = 0
            case .place(let inode, let place):
                if rows[inode]?.state.local == nil {
                    let remote = rows[inode]?.state.remote
                    rows[inode]?.state.local = remote
                    rows[inode]?.loan = nil
                    rows[inode]?.state.isSettled = true
                }
                rows[inode]?.state.local?.place = place
            case .takeContent(let inode):
                let content = rows[inode]?.state.remote?.content
                rows[inode]?.state.local?.content = content
                rows[inode]?.loan = nil
            case .takeAttributes: break
            case .keepBoth(let inode): keepBoth(inode)
            case .renumber(let inode): renumber(inode)
            case .adopt(let inode, let other): adopt(inode, other)
            case .handOver(let original, let heir): handOver(original, heir)
            case .renounce(let inode): renounce(inode)
            case .agree(let inode, let content):
                guard let remote = rows[inode]?.state.remote else { continue }
                let old = rows[inode]?.state.synced?.content
                rows[inode]?.state.synced = remote
                if !content { rows[inode]?.state.synced?.content = old }
            }
        }
    }

    mutating func keepBoth(_ inode: Inode) {
        guard let local = rows[inode]?.state.local else { return }
        lastInode += 1
        let copy = Inode(lastInode)
        var entry = local
        entry.place.name = freeName(local.place, "c")
        let loan = rows[inode]?.loan
        rows[copy] = Row(
            state: ItemState(inode: copy, isFolder: false, local: entry, synced: nil, remote: nil),
            loan: loan
        )
        rows[inode]?.loan = nil
        let content = rows[inode]?.state.remote?.content
        rows[inode]?.state.local?.content = content
    }

    mutating func renumber(_ inode: Inode) {
        guard let place = rows[inode]?.state.local?.place else { return }
        let name = freeName(place, "n")
        rows[inode]?.state.local?.place.name = name
    }

    func freeName(_ place: Place, _ mark: String) -> String {
        var number = 2
        while true {
            let name = "\(place.name)~\(mark)\(number)"
            let key = planner.traits.comparison.key(name)
            let isTaken = rows.values.contains { row in
                [row.state.local?.place, row.state.remote?.place].contains { other in
                    other.map {
                        $0.parent == place.parent && planner.traits.comparison.key($0.name) == key
                    } ?? false
                }
            }
            if !isTaken { return name }
            number += 1
        }
    }

    mutating func adopt(_ inode: Inode, _ other: Inode) {
        guard let newcomer = rows[other] else { return }
        rows[other] = nil
        rows[inode]?.state.remote = newcomer.state.remote
        rows[inode]?.state.synced = newcomer.state.remote
        rows[inode]?.id = newcomer.id
        rows[inode]?.isOurs = newcomer.isOurs
        rows[inode]?.enumeration = newcomer.enumeration
        if newcomer.mustLook { rows[inode]?.mustLook = true }
        rows[inode]?.state.local?.content = newcomer.state.remote?.content
        rows[inode]?.loan = nil
        reparent(other, inode)
    }

    mutating func reparent(_ old: Inode, _ new: Inode) {
        for row in rows.values {
            let inode = row.state.inode
            if row.state.remote?.place.parent == old {
                rows[inode]?.state.remote?.place.parent = new
            }
            if row.state.synced?.place.parent == old {
                rows[inode]?.state.synced?.place.parent = new
            }
            if row.state.local?.place.parent == old { rows[inode]?.state.local?.place.parent = new }
        }
    }

    mutating func renounce(_ inode: Inode) {
        guard let row = rows[inode], let local = row.state.local, let content = local.content
        else { return }
        lastInode += 1
        let orphan = Inode(lastInode)
        rows[orphan] = row
        rows[orphan]?.loan = nil
        rows[orphan]?.state = ItemState(
            inode: orphan,
            isFolder: false,
            local: nil,
            synced: row.state.synced,
            remote: row.state.remote
        )
        rows[orphan]?.state.formerName = local.place.name
        copied.insert(Int(row.state.remote?.content?.size ?? content.size))
        let loan = loan(of: row, isHere: true)
        rows[inode]?.loan = loan
        rows[inode]?.id = nil
        rows[inode]?.enumeration = 0
        rows[inode]?.state.remote = nil
        rows[inode]?.state.synced = nil
        rows[inode]?.state.local?.content = Self.identity(Int(content.size), revision: nil)
    }

    mutating func handOver(_ original: Inode, _ heir: Inode) {
        guard let old = rows[original], let new = rows[heir] else { return }
        let loan = loan(of: new, isHere: true)
        rows[heir]?.loan = loan
        rows[heir]?.id = old.id
        rows[heir]?.isOurs = old.isOurs
        rows[original]?.isOurs = new.isOurs
        rows[heir]?.enumeration = old.enumeration
        rows[original]?.enumeration = new.enumeration
        rows[heir]?.state.remote = old.state.remote
        rows[heir]?.state.synced = old.state.synced
        rows[heir]?.changedAt = max(old.changedAt, new.changedAt)
        if let content = new.state.local?.content, content.revision != nil {
            rows[heir]?.state.local?.content = Self.identity(Int(content.size), revision: nil)
        }
        rows[original]?.id = new.id
        rows[original]?.state.remote = new.state.remote
        rows[original]?.state.synced = new.state.synced
        rows[original]?.changedAt = clock
        if let sent = new.state.remote?.content { copied.insert(Int(sent.size)) }
        if new.id == nil { rows[original] = nil }
        if old.mustLook || new.mustLook {
            rows[heir]?.mustLook = true
            rows[original]?.mustLook = true
        }
    }
}
