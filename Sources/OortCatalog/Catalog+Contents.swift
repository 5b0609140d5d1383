import Foundation
import GRDB
public import OortModel

extension Catalog {
    /// The content of this number; nil when there is none.
    public func content(_ id: ContentID) throws(CatalogError) -> ContentRow? {
        try read { database in
            try database.first(
                "SELECT \(ContentRow.columns) FROM content WHERE id = ?",
                [id.rawValue],
                ContentRow.init(columns:)
            )
        }
    }

    /// The cached content of a revision; nil when there is none.
    public func cachedContent(
        account: AccountID,
        item: ItemID,
        revision: Revision
    ) throws(CatalogError) -> ContentRow? {
        try read { database in
            try database.first(
                """
                SELECT \(ContentRow.columns) FROM content
                WHERE account = ? AND item = ? AND revision = ?
                """,
                [account.rawValue, item.rawValue, revision.rawValue],
                ContentRow.init(columns:)
            )
        }
    }

    /// Whether an operation under way may give the same content of an item another revision: a move, or the
    /// setting of a time.
    public func mayBeRenamed(_ item: ItemID, account: AccountID) throws(CatalogError) -> Bool {
        try read { database in
            guard let node = try Self.node(item.rawValue, in: account, database),
                let intent = try Self.motion(node.inode, database)?.intent
            else { return false }
            return intent.kind == .move || intent.kind == .setAttributes
        }
    }

    /// All contents, staged and cached.
    public func contents() throws(CatalogError) -> [ContentRow] {
        try read { database in
            try database.all(
                "SELECT \(ContentRow.columns) FROM content",
                [],
                ContentRow.init(columns:)
            )
        }
    }

    /// All staged contents.
    public func stagedContents() throws(CatalogError) -> [ContentRow] {
        try read { database in
            try database.all(
                "SELECT \(ContentRow.columns) FROM content WHERE is_staged = 1",
                [],
                ContentRow.init(columns:)
            )
        }
    }

    /// The cached contents of larger numbers than one, in order.
    public func cachedContents(
        after id: ContentID,
        limit: Int
    ) async throws(CatalogError) -> [ContentRow] {
        try await readAsync { database in
            try database.all(
                """
                SELECT \(ContentRow.columns) FROM content
                WHERE id > ? AND is_staged = 0 ORDER BY id LIMIT ?
                """,
                [id.rawValue, limit],
                ContentRow.init(columns:)
            )
        }
    }

    /// Bytes that the cached contents take on the disk.
    public func cachedBytes() throws(CatalogError) -> Int64 {
        try read { database in
            try database.number(
                "SELECT sum(bytes_on_disk) FROM content WHERE is_staged = 0",
                []
            ) ?? 0
        }
    }

