import GRDB
public import OortModel
import Synchronization

extension Catalog {
    private static let accountColumns = """
        id, name, service, root, root_id, identity, display_name, email, cursor, enumerated, \
        enumeration, quota_used, quota_total, trouble, request_limit
        """

    /// All accounts, by name.
    public func accounts() throws(CatalogError) -> [Account] {
        try read { database in
            try database.all(
                "SELECT \(Self.accountColumns) FROM account ORDER BY name",
                [],
                Self.account
            )
        }
    }

    /// The account of this number; nil when there is none.
    public func account(_ id: AccountID) throws(CatalogError) -> Account? {
        try read { database in
            try database.first(
                "SELECT \(Self.accountColumns) FROM account WHERE id = ?",
                [id.rawValue],
                Self.account
            )
        }
    }

    /// Sets in which form an account's native documents are shown, from their next report on.
    public func setExportPreference(_ preference: ExportPreference, of account: AccountID) {
        exports.withLock { $0[account] = preference }
    }

    /// Sets whether nothing may be changed at an account's service, from now on.
    public func setReadOnly(_ isReadOnly: Bool, of account: AccountID) {
        readOnly.withLock { accounts in
            if isReadOnly { accounts.insert(account) } else { accounts.remove(account) }
        }
    }

    /// The account of this name, made with its folder under the mount's root when it is new.
    ///
    /// - Parameters:
    ///   - name: the user's name for it.
    ///   - service: the kind of cloud.
    ///   - names: how the service compares and stores names.
    ///   - owner: who signed in; kept where the catalog does not know yet whose account it is.
    /// - Returns: the account as the catalog has it now.
    /// - Throws: `.exists` when the name belongs to an account of another service, `.otherPerson` when
    ///   it belongs to somebody else; nothing is changed then.
    public func registerAccount(
        name: String,
        service: String,
        names: NameRules,
        owner: AccountOwner? = nil
    ) throws(CatalogError) -> Account {
        let rules = AccountNameRules(
            comparison: names.comparison,
            allowsDuplicates: names.allowsDuplicates,
            allowsSlash: names.allowsSlash
        )
        let account = try mutate { transaction in
            let database = transaction.database
            if var account = try database.first(
                "SELECT \(Self.accountColumns) FROM account WHERE name = ?",
                [name],
                Self.account
            ) {
                guard account.service == service else { throw CatalogError.exists }
                guard let owner else { return account }
                if let known = account.identity {
                    guard known == owner.identity else { throw CatalogError.otherPerson }
                    return account
                }
                try database.run(
                    "UPDATE account SET identity = ?, display_name = ?, email = ? WHERE id = ?",
                    [owner.identity, owner.displayName, owner.email, account.id.rawValue]
                )
                account.identity = owner.identity
                account.displayName = owner.displayName
                account.email = owner.email
                return account
            }
            try database.run(
                """
                INSERT INTO account
                    (name, service, root, identity, display_name, email, comparison,
                     allows_duplicates, allows_slash)
                VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?)
                """,
                [
                    name, service, owner?.identity, owner?.displayName, owner?.email,
                    rules.comparison.column, rules.allowsDuplicates, rules.allowsSlash,
                ]
            )
            let id = AccountID(database.lastInsertedRowID)
            let now = Timestamp.now
            try database.run(
                """
                INSERT INTO node (account, parent, name, name_key, kind, modified_s,
                    modified_ns, changed_s, changed_ns)
                VALUES (?, 1, ?, ?, 0, ?, ?, ?, ?)
                """,
                [
                    id.rawValue, name, name, now.seconds, now.nanoseconds, now.seconds,
                    now.nanoseconds,
                ]
            )
            let root = Inode(column: database.lastInsertedRowID)
            transaction.touch(root)
            try database.run(
                "UPDATE account SET root = ? WHERE id = ?",
                [root.column, id.rawValue]
            )
            transaction.effects.news.append(.entryAdded(parent: .root, name: name))
            return Account(
                id: id,
                name: name,
                service: service,
                root: root,
                identity: owner?.identity,
                displayName: owner?.displayName,
                email: owner?.email,
                isEnumerated: false,
                enumeration: 0
            )
        }
        self.rules.withLock { $0[account.id] = rules }
        return account
    }

