import GRDB
public import OortModel
import Synchronization

extension Catalog {
    /// The node of this inode, in the local tree or not.
    ///
    /// - Throws: `.notFound`.
    public func node(_ inode: Inode) throws(CatalogError) -> Node {
        let (cached, generation) = cache.node(inode)
        if let cached { return cached }
        let node = try read { try Self.fetch(inode, $0) }
        guard let node else { throw .notFound }
        cache.fill([node], generation: generation)
        return node
    }

    /// The node of this inode, in the local tree or not; nil when there is none.
    ///
    /// - Throws: when the catalog could not be read, which says nothing about the node.
    public func knownNode(_ inode: Inode) throws(CatalogError) -> Node? {
        do throws(CatalogError) { return try node(inode) } catch .notFound { return nil }
    }

    /// The node of this name in a folder, compared as the account's service compares; nil when
    /// there is none, or it is not shown.
    public func lookup(_ name: String, in parent: Node) throws(CatalogError) -> Node? {
        if try leavesOut(name, in: parent) { return nil }
        let key = nameRules(of: parent.account).comparison.key(name)
        let generation = cache.generation
        let node = try read { try Self.fetch(key: key, in: parent.inode, $0) }
        if let node { cache.fill([node], generation: generation) }
        return node
    }

    /// A folder's nodes that are shown, in inode order, after `after`, at most `limit`; none at the end.
    public func children(
        of parent: Inode,
        after: Inode?,
        limit: Int
    ) throws(CatalogError) -> [Node] {
        var last = after
        while true {
            let nodes = try allChildren(of: parent, after: last, limit: limit)
            guard let account = nodes.first?.account, let left = leftOut(of: account),
                nodes.contains(where: { left.mayInclude(named: $0.name) }),
                let above = try shownPath(of: parent)
            else { return nodes }
            let shown = nodes.filter { !left.include(above + [$0.name]) }
            guard shown.isEmpty else { return shown }
            last = nodes.last?.inode
        }
    }

    private func allChildren(
        of parent: Inode,
        after: Inode?,
        limit: Int
    ) throws(CatalogError) -> [Node] {
        let generation = cache.generation
        let nodes = try read { database in
            try database.all(
                """
                SELECT \(Node.columns) FROM node
                WHERE parent = ? AND inode > ? ORDER BY inode LIMIT ?
                """,
                [parent.column, after?.column ?? 0, limit],
                Node.init(columns:)
            )
        }
        cache.fill(nodes, generation: generation)
        return nodes
    }

    /// Whether anything lies in a folder.
    public func hasChildren(_ parent: Inode) throws(CatalogError) -> Bool {
        try read { try Self.hasChildren(parent, $0) }
    }

    /// Whether a folder's children are known: it was listed or made here, or the whole account was
    /// enumerated.
    ///
    /// A folder that its service does not list is never known: it must not show as empty, and only the
    /// service can say whether it may be listed now.
    public func isKnown(folder: Node) throws(CatalogError) -> Bool {
        guard folder.permissions.contains(.read) else { return false }
        if folder.isListed { return true }
        return try isEnumerated(folder.account)
    }

    /// Whether an account's whole tree is known; true for an account that no longer exists.
    ///
    /// A tree once known stays so: it is read from the catalog once, since a walk asks for each folder.
    public func isEnumerated(_ account: AccountID) throws(CatalogError) -> Bool {
        if enumerated.withLock({ $0.contains(account) }) { return true }
        let isEnumerated = try self.account(account)?.isEnumerated ?? true
        if isEnumerated { enumerated.withLock { _ = $0.insert(account) } }
        return isEnumerated
    }

    /// The node of a service's item, in the local tree or not; nil when the catalog has none.
    public func node(
        remoteID: ItemID,
        account: AccountID
    ) throws(CatalogError) -> Node? {
        try read { database in
            try database.first(
                "SELECT \(Node.columns) FROM node WHERE account = ? AND remote_id = ?",
                [account.rawValue, remoteID.rawValue],
                Node.init(columns:)
            )
        }
    }

    /// The names from the account's root down to a node, as shown; nil when it is not in the local
    /// tree.
    public func shownPath(of inode: Inode) throws(CatalogError) -> [String]? {
        try read { try Self.path(of: inode, $0)?.map(\.name) }
    }

    /// The path from the account's root in the names that the service has or is to have.
    public func servicePath(of inode: Inode) throws(CatalogError) -> RemotePath? {
        try read { try Self.path(of: inode, $0).map { RemotePath($0.map(\.serviceName)) } }
    }

    /// The node at a path of shown names below the mount's root; nil when there is none.
    public func node(atPath parts: [String]) throws(CatalogError) -> Node? {
        var node = try self.node(.root)
        for part in parts {
            guard let child = try lookup(part, in: node) else { return nil }
            node = child
        }
        return node
    }

    // MARK: Inside a transaction

    static func fetch(_ inode: Inode, _ database: Database) throws -> Node? {
        try database.first(
            "SELECT \(Node.columns) FROM node WHERE inode = ?",
            [inode.column],
            Node.init(columns:)
        )
    }

    static func fetch(key: String, in parent: Inode, _ database: Database) throws -> Node? {
        try database.first(
            "SELECT \(Node.columns) FROM node WHERE parent = ? AND name_key = ?",
            [parent.column, key],
            Node.init(columns:)
        )
    }

    static func hasChildren(_ parent: Inode, _ database: Database) throws -> Bool {
        try database.has("SELECT 1 FROM node WHERE parent = ? LIMIT 1", [parent.column])
    }

    /// The nodes from below the account's root down to this one.
    static func path(of inode: Inode, _ database: Database) throws -> [Node]? {
        var nodes: [Node] = []
        var next = inode
        while let node = try fetch(next, database) {
            guard let parent = node.parent else { return nil }
            if parent == .root { return nodes.reversed() }
            nodes.append(node)
            next = parent
            // A circle cannot be, and must not become an endless loop if the file is damaged.
            guard nodes.count < 10_000 else { throw CatalogError.corrupt(detail: "folder circle") }
        }
        return nil
    }
}