    /// Forgets all cached contents: their files are gone.
    public func removeCachedContents() async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run("DELETE FROM content WHERE is_staged = 0", [])
        }
    }

    /// The number of a revision's cached content; where there is none it is made, with no bytes here, and
    /// its file is about to be created.
    ///
    /// - Parameters:
    ///   - key: gives the revision, inside the transaction: it may have another key by then.
    ///   - size: its size in bytes.
    ///   - hash: its hash, where it is known.
    /// - Returns: the content's number.
    /// - Throws: `.diskFull`, `.storage`.
    public func insertCachedContent(
        _ key: @escaping @Sendable () -> ContentKey,
        size: Int64,
        hash: ContentHash?
    ) async throws(CatalogError) -> ContentID {
        try await mutateAsync { transaction in
            let database = transaction.database
            let key = key()
            try database.run(
                """
                INSERT INTO content (account, item, revision, size, hash, is_staged, used_ms)
                VALUES (?, ?, ?, ?, ?, 0, ?)
                ON CONFLICT (account, item, revision) WHERE item IS NOT NULL DO UPDATE
                    SET size = excluded.size, hash = ifnull(excluded.hash, hash),
                        present = NULL, is_complete = 0, bytes_on_disk = 0
                """,
                [
                    key.account.rawValue, key.item.rawValue, key.revision.rawValue, size,
                    hash?.description, Timestamp.now.inMilliseconds,
                ]
            )
            let id = try database.number(
                "SELECT id FROM content WHERE account = ? AND item = ? AND revision = ?",
                [key.account.rawValue, key.item.rawValue, key.revision.rawValue]
            )
            guard let id else { throw CatalogError.notFound }
            return ContentID(id)
        }
    }

    /// Makes staged content, open for writing, and gives it to a file: what the user sees from now
    /// on.
    ///
    /// One transaction.
    ///
    /// - Parameters:
    ///   - content: what is made.
    ///   - account: the file's account.
    ///   - modified: the file's modified time.
    ///   - inode: the file; when it is forgotten already, the content belongs to none.
    ///   - prepare: makes the content's file before the transaction ends, so that there is no
    ///     staged content without one.
    /// - Returns: the content's number and the file's node; nil when the file is forgotten.
    /// - Throws: `.isAFolder`, and what `prepare` throws as `.storage`.
    public func stage(
        _ content: NewStagedContent,
        account: AccountID,
        modified: Timestamp,
        of inode: Inode,
        prepare: (ContentID) throws -> Void
    ) throws(CatalogError) -> (id: ContentID, node: Node?) {
        try mutate { transaction in
            let database = transaction.database
            let node = try Self.fetch(inode, database)
            guard node?.kind != .folder else { throw CatalogError.isAFolder }
            let content = try transaction.named(content)
            let id = try transaction.insert(content, in: account)
            try prepare(id)
            let changed = try node.map { node in
                if let origin = content.origin { try transaction.setOrigin(origin, of: node) }
                if let original = content.original {
                    try transaction.setOrigin(original, of: node)
                }
                return try transaction.setStaged(
                    id,
                    size: content.size,
                    modified: modified,
                    of: node
                )
            }
            return (id, changed)
        }
    }

    /// Notes that staged content is about to change, before its first byte does: what was recorded of it no
    /// longer holds, and a recovery after a crash must know that.
    ///
    /// - Returns: whether a file has the content still.
    /// - Throws: `.diskFull`, `.storage`; the content must not be changed then.
    public func reopenStaged(_ id: ContentID) throws(CatalogError) -> Bool {
        try mutate { transaction in
            let database = transaction.database
            // If no file has the content, its hash still describes what the file had.
            guard
                try database.has("SELECT 1 FROM node WHERE staged = ? LIMIT 1", [id.rawValue])
            else { return false }
            try database.run(
                "UPDATE content SET is_open = 1, hash = NULL WHERE id = ? AND is_staged = 1",
                [id.rawValue]
            )
            // A session must not go on: the bytes change from here on, even if their hash comes out the
            // same.
            try database.run(
                """
                UPDATE motion SET session_state = NULL, session_hash = NULL
                WHERE session_state IS NOT NULL
                    AND inode IN (SELECT inode FROM node WHERE staged = ?)
                """,
                [id.rawValue]
            )
            return true
        }
    }

    /// Notes what of a staged content was lost, in words; nil when all of it was written anew.
    public func setDamage(_ damage: String?, ofStaged id: ContentID) throws(CatalogError) {
        try mutate { transaction in
            try transaction.database.run(
                "UPDATE content SET damage = ? WHERE id = ? AND is_staged = 1",
                [damage, id.rawValue]
            )
        }
    }

    /// Notes that staged content needs no base: its own file has all bytes.
    public func standsAlone(_ id: ContentID) async throws(CatalogError) {
        try await mutateAsync { transaction in
            try transaction.database.run(
                """
                UPDATE content SET base_item = NULL, base_revision = NULL, base_size = 0
                WHERE id = ?
                """,
                [id.rawValue]
            )
        }
    }

    /// Stores the size of staged content and when it was modified, for the content and for the file that
    /// has it.
    ///
    /// That file may be another than the content was made for (a conflict copy). Without one, nothing is
    /// stored.
    ///
    /// - Parameters:
    ///   - id: the staged content.
    ///   - size: its size in bytes.
    ///   - bytesOnDisk: how many of them its file must have, holes and the base's left out.
    ///   - modified: the file's modified time.
    ///   - isOpen: whether a program still has it open for writing.
    /// - Returns: the file's node; nil when no file has this content.
    /// - Throws: `.diskFull`, `.storage`.
    @discardableResult
    public func recordStaged(
        _ id: ContentID,
        size: Int64,
        bytesOnDisk: Int64 = 0,
        modified: Timestamp,
        isOpen: Bool
    ) throws(CatalogError) -> Node? {
        try mutate { transaction in
            let database = transaction.database
            let node = try database.first(
                "SELECT \(Node.columns) FROM node WHERE staged = ? LIMIT 1",
                [id.rawValue],
                Node.init(columns:)
            )
            guard let node else { return nil }
            try database.run(
                """
                UPDATE content SET size = ?, bytes_on_disk = ?, is_open = ?, hash = NULL
                WHERE id = ? AND is_staged = 1
                """,
                [size, bytesOnDisk, isOpen, id.rawValue]
            )
            let now = Timestamp.now
            try transaction.setInMotion(node, at: now)
            try database.run(
                """
                UPDATE node SET size = ?, modified_s = ?, modified_ns = ?, changed_s = ?,
                    changed_ns = ?
                WHERE inode = ?
                """,
                [
                    size, modified.seconds, Int64(modified.nanoseconds), now.seconds,
                    Int64(now.nanoseconds), node.inode.column,
                ]
            )
            return try transaction.node(node.inode)
        }
    }

    /// Stores the hash of a frozen staged content, for the planner; the next `recordStaged` or
    /// `reopenStaged` removes it.
    ///
    /// - Parameters:
    ///   - hash: the hash by the service's algorithm.
    ///   - size: how many bytes have it: the file's size, also where that could not be recorded.
    ///   - id: the content.
    /// - Returns: false when no such content is staged.
    /// - Throws: `.diskFull`, `.storage`.
    public func setHash(
        _ hash: ContentHash,
        size: Int64,
        ofStaged id: ContentID
    ) async throws(CatalogError) -> Bool {
        try await mutateAsync { transaction in
            let database = transaction.database
            try database.run(
                "UPDATE content SET hash = ?, size = ? WHERE id = ? AND is_staged = 1",
                [hash.description, size, id.rawValue]
            )
            guard database.changesCount > 0 else { return false }
            let inodes = try database.all(
                "SELECT inode FROM node WHERE staged = ? AND size <> ?",
                [id.rawValue, size]
            ) { Inode(column: $0[0]) }
            for inode in inodes {
                transaction.touch(inode)
                try database.run(
                    "UPDATE node SET size = ? WHERE inode = ?",
                    [size, inode.column]
                )
            }
            return true
        }
    }

    /// Makes staged content that was uploaded the cached content of the revision that it became, which
    /// `key` gives as `insertCachedContent` asks for it.
    ///
    /// - Returns: the revision's former cached content, which the catalog no longer knows.
    public func makeCached(
        _ id: ContentID,
        as key: @escaping @Sendable () -> ContentKey,
        present: [UInt8],
        size: Int64
    ) async throws(CatalogError) -> ContentRow? {
        try await mutateAsync { transaction in
            let database = transaction.database
            let key = key()
            let replaced = try database.first(
                """
                SELECT \(ContentRow.columns) FROM content
                WHERE item = ? AND revision = ? AND account =
                    (SELECT account FROM content WHERE id = ? AND is_staged = 1)
                """,
                [key.item.rawValue, key.revision.rawValue, id.rawValue],
                ContentRow.init(columns:)
            )
            if let replaced {
                try database.run("DELETE FROM content WHERE id = ?", [replaced.id.rawValue])
            }
            try database.run(
                """
                UPDATE content SET item = ?, revision = ?, base_item = NULL,
                    base_revision = NULL, base_size = 0, is_staged = 0, is_open = 0,
                    is_complete = 1, present = ?, size = ?, bytes_on_disk = ?, used_ms = ?
                WHERE id = ? AND is_staged = 1
                """,
                [
                    key.item.rawValue, key.revision.rawValue, Data(present), size, size,
                    Timestamp.now.inMilliseconds, id.rawValue,
                ]
            )
            return replaced
        }
    }

    /// Stores what changed in the cache.
    public func saveCache(_ records: [CacheRecord]) async throws(CatalogError) {
        try await mutateAsync { transaction in
            let now = Timestamp.now.inMilliseconds
            for record in records {
                try transaction.database.run(
                    """
                    UPDATE content SET present = ?, is_complete = ?, bytes_on_disk = ?,
                        used_ms = ?
                    WHERE id = ? AND is_staged = 0
                    """,
                    [
                        Data(record.present), record.isComplete, record.bytesOnDisk, now,
                        record.id.rawValue,
                    ]
                )
            }
        }
    }

    /// Removes contents from the catalog: only those that are staged, or only those that are cached; all
    /// where `areStaged` is nil.
    ///
    /// - Returns: which were there, each with the bytes that were counted for it.
    @discardableResult
    public func removeContents(
        _ ids: [ContentID],
        areStaged: Bool? = nil
    ) async throws(CatalogError) -> [ContentID: Int64] {
        try await mutateAsync { transaction in
            try transaction.removeContents(
                ids,
                where: "is_staged IS coalesce(?, is_staged)",
                [areStaged]
            )
        }
    }

    /// Staged contents that no file has.
    public func orphanedContents() async throws(CatalogError) -> [ContentID] {
        try await readAsync { database in
            try database.all(
                """
                SELECT id FROM content
                WHERE is_staged = 1 AND id NOT IN
                    (SELECT staged FROM node WHERE staged IS NOT NULL)
                """,
                []
            ) { $0[0] as Int64 }.map { ContentID($0) }
        }
    }

    /// The file that has this staged content; nil when none has.
    public func node(staged id: ContentID) throws(CatalogError) -> Node? {
        try read { database in
            try database.first(
                "SELECT \(Node.columns) FROM node WHERE staged = ? LIMIT 1",
                [id.rawValue],
                Node.init(columns:)
            )
        }
    }

    /// Whether a file has this staged content.
    public func isStaged(_ id: ContentID) throws(CatalogError) -> Bool {
        try read { database in
            try database.has("SELECT 1 FROM node WHERE staged = ? LIMIT 1", [id.rawValue])
        }
    }
}

