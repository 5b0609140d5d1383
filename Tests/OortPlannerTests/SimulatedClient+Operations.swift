import OortModel
import OortPlanner

/// Operations at the service: sent, done or refused, answered or not.
extension SimulatedClient {
    /// Sends one operation whose predecessors are done; `choice` picks.
    mutating func start(_ choice: Int) -> Bool {
        var ready: [Int] = []
        for index in plan.indices where !started[index] {
            if plan[index].after.allSatisfy({ done[$0] }) { ready.append(index) }
        }
        guard !ready.isEmpty else { return false }
        let index = ready[choice % ready.count]
        started[index] = true
        let operation = plan[index]
        guard let row = rows[operation.inode], !row.state.isBusy, isCurrent(operation, row) else {
            return true
        }
        if recordsCalls { calls.append("start \(operation.inode) \(operation.action)") }
        rows[operation.inode]?.state.isBusy = true
        if case .duplicate(_, let heir) = operation.action { rows[heir]?.state.isBusy = true }
        rows[operation.inode]?.attempt = operation.action
        switch operation.action {
        case .createFolder(let place), .upload(let place, _), .duplicate(let place, _):
            let path = service.kind == .path ? path(of: place.parent) : nil
            rows[operation.inode]?.attemptPath = path
        case .move, .replace, .delete, .setAttributes: break
        }
        running.append(
            Running(
                operation: index,
                action: operation.action,
                inode: operation.inode,
                known: contents(knownBelow: operation.inode),
                knownItems: operation.action == .delete ? items(knownAt: operation.inode) : [],
                loan: row.loan
            )
        )
        return true
    }

    /// The contents of the files that lie in a folder as far as the client knows.
    private func contents(knownBelow folder: Inode) -> Set<Int> {
        var known: Set<Int> = []
        for row in rows.values where isKnown(row, below: folder) {
            if let size = row.state.remote?.content?.size { known.insert(Int(size)) }
        }
        return known
    }

    /// The item, and what lies in it as far as the client knows.
    private func items(knownAt inode: Inode) -> Set<Int> {
        let known = rows.values.filter { $0.state.inode == inode || isKnown($0, below: inode) }
        return Set(known.compactMap(\.id))
    }

    func isKnown(_ row: Row, below folder: Inode) -> Bool {
        var (next, steps) = (row.state.remote?.place.parent, 0)
        while let above = next, above != folder, steps < 100 {
            next = rows[above]?.state.remote?.place.parent
            steps += 1
        }
        return next == folder
    }

    /// Whether the item is still what the plan saw: a local change since makes a new plan.
    func isCurrent(_ operation: RemoteOperation, _ row: Row) -> Bool {
        guard row.state.isPushable, row.state.isSettled, !row.state.isBeingWritten,
            !row.mustLook,
            row.missedAt == nil
        else { return false }
        switch operation.action {
        case .createFolder, .upload: return row.state.local != nil && row.id == nil
        case .replace(let revision, let content):
            return row.state.local?.content == content
                && row.state.remote?.content?.revision == revision
        case .move, .setAttributes: return row.state.local != nil && row.id != nil
        case .delete: return row.state.local == nil && row.id != nil
        case .duplicate(_, let heir):
            return row.state.local != nil && rows[heir]?.state.isBornHere ?? false
                && rows[heir]?.state.isBusy == false
        }
    }

    mutating func serviceID(of inode: Inode) -> Int? {
        if inode == .root { return SimulatedService.root }
        guard service.kind == .path else { return rows[inode]?.id }
        guard let path = path(of: inode) else { return nil }
        return service.resolve(path, makingFolders: false)
    }

    func path(of inode: Inode) -> [String]? {
        var path: [String] = []
        var next = inode
        while next != .root {
            guard let place = rows[next]?.state.remote?.place, path.count < 100 else { return nil }
            path.append(place.name)
            next = place.parent
        }
        return path.reversed()
    }

    /// The service does what was sent, perhaps refusing it.
    mutating func perform(_ choice: Int, failing: Bool) {
        let waiting = running.indices.filter { running[$0].answer == nil && !running[$0].failed }
        guard !waiting.isEmpty else { return }
        let position = waiting[choice % waiting.count]
        let inode = running[position].inode
        do throws(SimulatedService.Failure) {
            if failing { throw .notFound }
            running[position].answer = try execute(running[position])
        } catch {
            running[position].failed = true
            if recordsCalls { calls.append("failed \(inode) \(error)") }
            rows[inode]?.mustLook = true
            if case .nameTaken = error { lookAtName(running[position].action) }
        }
    }

