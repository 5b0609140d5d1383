public import OortModel

/// All items of one account and the log of their changes: a value without I/O or locks.
///
/// It checks nothing that is one service's business (taken names, permissions, preconditions);
/// the service's layer does that first, in the same lock.
public struct SimulatedTree: Sendable {
    /// One entry of the change log: only the latest of each item exists.
    public struct ItemChange: Sendable, Hashable {
        /// The place in the log.
        public var sequence: Int
        /// The item that changed.
        public var id: String
    }

    /// One entry of the log by path.
    public struct PathChange: Sendable, Hashable {
        /// The place in the log.
        public var sequence: Int
        /// The names from the root down, as they were.
        public var parts: [String]
    }

    /// A file that left a path.
    public struct Departure: Sendable, Hashable {
        /// The item.
        public var id: String
        /// How many revisions it had by then.
        public var revisions: Int
    }

    /// What the service's ids and names look like.
    public let rules: SimulatedTreeRules
    /// The account's root folder.
    public let rootID: String
    /// The number of the last change; 0 before any.
    public private(set) var sequence = 0
    /// The clock; tests may set it.
    public var now: @Sendable () -> Timestamp = { .now }
    /// What goes another way than usual.
    public var conditions = SimulatedConditions()
    /// Random numbers for ids, from the account's seed.
    public var random: RandomSource

    /// Bytes of all current contents, the trash's too.
    public private(set) var usedBytes: Int64 = 0

    /// Changed by `put` only, which counts the bytes.
    private var items: [String: SimulatedItem] = [:]
    /// All items of a folder, trashed ones too.
    private var childIDs: [String: Set<String>] = [:]
    /// The live (not themselves trashed) items of a folder by the key of their name.
    private var idsByName: [String: [ExactText: Set<String>]] = [:]
    private var ownerByRevision: [String: String] = [:]
    private var log: [ItemChange] = []
    private var latest: [String: Int] = [:]
    private var pathLog: [PathChange] = []
    private var latestByPath: [String: Int] = [:]
    private var leftByPath: [String: Departure] = [:]

    /// A tree of one folder, its root.
    public init(rules: SimulatedTreeRules, rootID: String, rootName: String, seed: UInt64) {
        self.rules = rules
        self.rootID = rootID
        random = RandomSource(seed: seed)
        addRoot(id: rootID, name: rootName)
    }

    /// Adds another root: a shared drive, another person's drive.
    public mutating func addRoot(id: String, name: String) {
        let time = now()
        put(
            SimulatedItem(
                id: id,
                parentID: nil,
                name: name,
                kind: .folder,
                revisions: [],
                createdTime: time,
                modifiedTime: time,
                serverModifiedTime: time,
                description: nil,
                trashedTime: nil,
                mimeType: nil,
                version: 1,
                extra: [:]
            )
        )
    }

    // MARK: Looking

    /// An item, trashed or not.
    public func item(_ id: String) -> SimulatedItem? { items[id] }

    /// All items of all roots, the roots and the trash too, in no order.
    public var allItems: some Collection<SimulatedItem> { items.values }

    /// The items of a folder in the order of their names, those trashed by themselves left out
    /// unless asked for.
    public func children(of id: String, includingTrashed: Bool = false) -> [SimulatedItem] {
        (childIDs[id] ?? []).compactMap { items[$0] }
            .filter { includingTrashed || $0.trashedTime == nil }
            .sorted { ($0.name, $0.id) < ($1.name, $1.id) }
    }

    /// The live items of one name in a folder, as the service compares, oldest first.
    public func items(named name: String, in parentID: String) -> [SimulatedItem] {
        (idsByName[parentID]?[nameKey(name)] ?? []).compactMap { items[$0] }
            .sorted { ($0.createdTime, $0.id) < ($1.createdTime, $1.id) }
    }

    /// Whether a folder holds nothing, or only what is trashed.
    public func isEmpty(_ folder: String) -> Bool { idsByName[folder]?.isEmpty ?? true }

    /// The live item at a path from a root; of several of one name the oldest.
    public func item(at parts: [String], from root: String? = nil) -> SimulatedItem? {
        var current = items[root ?? rootID]
        for part in parts {
            guard let folder = current else { return nil }
            current = items(named: part, in: folder.id).first
        }
        return current
    }

    /// The names from the item's root down; empty for a root, nil for an unknown item.
    public func path(of id: String) -> [String]? {
        guard var item = items[id] else { return nil }
        var parts: [String] = []
        while let parentID = item.parentID, let parent = items[parentID] {
            parts.append(item.name)
            item = parent
        }
        return parts.reversed()
    }

    /// The root under which an item lies.
    public func root(of id: String) -> String {
        var id = id
        while let parentID = items[id]?.parentID, items[parentID] != nil { id = parentID }
        return id
    }