extension CatalogTransaction {
    /// Removes those of some contents that meet a condition.
    ///
    /// - Returns: the bytes that were counted for each.
    func removeContents(
        _ ids: [ContentID],
        where condition: String,
        _ arguments: StatementArguments
    ) throws -> [ContentID: Int64] {
        let list = "[" + ids.map { "\($0.rawValue)" }.joined(separator: ",") + "]"
        let found = try database.all(
            """
            SELECT id, bytes_on_disk FROM content
            WHERE id IN (SELECT value FROM json_each(?)) AND \(condition)
            """,
            [list] + arguments
        ) { (ContentID($0[0] as Int64), $0[1] as Int64) }
        for (id, _) in found {
            try database.run("DELETE FROM content WHERE id = ?", [id.rawValue])
        }
        return Dictionary(found) { first, _ in first }
    }

    /// What is about to be staged, with the present keys of what it is made of: they may have changed since
    /// the caller read them.
    func named(_ content: NewStagedContent) throws -> NewStagedContent {
        var content = content
        if let id = content.baseContent, let key = try key(ofCached: id) {
            (content.baseItem, content.baseRevision) = (key.item, key.revision)
        }
        if var origin = content.origin, let id = origin.content, let key = try key(ofCached: id) {
            (origin.item, origin.revision) = (key.item, key.revision)
            content.origin = origin
        }
        return content
    }

