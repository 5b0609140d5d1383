public import Logging
public import OortCatalog
public import OortModel
import Synchronization

/// How the store behaves.
public struct ContentStoreSettings: Sendable {
    /// Bytes that cached contents may take; staged ones may fill the disk.
    public var limit: Int64 = 20 << 30
    /// Bytes of the disk that contents leave free, for the catalog.
    public var reserve: Int64 = 64 << 20
    /// Files that are kept open at once.
    public var openFiles = 256
    /// How long a write waits for an upload to make room, counted from the last time that one did.
    public var roomPatience = Duration.seconds(60)
    /// How often the cache's state is stored while it changes.
    public var saveInterval = Duration.seconds(2)
    /// How long after a cached content was read its time of use is stored.
    public var useInterval = Duration.seconds(60)

    /// Gives the free bytes on the disk of a folder, nil where they are not known; tests have a disk of
    /// their own.
    var freeBytes: @Sendable (String) -> Int64? = { DiskFile.freeBytes(at: $0) }

    /// The defaults: 20 GiB, 64 MiB, 256 files, 60 seconds, 2 seconds, 60 seconds.
    public init() {}
}

/// A content of which bytes come from the service.
public struct Download: Hashable, Sendable {
    /// Which revision it is.
    public var key: ContentKey
    /// Bytes that are here, of earlier readers, too.
    public var present: Int64
    /// Bytes in all; not all of them need to be on their way.
    public var size: Int64
}

/// File bytes on the local disk: cached contents of revisions, and staged contents that the service
/// does not have yet.
///
/// Knows no names.
///
/// Isolation: any thread. Methods that are not async make local disk and SQLite calls on the
/// calling thread and never wait for a network.
public final class ContentStore: Sendable {
    struct State {
        var fetchers: [AccountID: any ContentFetcher] = [:]
        /// Counts the transactions in which contents got other keys.
        var renames: UInt64 = 0
        /// The keys that contents get in the transaction under way.
        var renaming: [ContentKey: ContentKey] = [:]
        /// The keys of contents that the service has under another one by now, which has a content, too.
        var apart: Set<ContentKey> = []
        /// Contents that are in use or whose state is not stored yet.
        var cached: [ContentKey: (content: CachedContent, users: Int)] = [:]
        var staged: [ContentID: (content: StagedContent, users: Int)] = [:]
        var unsaved: Set<ContentKey> = []
        /// Contents whose state is being written to the catalog: until it is there, the catalog's records
        /// of them are old.
        var beingSaved: Set<ContentKey> = []
        /// Contents with an unrecorded time of use, milliseconds since 1970.
        var used: [ContentID: Int64] = [:]
        var isSaving = false
        /// The last saving that was begun.
        var saving: Task<Void, Never>?
        var isEvicting = false
        /// The room asked for while an eviction was under way.
        var evictionWish: (bytes: Int64, cached: Int64)?
        /// How much the cache is above its limit by what may not be evicted, and when that was found,
        /// milliseconds since 1970.
        var standing: (excess: Int64, moment: Int64) = (0, 0)
        var lastTemporary: UInt64 = 0
        var looksForHoles = false
        /// Contents that are not needed any longer and whose files are still there.
        var doomed: Set<ContentID> = []
        var isCollecting = false
        /// Staged contents that are being made.
        var making = 0
        /// Hashes of large staged contents, computed from their bytes by their last users.
        var hashes: [ContentID: ContentHash] = [:]
        /// Staged contents that are being read from the disk: how many readers, and how often a last user
        /// let such a content go since.
        var loads: [ContentID: (count: Int, closings: Int)] = [:]
        /// How often the service's bytes of a content did not have its hash.
        var mismatches: [ContentKey: Int] = [:]
        /// Where this process puts staged files that the catalog does not know.
        var aside: String?
        /// Documents that are being exported.
        var exports: [ContentKey: Task<Result<Void, ContentError>, Never>] = [:]
        /// Tasks that bring the rest of small bases to the staged contents over them.
        var completions: [ContentID: Task<Void, Never>] = [:]
    }

    /// Which files programs have open for writing.
    public var writers: WriterRegistry { catalog.writers }

    let catalog: Catalog
    let paths: ContentPaths
    let pool: FilePool
    let room: Room
    let settings: ContentStoreSettings
    let clock: any Clock<Duration>
    let logger: Logger
    let state = Mutex(State())
    let completing = CompletionTurn()
    /// Staged contents for which the disk had no room at the last attempt to freeze them.
    let roomless = Mutex<Set<ContentID>>([])
    private let stopping = Atomic<Bool>(false)
    /// Runs before the bytes of a clone are copied: tests delay the copy, or fail it as the disk would.
    let beforeClone = Mutex<(@Sendable () async throws(ContentError) -> Void)?>(nil)

