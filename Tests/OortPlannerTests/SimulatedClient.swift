import OortModel
import OortPlanner

/// A catalog and an engine in memory, as plain as can be: what `OortCatalog` and `OortSync` do with
/// plans, without SQLite, time or tasks.
struct SimulatedClient {
    struct Row {
        var state: ItemState
        var id: Int?
        var mustLook = false
        var changedAt = -1
        /// What was sent and never answered.
        var attempt: RemoteOperation.Action?
        /// The path of the folder at that moment, where the service goes by paths.
        var attemptPath: [String]?
    }

    struct Running {
        var operation: Int
        var action: RemoteOperation.Action
        var inode: Inode
        /// The service's answer; nil while it has not done it yet.
        var answer: SimulatedService.Item??
        var failed = false
    }

    var rows: [Inode: Row] = [:]
    var service: SimulatedService
    let planner: Planner
    private(set) var cursor = 0
    private var lastInode: UInt64 = 1
    private(set) var clock = 0
    /// Contents that the user made and did not take back himself.
    private(set) var owed: Set<Int> = []
    private(set) var lastContent = 0
    /// Contents of backups: there once more while the original is on its way.
    private(set) var copied: Set<Int> = []
    /// What we deleted, and when: a page that was read before may still name it.
    private var deletedAt: [Int: Int] = [:]
    private var plan: [RemoteOperation] = []
    private var done: [Bool] = []
    private var started: [Bool] = []
    private(set) var running: [Running] = []
    private(set) var failure: String?
    private(set) var calls: [String] = []
    var recordsCalls = false

    init(kind: SimulatedService.Kind) {
        service = SimulatedService(kind: kind)
        planner = Planner(
            traits: PlannerTraits(
                comparison: kind == .duplicateNames ? .exact : .caseInsensitive,
                allowsDuplicates: kind == .duplicateNames
            )
        )
    }

    static let hashes: [ContentHash] = (0..<400).map {
        ContentHash(algorithm: .md5, value: String($0))
    }

    private static func identity(_ content: Int, revision: Int?) -> ContentIdentity {
        ContentIdentity(
            revision: revision.map { Revision(String($0)) },
            staged: revision == nil ? Int64(content) : nil,
            hash: hashes[content % 400],
            size: Int64(content)
        )
    }

    mutating func newContent() -> Int {
        lastContent += 1
        return lastContent
    }

    // MARK: The local file system

    func localChildren(_ folder: Inode) -> [Row] {
        rows.values.filter { $0.state.local?.place.parent == folder }
            .sorted { $0.state.inode < $1.state.inode }
    }

    var localItems: [Row] {
        rows.values.filter { $0.state.local != nil }.sorted { $0.state.inode < $1.state.inode }
    }

    var localFolders: [Inode] { [.root] + localItems.filter(\.state.isFolder).map(\.state.inode) }

    func localItem(_ name: String, in folder: Inode) -> Row? {
        let key = planner.traits.comparison.key(name)
        return rows.values.first {
            guard let place = $0.state.local?.place, place.parent == folder else { return false }
            return planner.traits.comparison.key(place.name) == key
        }
    }

    private mutating func touch(_ inode: Inode) { rows[inode]?.state.isSettled = false }

    @discardableResult
    mutating func create(_ name: String, in folder: Inode, isFolder: Bool) -> Inode? {
        guard localItem(name, in: folder) == nil else { return nil }
        lastInode += 1
        let inode = Inode(lastInode)
        var content: ContentIdentity?
        if !isFolder {
            let bytes = newContent()
            owed.insert(bytes)
            content = Self.identity(bytes, revision: nil)
        }
        rows[inode] = Row(
            state: ItemState(
                inode: inode,
                isFolder: isFolder,
                local: Entry(place: Place(parent: folder, name: name), content: content),
                synced: nil,
                remote: nil
            )
        )
        touch(inode)
        return inode
    }

    mutating func write(_ inode: Inode) {
        guard let local = rows[inode]?.state.local, let old = local.content else { return }
        if old.staged != nil { owed.remove(Int(old.size)) }
        let bytes = newContent()
        owed.insert(bytes)
        rows[inode]?.state.local?.content = Self.identity(bytes, revision: nil)
        touch(inode)
    }