    private func key(ofCached id: ContentID) throws -> ContentKey? {
        try database.first(
            "SELECT account, item, revision FROM content WHERE id = ? AND is_staged = 0",
            [id.rawValue]
        ) {
            ContentKey(
                account: AccountID($0[0]),
                item: ItemID($0[1]),
                revision: Revision($0[2])
            )
        }
    }

    /// A row for staged content that is open for writing; its number.
    mutating func insert(
        _ content: NewStagedContent,
        in account: AccountID
    ) throws -> ContentID {
        try database.run(
            """
            INSERT INTO content (account, base_item, base_revision, base_size, size,
                damage, is_staged, is_open, used_ms)
            VALUES (?, ?, ?, ?, ?, ?, 1, 1, ?)
            """,
            [
                account.rawValue, content.baseItem?.rawValue, content.baseRevision?.rawValue,
                content.baseSize, content.size, content.damage, Timestamp.now.inMilliseconds,
            ]
        )
        return ContentID(database.lastInsertedRowID)
    }

    /// Sets the base of a file that a program, which read this revision, is about to change: a newer
    /// revision with other bytes, which the file has already taken over, counts as news again.
    mutating func setOrigin(_ origin: ContentOrigin, of node: Node) throws {
        guard node.remoteID == origin.item, node.contentItem == nil else { return }
        let before = try Catalog.motion(node.inode, database)
        let agreed = before?.syncedRevision ?? node.revision
        guard let agreed, agreed != origin.revision else { return }
        // Some services give a moved file a new revision.
        let agreedHash = before == nil ? node.hash : before?.syncedHash
        if let hash = origin.hash, hash == agreedHash, hash.algorithm.tellsContentsApart { return }
        try setInMotion(node, at: .now)
        guard let motion = try Catalog.motion(node.inode, database) else { return }
        if motion.remoteState == .asSynced {
            try database.run(
                """
                UPDATE motion SET remote_state = 1, remote_item = ?, remote_parent_id =
                    (SELECT remote_id FROM node WHERE inode = motion.synced_parent)
                WHERE inode = ?
                """,
                [try agreedItem(node, motion).json(), node.inode.column]
            )
        }
        try database.run(
            """
            UPDATE motion SET synced_revision = ?, synced_size = ?, synced_hash = ifnull(?,
                (SELECT hash FROM content WHERE account = motion.account AND item = ?
                    AND revision = ?))
            WHERE inode = ?
            """,
            [
                origin.revision.rawValue, origin.size, origin.hash?.description,
                origin.item.rawValue, origin.revision.rawValue, node.inode.column,
            ]
        )
        try database.run(
            "UPDATE node SET revision = ? WHERE inode = ?",
            [origin.revision.rawValue, node.inode.column]
        )
    }

