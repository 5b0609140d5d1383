import OortModel
import OortPlanner

/// What the client hears of the service: the feed, and answers to questions.
extension SimulatedClient {
    struct Page {
        var items: [Int: SimulatedService.Item?]
        var ancestors: [Int: SimulatedService.Item]
        var end: Int
        var began: Int
    }

    func inode(ofID id: Int) -> Inode? {
        id == SimulatedService.root ? .root : rows.values.first { $0.id == id }?.state.inode
    }

    /// Reads the feed.
    mutating func fetchPage() -> Page {
        clock += 1
        var page = Page(items: [:], ancestors: service.items, end: service.log.count, began: clock)
        for id in service.log[cursor...] { page.items[id] = service.items[id] }
        return page
    }

    mutating func apply(_ page: Page) {
        cursor = max(cursor, page.end)
        withholdDeletions()
        for id in page.items.keys.sorted() {
            guard case .some(.some(let item)) = page.items[id] else { continue }
            observe(item, page.ancestors, began: page.began, isFeed: true)
        }
        for id in page.items.keys.sorted() {
            guard case .some(.none) = page.items[id], let inode = inode(ofID: id) else { continue }
            if rows[inode]?.changedAt ?? -1 >= page.began || rows[inode]?.state.isBusy == true {
                rows[inode]?.mustLook = true
            } else {
                takeOut(inode, began: page.began)
            }
        }
        endRun(began: page.began)
    }

    /// An item that was missing before the run began, and was not in it, is gone.
    mutating func endRun(began: Int) {
        for row in rows.values.sorted(by: { $0.state.inode < $1.state.inode }) {
            let inode = row.state.inode
            guard let missedAt = rows[inode]?.missedAt, missedAt < began else { continue }
            if row.changedAt >= began || row.mustLook {
                rows[inode]?.mustLook = true
            } else {
                takeOut(inode, began: began)
            }
        }
    }

    /// An item is gone with all below it; what was touched since the page was read may lie elsewhere
    /// by now, and is asked for first.
    mutating func takeOut(_ inode: Inode, began: Int) {
        let doubtful = rows.values.filter { row in
            (row.changedAt >= began || row.state.isBusy) && isKnown(row, below: inode)
        }
        guard doubtful.isEmpty else {
            for row in doubtful { rows[row.state.inode]?.mustLook = true }
            return miss(inode)
        }
        gone(inode)
    }

    /// Reads the first pages of a run, where places are reported by path: an item that has no place yet, or
    /// whose place was given to another, may be reported elsewhere by the rest.
    mutating func applyHalfRun(_ choice: Int) {
        // An item is reported where it was changed last.
        let log = service.log
        let rest = log.indices[cursor...].filter { !log[($0 + 1)...].contains(log[$0]) }
        guard service.kind == .path, !rest.isEmpty else { return }
        clock += 1
        withholdDeletions()
        let half = rest.prefix(1 + choice % rest.count)
        cursor = (half.last ?? cursor) + 1
        for id in half.map({ log[$0] }) {
            guard let item = service.items[id] else {
                if let inode = inode(ofID: id) { miss(inode) }
                continue
            }
            for row in rows.values where row.id != nil && row.id != id {
                guard let place = row.state.remote?.place, isAt(item, place) else { continue }
                miss(row.state.inode)
            }
            observe(item, service.items, began: clock, isFeed: true)
        }
    }

    private func isAt(_ item: SimulatedService.Item, _ place: Place) -> Bool {
        service.key(item.name) == service.key(place.name)
            && inode(ofID: item.parent) == place.parent
    }

    /// The service reported that it does not have an item.
    mutating func miss(_ inode: Inode) {
        if rows[inode]?.state.isBusy == true {
            rows[inode]?.mustLook = true
        } else {
            rows[inode]?.missedAt = clock
        }
    }

    /// What was planned before news came may not delete a folder into which something new came.
    mutating func withholdDeletions() {
        for index in plan.indices where plan[index].action == .delete { started[index] = true }
    }

    mutating func gone(_ inode: Inode) {
        guard let row = rows[inode] else { return }
        rows[inode]?.state.remote = nil
        rows[inode]?.missedAt = nil
        if row.state.synced == nil && row.state.local == nil { rows[inode] = nil }
        for child in rows.values where child.state.remote?.place.parent == inode {
            gone(child.state.inode)
        }
    }

