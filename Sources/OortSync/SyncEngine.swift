public import Logging
public import OortCatalog
public import OortContentStore
public import OortModel
import OortPlanner
import Synchronization

/// Makes one account's service and the local tree agree: reads the change feed, and carries out
/// what the planner says.
///
/// All that must survive lies in the catalog; this actor holds only what is under way. `run` is the
/// engine's life; it ends when its task is cancelled.
public actor SyncEngine {
    /// Our number of the account.
    public nonisolated let account: AccountID
    nonisolated let provider: any Provider
    nonisolated let catalog: Catalog
    nonisolated let store: ContentStore
    nonisolated let settings: SyncSettings
    /// Whether nothing is ever sent.
    public nonisolated var isReadOnly: Bool { settings.isReadOnly }
    nonisolated let logger: Logger
    nonisolated let clock: any Clock<Duration>
    /// The time by the clock since the engine was made.
    nonisolated let uptime: @Sendable () -> Duration
    nonisolated let planner: Planner
    nonisolated let reservedIDs: ReservedIDs
    nonisolated let wakeups: AsyncStream<Void>
    nonisolated let waker: AsyncStream<Void>.Continuation
    /// Counts the operations that the service carried out.
    public nonisolated let finished = RateMeter()
    /// Whether a local change was reported that `planAtRest` has not seen.
    private nonisolated let hasChanged = Atomic(false)
    /// Whether somebody looked at the account's room and `lookAtRoom` has not ended.
    nonisolated let isLookingAtRoom = Atomic(false)

    // MARK: The feed

    /// Which run of the feed is under way, wanted or owed, and what waits for one.
    var feed = FeedState()
    /// What an answer of the service may not have seen yet.
    let order = RequestOrder()
    /// The wait before the feed is read again after a failure; cancelled to end it.
    var feedPause: Task<Void, Never>?
    /// The wait for news; cancelled to read the feed at once.
    var newsWait: Task<Result<FeedNews, ProviderError>, Never>?
    /// The page of the feed that was asked for while the one before it is applied.
    var pageAhead: PageRequest?
    /// Whether it is certain whose account it is.
    var isIdentified = false
    /// What keeps the account from working; nil when nothing does.
    public var trouble: SyncStatus.Trouble? {
        accountTrouble ?? feed.unreadable
    }
    /// The trouble that concerns more than the feed.
    var accountTrouble: SyncStatus.Trouble?
    var listings: [Inode: Task<Result<Void, ProviderError>, Never>] = [:]
    var patience = ListingPatience()

    // MARK: The push

    /// The plan that is being carried out.
    var queue: PushQueue
    /// The contents whose hash the next plan needs.
    var hashes: HashQueue
    var needsPlan = true
    var failures = PushFailures()
    /// How often failures were retried at once, since their cause may be gone.
    var retries: UInt64 = 0
    /// Operations without an answer that are not under way.
    var unanswered: UnansweredIntents
    /// Whether a plan is being made, which may bring work: nothing can be called idle then.
    var isPlanning = false
    /// Files for whose whole content the local disk had no room.
    var roomless: Set<Inode> = []
    /// How many uploads have ended and given back what they took of the disk.
    var uploadsKept = 0
    /// Files whose uploaded content the store has taken over.
    var keptContents: Set<Inode> = []
    var pausedUntil: Int64 = 0
    /// Whether a person wants nothing to be sent.
    public internal(set) var isPaused = false
    /// Tasks that may take long, which a pause ends: uploads of large contents, and questions about unknown
    /// outcomes.
    var longTasks = Numbered<Task<Void, Never>>()
    var offlineTries = 0
    var timer: Task<Void, Never>?
    /// When to look again.
    var moments = Moments()
    /// Before this moment no plan is made: making plans must leave time for what is planned.
    var nextPlan: Int64 = 0
    /// When the last plan was made, milliseconds since 1970.
    var lastPlan: Int64 = 0
    /// How long it took, milliseconds.
    var lastPlanLength: Int64 = 0
    /// How many callers want everything pushed at once.
    var urgentCallers = 0
    var roomWatch = RoomWatch()
    /// Items for which rights were lacking, and their folders: their news may bring more rights.
    var denials: Set<ItemID> = []
    var refusedDeletions = RefusedDeletions()
    /// Callers that wait for the next change of what is pending.
    var watchers = Numbered<AsyncStream<Void>.Continuation>()

    /// An engine for an account of the catalog.
    public init(
        account: AccountID,
        provider: any Provider,
        catalog: Catalog,
        store: ContentStore,
        settings: SyncSettings = SyncSettings(),
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.account = account
        self.provider = provider
        self.catalog = catalog
        self.store = store
        self.settings = settings
        self.clock = clock
        uptime = Self.uptime(by: clock)
        self.logger = logger
        planner = Planner(traits: PlannerTraits(provider.traits))
        reservedIDs = ReservedIDs(provider)
        queue = PushQueue(
            provider.traits.batchSizes,
            mostInFlight: provider.traits.maximumWritesInFlight
        )
        hashes = HashQueue(provider.traits)
        unanswered = UnansweredIntents(largeAbove: provider.traits.batchSizes.largestUpload)
        catalog.setReadOnly(settings.isReadOnly, of: account)
        catalog.setLag(provider.traits.lag, of: account)
        (wakeups, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    private static func uptime<C: Clock>(
        by clock: C
    ) -> @Sendable () -> Duration where C.Duration == Duration {
        let start = clock.now
        return { start.duration(to: clock.now) }
    }

    /// Something changed here (`CatalogListeners.localChange`, a file was closed): the engine will look at
    /// it.
    ///
    /// Returns at once, from any thread.
    public nonisolated func localChange() {
        // One task for all changes until it runs.
        guard !hasChanged.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { await self.planAtRest() }
    }

    /// Plans once the change has settled; a tree that is being written is not planned for again and again.
    private func planAtRest() {
        hasChanged.store(false, ordering: .releasing)
        tellWatchers()
        let settle = settings.settle.inMilliseconds
        guard urgentCallers == 0, settle > 0 else { return planSoon() }
        // A plan before then gives the moment at which this change will have settled.
        let now = now
        guard !moments.has(after: now, through: now + settle) else { return }
        wake(at: now + settle)
    }

    func planSoon() {
        needsPlan = true
        waker.yield()
    }

    /// The engine's life: returns when its task is cancelled.
    ///
    /// The next start asks about the operations that are under way then.
    public func run() async {
        await RequestPriority.$current.withValue(.background) {
            await withTaskGroup { group in
                group.addTask { await self.feedLoop() }
                group.addTask { await self.pushLoop() }
                await group.waitForAll()
            }
        }
        timer?.cancel()
    }

    /// How the account is doing.
    public func status() async -> SyncStatus {
        var status = SyncStatus()
        status.trouble = trouble
        status.transfers = transfers
        status.remarks = refusedDeletions.words(at: now) + provider.remarks
        do throws(CatalogError) {
            status.pending = try await catalog.pending(account, limit: 1000)
            status.pendingCount = status.pending.count
            if status.pendingCount == 1000 {
                status.pendingCount = try await catalog.pendingCount(account)
            }
            status.conflicts = try await catalog.conflicts(account)
            if let account = try catalog.account(account) {
                status.isEnumerated = account.isEnumerated
                status.quota = account.quota
            }
            if !status.isEnumerated { status.knownItems = try await catalog.itemCount(account) }
        } catch {
            // An account of which nothing could be read is not up to date.
            status.trouble = .unreadable(error)
        }
        return status
    }

    /// Contents that are being uploaded, or read to be compared, by inode.
    public var transfers: [SyncStatus.Transfer] {
        queue.running.values.filter { $0.size > 0 }.sorted { $0.inode < $1.inode }
    }

    /// Pushes everything (below a folder, where one is given) at once and waits until the service has it,
    /// as the hashes in its answers prove, or until the time is over.
    public func sync(_ scope: Inode? = nil, timeout: Duration) async -> SyncOutcome {
        let isComplete = await withTaskGroup { group in
            group.addTask {
                await self.pushingAtOnce { changes in
                    for await _ in changes {
                        // If the catalog cannot be read, something may be missing: it is read again.
                        if await self.isMissing(below: scope) == false { return true }
                        if await self.trouble?.needsPerson == true { return false }
                    }
                    return false
                }
            }
            group.addTask {
                try? await self.clock.sleep(for: timeout)
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
        if isComplete { return SyncOutcome(missing: [], trouble: nil) }
        do throws(CatalogError) {
            return SyncOutcome(
                missing: try await catalog.pending(account, below: scope),
                trouble: trouble
            )
        } catch { return SyncOutcome(missing: [], trouble: .unreadable(error)) }
    }

    /// Whether the service lacks anything; nil when the catalog could not be read.
    private func isMissing(below scope: Inode?) async -> Bool? {
        do throws(CatalogError) {
            guard let scope else { return try await catalog.pendingCount(account) > 0 }
            return try await !catalog.pending(account, below: scope, limit: 1).isEmpty
        } catch {
            logger.error("what is pending could not be read", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Pushes without waiting for items to settle, as long as `body` runs.
    ///
    /// The stream has an element at once and whenever what is pending, or how it goes, may have
    /// changed; several changes may be one element. It ends when the task is cancelled.
    public func pushingAtOnce<T: Sendable>(
        _ body: @Sendable (AsyncStream<Void>) async -> T
    ) async -> T {
        let (changes, watcher) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number = watchers.add(watcher)
        urgentCallers += 1
        defer {
            urgentCallers -= 1
            watchers.remove(number)
            watcher.finish()
        }
        await retryAll()
        watcher.yield()
        return await body(changes)
    }

    func tellWatchers() {
        for watcher in watchers.all { watcher.yield() }
    }

    /// Whether the engine sends nothing until a failure is retried or something changes: nothing is under
    /// way or to be planned, and what is planned waits for what failed.
    public var isIdle: Bool {
        // After an operation that was done, a plan is due.
        let isPlanned =
            !hasChanged.load(ordering: .acquiring) && !needsPlan && !isPlanning && isIdentified
            && !queue.hasDone && !failures.hasStale
        let isQuiet =
            queue.isQuiet && hashes.isEmpty && !unanswered.mayExist
        return isPlanned && isQuiet && feed.isQuiet && !queue.hasWork
    }

    private func retryAll() async {
        retries += 1
        await retryNow()
        hashes.retryAll()
        unanswered.retryAll()
        // A wait that grew long while failures went on must not come back with the first new one. The
        // transport still waits as long as the service itself asked for.
        failures.forgetAll()
        offlineTries = 0
        feed.forgetFailures()
        pausedUntil = 0
        feedPause?.cancel()
        planSoon()
    }

    /// Retries at once what failed; all of the account's, or some of it.
    func retryNow(_ inodes: [Inode]? = nil) async {
        guard inodes?.isEmpty != true else { return }
        do throws(CatalogError) { try await catalog.retryNow(account, of: inodes) } catch {
            // The failures are retried at their stored moments.
            logger.error("nothing is tried earlier", metadata: ["error": "\(error)"])
        }
    }

    // MARK: Small things

    nonisolated var now: Int64 { Timestamp.now.inMilliseconds }

    /// Wakes the push at a moment, milliseconds since 1970, besides all other moments asked for.
    func wake(at moment: Int64) {
        if moments.add(moment) { setTimer(to: moment) }
    }

    private func setTimer(to moment: Int64) {
        timer?.cancel()
        let delay = max(1, moment - now)
        // Owned by the engine: replaced by the next one, cancelled at the end of `run`.
        timer = Task {
            guard (try? await clock.sleep(for: .milliseconds(delay))) != nil else { return }
            self.timeCame()
        }
    }

    private func timeCame() {
        // The clock of the moments decides: the timer may end a little early by it.
        moments.came(at: now)
        if let next = moments.next { setTimer(to: next) }
        planSoon()
    }
}