    mutating func unlink(_ inode: Inode) {
        guard let row = rows[inode], let local = row.state.local else { return }
        for child in row.state.isFolder ? localChildren(inode) : [] { unlink(child.state.inode) }
        if let content = local.content, content.staged != nil { owed.remove(Int(content.size)) }
        rows[inode]?.state.local = nil
        rows[inode]?.state.formerName = local.place.name
        touch(inode)
        if row.id == nil, row.state.synced == nil, !row.state.isBusy, !row.mustLook {
            rows[inode] = nil
        }
    }

    private func isLocallyBelow(_ inode: Inode, _ ancestor: Inode) -> Bool {
        var next = inode
        while next != .root, let place = rows[next]?.state.local?.place {
            if next == ancestor { return true }
            next = place.parent
        }
        return false
    }

    mutating func rename(_ inode: Inode, to folder: Inode, _ name: String) {
        guard let row = rows[inode], row.state.local != nil, !isLocallyBelow(folder, inode)
        else { return }
        if let there = localItem(name, in: folder), there.state.inode != inode {
            guard there.state.isFolder == row.state.isFolder,
                !there.state.isFolder || localChildren(there.state.inode).isEmpty
            else { return }
            unlink(there.state.inode)
        }
        rows[inode]?.state.local?.place = Place(parent: folder, name: name)
        touch(inode)
    }

    mutating func exchange(_ one: Inode, _ other: Inode) {
        guard let first = rows[one]?.state.local?.place,
            let second = rows[other]?.state.local?.place,
            one != other, !isLocallyBelow(first.parent, other), !isLocallyBelow(second.parent, one)
        else { return }
        rows[one]?.state.local?.place = second
        rows[other]?.state.local?.place = first
        touch(one)
        touch(other)
    }

    mutating func settle() { for inode in Array(rows.keys) { rows[inode]?.state.isSettled = true } }

    mutating func retryAll() {
        for inode in Array(rows.keys) { rows[inode]?.state.isPushable = true }
    }

    // MARK: Observations

    struct Page {
        var items: [Int: SimulatedService.Item?]
        var ancestors: [Int: SimulatedService.Item]
        var end: Int
        var began: Int
    }

    private func inode(ofID id: Int) -> Inode? {
        id == SimulatedService.root ? .root : rows.values.first { $0.id == id }?.state.inode
    }

    /// Reads the feed; with `everything`, the whole account as after a lost cursor.
    mutating func fetchPage(everything: Bool = false) -> Page {
        clock += 1
        var page = Page(items: [:], ancestors: service.items, end: service.log.count, began: clock)
        if everything {
            for row in rows.values { if let id = row.id { page.items[id] = .some(nil) } }
            for (id, item) in service.items { page.items[id] = item }
        } else {
            for id in service.log[cursor...] { page.items[id] = service.items[id] }
        }
        return page
    }

    mutating func apply(_ page: Page) {
        cursor = max(cursor, page.end)
        for id in page.items.keys.sorted() {
            guard case .some(.some(let item)) = page.items[id] else { continue }
            observe(item, page.ancestors, began: page.began)
        }
        for id in page.items.keys.sorted() {
            guard case .some(.none) = page.items[id], let inode = inode(ofID: id) else { continue }
            if rows[inode]?.changedAt ?? -1 >= page.began || rows[inode]?.state.isBusy == true {
                rows[inode]?.mustLook = true
            } else {
                gone(inode)
            }
        }
    }

    private mutating func gone(_ inode: Inode) {
        guard let row = rows[inode] else { return }
        rows[inode]?.state.remote = nil
        if row.state.synced == nil && row.state.local == nil { rows[inode] = nil }
        for child in rows.values where child.state.remote?.place.parent == inode {
            gone(child.state.inode)
        }
    }