    /// Whether an item is trashed, by itself or with a folder above it.
    public func isTrashed(_ id: String) -> Bool {
        var next = items[id]
        while let item = next {
            if item.trashedTime != nil { return true }
            next = item.parentID.flatMap { items[$0] }
        }
        return false
    }

    /// Whether `id` is `folder` or lies below it.
    public func lies(_ id: String, in folder: String) -> Bool {
        var next: String? = id
        while let id = next {
            if id == folder { return true }
            next = items[id]?.parentID
        }
        return false
    }

    /// The item that has or had a revision.
    public func item(ofRevision id: String) -> SimulatedItem? {
        ownerByRevision[id].flatMap { items[$0] }
    }

    /// Everything below a folder, folders before what they hold, without what is itself trashed.
    public func descendants(of id: String) -> [SimulatedItem] {
        var result: [SimulatedItem] = []
        var folders = [id]
        while let folder = folders.popLast() {
            for child in children(of: folder) {
                result.append(child)
                if child.isFolder { folders.append(child.id) }
            }
        }
        return result
    }

    // MARK: Changing

    /// Puts a new item into a folder; nil `parentID` leaves it outside of the tree.
    ///
    /// `content` makes the first revision; a native document's is what its exports say.
    @discardableResult
    public mutating func create(
        _ name: String,
        in parentID: String?,
        kind: SimulatedItem.Kind = .file,
        content: SimulatedContent? = nil,
        modifiedTime: Timestamp? = nil,
        id: String? = nil,
        edit: (inout SimulatedItem) -> Void = { _ in }
    ) -> SimulatedItem {
        let time = now()
        var item = SimulatedItem(
            id: id ?? freeID(for: kind),
            parentID: parentID,
            name: name,
            kind: kind,
            revisions: [],
            createdTime: time,
            modifiedTime: modifiedTime ?? time,
            serverModifiedTime: time,
            description: nil,
            trashedTime: nil,
            mimeType: nil,
            version: 1,
            extra: [:]
        )
        if let content {
            let content = stored(content)
            item.revisions = [
                SimulatedRevision(
                    id: rules.makeRevisionID(&random),
                    content: content,
                    modifiedTime: item.modifiedTime,
                    serverModifiedTime: time
                )
            ]
        }
        edit(&item)
        for revision in item.revisions { ownerByRevision[revision.id] = item.id }
        put(item)
        link(item)
        record(item.id)
        return item
    }

    /// An id that nothing has: short ones come twice among some thousand items.
    private mutating func freeID(for kind: SimulatedItem.Kind) -> String {
        while true {
            let id = rules.makeID(kind, &random)
            if items[id] == nil { return id }
        }
    }

    /// Gives a file a new revision; nil when there is no such item.
    @discardableResult
    public mutating func write(
        _ content: SimulatedContent,
        to id: String,
        modifiedTime: Timestamp? = nil
    ) -> SimulatedItem? {
        guard var item = items[id] else { return nil }
        let time = now()
        let content = stored(content)
        item.modifiedTime = modifiedTime ?? time
        item.revisions.append(
            SimulatedRevision(
                id: rules.makeRevisionID(&random),
                content: content,
                modifiedTime: item.modifiedTime,
                serverModifiedTime: time
            )
        )
        ownerByRevision[item.revisions[item.revisions.count - 1].id] = id
        return store(item, at: time)
    }

    /// Has the feed report an item again.
    mutating func tell(of id: String) {
        if let item = items[id] { store(item, at: now()) }
    }

    /// Gives the current content a new revision id without changing it.
    public mutating func renewRevision(of id: String) {
        guard var item = items[id], var head = item.revisions.last else { return }
        head.id = rules.makeRevisionID(&random)
        head.serverModifiedTime = now()
        ownerByRevision[head.id] = id
        item.revisions.append(head)
        put(item)
    }

    /// Moves and renames; nil when there is no such item.
    @discardableResult
    public mutating func move(
        _ id: String,
        to parentID: String?,
        name: String
    ) -> SimulatedItem? {
        guard var item = items[id] else { return nil }
        let isElsewhere = item.parentID != parentID || !item.name.isSameText(as: name)
        let isLogged = rules.keepsPathLog && isElsewhere
        let isMoved = item.parentID != parentID
        if isLogged { recordSubtree(id) }
        unlink(item)
        item.parentID = parentID
        item.name = name
        put(item)
        link(item)
        var stored = store(item, at: now())
        if isMoved {
            stored.movedVersion = stored.version
            put(stored)
        }
        if isLogged { recordSubtree(id) }
        return stored
    }

    /// Puts an item, with all below it, into the trash.
    public mutating func trash(_ id: String) {
        guard var item = items[id], item.trashedTime == nil else { return }
        recordSubtree(id)
        unlink(item)
        let time = now()
        item.trashedTime = time
        put(item)
        childIDs[item.parentID ?? "", default: []].insert(id)
        store(item, at: time)
    }

    /// Takes an item out of the trash.
    public mutating func restore(_ id: String) {
        guard var item = items[id], item.trashedTime != nil else { return }
        item.trashedTime = nil
        put(item)
        link(item)
        store(item, at: now())
        recordSubtree(id)
    }

