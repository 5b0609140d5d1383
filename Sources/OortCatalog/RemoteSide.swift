import GRDB
import OortModel

/// All that belongs to an item of the service and not to the node that stands for it here: its id,
/// what both sides last agreed on, what the service said since, what it allows, which enumeration
/// saw the item last, and when we made it.
///
/// Where an identity goes from one node to another, it goes as this one value. The columns are named
/// here and nowhere else, so that no part of an identity can stay behind.
struct RemoteSide {
    private static let nodeColumns = [
        "remote_id", "enumeration", "permissions", "details", "born_s",
    ]
    private static let motionColumns = [
        "synced_parent", "synced_name", "synced_revision", "synced_hash", "synced_size",
        "synced_modified_s", "synced_modified_ns", "synced_description", "remote_state",
        "remote_parent_id", "remote_item",
    ]

    private var node: [DatabaseValue]
    private var motion: [DatabaseValue]

    /// The side of a node that the service does not have, made here at a moment or never.
    static func nothing(born: Timestamp?) -> RemoteSide {
        RemoteSide(
            node: [
                .null, 0.databaseValue, Permissions.all.rawValue.databaseValue, .null,
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
    /// A node in motion is nothing at the service from now on.
    ///
    /// - Returns: what it was there; nobody's, until it is given to another node.
    @discardableResult
    mutating func takeRemoteSide(of inode: Inode) throws -> RemoteSide {
        let side = try RemoteSide.of(inode, database)
        // When it was made here stays true of a file that is to be made there once more.
        try RemoteSide.nothing(born: try node(inode).born).store(of: inode, database)
        touch(inode)
        return side
    }

    /// Gives a node in motion an identity that was taken from another one.
    mutating func give(_ side: RemoteSide, to inode: Inode) throws {
        try side.store(of: inode, database)
        touch(inode)
    }

    /// An item was heard of from the service since the present enumeration began: the end of that
    /// does not take it for gone.
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
    /// From here on the feed has no place to go on from until that page is applied: were it asked
    /// for and never answered, another enumeration begins.
    public func beginEnumeration(of account: AccountID) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "UPDATE account SET enumeration = enumeration + 1, cursor = NULL WHERE id = ?",
                [account.rawValue]
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
