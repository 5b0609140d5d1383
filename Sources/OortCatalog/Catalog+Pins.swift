import GRDB
public import OortModel

extension Catalog {
    /// The tables of pins.
    static func addPins(to migrator: inout DatabaseMigrator) {
        migrator.registerMigration("what is to be kept here") { database in
            try database.execute(
                sql: """
                    CREATE TABLE pin (
                        inode INTEGER PRIMARY KEY,
                        account INTEGER NOT NULL,
                        made_ms INTEGER NOT NULL,
                        -- NULL until somebody ends it.
                        until_ms INTEGER
                    ) STRICT;
                    ALTER TABLE content DROP COLUMN is_pinned;
                    """
            )
        }
    }

    // MARK: Pins

    /// Keeps an item here from now on; a pin that it has already gets the new end.
    ///
    /// - Parameters:
    ///   - inode: the file or folder; it must be in the local tree.
    ///   - until: when that ends, milliseconds since 1970; nil for when somebody ends it.
    /// - Throws: `.notFound`.
    public func pin(_ inode: Inode, until: Int64?) async throws(CatalogError) {
        try await mutateAsync { transaction in
            let node = try transaction.node(inode)
            guard node.parent != nil || inode == .root else { throw CatalogError.notFound }
            try transaction.database.run(
                """
                INSERT INTO pin (inode, account, made_ms, until_ms) VALUES (?, ?, ?, ?)
                ON CONFLICT (inode) DO UPDATE SET until_ms = excluded.until_ms
                """,
                [inode.column, node.account.rawValue, Timestamp.now.inMilliseconds, until]
            )
        }
    }

    /// Takes an item's pin away.
    ///
    /// - Returns: whether it had one.
    public func unpin(_ inode: Inode) async throws(CatalogError) -> Bool {
        try await mutateAsync { transaction in
            try transaction.database.run("DELETE FROM pin WHERE inode = ?", [inode.column])
            return transaction.database.changesCount > 0
        }
    }

    /// The pins of items in the local tree, the oldest first.
    public func pins(at now: Int64) async throws(CatalogError) -> [Pin] {
        try await readAsync { database in
            try database.all(
                """
                SELECT pin.inode, pin.account, made_ms, until_ms FROM pin JOIN node USING (inode)
                WHERE \(Self.holds) AND (node.parent IS NOT NULL OR node.inode = 1)
                ORDER BY made_ms, pin.inode
                """,
                [now]
            ) {
                Pin(
                    inode: Inode(column: $0[0]),
                    account: AccountID($0[1]),
                    made: $0[2],
                    until: $0[3]
                )
            }
        }
    }

    /// Forgets pins whose time is over, and pins of items that are gone for good.
    ///
    /// - Returns: whether there were any, and when the next one's time is over, milliseconds since
    ///   1970.
    public func forgetPastPins(
        at now: Int64
    ) async throws(CatalogError) -> (hasEnded: Bool, nextEnd: Int64?) {
        let stale = "NOT \(Self.holds) OR inode NOT IN (SELECT inode FROM node)"
        let (isDue, next) = try await readAsync { database in
            (
                try database.has("SELECT 1 FROM pin WHERE \(stale) LIMIT 1", [now]),
                try database.number("SELECT min(until_ms) FROM pin WHERE until_ms > ?", [now])
            )
        }
        guard isDue else { return (false, next) }
        try await mutateAsync { transaction in
            try transaction.database.run("DELETE FROM pin WHERE \(stale)", [now])
        }
        return (true, next)
    }

    /// The nearest item that is pinned: this one or a folder above it; nil where none is.
    public func nearestPin(of inode: Inode, at now: Int64) throws(CatalogError) -> Inode? {
        try read { try self.nearestPin(of: inode, at: now, $0) }
    }

    private func nearestPin(
        of inode: Inode,
        at now: Int64,
        _ database: Database
    ) throws -> Inode? {
        guard try database.has("SELECT 1 FROM pin LIMIT 1", []) else { return nil }
        return try database.number(
            """
            WITH RECURSIVE above(inode, parent, depth) AS (
                SELECT inode, parent, 0 FROM node WHERE inode = ? UNION ALL
                SELECT node.inode, node.parent, depth + 1
                    FROM above JOIN node ON node.inode = above.parent
                        \(try isShown("above.inode", database)) WHERE depth < 10000
            )
            SELECT above.inode FROM above JOIN pin USING (inode) WHERE \(Self.holds)
            ORDER BY depth LIMIT 1
            """,
            [inode.column, now]
        ).map { Inode(column: $0) }
    }