    /// Opens the store in its two folders, making them if need be.
    ///
    /// `recover` is to be called before
    /// anything else.
    ///
    /// `cacheFolder` may be emptied by anything while nothing is mounted; `stateFolder` holds what the
    /// service does not have yet.
    public init(
        cacheFolder: String,
        stateFolder: String,
        catalog: Catalog,
        settings: ContentStoreSettings = ContentStoreSettings(),
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) throws(ContentError) {
        paths = ContentPaths(
            cacheFolder: cacheFolder + "/content",
            stateFolder: stateFolder
        )
        try paths.prepare()
        self.catalog = catalog
        self.settings = settings
        self.clock = clock
        self.logger = logger
        pool = FilePool(capacity: settings.openFiles)
        room = Room(
            limit: settings.limit,
            reserve: settings.reserve,
            folder: paths.stagedFolder,
            cacheFolder: paths.cacheFolder,
            measure: settings.freeBytes
        )
        catalog.setContentHolder(self)
    }

    /// Sets how an account's bytes come from the service; nil when they cannot any longer.
    public func setFetcher(_ fetcher: (any ContentFetcher)?, for account: AccountID) {
        state.withLock { $0.fetchers[account] = fetcher }
    }

    /// Whether the store ends, and long work is broken off.
    var isStopping: Bool {
        get { stopping.load(ordering: .acquiring) }
        set { stopping.store(newValue, ordering: .releasing) }
    }

    /// Whether written bytes may be holes: the machine died, and the disk kept only some of them.
    var looksForHoles: Bool { state.withLock { $0.looksForHoles } }

    func setLooksForHoles(_ looks: Bool) { state.withLock { $0.looksForHoles = looks } }

    /// Bytes of staged and of cached contents on the disk.
    public var usage: (staged: Int64, cached: Int64) { room.used }

    /// What keeps programs from writing now, as far as it is the local disk's; nil when nothing
    /// does.
    public var trouble: ContentError? {
        // The disk is tried, since a failed one does not report itself.
        let path = temporaryPath()
        DiskFile.remove(path)
        defer { DiskFile.remove(path) }
        do throws(ContentError) { _ = try DiskFile.open(path, creates: true) } catch {
            return error
        }
        return room.isFull ? .noSpace : nil
    }

    /// Whether nothing can be fetched now, since the cache has a disk of its own which is full of other things.
    public var isCacheFull: Bool { room.isCacheFull }

    /// Bytes that programs can still write before an upload must make room.
    public var freeBytes: Int64 { room.free }

    /// Contents of which bytes come from the service now, by no order.
    public var downloads: [Download] {
        let contents = state.withLock { $0.cached.values.map(\.content) }
        return contents.compactMap { content in
            content.state.withLock { state in
                state.fetches.isEmpty
                    ? nil
                    : Download(
                        key: content.key,
                        present: state.present.byteCount,
                        size: content.size
                    )
            }
        }
    }

    /// The fetcher of an account's bytes; nil when it is not connected.
    func fetcher(of account: AccountID) -> (any ContentFetcher)? {
        state.withLock { $0.fetchers[account] }
    }

    /// A path for a file that is being made.
    func temporaryPath() -> String {
        paths.temporary(
            state.withLock { state in
                state.lastTemporary += 1
                return state.lastTemporary
            }
        )
    }

    // MARK: Users

    /// The content of a revision, to be read; `close` lets it go.
    ///
    /// While it is in use it is not evicted. Where a revision is a size and a second, two contents may have
    /// had the same one: a cached content with another hash is fetched anew, once it is not open.
    public func open(
        _ key: ContentKey,
        size: Int64,
        hash: ContentHash?
    ) throws(ContentError) -> CachedContent {
        while true {
            if let content = use(key) { return content }
            let renames = state.withLock { state in
                state.isRenaming(key) ? nil : state.renames
            }
            guard let renames else {
                // The catalog has the old key or the new one, and the nodes may still have the other.
                catalog.waitForTransaction()
                continue
            }
            let content = try load(key, size: size, hash: hash)
            let opened = state.withLock { state -> CachedContent? in
                // What was read of the catalog may be older than a rename.
                guard state.renames == renames, !state.isRenaming(key) else { return nil }
                guard let other = state.file(content) else { return content }
                state.cached[other.filed]?.users += 1
                return other
            }
            if let opened { return opened }
        }
    }

