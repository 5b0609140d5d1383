import Foundation
import GRDB
public import Logging
public import OortModel
import Synchronization

/// The SQLite database of all accounts: inode ↔ (account, id, parent inode, name), the three trees,
/// cursors, staged and cached contents.
///
/// Isolation: every method may be called from any thread. Reads never wait for the writer. Methods
/// that are not async block the calling thread for the duration of a SQLite statement or
/// transaction: they are for FUSE threads, which are not Swift concurrency's; tasks use the async
/// ones. One writer at a time; transactions are short.
public final class Catalog: Sendable {
    /// The file that holds the catalog.
    public let path: String

    let pool: DatabasePool
    let cache: NodeCache
    let logger: Logger
    private let listeners = Mutex(CatalogListeners())
    let treeObserver = Mutex<TreeObserver?>(nil)
    let rules = Mutex<[AccountID: AccountNameRules]>([:])
    let exports = Mutex<[AccountID: ExportPreference]>([:])
    let links = Mutex<[AccountID: LinkPolicy]>([:])
    let readOnly = Mutex<Set<AccountID>>([])
    let lags = Mutex<[AccountID: Int64]>([:])
    /// Contents whose revision changed while they may be open under the old one.
    let contentHolder = Mutex<WeakHolder?>(nil)
    let ignoring = Mutex<[AccountID: IgnoreRules]>([:])
    let leavingOut = Mutex<[AccountID: LeftOutFolders]>([:])
    /// Accounts that are known to be enumerated; account numbers are not reused.
    let enumerated = Mutex<Set<AccountID>>([])
    /// Counts reads and transactions, so that work that can wait lets others go first.
    let uses = Atomic<UInt64>(0)
    /// Which files programs have open for writing.
    public let writers = WriterRegistry()
    let health = Mutex<CatalogError?>(nil)
    private let newsNumbers = Mutex<[AccountID: UInt64]>([:])
    let searchBacklog = SearchBacklog()
    private let check: CatalogCheck?

    /// Opens the catalog at `path`, making or upgrading it.
    ///
    /// - Parameters:
    ///   - path: the database file; its folder must exist.
    ///   - cachedNodes: how many nodes are kept in memory.
    ///   - checks: how often the catalog's invariants are checked; nil for never.
    ///   - logger: where trouble is logged.
    /// - Throws: `.corrupt` when the file is no sound database, `.tooNew`, `.diskFull`, `.storage`.
    public init(
        path: String,
        cachedNodes: Int = 16_384,
        checks: CatalogChecks? = nil,
        logger: Logger
    ) throws(CatalogError) {
        check = checks.map(CatalogCheck.init)
        self.path = path
        self.logger = logger
        cache = NodeCache(capacity: cachedNodes)
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        configuration.maximumReaderCount = 8
        configuration.prepareDatabase { database in
            // A commit survives the death of the process; `fsync` makes it survive that of the
            // machine (`persist`).
            try database.execute(sql: "PRAGMA synchronous = NORMAL")
            // In KiB. Readers are up to eight, and the system's memory has what one of them lacks.
            let pages = database.configuration.readonly ? 2_048 : 16_384
            try database.execute(sql: "PRAGMA cache_size = -\(pages)")
            // Each checkpoint waits for the disk; a tree that is written makes some ten pages a file.
            try database.execute(sql: "PRAGMA wal_autocheckpoint = 8000")
        }
        pool = try Self.translating {
            try Self.makePrivate(path)
            let pool = try DatabasePool(path: path, configuration: configuration)
            let migrator = Self.migrations
            if try pool.read(migrator.hasBeenSuperseded) { throw CatalogError.tooNew }
            try migrator.migrate(pool)
            // Synchronises the names of the database and its log, so that `persist` need not.
            try Self.synchronise(URL(filePath: path).deletingLastPathComponent().path)
            return pool
        }
        try loadRules()
    }

    /// Closes the database; every later call fails with `.storage`.
    ///
    /// The main file is complete then, unless another connection reads: a copy of it alone is whole.
    ///
    /// - Throws: `.diskFull`, `.storage`, `.corrupt` when committed data could not be copied into the main
    ///   file; they are still in the log, and the database is closed.
    public func close() throws(CatalogError) {
        var failure: CatalogError?
        do {
            try pool.barrierWriteWithoutTransaction { _ = try $0.checkpoint(.truncate) }
        } catch let error as DatabaseError
            where [.SQLITE_BUSY, .SQLITE_MISUSE].contains(error.resultCode)
        {
            // Another connection reads, so the log stays; or the database is closed already.
        } catch { failure = noted(error) }
        try Self.translating { try pool.close() }
        if let failure { throw failure }
    }