    @discardableResult
    mutating func observe(
        _ item: SimulatedService.Item,
        _ ancestors: [Int: SimulatedService.Item],
        began: Int,
        isFeed: Bool = false
    ) -> Inode? {
        if let known = inode(ofID: item.id) { rows[known]?.enumeration = enumeration }
        guard let parent = folder(of: item, ancestors, began: began, isFeed: isFeed) else {
            // Reported in a folder that we deleted since: by path, it is asked for.
            if service.kind == .path, let inode = inode(ofID: item.id) {
                rows[inode]?.mustLook = true
            }
            return nil
        }
        let entry = entry(item, parent: parent)
        if let inode = inode(ofID: item.id) {
            guard rows[inode]?.state.remote != entry || rows[inode]?.missedAt != nil else {
                return inode
            }
            if rows[inode]?.changedAt ?? -1 >= began || rows[inode]?.state.isBusy == true {
                rows[inode]?.mustLook = true
            } else {
                rows[inode]?.state.remote = entry
                rows[inode]?.missedAt = nil
            }
            return inode
        }
        guard deletedAt[item.id] ?? -1 < began else { return nil }
        lastInode += 1
        let inode = Inode(lastInode)
        rows[inode] = Row(
            state: ItemState(
                inode: inode,
                isFolder: item.isFolder,
                local: nil,
                synced: nil,
                remote: entry
            ),
            id: item.id,
            enumeration: enumeration
        )
        return inode
    }

    /// The folder in which an item was reported to lie.
    ///
    /// By path, only the feed says that another one is there by now: everything else is reported to lie in
    /// what has the path, as far as is known.
    mutating func folder(
        of item: SimulatedService.Item,
        _ ancestors: [Int: SimulatedService.Item],
        began: Int,
        isFeed: Bool = false
    ) -> Inode? {
        let known = inode(ofID: item.parent)
        if let known, known == .root || rows[known]?.state.remote != nil { return known }
        guard let above = ancestors[item.parent] else { return nil }
        if service.kind == .path, !isFeed,
            let parent = folder(of: above, ancestors, began: began),
            let there = remoteFolder(named: above.name, in: parent)
        {
            return there
        }
        return observe(above, ancestors, began: began, isFeed: isFeed)
    }

    /// One that was reported as gone from there only when there is no other.
    private func remoteFolder(named name: String, in parent: Inode) -> Inode? {
        let found = rows.values.filter { row in
            guard row.state.isFolder, let place = row.state.remote?.place else { return false }
            return place.parent == parent && service.key(place.name) == service.key(name)
        }
        return (found.filter { $0.missedAt == nil } + found).first?.state.inode
    }

    func entry(_ item: SimulatedService.Item, parent: Inode) -> Entry {
        Entry(
            place: Place(parent: parent, name: item.name),
            content: item.isFolder ? nil : Self.identity(item.content, revision: item.revision)
        )
    }

    /// Asks the service about what may or may not have happened.
    mutating func look() {
        for inode in rows.keys.sorted() {
            guard let row = rows[inode], row.mustLook || row.attempt != nil, !row.state.isBusy
            else { continue }
            clock += 1
            rows[inode]?.mustLook = false
            if let id = row.id {
                if let item = service.items[id], hasHappened(row, item) {
                    if let attempt = row.attempt { record(attempt, of: inode, answer: item) }
                } else if let item = service.items[id] {
                    observe(item, service.items, began: clock)
                } else if row.state.isFolder, row.attempt != .delete {
                    // A folder that was not found says nothing about its contents.
                    miss(inode)
                } else {
                    if row.attempt == .delete { deletedAt[id] = clock }
                    gone(inode)
                }
            }
            lookForAttempt(inode, row)
        }
    }

    /// Whether the item is as an operation that was sent would have made it.
    func hasHappened(_ row: Row, _ item: SimulatedService.Item) -> Bool {
        switch row.attempt {
        case .replace(_, let content): return item.content == Int(content.size)
        case .move(let place, _):
            return place.name == item.name && self.inode(ofID: item.parent) == place.parent
        case .createFolder, .upload, .duplicate, .delete, .setAttributes, nil: return false
        }
    }

    /// Whether something that was sent arrived without an answer.
    mutating func lookForAttempt(_ inode: Inode, _ row: Row) {
        rows[inode]?.attempt = nil
        let place: Place
        switch row.attempt {
        case .createFolder(let at), .upload(let at, _), .duplicate(let at, _): place = at
        case .move, .replace, .delete, .setAttributes, nil:
            if row.state.local == nil, row.id == nil, row.state.synced == nil { rows[inode] = nil }
            return
        }
        var folder = place.parent == .root ? SimulatedService.root : rows[place.parent]?.id
        if let path = row.attemptPath { folder = service.resolve(path, makingFolders: false) }
        if let attempt = row.attempt, let folder,
            let found = service.children(of: folder).first(where: {
                service.key($0.name) == service.key(place.name) && isResult($0, of: attempt, row)
            })
        {
            record(attempt, of: inode, answer: found)
        } else if row.state.local == nil, row.id == nil, row.state.synced == nil {
            rows[inode] = nil
        }
    }

    func isResult(
        _ item: SimulatedService.Item,
        of attempt: RemoteOperation.Action,
        _ row: Row
    ) -> Bool {
        if let known = inode(ofID: item.id), rows[known]?.state.synced != nil { return false }
        switch attempt {
        case .createFolder: return item.isFolder
        case .upload(_, let content): return !item.isFolder && item.content == Int(content.size)
        case .duplicate:
            return !item.isFolder && item.content == (row.state.remote?.content?.size).map(Int.init)
        case .move, .replace, .delete, .setAttributes: return false
        }
    }
}
