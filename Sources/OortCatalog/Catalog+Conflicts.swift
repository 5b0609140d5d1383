import GRDB
public import OortModel

/// A conflict copy that nobody has put away yet, and the file that it is a copy of.
public struct Conflict: Hashable, Sendable {
    /// One of the two files.
    public struct Version: Hashable, Sendable {
        /// The file.
        public var inode: Inode
        /// Its names from the account's root down.
        public var path: [String]
        /// Bytes in all.
        public var size: Int64
        /// When its content was modified.
        public var modified: Timestamp
    }

    /// The file that holds what was written on this machine.
    public var copy: Version
    /// The file that has the name, with what somebody else wrote.
    public var original: Version
    /// When the copy was made, milliseconds since 1970.
    public var made: Int64
    /// The number of the conflict, by which it is ended.
    public var id: Inode

    /// The copy's names from the account's root down.
    public var path: [String] { copy.path }
}

extension Catalog {
    /// The conflicts that nobody has ended: both files are still where they were left.
    ///
    /// A conflict ends when either file is renamed, moved or deleted here, or deleted by somebody
    /// else. Places count and not inodes: an editor's save puts another file in the place of one, and
    /// ends nothing.
    public func conflicts(_ account: AccountID) async throws(CatalogError) -> [Conflict] {
        try await readAsync { try Self.conflicts(account, $0).compactMap(\.open) }
    }

    /// Ends a conflict whose files both stay as they are.
    public func endConflict(_ id: Inode) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "UPDATE conflict SET ended_ms = ? WHERE inode = ? AND ended_ms IS NULL",
                [Timestamp.now.inMilliseconds, id.column]
            )
        }
    }

    /// The conflicts of which a file is no longer where it was left.
    public func leftConflicts() async throws(CatalogError) -> Set<Inode> {
        try await readAsync { database in
            var left: Set<Inode> = []
            let accounts = try database.all(
                "SELECT DISTINCT account FROM conflict WHERE ended_ms IS NULL"
            ) { AccountID($0[0] as Int64) }
            for account in accounts {
                for (id, open) in try Self.conflicts(account, database) where open == nil {
                    left.insert(id)
                }
            }
            return left
        }
    }

    private static func conflicts(
        _ account: AccountID,
        _ database: Database
    ) throws -> [(id: Inode, open: Conflict?)] {
        let rows = try database.all(
            """
            SELECT inode, made_ms, copy_parent, copy_key, original_parent, original_key
            FROM conflict WHERE account = ? AND ended_ms IS NULL ORDER BY made_ms, inode
            """,
            [account.rawValue]
        ) { row in
            (
                id: Inode(column: row[0]), made: row[1] as Int64,
                copy: (row[2] as Int64?, row[3] as String?),
                original: (row[4] as Int64?, row[5] as String?)
            )
        }
        return try rows.map { row in
            guard let copy = try version(at: row.copy, database),
                let original = try version(at: row.original, database),
                copy.inode != original.inode
            else { return (row.id, nil) }
            let conflict = Conflict(copy: copy, original: original, made: row.made, id: row.id)
            return (row.id, conflict)
        }
    }

    /// The file at a place; nil when none is there.
    private static func version(
        at place: (parent: Int64?, key: String?),
        _ database: Database
    ) throws -> Conflict.Version? {
        guard let parent = place.parent, let key = place.key,
            let node = try fetch(key: key, in: Inode(column: parent), database),
            node.kind != .folder, let path = try path(of: node.inode, database)
        else { return nil }
        return Conflict.Version(
            inode: node.inode,
            path: path.map(\.name),
            size: node.size,
            modified: node.modified
        )
    }
}

extension CatalogTransaction {
    /// Notes a conflict copy that was just made beside its original.
    func addConflict(_ copy: Inode, of original: Node, parent: Inode, key: String) throws {
        try database.run(
            """
            INSERT OR REPLACE INTO conflict (inode, account, original, made_ms, copy_parent,
                copy_key, original_parent, original_key)
            SELECT ?, account, inode, ?, ?, ?, ?, name_key FROM node WHERE inode = ?
            """,
            [
                copy.column, Timestamp.now.inMilliseconds, parent.column, key, parent.column,
                original.inode.column,
            ]
        )
    }

    /// Passes the conflict of a vanished copy to the file that a save put in its place, if there is one.
    func forgetConflict(_ copy: Inode) throws {
        try database.run(
            """
            DELETE FROM conflict WHERE inode = ? AND NOT EXISTS
                (SELECT 1 FROM node WHERE parent = copy_parent AND name_key = copy_key)
            """,
            [copy.column]
        )
    }

    /// Passes a file's part in conflicts to the file that takes over its identity.
    func handOverConflicts(from old: Inode, to new: Inode) throws {
        for column in ["inode", "original"] {
            try database.run(
                "UPDATE OR IGNORE conflict SET \(column) = ? WHERE \(column) = ?",
                [new.column, old.column]
            )
        }
    }

    /// Keeps a conflict whose file the service moved or renamed: no person decided it by that.
    func conflictsFollow(_ inode: Inode, to parent: Inode, key: String) throws {
        guard try database.has("SELECT 1 FROM conflict WHERE ended_ms IS NULL LIMIT 1", []) else {
            return
        }
        for side in ["copy", "original"] {
            try database.run(
                """
                UPDATE conflict SET \(side)_parent = ?, \(side)_key = ?
                WHERE ended_ms IS NULL AND \(side == "copy" ? "inode" : "original") = ?
                """,
                [parent.column, key, inode.column]
            )
        }
    }
}