    /// A content as the catalog knows it, which nobody uses yet.
    private func load(
        _ key: ContentKey,
        size: Int64,
        hash: ContentHash?
    ) throws(ContentError) -> CachedContent {
        let row = try cachedRow(of: key)
        // A row with another size was made for a misunderstood revision: it is made anew.
        let known = row.flatMap {
            $0.size == size && $0.hash?.contradicts(hash) != true ? $0 : nil
        }
        let present = known?.present.flatMap { RangeSet(record: $0, size: size) }
        return CachedContent(
            key: key,
            size: size,
            hash: hash ?? known?.hash,
            id: present == nil ? nil : known?.id,
            present: present ?? RangeSet(),
            isVerified: known?.isComplete ?? false,
            mismatches: state.withLock { $0.mismatches[key] ?? 0 },
            store: self
        )
    }

    /// A content that the caller uses already, used once more.
    func use(_ content: CachedContent) throws(ContentError) -> CachedContent {
        let isFiled = state.withLock { state in
            guard state.cached[content.filed]?.content === content else { return false }
            state.cached[content.filed]?.users += 1
            return true
        }
        return isFiled
            ? content : try open(content.key, size: content.size, hash: content.hash)
    }

    /// What the catalog knows of a cached content.
    func cachedRow(of key: ContentKey) throws(ContentError) -> ContentRow? {
        do throws(CatalogError) {
            return try catalog.cachedContent(
                account: key.account,
                item: key.item,
                revision: key.revision
            )
        } catch { throw .catalog(detail: "\(error)") }
    }

    /// The content of a revision that is in use already, used once more.
    func use(_ key: ContentKey) -> CachedContent? {
        state.withLock { state in
            guard let known = state.cached[key] else { return nil }
            state.cached[key] = (known.content, known.users + 1)
            return known.content
        }
    }

    /// Lets a content go that `open` gave; transfers that no reader waits for end with the last user.
    public func close(_ content: CachedContent) {
        let (isLast, isUnsaved) = state.withLock { state in
            guard let known = state.cached[content.filed], known.content === content else {
                return (true, false)
            }
            let users = known.users - 1
            let isUnsaved = content.state.withLock { $0.isUnsaved || $0.isVerifying }
            if users <= 0, !isUnsaved, !state.unsaved.contains(content.filed),
                !state.beingSaved.contains(content.filed)
            {
                state.cached[content.filed] = nil
            } else {
                state.cached[content.filed] = (content, users)
            }
            return (users <= 0, isUnsaved)
        }
        guard isLast else { return }
        content.stopFetching()
        // Bytes of an unfinished transfer are kept, too.
        if isUnsaved {
            markChanged(content)
            return
        }
        noteUse(of: content)
        if mayEvict {
            // The content exceeded the limit while it was read, and can give way now. Owned by the store;
            // ends by itself.
            Task { await evict() }
        }
    }

    /// The staged content of this number, to be read or written; `close` lets it go.
    ///
    /// - Throws: `.damaged` when its file is missing or torn.
    public func open(staged id: ContentID) throws(ContentError) -> StagedContent {
        while true {
            let (known, closings) = state.withLock { state in
                let known = state.use(staged: id)
                return (known, known == nil ? state.beginLoading(id) : 0)
            }
            if let known { return known }
            let content: StagedContent
            do throws(ContentError) { content = try load(staged: id) } catch {
                state.withLock { _ = $0.endLoading(id) }
                throw error
            }
            let opened = state.withLock { state -> StagedContent? in
                let now = state.endLoading(id)
                if let other = state.use(staged: id) { return other }
                // It was in use meanwhile, and what was just read of it may be outdated.
                guard now == closings else { return nil }
                state.staged[id] = (content, 1)
                return content
            }
            if opened !== content, let base = content.base { close(base) }
            if let opened { return opened }
        }
    }

    /// Uses a staged content, which the caller uses already, once more; `close` lets each use go.
    public func use(_ content: StagedContent) {
        state.withLock { state in
            let users = state.staged[content.id]?.users ?? 0
            state.staged[content.id] = (content, users + 1)
        }
    }

    /// Uses a staged content once more if somebody uses it; `close` lets that go.
    func useAgain(_ content: StagedContent) -> Bool {
        state.withLock { state in
            guard let known = state.staged[content.id], known.content === content else {
                return false
            }
            state.staged[content.id] = (content, known.users + 1)
            return true
        }
    }

    /// Registers a staged content that was just made; the caller is its user.
    func register(_ content: StagedContent) {
        state.withLock { $0.staged[content.id] = (content, 1) }
    }

