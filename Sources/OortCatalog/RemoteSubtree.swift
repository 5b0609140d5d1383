import Foundation
import GRDB
import OortModel

/// An item and all that lies below it at the service, as last reported.
///
/// Pages of a feed may give a circle of folders for a moment: each item is found once.
struct RemoteSubtree {
    /// The item, then what lies below it, the nearer before the farther.
    let inodes: [Inode]
    /// The numbers as a list for SQLite's `json_each`.
    private let list: String

    /// All that lies below an item, and it.
    init(of top: Node, _ database: Database) throws {
        guard top.kind == .folder else {
            self.init([top.inode])
            return
        }
        // The three ways to lie in a folder are those of `Catalog.remoteChildren`.
        self.init(
            try database.all(
                """
                WITH RECURSIVE below(inode) AS (
                    SELECT ?
                    UNION
                    SELECT node.inode FROM below JOIN node ON node.parent = below.inode
                        WHERE node.remote_id IS NOT NULL
                            AND node.inode NOT IN (SELECT inode FROM motion)
                    UNION
                    SELECT motion.inode FROM below
                        JOIN motion ON motion.synced_parent = below.inode
                        WHERE motion.remote_state IN (0, 3)
                    UNION
                    SELECT motion.inode FROM below
                        JOIN node AS folder ON folder.inode = below.inode
                        JOIN motion ON motion.account = folder.account
                            AND motion.remote_parent_id = folder.remote_id
                        WHERE motion.remote_state = 1
                )
                SELECT below.inode FROM below JOIN node ON node.inode = below.inode
                """,
                [top.inode.column]
            ) { Inode(column: $0[0]) }
        )
    }

    init(_ inodes: [Inode]) {
        self.inodes = inodes
        list = "[\(inodes.map { "\($0.column)" }.joined(separator: ","))]"
    }

    /// The ids of the items; with `condition`, of those of which it is true, in the columns of `node`
    /// and `motion`.
    func ids(_ database: Database, where condition: String = "1") throws -> Set<ItemID> {
        Set(
            try database.all(
                """
                SELECT node.remote_id FROM node LEFT JOIN motion ON motion.inode = node.inode
                WHERE node.inode IN (SELECT value FROM json_each(?))
                    AND node.remote_id IS NOT NULL AND (\(condition))
                """,
                [list]
            ) { ItemID($0[0] as String) }
        )
    }

    /// Whether a query has a row; its first argument is the list of these items' numbers, in JSON.
    func has(
        _ sql: String,
        _ arguments: StatementArguments,
        _ database: Database
    ) throws -> Bool {
        try database.has(sql, StatementArguments([list]) + arguments)
    }

    /// Counts all the items as named by an enumeration.
    func setEnumeration(_ enumeration: Int64, _ database: Database) throws {
        try database.run(
            """
            UPDATE node SET enumeration = ? WHERE inode IN (SELECT value FROM json_each(?))
            """,
            [enumeration, list]
        )
    }

    /// Runs a statement; its first argument is the list of these items' numbers, in JSON.
    fileprivate func run(_ sql: String, _ database: Database) throws {
        try database.run(sql, [list])
    }
}

extension CatalogTransaction {
    /// Above so many rows the cache is forgotten as a whole.
    private static let mostTouched = 1000

    private mutating func touch(_ tree: RemoteSubtree) {
        if tree.inodes.count > Self.mostTouched {
            effects.touchesAll = true
        } else {
            effects.touched.formUnion(tree.inodes)
        }
    }

    /// Removes every trace of these items from the catalog, as `forget` does for one.
    ///
    /// With `tellsKernel` the kernel is notified of their names, the deepest first.
    mutating func forget(_ tree: RemoteSubtree, tellsKernel: Bool) throws {
        touch(tree)
        if tellsKernel {
            for inode in tree.inodes.reversed() {
                let entry = try database.first(
                    "SELECT parent, name, kind FROM node WHERE inode = ? AND parent IS NOT NULL",
                    [inode.column]
                ) { row in
                    CatalogChange.entryRemoved(
                        parent: Inode(column: row[0]),
                        name: row[1],
                        child: inode,
                        isFolder: row[2] == NodeKind.folder.rawValue
                    )
                }
                if let entry { effects.news.append(entry) }
            }
        }
        for table in Self.tablesByInode + ["conflict"] {
            try tree.run(
                "DELETE FROM \(table) WHERE inode IN (SELECT value FROM json_each(?))",
                database
            )
        }
    }

    /// Notes that the service no longer has any of these items.
    mutating func setGone(_ tree: RemoteSubtree) throws {
        touch(tree)
        try tree.run(
            """
            INSERT INTO motion (inode, account, changed_ms, synced_parent, synced_name,
                synced_revision, synced_hash, synced_size, synced_modified_s, synced_modified_ns,
                synced_description)
            SELECT inode, account, 0, parent, ifnull(service_name, name), revision, hash, size,
                modified_s, modified_ns, description
            FROM node WHERE inode IN (SELECT value FROM json_each(?))
                AND inode NOT IN (SELECT inode FROM motion)
            """,
            database
        )
        try tree.run(
            """
            UPDATE motion SET remote_state = 2, remote_item = NULL, remote_parent_id = NULL
            WHERE inode IN (SELECT value FROM json_each(?))
            """,
            database
        )
    }

    /// Notes that a deletion was done: the item is gone at the service with all that lay below it there.
    mutating func deleted(_ inode: Inode) throws {
        guard let node = try Catalog.fetch(inode, database) else { return }
        let all = try RemoteSubtree(of: node, database)
        var removed: [Inode] = []
        var kept: [Inode] = []
        for inode in all.inodes {
            let isShown = try database.has(
                "SELECT 1 FROM node WHERE inode = ? AND parent IS NOT NULL",
                [inode.column]
            )
            if isShown { kept.append(inode) } else { removed.append(inode) }
        }
        try forget(RemoteSubtree(removed), tellsKernel: false)
        try setGone(RemoteSubtree(kept))
    }
}
