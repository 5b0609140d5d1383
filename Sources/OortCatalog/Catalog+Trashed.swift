import Foundation
import GRDB
public import OortModel

/// Something that a program moved to the trash of the desktop, as long as it is shown there.
public struct TrashedNode: Hashable, Sendable {
    /// The number of the deletion; never reused.
    public var id: Int64
    /// The account that it lay in.
    public var account: AccountID
    /// Our number of it in the tree.
    public var inode: Inode
    /// The service's id of it.
    public var item: ItemID
    /// The revision of a file's content.
    public var revision: Revision?
    /// The name that it had at the service.
    public var serviceName: String
    /// The name that it has in the trash.
    public var name: String
    /// What it is.
    public var kind: NodeKind
    /// Bytes of a file.
    public var size: Int64
    /// The modified time.
    public var modified: Timestamp
    /// Where it lay: the shown names from the account's root down.
    public var path: [String]
    /// When it was deleted.
    public var deleted: Timestamp
    /// What the program that deleted it wrote beside it.
    public var info: [UInt8]
    /// What tells its entry in the service's trash from every other; nil where its id does, or nothing.
    public var mark: String?
}

/// What became of an item that a program moved to the trash.
public enum TrashOutcome: Sendable {
    /// It is in the trash; `open` are the files of it that somebody reads.
    case trashed(TrashedNode, open: [Node])
    /// The service does not have all of it as it is here, so its trash could not give it back.
    case notAllAtService
    /// What lies in it is not known yet.
    case notKnown
    /// The account may not delete all of it.
    case notAllowed
}

extension Catalog {
    /// The table of what the trash of the desktop shows.
    static func addTrashed(to migrator: inout DatabaseMigrator) {
        migrator.registerMigration("what lies in the trash of the desktop") { database in
            try database.execute(
                sql: """
                    CREATE TABLE trashed (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        account INTEGER NOT NULL,
                        inode INTEGER NOT NULL,
                        remote_id TEXT NOT NULL,
                        revision TEXT,
                        service_name TEXT NOT NULL,
                        name TEXT NOT NULL UNIQUE,
                        kind INTEGER NOT NULL,
                        size INTEGER NOT NULL,
                        modified_s INTEGER NOT NULL,
                        modified_ns INTEGER NOT NULL,
                        -- The names from the account's root down, with slashes between them.
                        path TEXT NOT NULL,
                        deleted_s INTEGER NOT NULL,
                        info BLOB NOT NULL
                    ) STRICT;
                    """
            )
        }
        migrator.registerMigration("what tells things in the trash apart") { database in
            try database.execute(
                sql: """
                    -- What tells it from every other in the service's trash.
                    ALTER TABLE trashed ADD COLUMN mark TEXT;
                    """
            )
        }
    }

    /// How long the trash shows something, in seconds: no longer than services keep it.
    private static let trashLength: Int64 = 30 * 86_400

    /// The rows that the trash still shows: not so old that the service may have dropped them, and not back
    /// in the tree.
    private static let isInTrash = """
        deleted_s >= ? AND NOT EXISTS (SELECT 1 FROM node WHERE node.account = trashed.account
            AND node.remote_id = trashed.remote_id AND node.parent IS NOT NULL)
        """

    private static let trashedColumns = """
        id, account, inode, remote_id, name, kind, size, modified_s, modified_ns, path, deleted_s,
            info, revision, service_name, mark
        """

    private static func trashed(_ columns: Columns) -> TrashedNode {
        TrashedNode(
            id: columns[0],
            account: AccountID(columns[1]),
            inode: Inode(column: columns[2]),
            item: ItemID(columns[3] as String),
            revision: (columns[12] as String?).map { Revision($0) },
            serviceName: columns[13],
            name: columns[4],
            kind: NodeKind(rawValue: columns[5]) ?? .file,
            size: columns[6],
            modified: Timestamp(
                seconds: columns[7],
                nanoseconds: Int32(clamping: columns[8] as Int64)
            ),
            path: (columns[9] as String).parts(between: "/").map(String.init),
            deleted: Timestamp(seconds: columns[10]),
            info: columns[11] ?? [],
            mark: columns[14]
        )
    }

    private static var oldest: Int64 { Timestamp.now.seconds - trashLength }