    // MARK: What they hold

    /// Surveys all that is to be kept of an account.
    ///
    /// Reads every item of it: not to be called often. `now` is in milliseconds since 1970; at most `limit`
    /// missing files are returned, of those that `isWanted` accepts.
    public func surveyKept(
        of account: AccountID,
        at now: Int64,
        limit: Int,
        isWanted: @escaping @Sendable (KeptFile) -> Bool
    ) async throws(CatalogError) -> KeepSurvey {
        try await readAsync { database in
            var survey = KeepSurvey()
            guard try database.has("SELECT 1 FROM pin LIMIT 1", []) else { return survey }
            let roots = """
                SELECT inode FROM pin WHERE (account = ? OR account = 0) AND \(Self.holds)
                """
            try self.eachKept(roots, [account.rawValue, now], of: account, database) { file, row in
                survey.sums.add(row)
                guard let file, !row.isHere, isWanted(file) else { return }
                if survey.missing.count < limit {
                    survey.missing.append(file)
                } else {
                    survey.isCut = true
                }
            }
            return survey
        }
    }

    /// The sums of one item, with all below it.
    public func keepSums(of inode: Inode) async throws(CatalogError) -> Pin.Sums {
        try await readAsync { database in
            var sums = Pin.Sums()
            try self.eachKept("VALUES (?)", [inode.column], of: nil, database) { _, row in
                sums.add(row)
            }
            return sums
        }
    }

    /// The sums of what is kept already and of what an item would add; each file counts once.
    public func keepSums(with inode: Inode, at now: Int64) async throws(CatalogError) -> Pin.Sums {
        try await readAsync { database in
            var sums = Pin.Sums()
            let roots = "VALUES (?) UNION SELECT inode FROM pin WHERE \(Self.holds)"
            try self.eachKept(roots, [inode.column, now], of: nil, database) { _, row in
                sums.add(row)
            }
            return sums
        }
    }

    /// How much of a file, or of a folder's files, is here.
    ///
    /// Of a folder with more than `bound` items in and below it, only the first ones are looked at: it is
    /// `.partly` here unless none of them is.
    public func availability(
        of node: Node,
        at now: Int64,
        bound: Int = 2000
    ) throws(CatalogError) -> Availability {
        try read { database in
            let isPinned = try self.nearestPin(of: node.inode, at: now, database) != nil
            var sums = Pin.Sums()
            var isAnythingHere = false
            var seen = 0
            try self.eachKept(
                "VALUES (?)",
                [node.inode.column],
                of: nil,
                limit: bound + 1,
                database
            ) { _, row in
                sums.add(row)
                isAnythingHere = isAnythingHere || row.present > 0 || row.isStaged
            } counting: {
                seen += 1
            }
            if sums.filesMissing > 0, !isAnythingHere { return .online }
            guard sums.filesMissing == 0, seen <= bound else { return .partly }
            return isPinned ? .pinned : .cached
        }
    }

    /// The condition of a join by which a folder's pin keeps what lies in it.
    ///
    /// A folder that the settings leave out is kept only by a pin of itself, or of something in it. `column`
    /// has the inode of what lies in the folder.
    func isShown(_ column: String, _ database: Database) throws -> String {
        let leftOut = try leftOutInodes(database)
        guard !leftOut.isEmpty else { return "" }
        return "AND \(column) NOT IN (\(leftOut.map { String($0) }.joined(separator: ",")))"
    }

    /// Whether a pin's time is not over at a moment, which is the next argument.
    static let holds = "ifnull(until_ms > ?, 1)"

    /// What one row says of a file that is to be kept.
    struct KeptRow {
        var size: Int64
        /// Bytes that are here.
        var present: Int64
        var isHere: Bool
        /// Whether programs wrote into it, and the service does not have that yet.
        var isStaged: Bool
        /// Bytes that it takes in the cache, or will.
        var cached: Int64
    }

