import GRDB
import OortModel
import OortPlanner

/// Where items lie that are reported by path, or before the folder that they lie in.
extension Observer {
    // MARK: Folders

    /// The folder that an item lies in; nil while the catalog does not know it.
    mutating func parent(of item: Item) throws -> Node? {
        if let id = item.parentID {
            if let known = folders.byID[id] { return known }
            let node = try Catalog.folder(id.rawValue, in: account, database)
            folders.byID[id] = node
            return node
        }
        guard let path = item.path?.parent else { return nil }
        return try folder(at: path)
    }

    mutating func folder(at path: RemotePath) throws -> Node? {
        if let known = folders.byPath[path] { return known }
        let node: Node?
        if let name = path.name, let above = path.parent {
            // A file that was last reported at this path is elsewhere, or gone, by now.
            node = try folder(at: above).flatMap { try remoteChild(name, of: $0, isFolder: true) }
        } else {
            let root = try database.number(
                "SELECT root FROM account WHERE id = ?",
                [account.rawValue]
            )
            node = try root.flatMap { try Catalog.fetch(Inode(column: $0), database) }
        }
        if let node { folders.byPath[path] = node }
        return node
    }

    // MARK: What comes before its folder

    /// How the folder of an item in motion is stored: by id, or by path while a folder that was reported by
    /// path is not known; ids never begin with a slash.
    func parentMark(of item: Item, in parent: Node?) -> String? {
        parent?.remoteID?.rawValue ?? item.parentID?.rawValue
            ?? item.path?.parent.map(pathMark)
    }

    private func pathMark(_ path: RemotePath) -> String {
        path.parts.isEmpty ? "/" : path.parts.map { "/" + rules.comparison.key($0) }.joined()
    }

    /// Places what was reported before its folder, now that the folder is there.
    mutating func placeWaiting(for item: Item) throws {
        if item.parentID == nil, let path = item.path {
            try database.run(
                """
                UPDATE motion SET remote_parent_id = ?
                WHERE account = ? AND remote_parent_id = ? AND remote_state = 1
                """,
                [item.id.rawValue, account.rawValue, pathMark(path)]
            )
        }
        guard let folder = try Catalog.folder(item.id.rawValue, in: account, database) else {
            return
        }
        names.forget(folder.inode)
        guard folder.parent != nil else { return }
        var queue = [folder]
        while let folder = queue.popLast() {
            names.forget(folder.inode)
            for node in try waiting(for: folder) {
                guard let stored = try Catalog.motion(node.inode, database)?.remoteItem,
                    let name = try nameToShow(stored.shownName, in: folder)
                else { continue }
                try transaction.takeOver(stored, of: node, rules)
                try transaction.put(
                    node,
                    at: folder.inode,
                    name: name,
                    plainName: stored.shownName,
                    serviceName: stored.fileName,
                    rules
                )
                try database.run("DELETE FROM motion WHERE inode = ?", [node.inode.column])
                guard node.kind == .folder else { continue }
                folders.forget()
                queue.append(try transaction.node(node.inode))
            }
        }
    }

    /// Items that only the service knows, in a folder that was not in the tree.
    private func waiting(for folder: Node) throws -> [Node] {
        try database.all(
            """
            SELECT \(Node.columns) FROM node WHERE parent IS NULL AND inode IN
                (SELECT inode FROM motion WHERE account = ? AND remote_parent_id = ?
                    AND remote_state = 1 AND synced_parent IS NULL AND changed_ms = 0)
            ORDER BY inode
            """,
            [account.rawValue, folder.remoteID?.rawValue],
            Node.init(columns:)
        )
    }

    // MARK: What gives its path up

    /// Notes a removal by path, which may be half of a move: it counts when the run is over.
    mutating func removed(_ path: RemotePath) throws {
        guard let name = path.name, let above = path.parent else { return }
        for node in try nodes(name, at: above) {
            if let id = node.remoteID { try setMayBeGone(node, id) }
        }
    }