    /// Copies committed data into the main file, as far as no reader needs the log; waits for nobody.
    ///
    /// To be called now and then: SQLite itself does so only once the log is long, and until then a lost
    /// log is a lost catalog.
    public func checkpoint() async throws(CatalogError) {
        do {
            _ = try await pool.writeWithoutTransaction { try $0.checkpoint(.passive) }
        } catch { throw noted(error) }
    }

    /// Sets who is notified of changes, from now on.
    public func setListeners(_ new: CatalogListeners) {
        listeners.withLock { $0 = new }
    }

    /// Makes all that was committed survive the death of the machine.
    ///
    /// The log itself is synchronised: a checkpoint does so only when it can copy something, which
    /// a long reader prevents, and would write every page a second time. What a checkpoint copied
    /// before is on the disk already (https://www.sqlite.org/wal.html, "Checkpointing").
    public func persist() throws(CatalogError) {
        try Self.translating {
            // Closing a descriptor of the log drops no lock of SQLite's: those are on the -shm file.
            try Self.synchronise(path + "-wal")
        }
    }

    /// Makes the database's files their owner's alone: addresses of upload sessions are in them,
    /// and whoever knows one may write.
    ///
    /// SQLite gives its log the mode of the database.
    private static func makePrivate(_ path: String) throws {
        let files = FileManager.default
        let mode: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
        if !files.fileExists(atPath: path) {
            // An empty file is an empty database.
            guard files.createFile(atPath: path, contents: nil, attributes: mode) else { return }
        }
        for ending in ["", "-wal", "-shm"] where files.fileExists(atPath: path + ending) {
            try files.setAttributes(mode, ofItemAtPath: path + ending)
        }
    }

    /// Makes a file's bytes, or a folder's names, survive the death of the machine.
    private static func synchronise(_ path: String) throws {
        guard FileManager.default.fileExists(atPath: path) else { return }
        let handle = try FileHandle(forReadingFrom: URL(filePath: path))
        defer { try? handle.close() }
        try handle.synchronize()
    }

    /// Runs one read of a single statement, without a transaction around it.
    func read<T>(_ body: (Database) throws -> T) throws(CatalogError) -> T {
        uses.add(1, ordering: .relaxed)
        do { return try pool.unsafeRead(body) } catch { throw noted(error) }
    }

    /// Runs a transaction on the calling thread.
    func mutate<T>(
        _ body: (inout CatalogTransaction) throws -> T
    ) throws(CatalogError) -> T {
        let outcome: (T, CatalogTransaction.Effects)
        do {
            outcome = try pool.writeWithoutTransaction { try transact($0, body) }
        } catch { throw noted(error) }
        noteSuccess()
        tell(outcome.1)
        return outcome.0
    }

    /// Runs a transaction from a task, which waits its turn without blocking a thread.
    func mutateAsync<T: Sendable>(
        _ body: @escaping @Sendable (inout CatalogTransaction) throws -> T
    ) async throws(CatalogError) -> T {
        if SystemInputs.given != nil {
            await SystemInputs.yield()
            return try mutate(body)
        }
        let outcome: (T, CatalogTransaction.Effects)
        do {
            outcome = try await pool.writeWithoutTransaction { try self.transact($0, body) }
        } catch { throw noted(error) }
        noteSuccess()
        tell(outcome.1)
        return outcome.0
    }

    /// Runs a transaction and updates the cache with what it touched, before the next one can begin.
    private func transact<T>(
        _ database: Database,
        _ body: (inout CatalogTransaction) throws -> T
    ) throws -> (T, CatalogTransaction.Effects) {
        uses.add(1, ordering: .relaxed)
        writers.transactionBegan()
        defer { writers.transactionEnded() }
        let holder = contentHolder.withLock(\.self)?.value
        var transaction = CatalogTransaction(database: database, writers: writers, holder: holder)
        var hasEnded = false
        defer {
            if !transaction.effects.renamed.isEmpty {
                if !hasEnded { transaction.undoRenames() }
                holder?.renamesEnd()
            }
        }
        var result: T?
        var fresh: [Node] = []
        var changes = 0
        let observer = treeObserver.withLock { $0 }
        var seen: TreeChanges?
        // Inside it, since a closed catalog has no transaction, and nothing to count either.
        try database.inTransaction {
            let before = database.totalChangesCount
            result = try body(&transaction)
            try holdAnew(&transaction)
            fresh = try transaction.freshNodes()
            changes = database.totalChangesCount - before
            if observer != nil {
                // A failing observer must not keep programs from writing.
                do { seen = try treeChanges(by: transaction) } catch { seen = .tooMany }
            }
            try check?.run(database)
            return .commit
        }
        hasEnded = true
        searchBacklog.grew(by: changes)
        if let observer, let seen { observer.changed(seen) }
        let effects = transaction.effects
        newsNumbers.withLock { numbers in
            for account in effects.heard { numbers[account, default: 0] += 1 }
        }
        cache.transactionEnded(
            touching: effects.touchesAll ? nil : effects.touched,
            now: fresh
        )
        guard let result else { throw CatalogError.storage(detail: "a transaction without end") }
        return (result, effects)
    }

