import GRDB
public import OortModel

/// Some contents, and their bytes on the disk.
public struct ContentSum: Hashable, Sendable {
    /// How many.
    public var count = 0
    /// Bytes that they take.
    public var bytes: Int64 = 0

    /// None.
    public init() {}

    /// Counts one more.
    public mutating func add(_ bytes: Int64) {
        count += 1
        self.bytes = self.bytes.addingSaturating(bytes)
    }

    /// Counts others.
    public mutating func add(_ others: ContentSum) {
        count += others.count
        bytes = bytes.addingSaturating(others.bytes)
    }
}

/// Which cached contents may be evicted, and which stay.
extension Catalog {
    /// For how long a content that is to be kept here is skipped, milliseconds.
    private static let keptUnseen: Int64 = 86_400_000

    /// The cached contents that may be evicted, the least recently used first; not those to be kept here,
    /// nor those of which unsent content is made.
    ///
    /// At most `limit` of them, and no more than have `bytes` together, without the first `skipped`. The ones
    /// to be kept get a time of use in the future (`keptUnseen`), so that the next callers need not skip them.
    public func evictableContents(
        limit: Int,
        of bytes: Int64 = .max,
        after skipped: Int = 0
    ) async throws(CatalogError) -> [ContentRow] {
        let now = Timestamp.now.inMilliseconds
        let (found, kept) = try await readAsync { database in
            var found: [ContentRow] = []
            var kept: [ContentID] = []
            var left = skipped
            var sum: Int64 = 0
            let keptContents = try self.keptTest(database)
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT id, \(keptContents) FROM content
                    WHERE is_staged = 0 AND NOT \(Self.isNeeded) ORDER BY used_ms, id
                    """,
                arguments: keptContents == "0" ? [] : [now]
            )
            while found.count < limit, sum < bytes, let row = try rows.next() {
                let id = row[0] as Int64
                if row[1] {
                    kept.append(ContentID(id))
                } else if left > 0 {
                    left -= 1
                } else if let content = try Self.content(ContentID(id), database) {
                    found.append(content)
                    sum = sum.addingSaturating(content.bytesOnDisk)
                }
            }
            return (found, kept)
        }
        if !kept.isEmpty {
            let seen = now + Self.keptUnseen
            try await markUsed(Dictionary(kept.map { ($0, seen) }) { first, _ in first })
        }
        return found
    }

    /// Whether contents that may be evicted, without those in use, have so many bytes together.
    public func areEvictable(
        _ bytes: Int64,
        without used: Set<ContentID>
    ) async throws(CatalogError) -> Bool {
        let now = Timestamp.now.inMilliseconds
        return try await readAsync { database in
            let keptContents = try self.keptTest(database)
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT id, bytes_on_disk FROM content
                    WHERE is_staged = 0 AND NOT \(Self.isNeeded) AND NOT \(keptContents)
                    ORDER BY used_ms, id
                    """,
                arguments: keptContents == "0" ? [] : [now]
            )
            var left = bytes
            while left > 0, let row = try rows.next() {
                if !used.contains(ContentID(row[0])) { left -= row[1] as Int64 }
            }
            return left <= 0
        }
    }

    /// The cached contents of an item and all below it, or of all accounts for nil: those that may be
    /// evicted, those to be kept here, and those of which unsent content is made.
    ///
    /// With `moment`, milliseconds since 1970, only those not used since. Without an item, also those that
    /// no file has any longer.
    public func cachedContents(
        below inode: Inode?,
        unusedSince moment: Int64?
    ) async throws(CatalogError) -> (free: [ContentRow], kept: ContentSum, needed: ContentSum) {
        let now = Timestamp.now.inMilliseconds
        return try await readAsync { database in
            let keptContents = try self.keptTest(database)
            var arguments: StatementArguments = keptContents == "0" ? [] : [now]
            var place = ""
            if let inode {
                place = """
                    AND (account, item) IN (
                        WITH RECURSIVE below(inode) AS (
                            SELECT ? UNION
                            SELECT node.inode FROM below JOIN node ON node.parent = below.inode
                        )
                        SELECT node.account, node.remote_id FROM below JOIN node USING (inode)
                        WHERE node.remote_id IS NOT NULL)
                    """
                arguments += [inode.column]
            }
            arguments += [moment ?? .max]
            let rows = try Row.fetchCursor(
                database,
                sql: """
                    SELECT id, \(keptContents), bytes_on_disk, \(Self.isNeeded) FROM content
                    WHERE is_staged = 0 \(place) AND used_ms < ? ORDER BY used_ms, id
                    """,
                arguments: arguments
            )
            var free: [ContentRow] = []
            var (kept, needed) = (ContentSum(), ContentSum())
            while let row = try rows.next() {
                if row[1] {
                    kept.add(row[2])
                } else if row[3] {
                    needed.add(row[2])
                } else if let content = try Self.content(ContentID(row[0]), database) {
                    free.append(content)
                }
            }
            return (free, kept, needed)
        }
    }

    /// Removes those of some cached contents that may be evicted at this very moment: since they were looked
    /// for, somebody may have pinned or read them, or written to their file.
    ///
    /// With `moment`, milliseconds since 1970, only those not used since.
    ///
    /// - Returns: those that went, each with the bytes that were counted for it.
    public func evictContents(
        _ ids: [ContentID],
        unusedSince moment: Int64? = nil
    ) async throws(CatalogError) -> [ContentID: Int64] {
        let now = Timestamp.now.inMilliseconds
        return try await mutateAsync { transaction in
            let keptContents = try self.keptTest(transaction.database)
            return try transaction.removeContents(
                ids,
                where: """
                    is_staged = 0 AND used_ms < ? AND NOT \(Self.isNeeded) AND NOT \(keptContents)
                    """,
                [moment ?? .max] + (keptContents == "0" ? [] : [now])
            )
        }
    }

    /// Notes when contents were used, milliseconds since 1970.
    public func markUsed(_ moments: [ContentID: Int64]) async throws(CatalogError) {
        try await mutateAsync { transaction in
            for (id, moment) in moments {
                try transaction.database.run(
                    "UPDATE content SET used_ms = max(used_ms, ?) WHERE id = ? AND is_staged = 0",
                    [moment, id.rawValue]
                )
            }
        }
    }

    /// Whether unsent content is made of a row of `content`.
    private static let isNeeded = """
        (account, item, revision) IN (
            SELECT node.account, content_item, revision FROM motion JOIN node USING (inode)
                WHERE content_item IS NOT NULL AND revision IS NOT NULL
            UNION SELECT account, base_item, base_revision FROM content
                WHERE is_staged = 1 AND base_item IS NOT NULL)
        """

    /// Whether a row of `content` is to be kept here.
    ///
    /// It is when a file that is pinned has it, or a file in a folder that is; what `eachKept` leaves out is
    /// not. The moment, milliseconds since 1970, is its argument, unless it is "0".
    private func keptTest(_ database: Database) throws -> String {
        guard try database.has("SELECT 1 FROM pin LIMIT 1", []) else { return "0" }
        return """
            EXISTS (
                WITH RECURSIVE above(inode, parent) AS (
                    SELECT node.inode, node.parent FROM node
                    WHERE node.account = content.account AND node.remote_id = content.item
                        AND content.revision = CASE node.kind
                            WHEN \(NodeKind.nativeDocument.rawValue) THEN \(Node.exportRevisionColumn)
                            ELSE node.revision END
                    UNION
                    SELECT node.inode, node.parent FROM above JOIN node ON node.inode = above.parent
                        \(try isShown("above.inode", database))
                )
                SELECT 1 FROM above JOIN pin USING (inode) WHERE \(Self.holds)
            )
            """
    }

    private static func content(_ id: ContentID, _ database: Database) throws -> ContentRow? {
        try database.first(
            "SELECT \(ContentRow.columns) FROM content WHERE id = ?",
            [id.rawValue],
            ContentRow.init(columns:)
        )
    }
}