    /// Removes an account and everything known of it from the catalog; the content store disposes of the
    /// items' staged contents.
    ///
    /// - Parameters:
    ///   - id: the account.
    ///   - most: how much of it may exist only on this machine, pending or held by rules; nil for any
    ///     amount.
    /// - Returns: whether it was removed; if not, more than that exists only here, and nothing was changed.
    /// - Throws: `.noAccount` where the catalog does not have it.
    @discardableResult
    public func removeAccount(
        _ id: AccountID,
        losingAtMost most: Int? = nil
    ) throws(CatalogError) -> Bool {
        let isRemoved = try mutate { transaction in
            let database = transaction.database
            if let most {
                let count =
                    try Self.pendingCount(id, database) + Self.heldCount(id, database)
                guard count <= most else { return false }
            }
            guard
                let account = try database.first(
                    "SELECT \(Self.accountColumns) FROM account WHERE id = ?",
                    [id.rawValue],
                    Self.account
                )
            else { throw CatalogError.noAccount }
            try database.run(
                "DELETE FROM xattr WHERE inode IN (SELECT inode FROM node WHERE account = ?)",
                [id.rawValue]
            )
            let tables = [
                "motion", "conflict", "node", "unsure", "told_again", "answered", "trashed",
            ]
            for table in tables {
                try database.run("DELETE FROM \(table) WHERE account = ?", [id.rawValue])
            }
            try database.run("DELETE FROM account WHERE id = ?", [id.rawValue])
            transaction.effects.touchesAll = true
            transaction.effects.news.append(
                .entryRemoved(
                    parent: .root,
                    name: account.name,
                    child: account.root,
                    isFolder: true
                )
            )
            return true
        }
        if isRemoved { rules.withLock { $0[id] = nil } }
        return isRemoved
    }

    /// Keeps whose account it is, and the id of its root folder where that is not known yet.
    ///
    /// - Throws: `.otherPerson` when it is known as somebody else's; nothing is changed then.
    public func setIdentity(
        _ identity: AccountIdentity,
        of id: AccountID
    ) throws(CatalogError) {
        // This is asked at every start; what the catalog knows already must not need a write to a full
        // disk.
        if let known = try account(id), known.rootID != nil, known.identity == identity.id,
            known.displayName == identity.displayName, known.email == identity.email
        {
            return
        }
        try mutate { transaction in
            guard
                let known = try transaction.database.first(
                    "SELECT \(Self.accountColumns) FROM account WHERE id = ?",
                    [id.rawValue],
                    Self.account
                )
            else { throw CatalogError.noAccount }
            guard known.identity == nil || known.identity == identity.id else {
                throw CatalogError.otherPerson
            }
            try transaction.database.run(
                "UPDATE account SET identity = ?, display_name = ?, email = ? WHERE id = ?",
                [identity.id, identity.displayName, identity.email, id.rawValue]
            )
            guard known.rootID == nil else { return }
            try transaction.database.run(
                "UPDATE account SET root_id = ? WHERE id = ?",
                [identity.rootID.rawValue, id.rawValue]
            )
            try transaction.database.run(
                """
                UPDATE node SET remote_id = ?
                WHERE inode = (SELECT root FROM account WHERE id = ?)
                """,
                [identity.rootID.rawValue, id.rawValue]
            )
            transaction.effects.touchesAll = true
        }
    }

    /// Keeps the account's room, for `statfs`.
    public func setQuota(_ quota: Quota, of id: AccountID) throws(CatalogError) {
        try mutate { transaction in
            try transaction.database.run(
                "UPDATE account SET quota_used = ?, quota_total = ? WHERE id = ?",
                [quota.used, quota.total, id.rawValue]
            )
        }
    }

    /// Stores what keeps the account from working, in words for people; nil when it works.
    public func setTrouble(_ trouble: String?, of id: AccountID) throws(CatalogError) {
        try mutate { transaction in
            try transaction.database.run(
                "UPDATE account SET trouble = ? WHERE id = ? AND trouble IS NOT ?",
                [trouble, id.rawValue, trouble]
            )
        }
    }

    /// Stores how many requests at a time the service of the account of this name allows.
    public func setRequestLimit(
        _ limit: Int,
        ofAccountNamed name: String
    ) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                "UPDATE account SET request_limit = ? WHERE name = ?",
                [Int64(limit), name]
            )
        }
    }

    /// Reads every account's name rules, at start.
    func loadRules() throws(CatalogError) {
        let loaded = try read { database in
            try database.all(
                "SELECT id, comparison, allows_duplicates, allows_slash FROM account",
                []
            ) { row in
                (
                    AccountID(row[0]),
                    AccountNameRules(
                        comparison: NameRules.Comparison(column: row[1]),
                        allowsDuplicates: row[2],
                        allowsSlash: row[3]
                    )
                )
            }
        }
        rules.withLock { rules in
            for (id, rule) in loaded { rules[id] = rule }
        }
    }

    /// How an account's names are compared and stored.
    func nameRules(of account: AccountID) -> AccountNameRules {
        var found = rules.withLock { $0[account] } ?? .root
        found.links = links.withLock { $0[account] } ?? .own
        found.isReadOnly = readOnly.withLock { $0.contains(account) }
        found.lag = lags.withLock { $0[account] } ?? 0
        return found
    }

    private static func account(_ row: Columns) -> Account {
        Account(
            id: AccountID(row[0]),
            name: row[1],
            service: row[2],
            root: Inode(column: row[3]),
            rootID: (row[4] as String?).map { ItemID($0) },
            identity: row[5],
            displayName: row[6],
            email: row[7],
            cursor: (row[8] as String?).map { Cursor($0) },
            isEnumerated: row[9] as Int64 != 0,
            enumeration: row[10],
            quota: (row[11] as Int64?).map { Quota(used: $0, total: row[12]) },
            trouble: row[13],
            requestLimit: (row[14] as Int64?).map { Int($0) }
        )
    }
}
