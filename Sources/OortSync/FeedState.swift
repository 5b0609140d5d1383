import OortModel

/// How the reading of the feed stands: whether a run of it is wanted, under way or owed, and what waits
/// for one.
///
/// A run is all pages that the feed has at a time; it is named by the ordinal at which it began
/// (`RequestOrder`). A pure value, which neither reads nor waits; moments are milliseconds since 1970.
struct FeedState {
    /// A folder's deletion or creation, before which the feed has to be read.
    private struct Awaited {
        /// The ordinal at which it was first planned: the feed's run must begin later.
        var ordinal: UInt64
        /// The moment at which it was first planned, milliseconds since 1970.
        var found: Int64
    }

    /// Whether the feed is to be read without waiting for news.
    private(set) var isWanted = false
    /// The run that is under way.
    private var run: UInt64?
    /// The last run that came to its end; below, when it ended and how long it took.
    private(set) var lastRun: UInt64 = 0
    private var lastEnd: Int64 = 0
    private var lastLength: Int64 = 0
    private var began: Int64 = 0
    /// Runs that began before this ordinal are too old for operations that depend on the feed.
    private var oldest: UInt64 = 0
    /// Whether a run is applied in part only: no plan is to be made then.
    private(set) var isMidRun = false
    /// Whether the feed has to be read from its beginning.
    private(set) var hasLostPlace = false
    /// How often the feed's place was lost since the feed was last read to its end.
    private var lostPlaces = 0
    /// How often in a row the feed could not be read.
    private var tries = 0
    /// How often in a row the service did not say whether there are news.
    private var failedWaits = 0
    /// Why the feed could not be read; nil once a page of it could be.
    ///
    /// A service that asks for patience counts as readable.
    private(set) var unreadable: SyncStatus.Trouble?
    /// The folders that the plan deletes, or makes where a name can be taken twice.
    private var awaited: [Inode: Awaited] = [:]
    /// Items that could not be asked for, because an operation of ours was under way on them.
    private var owedLooks: Set<ItemID> = []
    /// Whether the feed has to be read once nothing of ours is under way, because an item may be gone.
    private var owesRun = false

    /// What the feed's reader does after a failure.
    enum NextStep: Equatable {
        /// It reads the feed from its beginning, at once.
        case beginAnew
        /// It pauses as long as after so many failures in a row.
        case rest(tries: Int)
        /// It ends: nothing can be read before the person has signed in.
        case end
    }

    // MARK: Runs

    /// Whether a run is under way.
    var isReading: Bool { run != nil }

    /// Whether no run is under way, wanted, owed or waited for.
    var isQuiet: Bool {
        !isWanted && !isReading && !isMidRun && !owesRun
            && awaited.values.allSatisfy { $0.ordinal <= lastRun }
            && (awaited.isEmpty || !hasGrownOld)
    }

    /// The feed is to be read without waiting for news.
    mutating func want() { isWanted = true }

    /// A run begins.
    mutating func begins(_ run: UInt64, at now: Int64) {
        isWanted = false
        self.run = run
        began = now
    }

    /// A page was stored.
    mutating func applied(hasMore: Bool, isEnumeration: Bool) {
        unreadable = nil
        isMidRun = hasMore && !isEnumeration
    }

    /// All pages of the run were stored.
    mutating func completes(at now: Int64) {
        guard let run else { return }
        lastRun = run
        (lastEnd, lastLength) = (now, max(now - began, 0))
    }

    /// The run is over, however it went.
    mutating func ends() { run = nil }

    /// The feed was read, with all that follows from it.
    mutating func succeeded() { (tries, lostPlaces, unreadable) = (0, 0, nil) }