    /// Deletes an item for good, with all below it.
    public mutating func remove(_ id: String) {
        guard let item = items[id] else { return }
        recordSubtree(id)
        for child in childIDs[id] ?? [] { remove(child) }
        unlink(item)
        usedBytes -= item.size
        items[id] = nil
        childIDs[id] = nil
        idsByName[id] = nil
        record(id)
    }

    /// Changes an item's own fields; nil when there is no such item.
    @discardableResult
    public mutating func update(
        _ id: String,
        _ edit: (inout SimulatedItem) -> Void
    ) -> SimulatedItem? {
        guard var item = items[id] else { return nil }
        edit(&item)
        return store(item, at: now())
    }

    @discardableResult
    private mutating func store(_ changed: SimulatedItem, at time: Timestamp) -> SimulatedItem {
        var item = changed
        item.serverModifiedTime = time
        item.version += 1
        put(item)
        record(item.id)
        return item
    }

    private mutating func put(_ item: SimulatedItem) {
        usedBytes += item.size - (items[item.id]?.size ?? 0)
        items[item.id] = item
    }

    private mutating func link(_ item: SimulatedItem) {
        guard let parentID = item.parentID else { return }
        childIDs[parentID, default: []].insert(item.id)
        if item.trashedTime == nil {
            idsByName[parentID, default: [:]][nameKey(item.name), default: []].insert(item.id)
        }
    }

    private mutating func unlink(_ item: SimulatedItem) {
        guard let parentID = item.parentID else { return }
        childIDs[parentID]?.remove(item.id)
        let key = nameKey(item.name)
        idsByName[parentID]?[key]?.remove(item.id)
        if idsByName[parentID]?[key]?.isEmpty == true { idsByName[parentID]?[key] = nil }
    }

    /// Two normal forms of a name are two names, where the service does not say otherwise.
    private func nameKey(_ name: String) -> ExactText { ExactText(rules.comparison.key(name)) }

    // MARK: The change log

    /// Which items changed after `sequence`, each once, in the order of their latest change.
    public func changes(after sequence: Int) -> [ItemChange] {
        log[Self.firstIndex(after: sequence, in: log, \.sequence)...]
            .filter { latest[$0.id] == $0.sequence }
    }

    /// Which paths changed after `sequence`, each once, in the order of their latest change.
    ///
    /// Gives the paths only; what is there now has to be looked up. A folder's removal or move lists each
    /// path below it as well, so that a folder made anew at its place is complete.
    public func pathChanges(after sequence: Int) -> [PathChange] {
        pathLog[Self.firstIndex(after: sequence, in: pathLog, \.sequence)...]
            .filter { latestByPath[key(of: $0.parts)] == $0.sequence }
    }

    /// The key under which two paths are the same path.
    public func key(of parts: [String]) -> String {
        parts.map { "/" + rules.comparison.key($0) }.joined()
    }

    /// The file that left a path last, by a move or to the trash; nil where none did, or it is gone
    /// for good.
    ///
    /// Kept where `SimulatedTreeRules.keepsPathLog` says so.
    public func departure(from parts: [String]) -> Departure? {
        leftByPath[key(of: parts)].flatMap { items[$0.id] == nil ? nil : $0 }
    }

    private mutating func record(_ id: String) {
        sequence += 1
        log.append(ItemChange(sequence: sequence, id: id))
        latest[id] = sequence
        if rules.keepsPathLog, let parts = path(of: id), !parts.isEmpty {
            recordPath(parts)
        }
    }

    private mutating func recordPath(_ parts: [String]) {
        pathLog.append(PathChange(sequence: sequence, parts: parts))
        latestByPath[key(of: parts)] = sequence
    }

    private mutating func recordSubtree(_ id: String) {
        guard rules.keepsPathLog, let top = path(of: id), !top.isEmpty else { return }
        sequence += 1
        recordPath(top)
        recordDeparture(of: id, from: top)
        var folders = [(id, top)]
        while let (folder, parts) = folders.popLast() {
            for child in children(of: folder) {
                sequence += 1
                recordPath(parts + [child.name])
                recordDeparture(of: child.id, from: parts + [child.name])
                if child.isFolder { folders.append((child.id, parts + [child.name])) }
            }
        }
    }

    /// What is recorded before it leaves a path, and is at the path it has then until it leaves that.
    private mutating func recordDeparture(of id: String, from parts: [String]) {
        guard let item = items[id], !item.isFolder else { return }
        leftByPath[key(of: parts)] = Departure(id: id, revisions: item.revisions.count)
    }

    private static func firstIndex<Entry>(
        after sequence: Int,
        in log: [Entry],
        _ number: (Entry) -> Int
    ) -> Int {
        var low = 0
        var high = log.count
        while low < high {
            let middle = (low + high) / 2
            if number(log[middle]) <= sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
