import GRDB
public import OortModel

/// An item that the service does not have as it is here.
public struct PendingItem: Hashable, Sendable {
    /// The item.
    public var inode: Inode
    /// Its names from the account's root down; where it was, for a deleted one.
    public var path: [String]
    /// The folders above it, the nearest first, up to the account's root.
    public var folders: [Inode]
    /// What it is.
    public var kind: NodeKind
    /// Bytes of content that have to travel; 0 when none have.
    public var size: Int64
    /// Whether it is deleted here.
    public var isDeleted: Bool
    /// Whether the service has it in some state.
    public var isAtService: Bool
    /// Whether only the service has changed it: nothing is to be sent.
    public var isNews: Bool
    /// Whether it was sent and no answer came yet.
    public var isUnderWay: Bool
    /// Whether the account lacks the right that the change needs now: the change waits for it.
    public var isForbidden: Bool
    /// How often the service itself answered that it failed.
    public var attempts: Int
    /// The last error's kind.
    public var errorKind: String?
    /// The last error in words.
    public var errorDetail: String?
    /// When it is tried again, milliseconds since 1970; 0 for as soon as possible, and `WaitMoment.never`
    /// for not before it changes or a person asks for it.
    public var nextTry: Int64

    /// Milliseconds until it is tried again; nil for as soon as possible, and `.max` for not before it
    /// changes or a person asks for it.
    public func wait(now: Int64) -> Int64? { WaitMoment.wait(until: nextTry, now: now) }

    /// Whether it is this item, or lies somewhere below it.
    public func isIn(_ item: Inode) -> Bool { inode == item || folders.contains(item) }
}

extension Catalog {
    /// What is in motion, oldest change first; below a folder when one is given.
    public func pending(
        _ account: AccountID,
        below folder: Inode? = nil,
        limit: Int = .max
    ) async throws(CatalogError) -> [PendingItem] {
        try await readAsync { database in
            let rows = try Self.pendingRows(account, database)
            var items: [PendingItem] = []
            while items.count < limit, let row = try rows.next() {
                var item = Self.pendingItem(row)
                (item.path, item.folders) = try Self.pendingPlace(row, database)
                if folder.map(item.isIn) ?? true { items.append(item) }
            }
            return items
        }
    }

    /// What is in motion, oldest change first, as `pendingItem` reads it.
    static func pendingRows(_ account: AccountID, _ database: Database) throws -> RowCursor {
        try Row.fetchCursor(
            database,
            sql: """
                SELECT node.inode, node.kind, node.size, node.staged, node.parent, node.name,
                    motion.synced_parent, motion.attempts, motion.error_kind,
                    motion.error_detail, motion.next_try_ms, motion.intent IS NOT NULL,
                    node.remote_id IS NOT NULL, node.permissions, motion.changed_ms = 0
                FROM motion JOIN node ON node.inode = motion.inode
                WHERE motion.account = ? AND NOT \(isHeldInSQL) AND NOT
                    (motion.changed_ms = 0 AND node.parent IS NULL AND motion.synced_parent IS NULL)
                ORDER BY motion.changed_ms
                """,
            arguments: [account.rawValue]
        )
    }

    /// An item in motion without its place.
    static func pendingItem(_ row: Row) -> PendingItem {
        PendingItem(
            inode: Inode(column: row[0]),
            path: [],
            folders: [],
            kind: NodeKind(rawValue: row[1]) ?? .file,
            size: row[3] as Int64? == nil ? 0 : row[2],
            isDeleted: row[4] as Int64? == nil,
            isAtService: row[12],
            isNews: row[14] && !row[11],
            isUnderWay: row[11],
            isForbidden: row[12]
                && !Permissions(rawValue: row[13]).contains(
                    row[4] as Int64? == nil ? .delete : .write
                ),
            attempts: row[7],
            errorKind: row[8],
            errorDetail: row[9],
            nextTry: row[10]
        )
    }

    /// The folder that an item in motion lies in, or lay in.
    static func pendingParent(_ row: Row) -> Inode? {
        (row[4] as Int64? ?? row[6] as Int64?).map { Inode(column: $0) }
    }

    /// The names from the account's root down to an item in motion, and the folders above it.
    static func pendingPlace(
        _ row: Row,
        _ database: Database
    ) throws -> (path: [String], folders: [Inode]) {
        var path = [row[5] as String]
        var folders: [Inode] = []
        var next = pendingParent(row)
        while let above = next, above != .root, let node = try fetch(above, database) {
            folders.append(above)
            if node.isAccountRoot { break }
            path.append(node.name)
            next = try node.parent ?? motion(above, database)?.syncedParent
            guard path.count < 10_000 else { break }
        }
        return (path.reversed(), folders)
    }

    /// How many items are in motion.
    public func pendingCount(_ account: AccountID) async throws(CatalogError) -> Int {
        try await readAsync { try Self.pendingCount(account, $0) }
    }

    static func pendingCount(_ account: AccountID, _ database: Database) throws -> Int {
        let count = try database.number(
            """
            SELECT count(*) FROM motion JOIN node ON node.inode = motion.inode
            WHERE motion.account = ? AND NOT \(Self.isHeldInSQL) AND NOT
                (motion.changed_ms = 0 AND node.parent IS NULL AND motion.synced_parent IS NULL)
            """,
            [account.rawValue]
        )
        return Int(count ?? 0)
    }

    /// How many items of an account are known; reads an index, but every entry of it.
    public func itemCount(_ account: AccountID) async throws(CatalogError) -> Int64 {
        try await readAsync { database in
            try database.number("SELECT count(*) FROM node WHERE account = ?", [account.rawValue])
                ?? 0
        }
    }
}