    /// Deletes an item with all that it holds, and shows it in the trash, in one transaction.
    ///
    /// Only if the service has all of it exactly as it is here, since only then its trash can give back
    /// what was seen. Blocks the calling thread.
    ///
    /// - Parameters:
    ///   - name: the item's name in `parent`.
    ///   - parent: the folder.
    ///   - trashName: the name that it is to have in the trash.
    ///   - info: what the program wrote beside it.
    ///   - mark: an item, and what tells it from every other in the service's trash; of no account where
    ///     another item has the name.
    ///   - isOpen: whether somebody has a file open.
    /// - Returns: what became of it.
    /// - Throws: `.notFound`; `.exists` when the trash has the name; `.isARoot` for an account.
    public func trash(
        _ name: String,
        in parent: Inode,
        as trashName: String,
        info: [UInt8],
        mark: (item: ItemID, mark: String)?,
        isOpen: (Inode) -> Bool
    ) throws(CatalogError) -> TrashOutcome {
        try mutate { transaction in
            let database = transaction.database
            let (folder, top) = try transaction.entry(name, in: parent, catalog: self)
            try database.run("DELETE FROM trashed WHERE NOT (\(Self.isInTrash))", [Self.oldest])
            guard
                try !database.has("SELECT 1 FROM trashed WHERE name = ?", [trashName])
            else { throw CatalogError.exists }
            let nodes = try database.all(
                """
                WITH RECURSIVE below(number) AS (
                    VALUES (?)
                    UNION ALL
                    SELECT node.inode FROM below JOIN node ON node.parent = below.number
                )
                SELECT \(Node.columns) FROM node WHERE inode IN (SELECT number FROM below)
                """,
                [top.inode.column],
                Node.init(columns:)
            )
            guard let item = top.remoteID,
                let path = try Self.path(of: top.inode, database)?.map(\.name)
            else { return .notAllAtService }
            let isEnumerated = try database.has(
                "SELECT 1 FROM account WHERE id = ? AND enumerated = 1",
                [top.account.rawValue]
            )
            for node in nodes {
                let isMoving = try database.has(
                    "SELECT 1 FROM motion WHERE inode = ?",
                    [node.inode.column]
                )
                guard !isMoving, node.remoteID != nil, node.staged == nil, !node.kind.isLocalOnly,
                    !transaction.writers.isOpen(node.inode)
                else { return .notAllAtService }
                guard node.permissions.contains(.delete) else { return .notAllowed }
                guard node.kind != .folder || node.isListed || isEnumerated else {
                    return .notKnown
                }
            }
            let mark = mark.flatMap { $0.item == item ? $0.mark : nil }
            let now = Timestamp.now
            for node in nodes { try transaction.takeOut(node, at: now) }
            try transaction.touchFolder(folder, at: now)
            try database.run(
                """
                INSERT INTO trashed (account, inode, remote_id, name, kind, size, modified_s,
                    modified_ns, path, deleted_s, info, revision, service_name, mark)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
                [
                    top.account.rawValue, top.inode.column, item.rawValue, trashName,
                    top.kind.rawValue, top.size, top.modified.seconds,
                    Int64(top.modified.nanoseconds), path.joined(separator: "/"), now.seconds,
                    Data(info), top.revision?.rawValue, top.serviceName,
                    mark,
                ]
            )
            let trashed = TrashedNode(
                id: database.lastInsertedRowID,
                account: top.account,
                inode: top.inode,
                item: item,
                revision: top.revision,
                serviceName: top.serviceName,
                name: trashName,
                kind: top.kind,
                size: top.size,
                modified: top.modified,
                path: path,
                deleted: Timestamp(seconds: now.seconds),
                info: info,
                mark: mark
            )
            return .trashed(trashed, open: nodes.filter { isOpen($0.inode) })
        }
    }

    /// What the trash shows after a deletion's number, in the order of those, at most `limit`.
    public func trashed(after id: Int64, limit: Int) throws(CatalogError) -> [TrashedNode] {
        try read { database in
            try database.all(
                """
                SELECT \(Self.trashedColumns) FROM trashed
                WHERE \(Self.isInTrash) AND id > ? ORDER BY id LIMIT ?
                """,
                [Self.oldest, id, limit],
                Self.trashed
            )
        }
    }

    /// What has a name in the trash; nil when nothing does.
    public func trashed(named name: String) throws(CatalogError) -> TrashedNode? {
        try read { database in
            try database.first(
                "SELECT \(Self.trashedColumns) FROM trashed WHERE \(Self.isInTrash) AND name = ?",
                [Self.oldest, name],
                Self.trashed
            )
        }
    }

    /// What has a number in the trash; nil when nothing does.
    public func trashed(_ id: Int64) throws(CatalogError) -> TrashedNode? {
        try read { database in
            try database.first(
                "SELECT \(Self.trashedColumns) FROM trashed WHERE \(Self.isInTrash) AND id = ?",
                [Self.oldest, id],
                Self.trashed
            )
        }
    }

    /// A number that is another one when the trash shows something else.
    public func trashedState() throws(CatalogError) -> [Int64] {
        try read { database in
            try database.first(
                """
                SELECT count(*), coalesce(max(id), 0), coalesce(sum(id), 0) FROM trashed
                WHERE \(Self.isInTrash)
                """,
                [Self.oldest]
            ) { [$0[0], $0[1], $0[2]] } ?? []
        }
    }

    /// Stops showing an item in the trash that a person deletes there.
    ///
    /// Blocks the calling thread.
    public func hideTrashed(_ id: Int64) throws(CatalogError) {
        try mutate { transaction in
            try transaction.database.run("DELETE FROM trashed WHERE id = ?", [id])
        }
    }

    /// Stops showing an item in the trash: it is back, or the service no longer has it.
    public func forgetTrashed(_ id: Int64) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run("DELETE FROM trashed WHERE id = ?", [id])
        }
    }

    /// All that was moved to the trash in an account, the oldest first, also what is shown no longer.
    public func trashed(of account: AccountID) throws(CatalogError) -> [TrashedNode] {
        try read { database in
            try database.all(
                """
                SELECT \(Self.trashedColumns) FROM trashed
                WHERE account = ? ORDER BY id
                """,
                [account.rawValue],
                Self.trashed
            )
        }
    }
}
