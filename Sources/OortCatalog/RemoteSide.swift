import GRDB
import OortModel

/// All that belongs to an item of the service and not to the node that stands for it here: its id, the
/// base, the news, its permissions, the last enumeration that named it, and when we made it.
///
/// Where an identity goes from one node to another, it goes as this one value. The columns are named only
/// here, so that no part of an identity can stay behind.
struct RemoteSide {
    private static let nodeColumns = [
        "remote_id", "enumeration", "permissions", "details", "tags", "born_s",
    ]
    private static let motionColumns = [
        "synced_parent", "synced_name", "synced_revision", "synced_hash", "synced_size",
        "synced_modified_s", "synced_modified_ns", "synced_description", "remote_state",
        "remote_parent_id", "remote_item",
    ]

    private var node: [DatabaseValue]
    private var motion: [DatabaseValue]

    /// The side of a node that the service does not have, made here at that moment, or never.
    static func nothing(born: Timestamp?) -> RemoteSide {
        RemoteSide(
            node: [
                .null, 0.databaseValue, Permissions.all.rawValue.databaseValue, .null, .null,
                born?.seconds.databaseValue ?? .null,
            ],
            motion: motionColumns.map { $0 == "remote_state" ? 0.databaseValue : .null }
        )
    }

    /// The side of a node, which must be in motion.
    static func of(_ inode: Inode, _ database: Database) throws -> RemoteSide {
        func values(_ columns: [String], of table: String) throws -> [DatabaseValue] {
            let row = try Row.fetchOne(
                database,
                sql: "SELECT \(columns.joined(separator: ", ")) FROM \(table) WHERE inode = ?",
                arguments: [inode.column]
            )
            guard let row else { throw CatalogError.notFound }
            return Array(row.databaseValues)
        }
        return RemoteSide(
            node: try values(nodeColumns, of: "node"),
            motion: try values(motionColumns, of: "motion")
        )
    }

    /// Makes this the side of a node, which must be in motion; no other node may have the id.
    fileprivate func store(of inode: Inode, _ database: Database) throws {
        func update(_ table: String, _ columns: [String], _ values: [DatabaseValue]) throws {
            let list = columns.map { "\($0) = ?" }.joined(separator: ", ")
            try database.run(
                "UPDATE \(table) SET \(list) WHERE inode = ?",
                StatementArguments(values) + [inode.column]
            )
        }
        try update("node", Self.nodeColumns, node)
        try update("motion", Self.motionColumns, motion)
    }
}

extension CatalogTransaction {
    /// Takes the remote side off a node in motion: the service has nothing of it from now on.
    ///
    /// - Returns: the remote side, which belongs to no node until it is given to one.
    @discardableResult
    mutating func takeRemoteSide(of inode: Inode) throws -> RemoteSide {
        let side = try RemoteSide.of(inode, database)
        // A file that has to be created there once more was still made here at that time.
        try RemoteSide.nothing(born: try node(inode).born).store(of: inode, database)
        touch(inode)
        return side
    }

    /// Gives a node in motion an identity that was taken from another one.
    mutating func give(_ side: RemoteSide, to inode: Inode) throws {
        try side.store(of: inode, database)
        touch(inode)
    }

    /// Notes that the service named an item since the present enumeration began: the enumeration's end does
    /// not take it for gone.
    func noteNamed(_ inode: Inode) throws {
        try database.run(
            """
            UPDATE node SET enumeration = (SELECT enumeration FROM account WHERE id = node.account)
            WHERE inode = ?
            """,
            [inode.column]
        )
    }
}

extension Catalog {
    /// An enumeration of the whole account begins, before its first page is asked for.
    ///
    /// Until that page is applied the feed has no cursor: if the page was asked for and never came, another
    /// enumeration begins.
    public func beginEnumeration(of account: AccountID) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                """
                UPDATE account SET enumeration = enumeration + 1, enumeration_began_ms = ?,
                    cursor = NULL
                WHERE id = ?
                """,
                [Timestamp.now.inMilliseconds, account.rawValue]
            )
        }
    }

    /// The number of the enumeration that runs or ran last.
    public func enumeration(of account: AccountID) async throws(CatalogError) -> Int64 {
        try await readAsync { try Self.enumeration(of: account, $0) }
    }

    static func enumeration(of account: AccountID, _ database: Database) throws -> Int64 {
        try database.number("SELECT enumeration FROM account WHERE id = ?", [account.rawValue]) ?? 0
    }
}