    /// Goes through the files in and below some items, each once.
    ///
    /// `roots` is the query of these items' numbers; only files of `account` count. The file is nil where
    /// no bytes of it are fetched from the service; where programs wrote into a part of it, and the service
    /// does not have that yet, it is the revision of which the rest is. `limit` is how many items are looked at, each of which
    /// is counted.
    private func eachKept(
        _ roots: String,
        _ arguments: StatementArguments,
        of account: AccountID?,
        limit: Int = -1,
        _ database: Database,
        _ body: (KeptFile?, KeptRow) -> Void,
        counting: () -> Void = {}
    ) throws {
        let below =
            (account == nil ? "" : "AND node.account = ? ")
            + (try isShown("node.inode", database))
        var arguments = arguments
        if let account { arguments += [account.rawValue] }
        arguments += [limit]
        _ = try database.all(
            """
            WITH RECURSIVE kept(inode) AS (
                SELECT * FROM (\(roots)) UNION
                SELECT node.inode FROM kept JOIN node ON node.parent = kept.inode \(below)
                LIMIT ?
            )
            SELECT node.inode, node.kind, node.size,
                iif(node.staged IS NULL, node.hash, content.hash), node.permissions,
                node.staged IS NOT NULL,
                iif(node.staged IS NULL, ifnull(node.content_item, node.remote_id), own.base_item)
                    AS source,
                CASE WHEN node.staged IS NOT NULL THEN own.base_revision
                    WHEN node.kind = \(NodeKind.nativeDocument.rawValue)
                    THEN \(Node.exportRevisionColumn)
                    ELSE node.revision END AS version,
                ifnull(content.is_complete, 0), ifnull(content.bytes_on_disk, 0),
                ifnull(own.base_size, 0)
            FROM kept JOIN node USING (inode)
                LEFT JOIN content AS own ON own.id = node.staged
                LEFT JOIN content ON content.account = node.account
                    AND content.item = source AND content.revision = version
            WHERE node.parent IS NOT NULL OR node.inode = 1
            """,
            arguments
        ) { (row: Columns) -> Void in
            counting()
            guard let kind = NodeKind(rawValue: row[1] as Int64),
                kind == .file || kind == .nativeDocument
            else { return }
            // An older version took any number for a size.
            let size = min(max(row[2] as Int64, 0), ReportedSize.largest)
            let isStaged = row[5] as Bool
            let isExported = kind == .nativeDocument
            let source = row[6] as String?
            // Of what programs wrote into, the rest; all of it is here where there is no base.
            let fetched =
                isStaged ? min(max(row[10] as Int64, 0), ReportedSize.largest) : size
            let isHere =
                row[8] as Bool || !isExported && fetched == 0 || isStaged && source == nil
            let found = KeptRow(
                size: size,
                present: isHere ? size : min(row[9] as Int64, size),
                isHere: isHere,
                isStaged: isStaged,
                cached: isStaged && source == nil ? 0 : fetched
            )
            guard let source, let revision = row[7] as String? else {
                body(nil, found)
                return
            }
            let file = KeptFile(
                inode: Inode(column: row[0]),
                item: ItemID(source),
                revision: Revision(revision),
                size: fetched,
                hash: (row[3] as String?).flatMap { ContentHash(description: $0) },
                isExported: isExported,
                isReadable: Permissions(
                    rawValue: UInt8(truncatingIfNeeded: row[4] as Int64)
                ).contains(.read)
            )
            body(file, found)
        }
    }
}

extension Pin.Sums {
    fileprivate mutating func add(_ row: Catalog.KeptRow) {
        files += 1
        bytes = bytes.addingSaturating(row.size)
        bytesHere = bytesHere.addingSaturating(row.present)
        if row.isHere { filesHere += 1 }
        cachedBytes = cachedBytes.addingSaturating(row.cached)
    }
}

extension CatalogTransaction {
    /// Passes a file's pin to the file that takes over its place or identity.
    func handOverPin(from old: Inode, to new: Inode) throws {
        guard try database.has("SELECT 1 FROM pin LIMIT 1", []) else { return }
        // Of two pins the one that ends later holds.
        try database.run(
            """
            INSERT INTO pin (inode, account, made_ms, until_ms)
                SELECT ?, account, made_ms, until_ms FROM pin WHERE inode = ?
            ON CONFLICT (inode) DO UPDATE SET
                until_ms = CASE WHEN until_ms IS NULL OR excluded.until_ms IS NULL THEN NULL
                    ELSE max(until_ms, excluded.until_ms) END
            """,
            [new.column, old.column]
        )
        if new != old { try database.run("DELETE FROM pin WHERE inode = ?", [old.column]) }
    }
}