    @discardableResult
    private mutating func observe(
        _ item: SimulatedService.Item,
        _ ancestors: [Int: SimulatedService.Item],
        began: Int
    ) -> Inode? {
        var parent = inode(ofID: item.parent)
        if parent == nil || parent != .root && parent.flatMap({ rows[$0]?.state.remote }) == nil {
            guard let above = ancestors[item.parent] else { return nil }
            parent = observe(above, ancestors, began: began)
        }
        guard let parent else { return nil }
        let entry = entry(item, parent: parent)
        if let inode = inode(ofID: item.id) {
            guard rows[inode]?.state.remote != entry else { return inode }
            if rows[inode]?.changedAt ?? -1 >= began || rows[inode]?.state.isBusy == true {
                rows[inode]?.mustLook = true
            } else {
                rows[inode]?.state.remote = entry
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
            id: item.id
        )
        return inode
    }

    private func entry(_ item: SimulatedService.Item, parent: Inode) -> Entry {
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
                } else {
                    gone(inode)
                }
            }
            lookForAttempt(inode, row)
        }
    }

    /// Whether the item is as an operation that was sent would have made it.
    private func hasHappened(_ row: Row, _ item: SimulatedService.Item) -> Bool {
        switch row.attempt {
        case .replace(_, let content): return item.content == Int(content.size)
        case .move(let place, _):
            return place.name == item.name && self.inode(ofID: item.parent) == place.parent
        case .createFolder, .upload, .duplicate, .delete, .setAttributes, nil: return false
        }
    }

    /// Whether something that was sent arrived although nobody heard of it.
    private mutating func lookForAttempt(_ inode: Inode, _ row: Row) {
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

    private func isResult(
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

    // MARK: The engine

    /// Merges all news and makes a new plan of what is left to do.
    mutating func makePlan() {
        plan = []
        for round in 0... {
            guard round < 50 else {
                failure = "merging does not end"
                return
            }
            let next = planner.plan(input())
            guard next.local.isEmpty else {
                if recordsCalls { calls.append("local \(next.local)") }
                apply(next.local)
                continue
            }
            plan = next.remote
            break
        }
        done = Array(repeating: false, count: plan.count)
        started = done
    }

    /// What may or may not have happened to an item must be known before it is planned for.
    private func input() -> [ItemState] {
        var states: [ItemState] = []
        for inode in rows.keys.sorted() {
            guard let row = rows[inode] else { continue }
            var state = row.state
            state.isBusy = state.isBusy || row.mustLook || row.attempt != nil
            switch row.attempt {
            case .createFolder(let place), .upload(let place, _), .duplicate(let place, _):
                state.expected = place
            case .move, .replace, .delete, .setAttributes, nil: break
            }
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

    private mutating func apply(_ steps: [LocalStep]) {
        for step in steps {
            switch step {
            case .forget(let inode): rows[inode] = nil
            case .detach(let inode):
                rows[inode]?.state.remote = nil
                rows[inode]?.state.synced = nil
                rows[inode]?.id = nil
            case .place(let inode, let place):
                if rows[inode]?.state.local == nil {
                    let remote = rows[inode]?.state.remote
                    rows[inode]?.state.local = remote
                    rows[inode]?.state.isSettled = true
                }
                rows[inode]?.state.local?.place = place
            case .takeContent(let inode):
                let content = rows[inode]?.state.remote?.content
                rows[inode]?.state.local?.content = content
            case .takeAttributes: break
            case .keepBoth(let inode): keepBoth(inode)
            case .renumber(let inode): renumber(inode)
            case .adopt(let inode, let other): adopt(inode, other)
            case .handOver(let original, let heir): handOver(original, heir)
            case .agree(let inode, let content):
                guard let remote = rows[inode]?.state.remote else { continue }
                let old = rows[inode]?.state.synced?.content
                rows[inode]?.state.synced = remote
                if !content { rows[inode]?.state.synced?.content = old }
            }
        }
    }

    private mutating func keepBoth(_ inode: Inode) {
        guard let local = rows[inode]?.state.local else { return }
        lastInode += 1
        let copy = Inode(lastInode)
        var entry = local
        entry.place.name = freeName(local.place, "c")
        rows[copy] = Row(
            state: ItemState(inode: copy, isFolder: false, local: entry, synced: nil, remote: nil)
        )
        let content = rows[inode]?.state.remote?.content
        rows[inode]?.state.local?.content = content
    }

    private mutating func renumber(_ inode: Inode) {
        guard let place = rows[inode]?.state.local?.place else { return }
        let name = freeName(place, "n")
        rows[inode]?.state.local?.place.name = name
    }

    private func freeName(_ place: Place, _ mark: String) -> String {
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

    private mutating func adopt(_ inode: Inode, _ other: Inode) {
        guard let newcomer = rows[other] else { return }
        rows[other] = nil
        rows[inode]?.state.remote = newcomer.state.remote
        rows[inode]?.state.synced = newcomer.state.remote
        rows[inode]?.id = newcomer.id
        if newcomer.mustLook { rows[inode]?.mustLook = true }
        rows[inode]?.state.local?.content = newcomer.state.remote?.content
        reparent(other, inode)
    }

    private mutating func reparent(_ old: Inode, _ new: Inode) {
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

    private mutating func handOver(_ original: Inode, _ heir: Inode) {
        guard let old = rows[original], let new = rows[heir] else { return }
        rows[heir]?.id = old.id
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
        if new.id == nil { rows[original] = nil }
        if old.mustLook || new.mustLook {
            rows[heir]?.mustLook = true
            rows[original]?.mustLook = true
        }
    }

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
            Running(operation: index, action: operation.action, inode: operation.inode)
        )
        return true
    }

    /// Whether the item is still what the plan saw: a local change since makes a new plan.
    private func isCurrent(_ operation: RemoteOperation, _ row: Row) -> Bool {
        guard row.state.isPushable, row.state.isSettled, !row.mustLook else { return false }
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

    private mutating func serviceID(of inode: Inode) -> Int? {
        if inode == .root { return SimulatedService.root }
        guard service.kind == .path else { return rows[inode]?.id }
        guard let path = path(of: inode) else { return nil }
        return service.resolve(path, makingFolders: false)
    }

    private func path(of inode: Inode) -> [String]? {
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
            running[position].answer = try execute(running[position].action, inode)
        } catch {
            running[position].failed = true
            if recordsCalls { calls.append("failed \(inode) \(error)") }
            rows[inode]?.mustLook = true
            if case .nameTaken = error { lookAtName(running[position].action) }
        }
    }

    /// Somebody has the name: find out who.
    private mutating func lookAtName(_ action: RemoteOperation.Action) {
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

    private mutating func execute(
        _ action: RemoteOperation.Action,
        _ inode: Inode
    ) throws(SimulatedService.Failure) -> SimulatedService.Item? {
        switch action {
        case .createFolder(let place):
            guard let parent = serviceID(of: place.parent) else { throw .notFound }
            return try service.create(in: parent, name: place.name, isFolder: true, content: 0)
        case .upload(let place, let content):
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
            return try service.replace(
                id,
                revision: revision.flatMap { Int($0.rawValue) },
                content: Int(content.size)
            )
        case .move(let place, _):
            guard let id = serviceID(of: inode), id == rows[inode]?.id,
                let parent = serviceID(of: place.parent)
            else { throw .notFound }
            return try service.move(id, to: parent, name: place.name)
        case .delete:
            guard let id = serviceID(of: inode), id == rows[inode]?.id else { throw .notFound }
            let revision = rows[inode]?.state.remote?.content?.revision
            try service.delete(id, revision: revision.flatMap { Int($0.rawValue) })
            return nil
        case .setAttributes: return service.items[rows[inode]?.id ?? -1]
        }
    }

    private mutating func uploadFolder(_ place: Place) throws(SimulatedService.Failure) -> Int {
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

    private mutating func record(
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
            self.inode(ofID: item.parent)
            ?? service.items[item.parent].flatMap { observe($0, service.items, began: clock) }
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
        rows[inode]?.state.remote = entry
        switch action {
        case .createFolder, .upload, .duplicate: rows[inode]?.state.synced = entry
        case .replace: rows[inode]?.state.synced?.content = entry.content
        case .move: rows[inode]?.state.synced?.place = entry.place
        case .setAttributes, .delete: break
        }
        if let content = rows[inode]?.state.local?.content, let new = entry.content,
            content.isSame(as: new)
        {
            rows[inode]?.state.local?.content = new
        }
    }

    private mutating func recordDuplicate(
        _ original: Inode,
        _ heir: Inode,
        _ item: SimulatedService.Item
    ) {
        guard let old = rows[original], let parent = inode(ofID: item.parent) else { return }
        if let twin = inode(ofID: item.id) { rows[twin] = nil }
        let entry = entry(item, parent: parent)
        let mayInherit = rows[heir].map { $0.id == nil && $0.state.local != nil } ?? false
        if mayInherit {
            rows[heir]?.id = old.id
            rows[heir]?.state.remote = old.state.remote
            rows[heir]?.state.synced = old.state.synced
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
                id: old.id
            )
        }
        rows[original]?.id = item.id
        rows[original]?.state.remote = entry
        rows[original]?.state.synced = entry
        rows[original]?.changedAt = clock
        if let content = rows[original]?.state.local?.content, let new = entry.content,
            content.isSame(as: new)
        {
            rows[original]?.state.local?.content = new
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