    /// The feed, or what follows from it, could not be read.
    mutating func failed(_ error: ProviderError) -> NextStep {
        switch error.kind {
        case .rateLimited, .cancelled, .cursorLost: break
        case .localContent: unreadable = .local(error.detail)
        case .malformedAnswer:
            // The answer may come from a network's sign-in page instead of the service.
            unreadable = .offline(
                "look whether the network wants you to log in first: \(error.detail)"
            )
        default: unreadable = .offline(error.detail)
        }
        switch error.kind {
        case .cursorLost:
            (isMidRun, hasLostPlace) = (false, true)
            lostPlaces += 1
            // The place was lost again before the feed was read to its end: a service is not asked for
            // everything again without a pause.
            return lostPlaces > 1 ? .rest(tries: lostPlaces) : .beginAnew
        case .signedOut:
            return .end
        case .clientRefused:
            // This does not pass by itself: the service is asked as seldom as after other refusals.
            tries = max(tries + 1, 6)
        default: tries += 1
        }
        return .rest(tries: tries)
    }

    /// The service did not say whether there are news; how often in a row.
    mutating func waitFailed() -> Int {
        failedWaits += 1
        return failedWaits
    }

    /// The service said whether there are news.
    mutating func waitSucceeded() { failedWaits = 0 }

    /// The pause after the reader's next failure is short again.
    mutating func forgetFailures() { tries = 0 }

    /// The feed is read from its beginning now.
    mutating func beganAnew() { hasLostPlace = false }

    // MARK: What waits for a run

    /// Runs that began before this ordinal no longer count for operations that depend on the feed.
    mutating func growsOld(_ ordinal: UInt64) { oldest = ordinal }

    /// Whether operations that depend on the feed wait for another run.
    var hasGrownOld: Bool { lastRun < oldest }

    /// Whether the last run is too old for operations that depend on the feed.
    ///
    /// The limit grows with the length of a run and of the plan after it (`planning`, milliseconds), so
    /// that there is always time to send something before the next run.
    func isOld(at now: Int64, planning: Int64) -> Bool {
        guard !awaited.isEmpty else { return false }
        // A last run in the future means that the clock was set back.
        return !(0...Self.freshness + 2 * (lastLength + planning)).contains(now - lastEnd)
    }

    /// How long a run's news are fresh, milliseconds: longer than a plan may wait to be made.
    private static let freshness: Int64 = 20_000

    /// When a folder's operation was first planned, while it waits for a run; nil once a run has ended that
    /// began later and is not too old.
    ///
    /// `ordinal` gives one for this moment.
    mutating func waits(
        _ folder: Inode,
        at now: Int64,
        _ ordinal: @autoclosure () -> UInt64
    ) -> Int64? {
        let known = awaited[folder] ?? Awaited(ordinal: ordinal(), found: now)
        awaited[folder] = known
        return lastRun < max(known.ordinal, oldest) ? known.found : nil
    }

    /// A folder's operation was tried and failed: the next try waits for a run of its own.
    mutating func failed(_ folder: Inode) { awaited[folder] = nil }

    /// Folders that no plan names any more wait for nothing.
    mutating func keepWaiting(_ planned: Set<Inode>) {
        if !awaited.isEmpty { awaited = awaited.filter { planned.contains($0.key) } }
    }

    // MARK: What is owed

    /// Whether an item is to be asked for, or the feed to be read, once what is under way has ended.
    var owesLooks: Bool { !owedLooks.isEmpty || owesRun }

    /// An item could not be asked for while an operation of ours was under way on it.
    mutating func owesLook(at item: ItemID) { owedLooks.insert(item) }

    /// All unsure items are being asked for now.
    mutating func looks() { owedLooks = [] }

    /// Notes whether any item may be gone: only a run that begins while nothing of ours is under way can
    /// say.
    ///
    /// - Returns: whether that run is to begin now.
    mutating func needsRun(_ mayBeGone: Bool, isAnythingOpen: Bool) -> Bool {
        owesRun = mayBeGone && isAnythingOpen
        return mayBeGone && !owesRun && !isMidRun
    }
}
