import Foundation
import GRDB
public import OortModel
import Synchronization

/// The durable record of what lies where at a service of places: it gives each entry an id that stays over
/// renames, and numbers its changes, so that a change feed can be made of it.
///
/// Ids are never used twice, not even by a new map: they hold the map's generation. A commit is durable
/// when it returns, since the catalog keeps the ids that it gave out.
///
/// Isolation: every method may be called from any task; one statement at a time.
public final class PlaceMap: Sendable {
    /// The row of the account's root, which is never in the feed.
    static let rootRow: Int64 = 1
    /// The id of the account's root, the same in each generation.
    static let rootID = ItemID("root")

    private let queue: DatabaseQueue
    /// Writes that are in no transaction yet.
    private let waiting = Mutex<[Write]>([])
    private let isClosed = Atomic(false)
    /// Whether the feed's reader has all of this generation: what has an id of an earlier one is then known
    /// by another id, or gone.
    private let isTold = Atomic(false)
    let generation: String

    /// Opens the map at `path`, or creates it; a file that is no sound database is put aside as
    /// `PATH.damaged`, and everything is found anew.
    ///
    /// - Throws: `.localContent` when the folder cannot be written.
    public init(path: String) throws(ProviderError) {
        do {
            queue = try Self.open(path)
        } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode)
        {
            do {
                for ending in ["", "-wal", "-shm"] {
                    let file = path + ending
                    guard FileManager.default.fileExists(atPath: file) else { continue }
                    try? FileManager.default.removeItem(atPath: file + ".damaged")
                    try FileManager.default.moveItem(atPath: file, toPath: file + ".damaged")
                }
                queue = try Self.open(path)
            } catch { throw Self.failure(error) }
        } catch { throw Self.failure(error) }
        do {
            generation = try queue.read { database in
                try String.fetchOne(database, sql: "SELECT generation FROM state") ?? ""
            }
        } catch { throw Self.failure(error) }
    }

    /// Ends all use: every later call fails, and so does one that waits.
    ///
    /// The file is closed with the map itself: GRDB does not allow calls after a connection was closed, and
    /// operations that are under way may make some.
    public func close() { isClosed.store(true, ordering: .sequentiallyConsistent) }

    private func checkOpen() throws {
        guard !isClosed.load(ordering: .sequentiallyConsistent) else {
            throw ProviderError(.localContent, detail: "the map of places is closed")
        }
    }

    private static func open(_ path: String) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        configuration.prepareDatabase { database in
            try database.execute(sql: "PRAGMA journal_mode = WAL")
            try database.execute(sql: "PRAGMA synchronous = FULL")
        }
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        unsafe chmod(path, 0o600)
        var migrator = DatabaseMigrator()
        migrator.registerMigration("places") { database in
            try database.execute(sql: schema)
            try database.execute(
                sql: "INSERT INTO state VALUES (1, ?, 0, 0)",
                arguments: [String(SystemNumbers().next() & 0xFFFF_FFFF, radix: 36)]
            )
            try database.execute(
                sql: """
                    INSERT INTO place (id, parent, name, is_folder, changed)
                    VALUES (?, NULL, '', 1, 0)
                    """,
                arguments: [rootRow]
            )
            try database.execute(sql: "INSERT INTO folder (id) VALUES (?)", arguments: [rootRow])
        }
        migrator.registerMigration("whose an entry is") { database in
            try database.execute(
                sql: """
                    ALTER TABLE place ADD COLUMN owner TEXT;
                    ALTER TABLE place ADD COLUMN is_shared INTEGER NOT NULL DEFAULT 0;
                    """
            )
        }
        migrator.registerMigration("on which disk a folder lies") { database in
            try database.execute(
                sql: """
                    -- As its last listing said.
                    ALTER TABLE folder ADD COLUMN disk TEXT;
                    """
            )
        }
        migrator.registerMigration("no guesses of what was sent") { database in
            try database.execute(sql: "DROP TABLE sending")
        }
        migrator.registerMigration("what a file was before") { database in
            try database.execute(
                sql: """
                    -- The sizes and seconds that a file had with other contents, the last hundred.
                    CREATE TABLE former (
                        id INTEGER NOT NULL REFERENCES place(id) ON DELETE CASCADE,
                        size INTEGER NOT NULL,
                        modified INTEGER NOT NULL,
                        number INTEGER NOT NULL,
                        PRIMARY KEY (id, size, modified)
                    ) STRICT, WITHOUT ROWID;
                    CREATE TRIGGER place_has_another_content AFTER UPDATE ON place
                    WHEN old.is_folder = 0 AND old.size IS NOT NULL AND old.modified IS NOT NULL
                        AND (old.size IS NOT new.size OR old.modified IS NOT new.modified)
                        AND (old.hash IS NULL OR new.hash IS NULL OR old.hash <> new.hash)
                    BEGIN
                        INSERT OR REPLACE INTO former
                            SELECT old.id, old.size, old.modified, ifnull(max(number), 0) + 1
                            FROM former WHERE id = old.id;
                        DELETE FROM former WHERE id = old.id AND number <=
                            (SELECT max(number) FROM former WHERE id = old.id) - 100;
                    END;
                    """
            )
        }
        migrator.registerMigration("folders that cannot be listed") { database in
            try database.execute(
                sql: """
                    -- Of a folder: whether its last listing was refused.
                    ALTER TABLE place ADD COLUMN is_closed INTEGER NOT NULL DEFAULT 0;
                    """
            )
        }
        migrator.registerMigration("sizes and seconds that come back") { database in
            try database.execute(
                sql: """
                    -- Of a file: the number of the last change that brought a size and second back which it
                    -- had with another content; 0 where none did.
                    ALTER TABLE place ADD COLUMN recurrence INTEGER NOT NULL DEFAULT 0;
                    """
            )
        }
        migrator.registerMigration("with whom an entry is shared, and its tags") { database in
            try database.execute(
                sql: """
                    ALTER TABLE place ADD COLUMN shared_with TEXT;
                    ALTER TABLE place ADD COLUMN tags TEXT;
                    """
            )
        }
        migrator.registerMigration("storages that may be away") { database in
            try database.execute(
                sql: """
                    -- Whether it is where a storage of its own begins.
                    ALTER TABLE place ADD COLUMN is_storage INTEGER NOT NULL DEFAULT 0;
                    -- Since when it is missing, in seconds since 1970; only while it is.
                    ALTER TABLE place ADD COLUMN missing_since INTEGER NOT NULL DEFAULT 0;
                    """
            )
        }
        migrator.registerMigration("storages apart from shares") { database in
            try database.execute(
                sql: """
                    -- What begins there, PlaceEntry.Mount.
                    ALTER TABLE place ADD COLUMN mount INTEGER;
                    -- Until the next listing says which, the one that lasts.
                    UPDATE place SET mount = 2 WHERE is_storage = 1;
                    ALTER TABLE place DROP COLUMN is_storage;
                    """
            )
        }
        try migrator.migrate(queue)
        return queue
    }

    private static let schema = """
        CREATE TABLE state (
            one INTEGER PRIMARY KEY CHECK (one = 1),
            generation TEXT NOT NULL,
            -- The number of the last change.
            change INTEGER NOT NULL,
            -- The number of the last round in which the account was looked through.
            round INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE place (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            parent INTEGER REFERENCES place(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            is_folder INTEGER NOT NULL,
            size INTEGER,
            revision TEXT,
            modified INTEGER,
            modified_nanoseconds INTEGER,
            stored INTEGER,
            stored_nanoseconds INTEGER,
            created INTEGER,
            created_nanoseconds INTEGER,
            mime_type TEXT,
            hash TEXT,
            -- What stays with the entry when somebody moves it.
            item_key TEXT,
            permissions INTEGER NOT NULL DEFAULT 15,
            is_own INTEGER NOT NULL DEFAULT 0,
            has_thumbnail INTEGER,
            -- The number of the change that made the row what it is.
            changed INTEGER NOT NULL,
            -- Whether the last listing did not name it: it goes at the end of the round.
            is_missing INTEGER NOT NULL DEFAULT 0,
            -- The round that found it so; below zero where that is in doubt until a later round lists its
            -- folder, zero where that did not name it either.
            missing_round INTEGER NOT NULL DEFAULT 0,
            -- The round whose snapshot named it last.
            seen_round INTEGER NOT NULL DEFAULT 0,
            UNIQUE (parent, name)
        ) STRICT;
        CREATE INDEX place_by_change ON place(changed);
        CREATE INDEX place_by_key ON place(item_key) WHERE item_key IS NOT NULL;
        CREATE INDEX place_missing ON place(id) WHERE is_missing = 1;
        CREATE TABLE folder (
            id INTEGER PRIMARY KEY REFERENCES place(id) ON DELETE CASCADE,
            -- The stamp as last seen, and the one of the last listing.
            stamp TEXT,
            listed_stamp TEXT,
            -- The round and the second (since 1970) of the last listing; 0 for never.
            listed_round INTEGER NOT NULL DEFAULT 0,
            listed_at INTEGER NOT NULL DEFAULT 0,
            -- Whether it is to be listed in the next round, whatever its stamp.
            is_due INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX folder_by_round ON folder(listed_round);
        CREATE INDEX folder_due ON folder(id) WHERE is_due = 1;
        -- What is gone, with all that lay below.
        CREATE TABLE gone (change INTEGER PRIMARY KEY, id INTEGER NOT NULL) STRICT;
        -- Moves of ours whose answer is not here.
        CREATE TABLE motion (
            id INTEGER PRIMARY KEY REFERENCES place(id) ON DELETE CASCADE,
            parent INTEGER NOT NULL REFERENCES place(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            -- Whether a part of it was done for certain.
            is_begun INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        -- Uploads of ours whose answer is not here: a file of this size and time at the place is ours.
        CREATE TABLE sending (
            parent INTEGER NOT NULL REFERENCES place(id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            size INTEGER NOT NULL,
            modified INTEGER NOT NULL,
            hash TEXT NOT NULL,
            PRIMARY KEY (parent, name)
        ) STRICT;
        """

    // MARK: Ids

    /// The id under which the core knows a row.
    func id(of row: Int64) -> ItemID {
        row == Self.rootRow ? Self.rootID : ItemID("\(generation)-\(row)")
    }

    /// The row of an id.
    ///
    /// - Throws: for an id of another generation `.outcomeUnknown`, until the feed's reader has been told
    ///   of all that there is (`hasToldAll`), and then `.notFound`.
    func row(of id: ItemID) throws(ProviderError) -> Int64 {
        if id == Self.rootID { return Self.rootRow }
        if let (generation, row) = id.rawValue.cut(atFirst: "-"),
            String(generation).isSameText(as: self.generation), let number = Int64(row)
        {
            return number
        }
        throw ProviderError(
            isTold.load(ordering: .sequentiallyConsistent)
                ? .notFound : .outcomeUnknown(retryAfter: nil),
            detail: "\(id) is of an earlier map of the account, which is read anew"
        )
    }

    /// Notes that the feed's reader has stored an enumeration of this generation to its end.
    func hasToldAll() { isTold.store(true, ordering: .sequentiallyConsistent) }

    // MARK: Transactions

    /// Reads between two writes, so that nothing changes meanwhile: there is one connection, and no other
    /// process.
    ///
    /// Not in a read-only transaction of GRDB's: that sets `query_only` before and after, and each setting has
    /// SQLite compile every cached statement anew (`OP_Expire` in its `pragma.c`).
    ///
    /// - Throws: `ProviderError`s as they are; `.localContent` where the disk fails.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(ProviderError) -> Value {
        if SystemInputs.given != nil {
            await SystemInputs.yield()
            return try readBlocking(body)
        }
        do {
            return try await queue.unsafeRead { database in
                try self.checkOpen()
                return try body(database)
            }
        } catch { throw Self.failure(error) }
    }

    /// The same as `read`, but blocks the calling thread.
    func readBlocking<Value>(
        _ body: (Database) throws -> Value
    ) throws(ProviderError) -> Value {
        do {
            return try queue.unsafeRead { database in
                try checkOpen()
                return try body(database)
            }
        } catch { throw Self.failure(error) }
    }

    /// Writes all or nothing; cancelling the calling task does not undo it, since what the service did must
    /// be recorded.
    ///
    /// Writes that wait for the disk together become durable together, in the order of the calls: otherwise
    /// each of thirty listings or uploads would wait for the disk by itself.
    ///
    /// - Throws: as `read`.
    func write<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(ProviderError) -> Value {
        let outcome = Mutex<Result<Value, any Error>?>(nil)
        let write = Write(
            run: { database in
                try self.checkOpen()
                let value = try body(database)
                outcome.withLock { $0 = .success(value) }
            },
            fail: { error in outcome.withLock { $0 = .failure(error) } }
        )
        waiting.withLock { $0.append(write) }
        await Task {
            // An earlier one may have run this write with its own.
            if SystemInputs.given != nil {
                await SystemInputs.yield()
                writeBlocking()
            } else {
                try? await queue.writeWithoutTransaction { runWaiting($0) }
            }
        }.value
        do {
            guard let result = outcome.withLock(\.self) else {
                throw ProviderError(.localContent, detail: "the map's database takes nothing")
            }
            return try result.get()
        } catch { throw Self.failure(error) }
    }

    private func writeBlocking() { queue.writeWithoutTransaction { runWaiting($0) } }

    /// A caller's write, and how that caller learns that it failed.
    private struct Write: Sendable {
        let run: @Sendable (Database) throws -> Void
        let fail: @Sendable (any Error) -> Void
    }

    /// How many writes are in no transaction yet.
    var countOfWaitingWrites: Int { waiting.withLock(\.count) }

    /// Runs all writes that wait, in one transaction; if one fails, only that one is undone.
    private func runWaiting(_ database: Database) {
        let writes = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        guard !writes.isEmpty else { return }
        do {
            try database.inTransaction {
                for write in writes {
                    do {
                        try database.inSavepoint {
                            try write.run(database)
                            return .commit
                        }
                    } catch {
                        write.fail(error)
                        // A full or failing disk undoes the whole transaction.
                        guard database.isInsideTransaction else { throw error }
                    }
                }
                return .commit
            }
        } catch {
            for write in writes { write.fail(error) }
        }
    }

    private static func failure(_ error: any Error) -> ProviderError {
        switch error {
        case let error as ProviderError: error
        case is CancellationError: ProviderError(.cancelled, detail: "cancelled")
        default: ProviderError(.localContent, detail: "the map of places: \(error)")
        }
    }
}