    /// Notes one more writer (`writers`) of a file that exists already; to be called before the file is
    /// looked up.
    ///
    /// A transaction that has already taken the file for unused is waited for, on the calling thread: after
    /// this returns, no such transaction can change what the caller reads.
    public func opened(forWriting inode: Inode) {
        if writers.opened(inode) { pool.writeWithoutTransaction { _ in } }
    }

    /// Waits, on the calling thread, until the transaction under way is over; not to be called in one.
    public func waitForTransaction() { pool.writeWithoutTransaction { _ in } }

    /// Runs a consistent read from a task, of as many statements as it likes.
    func readAsync<T: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> T
    ) async throws(CatalogError) -> T {
        do { return try await pool.readForTask(body) } catch { throw noted(error) }
    }

    /// The number of the latest news of an account's items; it grows with each applied answer that has any,
    /// and restarts with the process.
    ///
    /// It grows after the answer is stored and before another transaction begins: a number that was read
    /// before the trees is never newer than what they show.
    public func newsNumber(of account: AccountID) -> UInt64 {
        newsNumbers.withLock { $0[account] ?? 0 }
    }

    /// Notifies the kernel of changes that had no transaction: a file that shows other bytes to a program
    /// that has it open.
    public func announce(_ changes: [CatalogChange]) { listeners.withLock { $0 }.news(changes) }

    private func tell(_ effects: CatalogTransaction.Effects) {
        let listeners = listeners.withLock { $0 }
        if !effects.news.isEmpty { listeners.news(effects.news) }
        for account in effects.locallyChanged { listeners.localChange(account) }
        if !effects.touched.isEmpty || effects.touchesAll { treeObserver.withLock { $0 }?.told() }
    }

    /// Runs `body` and puts SQLite's errors into the catalog's words.
    static func translating<T>(_ body: () throws -> T) throws(CatalogError) -> T {
        do { return try body() } catch { throw translate(error) }
    }

    static func translate(_ error: any Error) -> CatalogError {
        if let error = error as? CatalogError { return error }
        guard let error = error as? DatabaseError else { return .storage(detail: "\(error)") }
        switch error.resultCode {
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: return .corrupt(detail: error.message ?? "corrupt")
        case .SQLITE_FULL: return .diskFull
        default: return .storage(detail: error.description)
        }
    }
}

extension DatabasePool {
    private func readBlocking<T>(_ body: (Database) throws -> T) throws -> T { try read(body) }

    /// Runs a consistent read for a task, on SQLite's own threads from its beginning to its end; it cannot
    /// be cancelled.
    ///
    /// GRDB's own `read` for tasks takes a connection, and then waits for a thread of the concurrency pool.
    /// If all of those threads wait for a connection, in reads that block, neither wait ever ends.
    func readForTask<T: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> T
    ) async throws -> T {
        if SystemInputs.given != nil {
            await SystemInputs.yield()
            return try readBlocking(body)
        }
        return try await withCheckedThrowingContinuation { continuation in
            asyncRead { opened in
                continuation.resume(with: Result { try body(opened.get()) })
            }
        }
    }
}

/// A transaction and what has to be announced when it is over.
struct CatalogTransaction {
    /// What has to be announced when the transaction is over.
    struct Effects: Sendable {
        /// Nodes whose rows changed.
        var touched: Set<Inode> = []
        /// Whether so many rows changed that the whole cache is to be forgotten.
        var touchesAll = false
        /// What the kernel must be notified of.
        var news: [CatalogChange] = []
        /// Folders that moved, or were renamed, because the service's did: at another path, other rules may
        /// hold their contents.
        var movedFolders: Set<Inode> = []
        /// Accounts that have something new to push.
        var locallyChanged: Set<AccountID> = []
        /// Accounts of which the service reported something.
        var heard: Set<AccountID> = []
        /// Contents that have another key now.
        var renamed: [Rename] = []
    }

    /// The database, inside the transaction.
    let database: Database
    /// Who has which file open for writing.
    let writers: WriterRegistry
    /// Who has contents open.
    var holder: (any ContentHolder)?
    /// What has to be announced when the transaction is over.
    var effects = Effects()

    /// Notes that a node's row changed.
    mutating func touch(_ inode: Inode) { effects.touched.insert(inode) }

    /// The touched nodes as they are now, when they are few: a program asks next for what it just changed.
    func freshNodes() throws -> [Node] {
        guard !effects.touchesAll, effects.touched.count <= 8 else { return [] }
        return try effects.touched.compactMap { try Catalog.fetch($0, database) }
    }
}
