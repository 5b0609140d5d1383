import GRDB
public import OortModel
import OortPlanner

extension Catalog {
    /// An item that the service must be asked for by itself.
    public struct UnsureItem: Sendable {
        /// The service's id of the item.
        public var id: ItemID
        /// How the item is asked for; nil when the catalog does not have it, and does not know where it
        /// lies.
        public var reference: ItemReference?
        /// The folder that it lies in at the service, as last reported.
        public var folder: Inode?
        /// Whether the catalog has a node for the id.
        public var isKnown = false
        /// Whether the service told of it by itself a short time ago, so that a listing of its folder may be
        /// older.
        public var mayLag = false
    }

    /// The items that the service must be asked for by themselves, in the order of their ids.
    public func unsureItems(of account: AccountID) async throws(CatalogError) -> [UnsureItem] {
        try await readAsync { database in
            let rows = try database.all(
                """
                SELECT remote_id, told_name, told_parent_id, EXISTS (
                    SELECT 1 FROM answered WHERE answered.account = unsure.account
                        AND answered.remote_id = unsure.remote_id)
                FROM unsure WHERE account = ? ORDER BY remote_id
                """,
                [account.rawValue]
            ) { row in
                let told = (row[1] as String?).map { ToldPlace(name: $0, parentID: row[2]) }
                return (ItemID(row[0] as String), told, row[3] as Bool)
            }
            return try rows.map { id, told, mayLag in
                guard let node = try Self.node(id.rawValue, in: account, database) else {
                    var item = try Self.unknownItem(id, told, in: account, database)
                    item.mayLag = mayLag
                    return item
                }
                return UnsureItem(
                    id: id,
                    reference: try Self.reference(node.inode, database),
                    folder: try Self.remotePlace(of: node, database)?.parent,
                    isKnown: true,
                    mayLag: mayLag
                )
            }
        }
    }

    /// An item that the catalog does not have, by where it was reported to lie.
    private static func unknownItem(
        _ id: ItemID,
        _ told: ToldPlace?,
        in account: AccountID,
        _ database: Database
    ) throws -> UnsureItem {
        guard let told else { return UnsureItem(id: id) }
        var item = UnsureItem(id: id)
        var path = RemotePath.root
        if let parent = told.parentID {
            if let known = pathOfMark(parent) {
                path = known
            } else if let folder = try node(parent, in: account, database) {
                item.folder = folder.inode
                path = try reference(folder.inode, database)?.path ?? path
            }
        }
        item.reference = ItemReference(id: id, path: path.appending(told.name))
        return item
    }

    /// Notes that an item must be asked for by itself, because what is known of it may be old.
    public func beUnsure(of item: ItemID, in account: AccountID) async throws(CatalogError) {
        try await mutateAsync { try $0.beUnsure(of: item, in: account) }
    }

    /// Notes that an item need not be asked for: the catalog has none of this id that could be.
    public func forgetUnsure(of item: ItemID, in account: AccountID) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "DELETE FROM unsure WHERE account = ? AND remote_id = ?",
                [account.rawValue, item.rawValue]
            )
        }
    }
}

/// Where an item was reported to lie that the catalog does not have.
struct ToldPlace {
    var name: String
    /// Its folder as in `motion.remote_parent_id`: by id, or by path.
    var parentID: String?
}

extension CatalogTransaction {
    /// Notes that an item must be asked for by itself; `told` is where it was reported to lie, if the
    /// catalog does not have it.
    func beUnsure(of item: ItemID, told: ToldPlace? = nil, in account: AccountID) throws {
        try database.run(
            """
            INSERT INTO unsure (account, remote_id, told_name, told_parent_id) VALUES (?, ?, ?, ?)
            ON CONFLICT (account, remote_id) DO UPDATE
                SET told_name = excluded.told_name, told_parent_id = excluded.told_parent_id
                WHERE excluded.told_name IS NOT NULL
            """,
            [account.rawValue, item.rawValue, told?.name, told?.parentID]
        )
    }
}

extension Observer {
    /// Makes everything below a folder unsure, until it is reported again, if the folder was reported at a
    /// new path or if we moved it ourselves.
    ///
    /// Dropbox reports a moved folder as the removal of the old path, the folder at the new one, and all
    /// that lies there now. It does not report what somebody removed from the folder before it was moved:
    /// such an item is just not reported again.
    mutating func doubtMoved(_ folder: Node, _ item: Item, in parent: Node?) throws {
        let wasMovedHere = try transaction.database.has(
            "SELECT 1 FROM told_again WHERE inode = ?",
            [folder.inode.column]
        )
        let place = try Catalog.remotePlace(of: folder, transaction.database)
        let isThere =
            place?.parent == parent?.inode && place?.name.isSameText(as: item.fileName) == true
        guard wasMovedHere || !isThere else { return }
        var below = try RemoteSubtree(of: folder, transaction.database)
            .ids(transaction.database)
        if let id = folder.remoteID { below.remove(id) }
        unsure.formUnion(below)
        guard wasMovedHere, isThere, isFeed else { return }
        try transaction.database.run(
            "DELETE FROM told_again WHERE inode = ?",
            [folder.inode.column]
        )
    }

    /// Makes an item unsure that was reported but is not in the catalog, though an operation of ours
    /// touched it: we may have deleted it since, or taken it for gone with a folder that it does not lie
    /// in.
    mutating func doubtUnknown(_ item: Item, in parentID: String?) {
        unsure.insert(item.id)
        unknown[item.id] = ToldPlace(name: item.fileName, parentID: parentID)
    }

    /// Stores which items are unsure now, and no longer those that were reported for certain: a state that may
    /// be old answers no question, whether it is known or not.
    func rememberUnsure(_ changes: [Change]) throws {
        let hasSome = try transaction.database.has(
            "SELECT 1 FROM unsure WHERE account = ? LIMIT 1",
            [account.rawValue]
        )
        if hasSome {
            for change in changes {
                let id: ItemID
                switch change {
                case .changed(let item): id = item.id
                case .removed(let removed): id = removed
                case .removedPath: continue
                }
                guard !unsure.contains(id), !suspects.contains(id) else { continue }
                try transaction.database.run(
                    "DELETE FROM unsure WHERE account = ? AND remote_id = ?",
                    [account.rawValue, id.rawValue]
                )
            }
        }
        for id in unsure { try transaction.beUnsure(of: id, told: unknown[id], in: account) }
    }
}
