import GRDB
public import OortModel

/// What is to be made in a folder.
public struct NewNode: Hashable, Sendable {
    /// What it is.
    public var kind: NodeKind
    /// Permission bits (07777).
    public var mode: UInt16
    /// The owner.
    public var owner: UInt32
    /// The group.
    public var group: UInt32
    /// A symbolic link's target.
    public var target: String?

    /// A node with all of its parts.
    public init(kind: NodeKind, mode: UInt16, owner: UInt32, group: UInt32, target: String? = nil) {
        self.kind = kind
        self.mode = mode
        self.owner = owner
        self.group = group
        self.target = target
    }
}

/// How a rename treats what has the new name, as `man 2 renameat2` says.
public enum RenameMode: Hashable, Sendable {
    /// A file or an empty folder is replaced.
    case replace
    /// Anything there is an error.
    case noReplace
    /// The two change places.
    case exchange
}

/// What a rename did.
public struct RenameOutcome: Hashable, Sendable {
    /// The renamed node as it is now.
    public var node: Node
    /// What had the name, now out of the local tree (replaced) or at the old place (exchanged).
    public var other: Node?
}

/// The write side of the file system: each is one transaction, durable against the death of the
/// process when it returns. All block the calling thread for that transaction.
extension Catalog {
    /// Makes a file, folder, link, pipe or socket.
    ///
    /// - Parameters:
    ///   - new: what is made.
    ///   - name: its name, as the user sees it.
    ///   - parent: the folder.
    ///   - prepare: for a file that is to have empty staged content at once, open for writing: makes
    ///     the content's file before the transaction ends.
    /// - Returns: the new node.
    /// - Throws: `.exists`, `.notAFolder`, `.notFound` (the parent is gone), and what `prepare`
    ///   throws, which ends the transaction.
    public func create(
        _ new: NewNode,
        named name: String,
        in parent: Inode,
        staging prepare: ((ContentID, Inode) throws(CatalogError) -> Void)? = nil
    ) throws(CatalogError) -> Node {
        try mutate { transaction in
            let now = Timestamp.now
            let folder = try transaction.folder(parent)
            let rules = nameRules(of: folder.account)
            let key = rules.comparison.key(name)
            guard try Self.fetch(key: key, in: parent, transaction.database) == nil else {
                throw CatalogError.exists
            }
            let serviceName = ShownName.service(
                shown: name,
                kind: new.kind,
                exportExtension: nil,
                rules: rules
            )
            let isHeld = try transaction.holds(
                name,
                calledAtService: serviceName,
                kind: new.kind,
                in: folder,
                ignoreRules(of: folder.account)
            )
            let content = try prepare.map { _ in
                try transaction.insert(NewStagedContent(size: 0), in: folder.account)
            }
            try transaction.database.run(
                """
                INSERT INTO node (account, parent, name, name_key, service_name, kind, size,
                    modified_s, modified_ns, changed_s, changed_ns, created_s, created_ns,
                    mode, owner, grp, target, listed, born_s, staged, held)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?)
                """,
                [
                    folder.account.rawValue, parent.column, name, key,
                    serviceName.isSameText(as: name) ? nil : serviceName, new.kind.rawValue,
                    Int64(new.target?.utf8.count ?? 0), now.seconds, Int64(now.nanoseconds),
                    now.seconds, Int64(now.nanoseconds), now.seconds, Int64(now.nanoseconds),
                    Int64(new.mode), Int64(new.owner), Int64(new.group), new.target, now.seconds,
                    content?.rawValue, isHeld ? 1 : 0,
                ]
            )
            let inode = Inode(column: transaction.database.lastInsertedRowID)
            if isHeld { try transaction.noteWhereHeld(inode) }
            if let content { try prepare?(content, inode) }
            let node = try transaction.node(inode)
            try transaction.setInMotion(node, at: now)
            try transaction.touchFolder(folder, at: now)
            return node
        }
    }

