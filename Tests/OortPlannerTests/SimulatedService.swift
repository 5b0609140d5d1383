import OortModel
import OortPlanner

/// A service in memory, reduced to what planning is about.
struct SimulatedService {
    enum Kind: Int, CaseIterable {
        /// By path, one item a name without case; uploads make missing folders (Dropbox).
        case path
        /// By id, one item a name without case (OneDrive).
        case uniqueNames
        /// By id, names may be taken twice (Google Drive).
        case duplicateNames
    }

    struct Item: Equatable {
        var id: Int
        var parent: Int
        var name: String
        var isFolder: Bool
        var content: Int
        var revision: Int
    }

    enum Failure: Error {
        case notFound, nameTaken, stale, intoItself
    }

    let kind: Kind
    private(set) var items: [Int: Item] = [:]
    /// Every content that the service was ever given.
    private(set) var history: Set<Int> = []
    /// The change feed: ids in the order of their changes.
    private(set) var log: [Int] = []
    private(set) var foldersMadeByUploads = 0
    private var counter = 0

    static let root = 0

    init(kind: Kind) { self.kind = kind }

    func key(_ name: String) -> String { kind == .duplicateNames ? name : name.lowercased() }

    func children(of folder: Int) -> [Item] {
        items.values.filter { $0.parent == folder }.sorted { $0.id < $1.id }
    }

    func item(named name: String, in folder: Int) -> Item? {
        let key = key(name)
        return items.values.filter { $0.parent == folder && self.key($0.name) == key }
            .min { $0.id < $1.id }
    }

    func isFolder(_ id: Int) -> Bool { id == Self.root || items[id]?.isFolder == true }

    func isBelow(_ id: Int, _ ancestor: Int) -> Bool {
        var next = id
        while next != Self.root, let item = items[next] {
            if next == ancestor { return true }
            next = item.parent
        }
        return false
    }

    private mutating func next() -> Int {
        counter += 1
        return counter
    }

    mutating func create(
        in parent: Int,
        name: String,
        isFolder: Bool,
        content: Int
    ) throws(Failure) -> Item {
        guard self.isFolder(parent) else { throw .notFound }
        if kind != .duplicateNames, item(named: name, in: parent) != nil { throw .nameTaken }
        let item = Item(
            id: next(),
            parent: parent,
            name: name,
            isFolder: isFolder,
            content: content,
            revision: next()
        )
        items[item.id] = item
        if !isFolder { history.insert(content) }
        log.append(item.id)
        return item
    }

    mutating func replace(_ id: Int, revision: Int?, content: Int) throws(Failure) -> Item {
        guard var item = items[id], !item.isFolder else { throw .notFound }
        if let revision, item.revision != revision { throw .stale }
        item.content = content
        item.revision = next()
        items[id] = item
        history.insert(content)
        log.append(id)
        return item
    }

    mutating func move(_ id: Int, to parent: Int, name: String) throws(Failure) -> Item {
        guard var item = items[id], isFolder(parent) else { throw .notFound }
        if isBelow(parent, id) { throw .intoItself }
        if kind != .duplicateNames, let other = self.item(named: name, in: parent), other.id != id {
            throw .nameTaken
        }
        item.parent = parent
        item.name = name
        items[id] = item
        log.append(id)
        return item
    }

    mutating func delete(_ id: Int, revision: Int?) throws(Failure) {
        guard let item = items[id] else { return }
        if let revision, item.revision != revision { throw .stale }
        for child in children(of: id) { remove(child.id) }
        items[id] = nil
        log.append(id)
    }

    /// The contents of all files in a folder, or of the file itself.
    func contents(below id: Int) -> [Int] {
        guard let item = items[id] else { return [] }
        guard item.isFolder else { return [item.content] }
        return children(of: id).flatMap { contents(below: $0.id) }
    }

    private mutating func remove(_ id: Int) {
        for child in children(of: id) { remove(child.id) }
        items[id] = nil
    }

    /// The id of what lies at a path; with `makingFolders`, missing folders are made as Dropbox
    /// does at an upload.
    mutating func resolve(_ path: [String], makingFolders: Bool) -> Int? {
        var folder = Self.root
        for name in path {
            if let item = item(named: name, in: folder) {
                folder = item.id
            } else if makingFolders,
                let made = try? create(in: folder, name: name, isFolder: true, content: 0)
            {
                foldersMadeByUploads += 1
                folder = made.id
            } else {
                return nil
            }
        }
        return folder
    }
}