    /// Lets a content go that `open(staged:)`, `stage` or `thaw` gave.
    public func close(_ content: StagedContent) {
        let isLast = state.withLock { state in
            guard let known = state.staged[content.id], known.content === content else {
                return false
            }
            let users = known.users - 1
            state.staged[content.id] = users <= 0 ? nil : (content, users)
            if users <= 0 {
                state.loads[content.id]?.closings += 1
                state.hashes[content.id] = content.hashToRemember
            }
            return users <= 0
        }
        guard isLast else { return }
        if let base = content.base { close(base) }
        let (isDiscarded, successor) = content.state.withLock { ($0.isDiscarded, $0.cached) }
        if let successor { close(successor) }
        guard isDiscarded else { return }
        do throws(CatalogError) {
            if try !catalog.isStaged(content.id) { doom(content) }
        } catch {
            // A file may have it: it stays until the next garbage collection.
            logger.error(
                "whose a content is could not be read",
                metadata: ["content": "\(content.id.rawValue)", "cause": "\(error)"]
            )
        }
    }

    /// Puts a cached content under its key, used once more; nil when another one is there.
    func adopt(_ content: CachedContent) -> Bool {
        state.withLock { $0.file(content) == nil }
    }

    // MARK: The cache's state

    /// Notes that a cached content's state has to be stored.
    func markChanged(_ content: CachedContent) {
        let starts = state.withLock { state in
            guard state.cached[content.filed]?.content === content else { return false }
            state.unsaved.insert(content.filed)
            guard !state.isSaving else { return false }
            state.isSaving = true
            return true
        }
        guard starts else { return }
        // Owned by the store; ends by itself once nothing is left to be stored.
        Task {
            try? await clock.sleep(for: settings.saveInterval)
            await save()
            await evict()
        }
    }

    /// Stores changes of the cache's state.
    ///
    /// What is recorded is on the disk: after the machine died, no range is recorded that is not there.
    /// When this returns, what an earlier saving took is stored, too.
    public func save() async {
        let saving = state.withLock { state in
            // Owned by the store, ends by itself: one after the other, so that the newest stays.
            let saving = Task { [before = state.saving] in
                await before?.value
                await self.saveUnsaved()
            }
            state.saving = saving
            return saving
        }
        await saving.value
    }

    private func saveUnsaved() async {
        let contents = state.withLock { state in
            let contents = state.unsaved.compactMap { state.cached[$0]?.content }
            (state.beingSaved, state.unsaved) = (state.unsaved, [])
            state.isSaving = false
            return contents
        }
        var records: [CacheRecord] = []
        for content in contents {
            let (id, present, isVerified) = content.state.withLock { state in
                state.isUnsaved = false
                return (state.id, state.confirmed, state.isVerified)
            }
            guard let id else { continue }
            do throws(ContentError) { try pool.file(paths.cached(id)).synchronise() } catch {
                // Bytes that are not certainly on the disk are fetched again after a restart.
                logger.info(
                    "a cached content was not stored",
                    metadata: ["content": "\(id.rawValue)", "cause": "\(error)"]
                )
                continue
            }
            records.append(
                CacheRecord(
                    id: id,
                    present: present.record,
                    isComplete: isVerified,
                    bytesOnDisk: present.byteCount
                )
            )
            await SystemInputs.yield()
        }
        do throws(CatalogError) { try await catalog.saveCache(records) } catch {
            logger.warning("the cache's state was not stored", metadata: ["cause": "\(error)"])
        }
        state.withLock { state in
            state.beingSaved = []
            for content in contents where !state.unsaved.contains(content.filed) {
                if let known = state.cached[content.filed], known.users <= 0,
                    !content.state.withLock({ $0.isUnsaved || $0.isVerifying })
                {
                    state.cached[content.filed] = nil
                }
            }
        }
    }

    /// Removes cached contents, the least recently used first, until limit and reserve are kept.
    ///
    /// Contents that are in use, pinned or staged stay. `bytes` that are written and `cached` ones that are
    /// fetched must have room, too. If an eviction is under way already, it looks again afterwards for the
    /// room asked for meanwhile.
    public func evict(toFit bytes: Int64 = 0, cached: Int64 = 0) async {
        let starts = state.withLock { state in
            guard !state.isEvicting else {
                let wish = state.evictionWish ?? (0, 0)
                state.evictionWish = (max(wish.bytes, bytes), max(wish.cached, cached))
                return false
            }
            state.isEvicting = true
            return true
        }
        guard starts else { return }
        var wish: (bytes: Int64, cached: Int64)? = (bytes, cached)
        while let now = wish {
            await evictOnce(toFit: now.bytes, cached: now.cached)
            // These bytes may be there by now, and counted: they are not asked for again.
            wish = state.withLock { state in
                let next = state.evictionWish
                state.evictionWish = nil
                state.isEvicting = next != nil
                return next
            }
        }
    }