    /// Somebody has the name: find out who.
    mutating func lookAtName(_ action: RemoteOperation.Action) {
        let place: Place
        switch action {
        case .createFolder(let at), .upload(let at, _), .duplicate(let at, _), .move(let at, _):
            place = at
        case .replace, .delete, .setAttributes: return
        }
        guard let folder = serviceID(of: place.parent),
            let other = service.item(named: place.name, in: folder)
        else { return }
        clock += 1
        observe(other, service.items, began: clock)
    }

    mutating func execute(
        _ running: Running
    ) throws(SimulatedService.Failure) -> SimulatedService.Item? {
        let inode = running.inode
        switch running.action {
        case .createFolder(let place):
            guard let parent = serviceID(of: place.parent) else { throw .notFound }
            return try service.create(in: parent, name: place.name, isFolder: true, content: 0)
        case .upload(let place, let content):
            try borrow(running)
            return try service.create(
                in: try uploadFolder(place),
                name: place.name,
                isFolder: false,
                content: Int(content.size)
            )
        case .duplicate(let place, _):
            guard let id = serviceID(of: inode), let original = service.items[id],
                Revision(String(original.revision)) == rows[inode]?.state.remote?.content?.revision
            else { throw .notFound }
            copied.insert(original.content)
            return try service.create(
                in: try uploadFolder(place),
                name: place.name,
                isFolder: false,
                content: original.content
            )
        case .replace(let revision, let content):
            guard let id = serviceID(of: inode), id == rows[inode]?.id else { throw .notFound }
            try borrow(running)
            let old = service.items[id].map { RevisionID(item: id, revision: $0.revision) }
            let new = try service.replace(
                id,
                revision: revision.flatMap { Int($0.rawValue) },
                content: Int(content.size)
            )
            if let old { taken.insert(old) }
            return new
        case .move(let place, _):
            guard let id = serviceID(of: inode), id == rows[inode]?.id,
                let parent = serviceID(of: place.parent)
            else { throw .notFound }
            return try service.move(id, to: parent, name: place.name)
        case .delete:
            guard let id = serviceID(of: inode), id == rows[inode]?.id else { throw .notFound }
            let revision = rows[inode]?.state.synced?.content?.revision
            // No service asks what came into a folder before it goes to the trash; but an item that the
            // client knew to be in it is no excuse.
            let below = Set(service.contents(below: id)).subtracting(running.known)
            if service.isFolder(id) { owedToOthers.subtract(below) }
            let items = service.items
            try service.delete(id, revision: revision.flatMap { Int($0.rawValue) })
            for item in items.values where service.items[item.id] == nil {
                if running.knownItems.contains(item.id) {
                    taken.insert(RevisionID(item: item.id, revision: item.revision))
                }
            }
            return nil
        case .setAttributes: return service.items[rows[inode]?.id ?? -1]
        }
    }

    /// The service makes a content of what it has of another item; what somebody else took away of that
    /// meanwhile is no longer asked for.
    private mutating func borrow(_ running: Running) throws(SimulatedService.Failure) {
        guard let loan = running.loan, !loan.isHere,
            service.items[loan.source.item]?.revision != loan.source.revision
        else { return }
        if let row = rows[running.inode], row.state.local != nil, row.loan == loan {
            if taken.contains(loan.source) {
                let what = "the bytes of \(running.inode): \(loan.source)"
                failure = failure ?? "our own operation took away \(what)"
            }
            rows[running.inode]?.loan = nil
        }
        throw .notFound
    }

    mutating func uploadFolder(_ place: Place) throws(SimulatedService.Failure) -> Int {
        if service.kind == .path, let path = path(of: place.parent),
            let made = service.resolve(path, makingFolders: true)
        {
            return made
        }
        guard let folder = serviceID(of: place.parent) else { throw .notFound }
        return folder
    }

    /// The answer of something that the service did arrives, or gets lost.
    mutating func answer(_ choice: Int, isLost: Bool) {
        let ready = running.indices.filter { running[$0].answer != nil || running[$0].failed }
        guard !ready.isEmpty else { return }
        let entry = running.remove(at: ready[choice % ready.count])
        rows[entry.inode]?.state.isBusy = false
        if case .duplicate(_, let heir) = entry.action { rows[heir]?.state.isBusy = false }
        if isLost || entry.failed {
            rows[entry.inode]?.mustLook = true
            if entry.failed { rows[entry.inode]?.state.isPushable = false }
            return
        }
        if entry.operation < plan.count, plan[entry.operation].inode == entry.inode {
            done[entry.operation] = true
        }
        rows[entry.inode]?.attempt = nil
        if case .some(.some(let item)) = entry.answer {
            record(entry.action, of: entry.inode, answer: item)
        } else {
            clock += 1
            if let id = rows[entry.inode]?.id { deletedAt[id] = clock }
            rows[entry.inode]?.state.remote = nil
            gone(entry.inode)
        }
    }

