public import Logging
public import OortCatalog
public import OortContentStore
public import OortModel
import Synchronization

/// Fetches what a person wants kept on this machine, after everything that a program waits for.
///
/// The pins lie in the catalog; this actor holds only what is under way and what failed. `run` is its
/// life, which ends when its task is cancelled; another one after a restart goes on where it ended.
public actor PinKeeper {
    /// How far it is.
    public struct Progress: Sendable {
        /// Why nothing comes at present.
        public enum Obstacle: Hashable, Sendable {
            /// A person wants nothing to be sent or fetched.
            case paused
            /// The service cannot be reached; it is tried again.
            case offline
            /// The person must sign in again.
            case signedOut
            /// The local disk or the catalog fails, in words.
            case disk(String)
        }

        /// A file that the service does not give, or damaged.
        public struct Refusal: Hashable, Sendable {
            /// The file.
            public var inode: Inode
            /// Why, in words.
            public var reason: String
        }

        /// What is to be kept, and what of that is here.
        public var sums = Pin.Sums()
        /// Why nothing comes; nil while something does, or all is here.
        public var obstacle: Obstacle?
        /// Files that do not come, and are not asked for again and again.
        public var refusals: [Refusal] = []
        /// Files for which there is no room, and how many bytes each has.
        public var withoutRoom: [Inode: Int64] = [:]
    }

    /// Why a file did not come.
    private struct Failure {
        enum Cause {
            /// The service refuses it or gives other bytes, in words.
            case refused(String)
            /// There is no room for it.
            case noRoom
            /// It may work next time.
            case passing
        }
        var inode: Inode
        var size: Int64
        var cause: Cause
        var count: Int
        /// When it is asked for again, milliseconds since 1970.
        var next: Int64
    }

    /// How many files are fetched at once.
    private static let atOnce = 4
    /// How many files are taken up between two looks at all that is to be kept.
    private static let batch = 2048
    /// After how long the keeper looks without having heard of a change, milliseconds.
    private static let longestRest: Int64 = 60_000
    /// After how many failed tries a file is reported.
    private static let mostTries = 3

    private let account: AccountID
    private let catalog: Catalog
    private let store: ContentStore
    private let look: @Sendable (Inode) async -> Void
    private let settings: SyncSettings
    private let clock: any Clock<Duration>
    private let logger: Logger
    private let wakeups: AsyncStream<Void>
    private nonisolated let waker: AsyncStream<Void>.Continuation

    private var progress = Progress()
    private var failures: [ContentKey: Failure] = [:]
    /// Bytes of what is being fetched.
    private var underWay: [ContentKey: Int64] = [:]
    private var fetching: Task<Void, Never>?
    /// Whether a file was fetched since the last survey.
    private var hasBrought = false
    private var isPaused = false
    private var offlineTries = 0
    /// When the last survey ended, milliseconds since 1970, and how long it took.
    private var lastLook: (end: Int64, length: Int64) = (0, 0)
    /// How often the pins changed: a survey that began before the last change is not acted on.
    private var pinChanges = 0
    private var timer: Task<Void, Never>?
    private var timerEnd: Int64 = .max

    /// A keeper for an account of the catalog.
    ///
    /// `look` has the news of one item come at once; it is called when the service no longer has what the
    /// catalog knows.
    public init(
        account: AccountID,
        catalog: Catalog,
        store: ContentStore,
        look: @escaping @Sendable (Inode) async -> Void,
        settings: SyncSettings = SyncSettings(),
        clock: any Clock<Duration> = ContinuousClock(),
        logger: Logger
    ) {
        self.account = account
        self.catalog = catalog
        self.store = store
        self.look = look
        self.settings = settings
        self.clock = clock
        self.logger = logger
        (wakeups, waker) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Something in the tree changed: what is to be kept is looked at.
    ///
    /// Returns at once, from any thread.
    public nonisolated func wake() { waker.yield() }

    /// A person changed the pins: stops fetching what may no longer be wanted, and retries what was
    /// refused.
    public func pinsChanged() {
        failures = [:]
        pinChanges += 1
        fetching?.cancel()
        lastLook = (0, 0)
        wake()
    }

    /// Fetches nothing from now on, or goes on.
    public func setPaused(_ isPaused: Bool) {
        guard self.isPaused != isPaused else { return }
        self.isPaused = isPaused
        if isPaused { fetching?.cancel() }
        wake()
    }

    /// How far it is; the longer a survey takes, the older this may be.
    public func report() async -> Progress {
        if now - lastLook.end > max(500, lastLook.length * 10) {
            do throws(CatalogError) { _ = try await survey() } catch { note(error) }
        }
        var report = progress
        for failure in failures.values {
            switch failure.cause {
            case .refused(let reason):
                report.refusals.append(.init(inode: failure.inode, reason: reason))
            case .noRoom: report.withoutRoom[failure.inode] = failure.size
            case .passing: break
            }
        }
        report.refusals.sort { $0.inode < $1.inode }
        if isPaused { report.obstacle = .paused }
        if report.sums.filesMissing == 0 { report.obstacle = nil }
        return report
    }

    /// The keeper's life: returns when its task is cancelled.
    public func run() async {
        await RequestPriority.$current.withValue(.background) {
            wake()
            for await _ in wakeups {
                if Task.isCancelled { break }
                await pass()
            }
        }
        timer?.cancel()
    }

    // MARK: What is to come

    /// Looks at what is to be kept, and fetches what is missing.
    private func pass() async {
        let begin = now
        let due = lastLook.end + lastLook.length * 10
        // More than a minute ahead is a clock that was set back.
        guard begin >= due || due > begin + Self.longestRest else { return wake(at: due) }
        do throws(CatalogError) {
            let (hasEnded, nextEnd) = try await catalog.forgetPastPins(at: begin)
            if hasEnded { await store.evict() }
            if let nextEnd { wake(at: nextEnd) }
            progress.obstacle = nil
            let changes = pinChanges
            let missing = try await survey()
            // The list may name what nobody keeps any longer.
            guard changes == pinChanges else { return wake() }
            guard progress.sums.files > 0 else { return }
            wake(at: now + Self.longestRest)
            guard !isPaused, !missing.isEmpty else { return wakeForFailures() }
            await fetch(missing)
        } catch {
            note(error)
            return wake(at: now + Self.longestRest)
        }
        wakeForFailures()
        guard hasBrought else { return }
        hasBrought = false
        // A file that is not stored yet would be taken for missing.
        await store.save()
        lastLook.length = min(lastLook.length, 100)
        wake()
    }

    /// Surveys all that is to be kept; returns the files of it to fetch now.
    private func survey() async throws(CatalogError) -> [KeptFile] {
        let begin = now
        for (key, failure) in failures where try !isKept(failure.inode, key, at: begin) {
            failures[key] = nil
        }
        let waiting = failures.filter { WaitMoment.wait(until: $0.value.next, now: begin) != nil }
            .mapValues(\.next)
        let account = account
        let changes = pinChanges
        let found = try await catalog.surveyKept(of: account, at: begin, limit: Self.batch) {
            waiting[ContentKey(account: account, item: $0.item, revision: $0.revision)] == nil
        }
        progress.sums = found.sums
        guard changes == pinChanges else { return found.missing }
        let end = now
        lastLook = (end, max(end - begin, 0))
        return found.missing
    }

    /// Whether a file that did not come is still to be kept, in this revision.
    private func isKept(
        _ inode: Inode,
        _ key: ContentKey,
        at moment: Int64
    ) throws(CatalogError) -> Bool {
        guard let node = try catalog.knownNode(inode), node.parent != nil,
            // Of unsent content, the rest is of the revision that its writer had.
            node.staged != nil
                || (node.kind == .nativeDocument ? node.exportRevision : node.revision)
                    == key.revision
        else { return false }
        return try catalog.nearestPin(of: inode, at: moment) != nil
    }

    private func wakeForFailures() {
        let next = failures.values.map(\.next).min() ?? .max
        if next < .max { wake(at: max(next, now + 1)) }
    }

    // MARK: Fetching

    /// Fetches files, some at a time, until all are here or something hinders all of them.
    private func fetch(_ files: [KeptFile]) async {
        // Owned by this call, which waits for it; a pause or another pin ends it.
        let task = Task { await self.fetchAll(files) }
        fetching = task
        await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        fetching = nil
    }

    private func fetchAll(_ files: [KeptFile]) async {
        await withTaskGroup { group in
            var rest = files.makeIterator()
            for _ in 0..<Self.atOnce {
                guard let file = rest.next() else { break }
                group.addTask { await self.fetch(file) }
            }
            for await _ in group {
                guard !Task.isCancelled, progress.obstacle == nil, let file = rest.next() else {
                    continue
                }
                group.addTask { await self.fetch(file) }
            }
        }
    }

    private func fetch(_ file: KeptFile) async {
        let key = ContentKey(account: account, item: file.item, revision: file.revision)
        guard file.isReadable else {
            return fail(key, file, .refused("the account may not read it"), after: .max)
        }
        let others = underWay.values.reduce(0, +)
        underWay[key] = file.size
        defer { underWay[key] = nil }
        do throws(ContentError) {
            if file.isExported {
                try await export(key, file)
            } else {
                try await store.bring(
                    key,
                    size: file.size,
                    hash: file.hash,
                    besides: others,
                    .background
                )
            }
        } catch { return await failed(key, file, error) }
        failures[key] = nil
        offlineTries = 0
        hasBrought = true
    }

    /// Keeps a document in the form in which it is shown.
    private func export(_ key: ContentKey, _ file: KeptFile) async throws(ContentError) {
        let content = try await store.export(key)
        defer { store.close(content) }
        guard content.size != file.size else { return }
        do throws(CatalogError) {
            try catalog.learn(size: content.size, target: nil, of: file.inode)
        } catch { throw ContentError.catalog(detail: "\(error)") }
    }

    // MARK: What fails

    private func failed(_ key: ContentKey, _ file: KeptFile, _ error: ContentError) async {
        logger.info(
            "a file that is to be kept did not come",
            metadata: ["inode": "\(file.inode)", "cause": "\(error)"]
        )
        switch error {
        case .fetch(let cause): await failed(key, file, cause)
        case .noSpace: fail(key, file, .noRoom, after: Self.longestRest)
        case .tooLarge, .damaged: fail(key, file, .refused("\(error)"), after: refusalInterval)
        case .disk, .catalog:
            progress.obstacle = .disk("\(error)")
            wake(at: now + Self.longestRest)
        }
    }

    private func failed(_ key: ContentKey, _ file: KeptFile, _ error: ProviderError) async {
        switch error.kind {
        case .cancelled: break
        case .offline:
            progress.obstacle = .offline
            offlineTries = min(offlineTries + 1, 20)
            let longest = settings.longestOfflineWait.inMilliseconds
            wake(at: now + min(1000 << offlineTries, longest))
        case .signedOut, .clientRefused:
            progress.obstacle = .signedOut
            wake(at: now + Self.longestRest)
        case .notFound, .preconditionFailed:
            // The service has another revision by now, which the feed will report at the latest.
            await look(file.inode)
            failAgain(key, file, "the service no longer has what it reported of it")
        case .contentDamaged:
            fail(key, file, .refused("the service gives damaged bytes"), after: refusalInterval)
        case .localContent:
            progress.obstacle = .disk(error.detail)
            wake(at: now + Self.longestRest)
        default:
            if error.isLastingRefusal {
                fail(key, file, .refused(error.detail), after: .max)
            } else {
                failAgain(key, file, error.detail)
            }
        }
    }

    /// Notes that a file did not come but may the next time; reported after `mostTries`.
    private func failAgain(_ key: ContentKey, _ file: KeptFile, _ reason: String) {
        let count = (failures[key]?.count ?? 0) + 1
        let wait = min(5000 << min(count, 20), refusalInterval)
        fail(key, file, count < Self.mostTries ? .passing : .refused(reason), after: wait)
    }

    /// Notes that a file did not come; `wait` in milliseconds, `.max` until something changes.
    private func fail(
        _ key: ContentKey,
        _ file: KeptFile,
        _ cause: Failure.Cause,
        after wait: Int64
    ) {
        failures[key] = Failure(
            inode: file.inode,
            size: file.size,
            cause: cause,
            count: (failures[key]?.count ?? 0) + 1,
            next: wait == .max ? .max : now + wait
        )
    }

    private func note(_ error: CatalogError) {
        progress.obstacle = .disk("\(error)")
        logger.error("what is to be kept could not be read", metadata: ["cause": "\(error)"])
    }

    private var refusalInterval: Int64 { settings.refusalInterval.inMilliseconds }

    // MARK: Time

    private var now: Int64 { Timestamp.now.inMilliseconds }

    /// Looks again at a moment, milliseconds since 1970, unless something does so earlier.
    private func wake(at moment: Int64) {
        guard moment < timerEnd else { return }
        timerEnd = moment
        timer?.cancel()
        // Owned by the keeper: replaced by an earlier one, cancelled at the end of `run`. The clock on
        // the wall counts, also through a sleep of the machine's.
        let longest = max(moment - now, 0) + 60_000
        timer = Task {
            // A moment that is farther away than before has come: the clock was set back.
            while now < moment, moment - now <= longest {
                let left = max(min(moment - now, 30_000), 1)
                guard (try? await clock.sleep(for: .milliseconds(left))) != nil else { return }
            }
            timerEnd = .max
            wake()
        }
    }
}
