import GRDB
public import OortModel

extension Catalog {
    /// The items that the service must be asked for by themselves.
    public func unsureItems(of account: AccountID) async throws(CatalogError) -> [ItemID] {
        try await readAsync { database in
            try database.all(
                "SELECT remote_id FROM unsure WHERE account = ?",
                [account.rawValue]
            ) { ItemID($0[0] as String) }
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