    /// Does the same where the program read staged content whose bytes the service, or a conflict copy, has
    /// by now: anything else that the file has counts as news.
    mutating func setOrigin(_ original: ContentID, of node: Node) throws {
        guard node.staged == nil, let item = node.remoteID else { return }
        let known = try database.first(
            "SELECT size, hash FROM content WHERE id = ?",
            [original.rawValue]
        ) { ($0[0] as Int64, $0[1] as String?) }
        let hash = node.hash?.description
        if let known, known.0 == node.size, hash == nil || hash == known.1 { return }
        try setOrigin(
            ContentOrigin(
                item: item,
                revision: Revision("staged \(original.rawValue)"),
                size: known?.0 ?? 0,
                hash: known?.1.flatMap { ContentHash(description: $0) }
            ),
            of: node
        )
    }

    /// What the service last reported of an item, where that is the base.
    private func agreedItem(_ node: Node, _ motion: MotionRow) throws -> StoredItem {
        var item =
            try Catalog.toldItem(node.inode, database)
            ?? StoredItem(Item(id: ItemID(""), kind: .file, fileName: motion.syncedName))
        item.id = node.remoteID?.rawValue ?? item.id
        item.fileName = motion.syncedName
        item.revision = motion.syncedRevision?.rawValue
        item.hash = motion.syncedHash?.description
        item.size = motion.syncedSize
        item.modified = motion.syncedModified?.parts
        item.description = motion.syncedDescription
        return item
    }

    /// Gives a file staged content and puts it in motion.
    mutating func setStaged(
        _ content: ContentID,
        size: Int64,
        modified: Timestamp,
        of node: Node
    ) throws -> Node {
        let now = Timestamp.now
        try setInMotion(node, at: now)
        try database.run(
            """
            UPDATE node SET staged = ?, size = ?, hash = NULL,
                revision = CASE WHEN content_item IS NULL THEN revision ELSE
                    (SELECT synced_revision FROM motion WHERE inode = node.inode) END,
                content_item = NULL, modified_s = ?, modified_ns = ?, changed_s = ?,
                changed_ns = ?
            WHERE inode = ?
            """,
            [
                content.rawValue, size, modified.seconds, Int64(modified.nanoseconds),
                now.seconds, Int64(now.nanoseconds), node.inode.column,
            ]
        )
        return try self.node(node.inode)
    }
}
