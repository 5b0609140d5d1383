import GRDB
import OortModel
import Synchronization

/// What a service whose answers about many items may lag behind its answers about one told of late, so that no
/// older state takes its place.
///
/// Kept in the catalog, since a process that dies and the next one may be no more than a second apart.
extension Catalog {
    /// Sets how long an account's change feed, listings and searches may not show a change that was
    /// already answered (`ProviderTraits.lag`); zero until it is set.
    public func setLag(_ lag: Duration, of account: AccountID) {
        lags.withLock { $0[account] = lag.inMilliseconds }
    }
}

extension CatalogTransaction {
    /// Notes that the service told of an item just now: of it alone, or with `isFeeds` in its feed.
    func rememberAnswer(
        about item: ItemID,
        in account: AccountID,
        isFeeds: Bool = false,
        _ rules: AccountNameRules
    ) throws {
        guard rules.lag > 0 else { return }
        try database.run(
            """
            INSERT OR REPLACE INTO answered (account, remote_id, is_feeds, at_ms)
            VALUES (?, ?, ?, ?)
            """,
            [account.rawValue, item.rawValue, isFeeds ? 1 : 0, Timestamp.now.inMilliseconds]
        )
    }
}

extension Observer {
    /// The items of which the service told so shortly before these observations were asked for, at `moment`
    /// (milliseconds since 1970), that they may show an older state.
    ///
    /// The feed is not older than what it reported before (`isInOrder`).
    func lagging(askedFor moment: Int64, isInOrder: Bool) throws -> Set<ItemID> {
        guard rules.lag > 0 else { return [] }
        let kept = try min(moment, enumerationBegan() ?? moment) - rules.lag - Self.longestRequest
        // An answer in the future means that the clock was set back.
        try transaction.database.run(
            "DELETE FROM answered WHERE account = ? AND (at_ms < ? OR at_ms > ?)",
            [account.rawValue, kept, Timestamp.now.inMilliseconds]
        )
        return try answered(since: moment - rules.lag, isInOrder: isInOrder)
    }

    /// The items of which an enumeration that ends with observations asked for at `moment` may have shown an older
    /// state, in whichever page it would have named them.
    func laggingInEnumeration(askedFor moment: Int64) throws -> Set<ItemID> {
        guard rules.lag > 0 else { return [] }
        let began = try min(moment, enumerationBegan() ?? moment)
        return try answered(since: began - rules.lag, isInOrder: false)
    }

    /// For how long an answer may have been under way that is stored after others which were asked for later, in
    /// milliseconds.
    private static let longestRequest: Int64 = 600_000

    /// When the enumeration under way began, in milliseconds since 1970; nil if none is.
    private func enumerationBegan() throws -> Int64? {
        try transaction.database.number(
            "SELECT enumeration_began_ms FROM account WHERE id = ?",
            [account.rawValue]
        )
    }

    private func answered(since moment: Int64, isInOrder: Bool) throws -> Set<ItemID> {
        try Set(
            transaction.database.all(
                """
                SELECT remote_id FROM answered
                WHERE account = ? AND is_feeds <= ? AND at_ms >= ?
                """,
                [account.rawValue, isInOrder ? 0 : 1, moment]
            ) { ItemID($0[0] as String) }
        )
    }

    /// Notes what the service told of single items, or in its feed.
    func rememberAnswers(_ changes: [Change]) throws {
        guard rules.lag > 0 else { return }
        for change in changes {
            switch change {
            case .changed(let item):
                if item.isTrashed { try rememberGone(item.id) } else { try remember(item.id) }
            case .removed(let id): try rememberGone(id)
            case .removedPath: break
            }
        }
    }

    private func rememberGone(_ id: ItemID) throws {
        let known = try Catalog.node(id.rawValue, in: account, transaction.database)
        guard !isFeed, known?.kind == .folder else { return try remember(id) }
        // What the feed reports of others decides whether a folder is gone.
        try transaction.database.run(
            "DELETE FROM answered WHERE account = ? AND remote_id = ?",
            [account.rawValue, id.rawValue]
        )
    }

    private func remember(_ id: ItemID) throws {
        try transaction.rememberAnswer(about: id, in: account, isFeeds: isFeed, rules)
    }
}
