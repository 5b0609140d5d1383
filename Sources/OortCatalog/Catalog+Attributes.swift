import Foundation
import GRDB
public import OortModel

/// What of a node's attributes is to change; nil leaves an attribute alone.
public struct NodeAttributes: Hashable, Sendable {
    /// Permission bits (07777); kept on this machine only.
    public var mode: UInt16?
    /// The owner; kept on this machine only.
    public var owner: UInt32?
    /// The group; kept on this machine only.
    public var group: UInt32?
    /// The modified time; goes to the service where it takes it.
    public var modified: Timestamp?
    /// The time of the last read; kept on this machine only.
    public var accessed: Timestamp?
    /// The free text; goes to the service where it takes it.
    public var description: String?

    /// Nothing to change.
    public init() {}
}

extension Catalog {
    /// Sets attributes; the answer is the node afterwards.
    ///
    /// - Parameters:
    ///   - change: what is to change.
    ///   - inode: whose.
    ///   - tellsKernel: whether the kernel must be notified, because the change did not come from it.
    /// - Returns: the node afterwards.
    /// - Throws: `.notFound`.
    public func setAttributes(
        _ change: NodeAttributes,
        of inode: Inode,
        tellsKernel: Bool = false
    ) throws(CatalogError) -> Node {
        try mutate { transaction in
            let node = try transaction.node(inode)
            let now = Timestamp.now
            let concernsService =
                change.modified.map { $0 != node.modified } ?? false
                || change.description.map { $0 != node.itemDescription ?? "" } ?? false
            if concernsService, inode != .root, !node.isAccountRoot {
                try transaction.setInMotion(node, at: now)
            }
            transaction.touch(inode)
            var node2 = node
            node2.mode = change.mode ?? node.mode
            node2.owner = change.owner ?? node.owner
            node2.group = change.group ?? node.group
            node2.modified = change.modified ?? node.modified
            node2.accessed = change.accessed ?? node.accessed
            node2.itemDescription = change.description ?? node.itemDescription
            node2.changed = now
            try transaction.writeAttributes(of: node2)
            if tellsKernel { transaction.effects.news.append(.attributes(inode)) }
            return node2
        }
    }

    /// Gives a file staged content: what the user sees from now on, to be pushed.
    ///
    /// - Parameters:
    ///   - content: the staged content; a different one that the file had before is let go.
    ///   - size: its size in bytes.
    ///   - modified: the file's modified time.
    ///   - inode: the file.
    /// - Returns: the node afterwards.
    /// - Throws: `.notFound`, `.isAFolder`.
    public func setStaged(
        _ content: ContentID,
        size: Int64,
        modified: Timestamp,
        of inode: Inode
    ) throws(CatalogError) -> Node {
        try mutate { transaction in
            let node = try transaction.node(inode)
            guard node.kind != .folder else { throw CatalogError.isAFolder }
            return try transaction.setStaged(
                content,
                size: size,
                modified: modified,
                of: node
            )
        }
    }

    /// Gives a file the content of another file's revision, to be copied at the service.
    ///
    /// - Parameters:
    ///   - item: the item whose content it is.
    ///   - revision: the content's revision.
    ///   - hash: its hash, where that is known.
    ///   - size: its size in bytes.
    ///   - modified: the file's modified time from now on.
    ///   - inode: the file.
    ///   - original: the file that must have this content now, in the tree and unchanged here; nil where
    ///     none must.
    /// - Returns: the node afterwards.
    /// - Throws: `.notFound`, also where the original has another content by now, or none.
    public func setCopiedContent(
        item: ItemID,
        revision: Revision,
        hash: ContentHash?,
        size: Int64,
        modified: Timestamp,
        of inode: Inode,
        from original: Inode? = nil
    ) throws(CatalogError) -> Node {
        try mutate { transaction in
            let node = try transaction.node(inode)
            if let original {
                let source = try transaction.node(original)
                guard source.parent != nil, source.content == .revision(item: item, revision)
                else { throw CatalogError.notFound }
            }
            let now = Timestamp.now
            try transaction.setInMotion(node, at: now)
            try transaction.database.run(
                """
                UPDATE node SET staged = NULL, revision = ?, content_item = ?, hash = ?,
                    size = ?, modified_s = ?, modified_ns = ?, changed_s = ?, changed_ns = ?
                WHERE inode = ?
                """,
                [
                    revision.rawValue, item.rawValue, hash?.description, size, modified.seconds,
                    Int64(modified.nanoseconds), now.seconds, Int64(now.nanoseconds),
                    inode.column,
                ]
            )
            return try transaction.node(inode)
        }
    }

    /// Stores what only reading a file reveals: the size of a native document once exported, a link's
    /// target once read.
    ///
    /// Puts nothing in motion.
    public func learn(
        size: Int64?,
        target: String?,
        of inode: Inode
    ) throws(CatalogError) {
        try mutate { transaction in
            transaction.touch(inode)
            try transaction.database.run(
                """
                UPDATE node SET size = coalesce(?, size), target = coalesce(?, target)
                WHERE inode = ?
                """,
                [size, target, inode.column]
            )
        }
    }

    // MARK: Extended attributes (of this machine only)

    /// The value of an extended attribute; nil when the node has none of this name.
    public func extendedAttribute(
        _ name: String,
        of inode: Inode
    ) throws(CatalogError) -> [UInt8]? {
        try read { database in
            try database.first(
                "SELECT value FROM xattr WHERE inode = ? AND name = ?",
                [inode.column, name]
            ) { $0[0] as [UInt8]? } ?? nil
        }
    }

    /// The names of a node's extended attributes.
    public func extendedAttributes(of inode: Inode) throws(CatalogError) -> [String] {
        try read { database in
            try database.all("SELECT name FROM xattr WHERE inode = ? ORDER BY name", [inode.column])
            { $0[0] as String }
        }
    }

    /// Sets an extended attribute; nil removes it.
    ///
    /// - Returns: whether the node had one of this name before.
    public func setExtendedAttribute(
        _ name: String,
        to value: [UInt8]?,
        of inode: Inode
    ) throws(CatalogError) -> Bool {
        try mutate { transaction in
            let database = transaction.database
            let had =
                try database.has(
                    "SELECT 1 FROM xattr WHERE inode = ? AND name = ?",
                    [inode.column, name]
                )
            if let value {
                try database.run(
                    "INSERT OR REPLACE INTO xattr (inode, name, value) VALUES (?, ?, ?)",
                    [inode.column, name, Data(value)]
                )
            } else {
                try database.run(
                    "DELETE FROM xattr WHERE inode = ? AND name = ?",
                    [inode.column, name]
                )
            }
            return had
        }
    }
}

extension CatalogTransaction {
    /// Writes mode, owner, group, times and description of a node.
    func writeAttributes(of node: Node) throws {
        try database.run(
            """
            UPDATE node SET mode = ?, owner = ?, grp = ?, modified_s = ?, modified_ns = ?,
                accessed_s = ?, accessed_ns = ?, changed_s = ?, changed_ns = ?,
                description = ?
            WHERE inode = ?
            """,
            [
                node.mode.map { Int64($0) }, node.owner.map { Int64($0) },
                node.group.map { Int64($0) }, node.modified.seconds,
                Int64(node.modified.nanoseconds), node.accessed?.seconds,
                (node.accessed?.nanoseconds).map { Int64($0) }, node.changed.seconds,
                Int64(node.changed.nanoseconds), node.itemDescription, node.inode.column,
            ]
        )
    }
}