    /// Takes a name out of a folder: anything but a folder.
    ///
    /// The node stays in the catalog, outside the local tree, until the service has deleted its item.
    /// - Throws: `.notFound`, `.isAFolder`.
    public func unlink(_ name: String, in parent: Inode) throws(CatalogError) -> Node {
        try mutate { transaction in
            let (folder, node) = try transaction.entry(name, in: parent, catalog: self)
            guard node.kind != .folder else { throw CatalogError.isAFolder }
            let now = Timestamp.now
            try transaction.takeOut(node, at: now)
            try transaction.touchFolder(folder, at: now)
            return node
        }
    }

    /// Takes an empty folder out of a folder.
    ///
    /// - Throws: `.notFound`, `.notAFolder`, `.notEmpty`, `.isARoot`.
    public func removeFolder(_ name: String, in parent: Inode) throws(CatalogError) -> Node {
        try mutate { transaction in
            let (folder, node) = try transaction.entry(name, in: parent, catalog: self)
            guard node.kind == .folder else { throw CatalogError.notAFolder }
            guard try !Self.hasChildren(node.inode, transaction.database) else {
                throw CatalogError.notEmpty
            }
            let now = Timestamp.now
            try transaction.takeOut(node, at: now)
            try transaction.touchFolder(folder, at: now)
            return node
        }
    }

    /// Renames and moves within one account.
    ///
    /// - Throws: `.notFound`, `.exists` (`.noReplace`), `.notEmpty`, `.notAFolder`, `.isAFolder`,
    ///   `.moveIntoItself`, `.otherAccount`, `.isARoot`; `.staysHere` for what would go into a folder
    ///   that stays here, and cannot stay here itself.
    public func rename(
        _ name: String,
        in parent: Inode,
        to newName: String,
        in newParent: Inode,
        mode: RenameMode
    ) throws(CatalogError) -> RenameOutcome {
        try mutate { transaction in
            let now = Timestamp.now
            let (source, node) = try transaction.entry(name, in: parent, catalog: self)
            let target = try transaction.folder(newParent)
            guard target.account == source.account else { throw CatalogError.otherAccount }
            let key = nameRules(of: target.account).comparison.key(newName)
            let other = try Self.fetch(key: key, in: newParent, transaction.database)
            if node.kind == .folder {
                try transaction.refuseCircle(moving: node.inode, below: newParent)
            }
            let rules = ignoreRules(of: source.account)
            let moved = mode == .exchange ? [node, other].compactMap(\.self) : [node]
            let ignored = try moved.map { try transaction.isIgnored($0, by: rules) }
            func settle(_ transaction: inout CatalogTransaction) throws {
                for (node, wasIgnored) in zip(moved, ignored) {
                    try transaction.hold(node.inode, wasIgnored: wasIgnored, by: rules)
                }
            }
            try transaction.refuseToHold(node, movingTo: target, from: source)
            if mode == .exchange, let other {
                try transaction.refuseToHold(other, movingTo: source, from: target)
            }
            try transaction.touchFolder(source, at: now)
            if newParent != parent { try transaction.touchFolder(target, at: now) }

            guard let other, other.inode != node.inode else {
                if mode == .exchange, other == nil { throw CatalogError.notFound }
                if other == nil || !node.name.isSameText(as: newName) {
                    try transaction.place(node, as: newName, in: newParent, at: now, catalog: self)
                    try settle(&transaction)
                }
                return RenameOutcome(node: try transaction.node(node.inode), other: nil)
            }
            switch mode {
            case .noReplace: throw CatalogError.exists
            case .exchange:
                if other.kind == .folder {
                    try transaction.refuseCircle(moving: other.inode, below: parent)
                }
                try transaction.exchange(node, other, at: now, catalog: self)
                try settle(&transaction)
                return RenameOutcome(
                    node: try transaction.node(node.inode),
                    other: try transaction.node(other.inode)
                )
            case .replace:
                if other.kind == .folder {
                    guard node.kind == .folder else { throw CatalogError.isAFolder }
                    guard try !Self.hasChildren(other.inode, transaction.database) else {
                        throw CatalogError.notEmpty
                    }
                } else if node.kind == .folder {
                    throw CatalogError.notAFolder
                }
                try transaction.takeOut(other, at: now)
                try transaction.handOverPin(from: other.inode, to: node.inode)
                try transaction.place(node, as: newName, in: newParent, at: now, catalog: self)
                if nameRules(of: target.account).allowsDuplicates {
                    try transaction.takeServiceName(of: other, for: node)
                }
                try settle(&transaction)
                return RenameOutcome(node: try transaction.node(node.inode), other: other)
            }
        }
    }
}