    /// Makes room on the cache's disk for fetched bytes that did not fit.
    func makeCacheRoom(for bytes: Int64, staged: Int64 = 0) async {
        // A content whose state is not stored is not evicted.
        await save()
        await evict(toFit: staged, cached: bytes)
    }

    private func evictOnce(toFit bytes: Int64, cached: Int64) async {
        state.withLock { $0.standing = (0, 0) }
        let begin = room.excess(with: bytes, cached: cached)
        guard begin > 0 else { return }
        // A little more is removed, so that the next upload at the limit need not look again.
        let most = begin + settings.limit / 20
        var (gone, kept) = (Int64(0), 0)
        while gone < begin {
            let rows: [ContentRow]
            do throws(CatalogError) {
                rows = try await catalog.evictableContents(
                    limit: 256,
                    of: begin - gone,
                    after: kept
                )
            } catch { return notEvicted(error) }
            guard !rows.isEmpty else {
                // What is in use may go later.
                let excess = kept == 0 ? room.excess(with: 0) : 0
                return state.withLock { $0.standing = (excess, Timestamp.now.inMilliseconds) }
            }
            var chosen: [ContentRow] = []
            var sum = gone
            for row in rows where sum < begin || sum + row.bytesOnDisk <= most {
                sum += row.bytesOnDisk
                chosen.append(row)
            }
            do throws(CatalogError) {
                let removed = try await remove(cached: chosen)
                gone += removed.bytes
                // Contents in use are skipped.
                kept += chosen.count - removed.count
            } catch { return notEvicted(error) }
        }
    }

    private func notEvicted(_ cause: CatalogError) {
        logger.error("no room was made in the cache", metadata: ["cause": "\(cause)"])
    }

    /// Removes cached contents that may go and are not in use; with `moment`, only those not used since.
    ///
    /// - Returns: how many were removed, and the bytes that they took.
    func remove(
        cached rows: [ContentRow],
        unusedSince moment: Int64? = nil
    ) async throws(CatalogError) -> (count: Int, bytes: Int64) {
        // By number, too: a content may have another key since the rows were read. One that is just being
        // made has no number yet.
        let used = contentsInUse
        let unused = rows.filter { used[$0.id] == nil && !isFiled($0) }
        guard !unused.isEmpty else { return (0, 0) }
        // A content that an upload replaced meanwhile is counted there.
        let removed = try await catalog.evictContents(unused.map(\.id), unusedSince: moment)
        let usedNow = contentsInUse
        var bytes: Int64 = 0
        for (id, size) in removed {
            bytes += size
            // It was opened meanwhile: readers that wait for bytes look again, and have them fetched.
            if let content = usedNow[id] {
                content.discard()
                continue
            }
            remove([paths.cached(id)])
            room.addCached(-size)
        }
        return (removed.count, bytes)
    }
}

extension ContentStore {
    /// Whether a content is in use, or not stored yet, under a row's key.
    private func isFiled(_ row: ContentRow) -> Bool {
        guard let item = row.item, let revision = row.revision else { return true }
        let key = ContentKey(account: row.account, item: item, revision: revision)
        return state.withLock { $0.cached[key] != nil }
    }

    /// The contents that are in use or not stored yet, by the numbers of their rows.
    var contentsInUse: [ContentID: CachedContent] {
        let contents = state.withLock { $0.cached.values.map(\.content) }
        return Dictionary(contents.compactMap { content in content.id.map { ($0, content) } }) {
            first,
            _ in first
        }
    }
}

extension ContentStore.State {
    /// The staged content of this number, used once more; nil when nobody has it open.
    fileprivate mutating func use(staged id: ContentID) -> StagedContent? {
        guard let known = staged[id] else { return nil }
        staged[id] = (known.content, known.users + 1)
        return known.content
    }

    /// - Returns: what `endLoading` gives where nobody let the content go meanwhile.
    fileprivate mutating func beginLoading(_ id: ContentID) -> Int {
        loads[id, default: (0, 0)].count += 1
        return loads[id]?.closings ?? 0
    }

    fileprivate mutating func endLoading(_ id: ContentID) -> Int {
        guard let load = loads[id] else { return 0 }
        loads[id] = load.count > 1 ? (load.count - 1, load.closings) : nil
        return load.closings
    }
}