    mutating func record(
        _ action: RemoteOperation.Action,
        of inode: Inode,
        answer item: SimulatedService.Item
    ) {
        clock += 1
        if case .duplicate(_, let heir) = action {
            recordDuplicate(inode, heir, item)
            return
        }
        let parent =
            self.inode(ofID: item.parent) ?? folder(of: item, service.items, began: clock)
        guard let parent else {
            // The folder is gone again, and this with it: the feed will say so.
            rows[inode]?.mustLook = true
            return
        }
        let entry = entry(item, parent: parent)
        if rows[inode]?.id == nil, let twin = self.inode(ofID: item.id), twin != inode {
            // The feed was faster than the answer, and perhaps knows more.
            if rows[twin]?.state.remote != entry { rows[inode]?.mustLook = true }
            rows[twin] = nil
            reparent(twin, inode)
        }
        rows[inode]?.changedAt = clock
        rows[inode]?.id = item.id
        rows[inode]?.enumeration = enumeration
        rows[inode]?.state.remote = entry
        switch action {
        case .createFolder, .upload, .duplicate:
            rows[inode]?.state.synced = entry
            let hasBytes = rows[inode]?.loan?.isHere ?? true
            rows[inode]?.isOurs = hasBytes
        case .replace:
            rows[inode]?.state.synced?.content = entry.content
            // Of what the service made nothing is here.
            if rows[inode]?.loan?.isHere == false { rows[inode]?.isOurs = false }
        case .move: rows[inode]?.state.synced?.place = entry.place
        case .setAttributes, .delete: break
        }
        if let content = rows[inode]?.state.local?.content, let new = entry.content,
            content.isSame(as: new)
        {
            rows[inode]?.state.local?.content = new
            rows[inode]?.loan = nil
        }
    }

    mutating func recordDuplicate(
        _ original: Inode,
        _ heir: Inode,
        _ item: SimulatedService.Item
    ) {
        guard let old = rows[original], let parent = inode(ofID: item.parent) else { return }
        let entry = entry(item, parent: parent)
        if let twin = inode(ofID: item.id) {
            // The feed was faster than the answer, and perhaps knows more.
            if rows[twin]?.state.remote != entry { rows[original]?.mustLook = true }
            rows[twin] = nil
        }
        let mayInherit = rows[heir].map { $0.id == nil && $0.state.local != nil } ?? false
        if mayInherit {
            rows[heir]?.id = old.id
            rows[heir]?.isOurs = old.isOurs
            rows[heir]?.enumeration = old.enumeration
            rows[heir]?.state.remote = old.state.remote
            rows[heir]?.state.synced = old.state.synced
            // News of the old identity that came meanwhile are the heir's.
            if old.mustLook { rows[heir]?.mustLook = true }
            rows[heir]?.changedAt = clock
        } else {
            // The heir is gone: the old identity has no local item any more.
            lastInode += 1
            let orphan = Inode(lastInode)
            rows[orphan] = Row(
                state: ItemState(
                    inode: orphan,
                    isFolder: false,
                    local: nil,
                    synced: old.state.synced,
                    remote: old.state.remote
                ),
                id: old.id,
                mustLook: old.mustLook,
                enumeration: old.enumeration
            )
        }
        rows[original]?.id = item.id
        rows[original]?.enumeration = enumeration
        rows[original]?.isOurs = true
        rows[original]?.state.remote = entry
        rows[original]?.state.synced = entry
        rows[original]?.changedAt = clock
        if let content = rows[original]?.state.local?.content, let new = entry.content,
            content.isSame(as: new)
        {
            rows[original]?.state.local?.content = new
            rows[original]?.loan = nil
        } else {
            let loan = loan(of: old, isHere: false)
            rows[original]?.loan = loan
        }
    }

    /// The process ends and begins again: what was under way was done or not.
    mutating func restart() {
        for entry in running {
            rows[entry.inode]?.state.isBusy = false
            rows[entry.inode]?.mustLook = true
            if case .duplicate(_, let heir) = entry.action { rows[heir]?.state.isBusy = false }
        }
        running = []
        plan = []
        done = []
        started = []
        for inode in Array(rows.keys) { rows[inode]?.state.isPushable = true }
    }
}

extension ItemState {
    var isBornHere: Bool { remote == nil && synced == nil && local != nil }
}