extension CatalogTransaction {
    /// The node, which must be there.
    func node(_ inode: Inode) throws -> Node {
        guard let node = try Catalog.fetch(inode, database) else { throw CatalogError.notFound }
        return node
    }

    /// The folder, which must be in an account's local tree.
    func folder(_ inode: Inode) throws -> Node {
        let node = try node(inode)
        guard node.kind == .folder else { throw CatalogError.notAFolder }
        guard inode != .root else { throw CatalogError.isARoot }
        guard node.parent != nil else { throw CatalogError.notFound }
        return node
    }

    /// A folder and what has this name in it.
    func entry(
        _ name: String,
        in parent: Inode,
        catalog: Catalog
    ) throws -> (folder: Node, node: Node) {
        let folder = try folder(parent)
        let key = catalog.nameRules(of: folder.account).comparison.key(name)
        guard let node = try Catalog.fetch(key: key, in: parent, database) else {
            throw CatalogError.notFound
        }
        return (folder, node)
    }

    /// Puts a node at a place whose name is free (or its own).
    ///
    /// A folder that a program moves or renames no longer counts as made where it lies (`TwinFolders`).
    mutating func place(
        _ node: Node,
        as name: String,
        in parent: Inode,
        at now: Timestamp,
        catalog: Catalog
    ) throws {
        try setInMotion(node, at: now)
        let rules = catalog.nameRules(of: node.account)
        var serviceName = node.storedServiceName
        // A number that told two items of a folder apart becomes part of the name by a rename.
        if !name.isSameText(as: node.name) || node.plainKey != nil {
            let service = ShownName.service(
                shown: name,
                kind: node.kind,
                exportExtension: try Catalog.exportExtension(of: node, database),
                rules: rules
            )
            serviceName = service.isSameText(as: name) ? nil : service
        }
        try database.run(
            """
            UPDATE node SET parent = ?, name = ?, name_key = ?, service_name = ?,
                plain_key = NULL, changed_s = ?, changed_ns = ?,
                born_s = iif(kind = 0, NULL, born_s)
            WHERE inode = ?
            """,
            [
                parent.column, name, rules.comparison.key(name), serviceName, now.seconds,
                Int64(now.nanoseconds), node.inode.column,
            ]
        )
    }

    /// Gives a file that replaces a numbered one the name that this has at the service, so that it can take
    /// over its identity.
    mutating func takeServiceName(of other: Node, for node: Node) throws {
        guard let key = other.plainKey, other.kind == .file, node.kind == .file else { return }
        try database.run(
            "UPDATE node SET service_name = ?, plain_key = ? WHERE inode = ?",
            [other.serviceName, key, node.inode.column]
        )
    }

    /// Lets two nodes change places.
    mutating func exchange(
        _ one: Node,
        _ other: Node,
        at now: Timestamp,
        catalog: Catalog
    ) throws {
        guard let oneParent = one.parent, let otherParent = other.parent else {
            throw CatalogError.notFound
        }
        try setInMotion(one, at: now)
        try setInMotion(other, at: now)
        // Out of the way first, since names are unique.
        try database.run("UPDATE node SET parent = NULL WHERE inode = ?", [one.inode.column])
        try place(other, as: one.name, in: oneParent, at: now, catalog: catalog)
        try place(one, as: other.name, in: otherParent, at: now, catalog: catalog)
    }

    /// Refuses to put a folder below itself.
    func refuseCircle(moving folder: Inode, below parent: Inode) throws {
        var next: Inode? = parent
        while let inode = next, inode != .root {
            guard inode != folder else { throw CatalogError.moveIntoItself }
            next = try node(inode).parent
        }
    }
}
