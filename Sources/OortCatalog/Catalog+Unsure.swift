import GRDB
public import OortModel
import OortPlanner

extension Catalog {
    /// An item that the service must be asked for by itself.
    public struct UnsureItem: Sendable {
        /// The service's id of it.
        public var id: ItemID
        /// How it is asked for; nil when nothing of this id is here.
        public var reference: ItemReference?
        /// The folder that it lies in at the service, as last heard.
        public var folder: Inode?
    }

    /// The items that the service must be asked for by themselves, in the order of their ids.
    public func unsureItems(of account: AccountID) async throws(CatalogError) -> [UnsureItem] {
        try await readAsync { database in
            let ids = try database.all(
                "SELECT remote_id FROM unsure WHERE account = ? ORDER BY remote_id",
                [account.rawValue]
            ) { ItemID($0[0] as String) }
            return try ids.map { id in
                guard let node = try Self.node(id.rawValue, in: account, database) else {
                    return UnsureItem(id: id)
                }
                return UnsureItem(
                    id: id,
                    reference: try Self.reference(node.inode, database),
                    folder: try Self.remotePlace(of: node, database)?.parent
                )
            }
        }
    }

    /// An item must be asked for by itself, because what is known of it may be old.
    public func beUnsure(of item: ItemID, in account: AccountID) async throws(CatalogError) {
        try await mutateAsync { try $0.beUnsure(of: item, in: account) }
    }

    /// Nothing of this id is here that could be asked for.
    public func forgetUnsure(of item: ItemID, in account: AccountID) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "DELETE FROM unsure WHERE account = ? AND remote_id = ?",
                [account.rawValue, item.rawValue]
            )
        }
    }
}

extension CatalogTransaction {
    /// Notes that an item must be asked for by itself.
    func beUnsure(of item: ItemID, in account: AccountID) throws {
        try database.run(
            "INSERT OR IGNORE INTO unsure (account, remote_id) VALUES (?, ?)",
            [account.rawValue, item.rawValue]
        )
    }
}

extension Observer {
    /// A folder is told at a path: where it lies elsewhere than was known, or we moved it ourselves,
    /// everything below it must be told again.
    ///
    /// Dropbox tells a moved folder as the removal of the old path, the folder at the new one, and
    /// all that lies there now. What somebody removed from it before it was moved is not told by
    /// itself any longer: it is what does not come again. So all below is unsure until it is told.
    mutating func doubtMoved(_ folder: Node, _ item: Item, in parent: Node?) throws {
        let wasMovedHere = try transaction.database.has(
            "SELECT 1 FROM told_again WHERE inode = ?",
            [folder.inode.column]
        )
        let place = try Catalog.remotePlace(of: folder, transaction.database)
        let isThere =
            place?.parent == parent?.inode && place?.name.isSameText(as: item.fileName) == true
        guard wasMovedHere || !isThere else { return }
        var queue = [folder]
        while let folder = queue.popLast() {
            for child in try Catalog.remoteChildren(of: folder, transaction.database) {
                if let id = child.remoteID { unsure.insert(id) }
                if child.kind == .folder { queue.append(child) }
            }
        }
        guard wasMovedHere, isThere, isFeed else { return }
        try transaction.database.run(
            "DELETE FROM told_again WHERE inode = ?",
            [folder.inode.column]
        )
    }

    /// What is said for certain need not be asked for any longer.
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
                guard !unsure.contains(id) else { continue }
                try transaction.database.run(
                    "DELETE FROM unsure WHERE account = ? AND remote_id = ?",
                    [account.rawValue, id.rawValue]
                )
            }
        }
        for id in unsure { try transaction.beUnsure(of: id, in: account) }
    }
}
