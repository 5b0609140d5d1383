import GRDB
import OortModel

extension CatalogTransaction {
    /// Puts an item in motion: keeps what it was before as the synced base, unless it is in motion
    /// already, and marks the moment of this change.
    ///
    /// To be called before the row is changed.
    mutating func setInMotion(_ node: Node, at now: Timestamp) throws {
        touch(node.inode)
        guard !node.kind.isLocalOnly else { return }
        // Items that stay here need no plan.
        if !node.isHeld { effects.locallyChanged.insert(node.account) }
        let milliseconds = now.inMilliseconds
        try database.run(
            """
            UPDATE motion SET changed_ms = ?, attempts = 0, next_try_ms = 0, error_kind = NULL,
                error_detail = NULL
            WHERE inode = ?
            """,
            [milliseconds, node.inode.column]
        )
        guard database.changesCount == 0 else { return }
        let isAtService = node.remoteID != nil
        try database.run(
            """
            INSERT INTO motion (inode, account, changed_ms, synced_parent, synced_name,
                synced_revision, synced_hash, synced_size, synced_modified_s,
                synced_modified_ns, synced_description)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                node.inode.column, node.account.rawValue, milliseconds,
                isAtService ? node.parent?.column : nil,
                isAtService ? node.serviceName : nil,
                isAtService ? node.revision?.rawValue : nil,
                isAtService ? node.hash?.description : nil,
                isAtService ? node.size : nil,
                isAtService ? node.modified.seconds : nil,
                isAtService ? Int64(node.modified.nanoseconds) : nil,
                isAtService ? node.itemDescription : nil,
            ]
        )
    }

    /// Takes a node out of the local tree.
    ///
    /// A node that the service never had, and was never asked to create, is forgotten at once; any other
    /// waits, outside the tree, until the service has deleted its item.
    mutating func takeOut(_ node: Node, at now: Timestamp) throws {
        touch(node.inode)
        if node.kind.isLocalOnly {
            try forget(node.inode)
            return
        }
        try setInMotion(node, at: now)
        effects.locallyChanged.insert(node.account)
        try database.run(
            """
            UPDATE node SET parent = NULL, held = 0, changed_s = ?, changed_ns = ?,
                generation = generation + (kind = 0)
            WHERE inode = ?
            """,
            [now.seconds, Int64(now.nanoseconds), node.inode.column]
        )
    }

    /// The tables that keep something of a node under its number.
    static let tablesByInode = ["node", "motion", "xattr", "told_again"]

    /// Takes every trace of an item out of the catalog but its contents, which the content store
    /// lets go when nobody holds them.
    mutating func forget(_ inode: Inode) throws {
        touch(inode)
        for table in Self.tablesByInode {
            try database.run("DELETE FROM \(table) WHERE inode = ?", [inode.column])
        }
        try forgetConflict(inode)
    }

    /// Takes every trace of an item out of the catalog, and its name out of its folder.
    mutating func remove(_ node: Node) throws {
        if let parent = node.parent {
            effects.news.append(
                .entryRemoved(
                    parent: parent,
                    name: node.name,
                    child: node.inode,
                    isFolder: node.kind == .folder
                )
            )
        }
        try forget(node.inode)
    }

    /// Marks a folder's content as changed at a moment, as file systems do.
    mutating func touchFolder(_ folder: Node, at now: Timestamp) throws {
        touch(folder.inode)
        try database.run(
            """
            UPDATE node SET modified_s = ?, modified_ns = ?, changed_s = ?, changed_ns = ?
            WHERE inode = ?
            """,
            [
                now.seconds, Int64(now.nanoseconds), now.seconds, Int64(now.nanoseconds),
                folder.inode.column,
            ]
        )
    }
}