    /// Removes another item from the path where this one was reported.
    ///
    /// A service that reports places by path gives a removal and a new item at one path as one entry, the
    /// newest. Dropbox's documentation of `list_folder/continue` says so: "If there's already something
    /// else at the given path, replace it".
    mutating func displace(for item: Item, in parent: Node?) throws {
        guard item.parentID == nil, !rules.allowsDuplicates, let parent else { return }
        for other in try remoteChildren(item.fileName, of: parent) {
            guard let id = other.remoteID, id != item.id else { continue }
            // Only the feed will report where the other one is, if anywhere.
            if isFeed { try displace(other, id, for: item) } else { unsure.insert(id) }
        }
    }

    private mutating func displace(
        _ other: Node,
        _ id: ItemID,
        for item: Item
    ) throws {
        try setMayBeGone(other, id)
        guard other.kind == .folder, item.kind == .folder else { return }
        // An enumeration has no promised order: what it named below this path before the folder that lies
        // there now was taken for the other one's.
        let named = try RemoteSubtree(of: other, database).ids(
            database,
            where: """
                node.enumeration > (SELECT enumeration FROM node AS top WHERE top.inode = \
                \(other.inode.column))
                """
        )
        unsure.formUnion(named)
    }

    // MARK: Names in a folder

    /// The item that has a name in a folder at the service, as last reported; one that may be elsewhere
    /// or gone only when there is no other.
    ///
    /// With `isFolder` it must be a folder.
    private mutating func remoteChild(
        _ name: String,
        of folder: Node,
        isFolder: Bool = false
    ) throws -> Node? {
        // Nearly always the item is clean and shown under the same name.
        if let node = try shownChild(name, of: folder), !isFolder || node.kind == .folder,
            try !isInDoubt(node)
        {
            return node
        }
        let found = try remoteChildren(name, of: folder).filter {
            !isFolder || $0.kind == .folder
        }
        return try found.first { try !isInDoubt($0) } ?? found.first
    }

    /// Whether an item may be elsewhere or gone by now: so it was reported, or it must be asked for.
    private func isInDoubt(_ node: Node) throws -> Bool {
        if try Catalog.motion(node.inode, database)?.remoteState == .mayBeGone { return true }
        guard let id = node.remoteID else { return false }
        if unsure.contains(id) { return true }
        return try hasUnsure
            && database.has(
                "SELECT 1 FROM unsure WHERE account = ? AND remote_id = ?",
                [account.rawValue, id.rawValue]
            )
    }

    /// All items that have a name in a folder at the service, as last reported: one at most lies there, but
    /// what our own operation made may be known before the service reported that another one has gone.
    private mutating func remoteChildren(_ name: String, of folder: Node) throws -> [Node] {
        let shown = try shownChild(name, of: folder)
        let others = try names.candidates(for: name, in: folder, database)
            .compactMap { try Catalog.fetch($0, database) }
            .filter { try $0.inode != shown?.inode && isCalled(name, $0, in: folder) }
        return (shown.map { [$0] } ?? []) + others
    }

    /// The item that is shown under the name that it has at the service, if there is one.
    private func shownChild(_ name: String, of folder: Node) throws -> Node? {
        let key = rules.comparison.key(ShownName.escaped(name))
        guard let node = try Catalog.fetch(key: key, in: folder.inode, database),
            node.remoteID != nil, try isCalled(name, node, in: folder)
        else { return nil }
        return node
    }

    private func isCalled(_ name: String, _ node: Node, in folder: Node) throws -> Bool {
        guard let place = try Catalog.remotePlace(of: node, database) else { return false }
        return place.parent == folder.inode
            && rules.comparison.key(place.name).isSameText(as: rules.comparison.key(name))
    }

    /// The items of a name in the folder at a path, whether that folder is known or not.
    private mutating func nodes(_ name: String, at path: RemotePath) throws -> [Node] {
        if let folder = try folder(at: path) { return try remoteChildren(name, of: folder) }
        let key = Array(rules.comparison.key(name).utf8)
        return try database.all(
            """
            SELECT \(Node.columns) FROM node WHERE inode IN
                (SELECT inode FROM motion WHERE account = ? AND remote_parent_id = ?
                    AND remote_state = 1)
            """,
            [account.rawValue, pathMark(path)],
            Node.init(columns:)
        ).filter { node in
            let item = try Catalog.motion(node.inode, database)?.remoteItem
            return item.map { Array(rules.comparison.key($0.fileName).utf8) == key } ?? false
        }
    }
}
