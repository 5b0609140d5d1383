import Logging
import OortCatalog
public import OortModel
import Synchronization

/// News from the service.
extension SyncEngine {
    /// Reads the feed for as long as the engine lives.
    func feedLoop() async {
        while !Task.isCancelled {
            do throws(ProviderError) {
                try await identify()
                try await readFeed()
                feedTries = 0
                try await waitForNews()
            } catch {
                guard !Task.isCancelled else { return }
                if error.kind == .cursorLost {
                    logger.notice("the change feed's place is lost: enumerating again")
                    isMidRun = false
                    lostCursor = true
                    continue
                }
                feedTries += 1
                note(error)
                if case .signedOut = error.kind { return }
                // Nothing that passes by itself: asked again as seldom as other refusals.
                if case .clientRefused = error.kind { feedTries = max(feedTries, 6) }
                await restOfFeed(backoff(after: feedTries, error))
            }
        }
    }

    /// Waits before the feed is read again; not for as long when the service is heard of otherwise.
    private func restOfFeed(_ duration: Duration) async {
        let clock = clock
        let pause = Task { () -> Void in try? await clock.sleep(for: duration) }
        feedPause = pause
        await withTaskCancellationHandler {
            await pause.value
        } onCancel: {
            pause.cancel()
        }
        feedPause = nil
    }

    /// Asks whose account it is, once in the engine's life: the tokens may have been replaced by
    /// somebody else's, to whom nothing of what is here may go.
    func identify() async throws(ProviderError) {
        guard !isIdentified else { return }
        let identity = try await provider.identity()
        do throws(CatalogError) {
            try catalog.setIdentity(identity, of: account)
        } catch .otherPerson {
            let known = try stored { () throws(CatalogError) in try catalog.account(account) }
            let owner = known?.email ?? known?.displayName ?? "another person"
            let other = identity.email ?? identity.displayName
            throw ProviderError(
                .signedOut,
                detail: "this is the account of \(owner), but the tokens are those of \(other)"
            )
        } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
        isIdentified = true
        planSoon()
        // The first enumeration may take long, and `df` is not to tell of the local disk meanwhile; nor
        // does the enumeration wait for it.
        let known = try stored { () throws(CatalogError) in try catalog.account(account) }
        if known?.quota == nil { roomIsShown() }
    }

    /// Applies pages until the feed has no more.
    private func readFeed() async throws(ProviderError) {
        wantsFeed = false
        isReadingFeed = true
        defer {
            (isReadingFeed, oldestPage) = (false, .max)
            endWaitsForEnumeration()
        }
        let run = nextOrdinal()
        do throws(ProviderError) { try await readPages() } catch {
            await dropPageAhead()
            throw error
        }
        lastRun = run
        // A later page may have told what an earlier one left open.
        try await lookAtUnsure()
        planSoon()
        try await readQuotaIfDue()
    }

    /// Applies pages until one is the last; the next one is asked for while a large one is applied.
    private func readPages() async throws(ProviderError) {
        var walk = PageWalk()
        while true {
            let request = try await nextPage()
            oldestPage = request.began
            let page = try await request.answer()
            var observations = Observations(changes: page.changes)
            observations.cursor = page.cursor
            observations.untold = page.untold
            observations.enumeration = request.enumeration
            observations.endsEnumeration = page.isEnumeration && !page.hasMore
            observations.endsRun = !page.hasMore
            observations.suspects = suspects(since: request.began)
            var standstill: ProviderError?
            if page.hasMore {
                // A feed that stands still is asked again as seldom as one that cannot be read.
                do throws(ProviderError) { try walk.goOn(to: page.cursor.rawValue) } catch {
                    standstill = error
                }
            }
            if page.hasMore, standstill == nil, page.changes.count >= settings.largePage {
                pageAhead = ask(since: page.cursor, request.enumeration)
            }
            _ = try await storedAsync { [observations] () throws(CatalogError) in
                try await self.catalog.apply(observations, to: self.account)
            }
            provider.hasStored(upTo: page.cursor)
            if observations.endsEnumeration { endWaitsForEnumeration() }
            if !page.changes.isEmpty {
                roomWatch.heardNews()
                planSoon()
            }
            if concerns(page.changes, denials) {
                denials = []
                try await retry([.noPermission])
            }
            isMidRun = page.hasMore && !page.isEnumeration
            isReachable()
            guard page.hasMore else { return }
            if let standstill { throw standstill }
        }
    }

    /// The page where the catalog says that the feed goes on: the one that was asked for ahead, where it
    /// is that.
    ///
    /// It was asked for before the page that leads to it was applied. What it says of anything that
    /// changed since is judged by the moment when it was asked for, as of any request.
    private func nextPage() async throws(ProviderError) -> PageRequest {
        let cursor = try await placeInFeed()
        let enumeration = try await enumeration()
        if let ahead = pageAhead, ahead.cursor == cursor, ahead.enumeration == enumeration {
            pageAhead = nil
            return ahead
        }
        await dropPageAhead()
        return ask(since: cursor, enumeration)
    }

    /// Asks for a page, from now on; it is decoded beside the engine.
    private func ask(since cursor: Cursor?, _ enumeration: Int64) -> PageRequest {
        let began = nextOrdinal()
        let provider = provider
        // Owned by the run of the feed, which awaits its answer or cancels it and awaits its end.
        let task = Task { @concurrent () -> Result<ChangePage, ProviderError> in
            do throws(ProviderError) {
                return .success(try await provider.changes(since: cursor))
            } catch { return .failure(error) }
        }
        return PageRequest(cursor: cursor, enumeration: enumeration, began: began, task: task)
    }

    /// The page that was asked for ahead is not wanted.
    private func dropPageAhead() async {
        guard let ahead = pageAhead else { return }
        pageAhead = nil
        ahead.task.cancel()
        _ = await ahead.task.value
    }

    /// Where the feed goes on; nil when everything is to be enumerated, which has begun then.
    private func placeInFeed() async throws(ProviderError) -> Cursor? {
        let known = try stored { () throws(CatalogError) in try catalog.account(account) }
        if !lostCursor, let cursor = known?.cursor { return cursor }
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.beginEnumeration(of: self.account)
        }
        lostCursor = false
        return nil
    }

    /// The enumeration that runs or ran last: what was asked for before another one began says
    /// nothing after that.
    func enumeration() async throws(ProviderError) -> Int64 {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.enumeration(of: self.account)
        }
    }

    /// Asks for the account's room when it may have changed, and for as long as something waits for
    /// room: more of it comes without any change of the tree.
    private func readQuotaIfDue() async throws(ProviderError) {
        if roomWatch.isDue(at: now) { return try await readQuota() }
        let awaitsRoom = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.hasRefused(
                self.account,
                kind: "\(ProviderError.Kind.quotaExceeded)"
            )
        }
        if awaitsRoom { try await readQuota() }
    }

    /// Asks for the account's room; where there is more of it, what had none is sent.
    ///
    /// - Throws: where the catalog cannot be read or written; a service that does not tell is asked again.
    private func readQuota() async throws(ProviderError) {
        roomWatch.asks(at: now)
        let quota: Quota
        do throws(ProviderError) { quota = try await provider.quota() } catch {
            logger.info("the account's room is not known", metadata: ["error": "\(error)"])
            // A service that cannot say does not learn to with the next news.
            if error.kind != .unsupported { roomWatch.failed() }
            return
        }
        let old = try stored { () throws(CatalogError) in
            let old = try catalog.account(account)?.quota
            try catalog.setQuota(quota, of: account)
            return old
        }
        guard let old, old.used > quota.used || old.total != quota.total else { return }
        try await retry([.quotaExceeded])
    }

    /// Somebody looks at the account's room (`statfs`): it is asked for behind that where what is
    /// known is old.
    ///
    /// Returns at once, from any thread.
    public nonisolated func roomIsShown() {
        // One task at a time, which ends with its one call.
        guard !isLookingAtRoom.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { await RequestPriority.$current.withValue(.background) { await self.lookAtRoom() } }
    }

    private func lookAtRoom() async {
        defer { isLookingAtRoom.store(false, ordering: .releasing) }
        // Before it is known whose account it is, nothing is asked of it.
        guard isIdentified, roomWatch.isDueWhenShown(at: now) else { return }
        do throws(ProviderError) { try await readQuota() } catch { note(error) }
    }

    /// What was refused for these reasons is tried again, since the reasons may be gone.
    private func retry(_ kinds: [ProviderError.Kind]) async throws(ProviderError) {
        retries += 1
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.retryNow(self.account, kinds: kinds.map { "\($0)" })
        }
        planSoon()
    }

    /// Whether a page tells anything of some items.
    private func concerns(_ changes: [Change], _ items: Set<ItemID>) -> Bool {
        !items.isEmpty
            && changes.contains { change in
                if case .changed(let item) = change { items.contains(item.id) } else { false }
            }
    }

    private func waitForNews() async throws(ProviderError) {
        let interval = settings.pollInterval ?? provider.traits.pollInterval
        while !Task.isCancelled, !wantsFeed {
            guard
                let cursor = try stored({ () throws(CatalogError) in
                    try catalog.account(account)?.cursor
                })
            else { return }
            let news: FeedNews
            do throws(ProviderError) {
                news = try await waitForNews(since: cursor, atMost: interval)
            } catch {
                if error.kind == .cancelled, wantsFeed { return }
                throw error
            }
            switch news {
            case .changed: return
            case .quiet(let backoff):
                isReachable()
                try await readQuotaIfDue()
                if let backoff, (try? await clock.sleep(for: backoff)) == nil { return }
            }
        }
    }

    /// A wait that `readFeedSoon` ends.
    private func waitForNews(
        since cursor: Cursor,
        atMost interval: Duration
    ) async throws(ProviderError) -> FeedNews {
        let provider = provider
        let wait = Task { () -> Result<FeedNews, ProviderError> in
            do throws(ProviderError) {
                return .success(
                    try await provider.waitForChanges(since: cursor, atMost: interval)
                )
            } catch { return .failure(error) }
        }
        newsWait = wait
        let result = await withTaskCancellationHandler {
            await wait.value
        } onCancel: {
            wait.cancel()
        }
        newsWait = nil
        return try result.get()
    }

    /// Has the feed read without waiting for news; not before the time where it failed.
    func readFeedSoon() {
        wantsFeed = true
        newsWait?.cancel()
    }

    /// The items that we changed after a request began, or are changing: an operation may end before
    /// what the request told is stored.
    func suspects(since began: UInt64) -> Set<ItemID> {
        var found = Set(runningItems.values)
        for (id, when) in touched where when >= began { found.insert(id) }
        // What is older than any request in flight can be forgotten.
        let oldest = min(began, oldestPage)
        if touched.count > 10_000 { touched = touched.filter { $0.value + 1000 > oldest } }
        return found
    }

    /// Asks by themselves for the items of which something was told that may be old; where that
    /// fails they stay to be asked for, over restarts, too.
    ///
    /// Many of one folder cost one listing.
    func lookAtUnsure() async throws(ProviderError) {
        owedLooks = []
        let items = try await unsureItems()
        if !items.isEmpty {
            // Also where it fails: some of them may have been told by then.
            defer { needsPlan = true }
            try await look(at: items)
        }
        // Only a run of the feed tells what became of what lies in a folder that may be gone; one
        // that is begun while an operation changes it tells nothing for certain.
        let mayBeGone = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.hasAnyThatMayBeGone(self.account)
        }
        owesRun = mayBeGone && (!running.isEmpty || hasOpenIntents || isResolving)
        if mayBeGone, !owesRun, !isMidRun { readFeedSoon() }
    }

    private func look(at items: [Catalog.UnsureItem]) async throws(ProviderError) {
        var counts: [Inode: Int] = [:]
        for case let folder? in items.map(\.folder) { counts[folder, default: 0] += 1 }
        let crowded = counts.filter { $0.value > Self.mostLooksInFolder }.map(\.key).sorted()
        var unlisted: Set<ItemID> = []
        for folder in crowded {
            do throws(ProviderError) { try await readListing(folder) } catch {
                guard error.isLastingRefusal else { throw error }
                continue
            }
            for item in items where item.folder == folder && !item.isKnown {
                unlisted.insert(item.id)
            }
        }
        // What a listing did not name may lie elsewhere now.
        for item in crowded.isEmpty ? items : try await unsureItems() {
            if let reference = item.reference, item.isKnown || !unlisted.contains(item.id) {
                do throws(ProviderError) { try await look(at: reference) } catch {
                    // It stays to be asked for with the next news; nothing else waits for it.
                    guard error.isLastingRefusal else { throw error }
                    logger.notice(
                        "what an item is like is not told",
                        metadata: ["item": "\(reference.id)", "error": "\(error)"]
                    )
                }
                continue
            }
            // What was never here and is not where it was told is gone, or the feed will tell where
            // it is; or not even an operation of ours, whose answer would tell the id, can bring it.
            guard item.reference != nil || inFlight == 0 && !hasOpenIntents else { continue }
            try await storedAsync { () throws(CatalogError) in
                try await self.catalog.forgetUnsure(of: item.id, in: self.account)
            }
        }
    }

    /// How many items of a folder are asked for one by one; a listing of the folder costs as much
    /// as several.
    private static let mostLooksInFolder = 8

    private func unsureItems() async throws(ProviderError) -> [Catalog.UnsureItem] {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.unsureItems(of: self.account)
        }
    }

    /// Asks the service for one item at once: a reader found that its revision is gone.
    ///
    /// - Throws: `ProviderError` when the service did not tell; the item is as it was.
    public func look(at inode: Inode) async throws(ProviderError) {
        // Of what is somebody else's nothing would be found.
        try await identify()
        let known = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.reference(to: inode)
        }
        guard let known else { return }
        try await look(at: known)
        planSoon()
    }

    /// Asks for one item; only a positive answer is "gone".
    func look(at reference: ItemReference) async throws(ProviderError) {
        for _ in 0..<3 {
            let enumeration = try await enumeration()
            let began = nextOrdinal()
            let change: Change
            do throws(ProviderError) {
                change = .changed(try await provider.item(reference))
            } catch {
                guard error.kind == .notFound else { throw error }
                change = .removed(reference.id)
            }
            var observations = Observations(changes: [change])
            // A page of the feed may be half of a move whose other half is still to come.
            observations.endsRun = false
            observations.enumeration = enumeration
            observations.suspects = suspects(since: began)
            if case .removed(let id) = change { try missed(id) }
            let unsure = try await storedAsync { [observations] () throws(CatalogError) in
                try await self.catalog.apply(observations, to: self.account)
            }
            guard let unsure else { continue }
            guard unsure.contains(reference.id) else { return }
            // An operation of ours is under way on it: it is asked for afterwards.
            let known = try stored { () throws(CatalogError) in
                try catalog.node(remoteID: reference.id, account: account)
            }
            if let known, running[known.inode] != nil { break }
        }
        owedLooks.insert(reference.id)
    }

    /// An item is not found: of a folder the next run of the feed tells what lay in it, one that is
    /// asked for from now on.
    private func missed(_ id: ItemID) throws(ProviderError) {
        let known = try stored { () throws(CatalogError) in
            try catalog.node(remoteID: id, account: account)
        }
        guard known?.kind == .folder else { return }
        touched[id] = nextOrdinal()
        readFeedSoon()
    }

    /// Lists a folder that is opened before the enumeration got there; callers for one folder share
    /// one listing.
    ///
    /// - Throws: `ProviderError` when the service did not tell; the folder is as it was.
    public func list(_ folder: Inode) async throws(ProviderError) {
        if let known = listings[folder] { return try await known.value.get() }
        // Owned by `listings`; it ends by itself, and one waiter's leaving does not end it.
        let task = Task { () -> Result<Void, ProviderError> in
            do throws(ProviderError) {
                try await self.readListingAlone(folder)
                return .success(())
            } catch { return .failure(error) }
        }
        listings[folder] = task
        let result = await task.value
        listings[folder] = nil
        try result.get()
    }

    private func readListingAlone(_ folder: Inode) async throws(ProviderError) {
        try await identify()
        if try await isToldByEnumeration() { return }
        let began = uptime()
        patience.listed.start(at: began)
        defer {
            patience.listed.stop(at: uptime())
        }
        try await readListing(folder)
        patience.last = uptime() - began
        try await lookAtUnsure()
        planSoon()
    }

    /// Waits for the enumeration that is under way, as long as listings have taken beside it so far.
    ///
    /// Whoever walks the whole tree lists it folder by folder beside an enumeration that tells all of it
    /// in fewer calls, and takes the line from it. How long that goes on nobody knows; so in all never
    /// more is waited than was listed, and a walk takes at most twice as long as without.
    ///
    /// - Returns: whether it came to its end, and all is known now.
    private func isToldByEnumeration() async throws(ProviderError) -> Bool {
        let left = patience.left(at: uptime())
        guard isReadingFeed, left > .zero, try !isEnumerated() else { return false }
        let (ends, end) = AsyncStream<Void>.makeStream()
        patience.lastWait += 1
        let number = patience.lastWait
        patience.waits[number] = end
        patience.waited.start(at: uptime())
        let clock = clock
        // Cancelled below.
        let timer = Task {
            try? await clock.sleep(for: left)
            end.finish()
        }
        for await _ in ends {}
        timer.cancel()
        patience.waits[number] = nil
        patience.waited.stop(at: uptime())
        return try isEnumerated()
    }

    private func isEnumerated() throws(ProviderError) -> Bool {
        try stored { () throws(CatalogError) in try catalog.isEnumerated(account) }
    }

    /// Who waits for the enumeration looks again: it is over, or does not go on now.
    private func endWaitsForEnumeration() {
        for wait in patience.waits.values { wait.finish() }
    }

    private func readListing(_ folder: Inode) async throws(ProviderError) {
        let reference = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.reference(to: folder)
        }
        guard let reference else { return }
        while try await !readListing(folder, by: reference) {}
        isReachable()
    }

    /// - Returns: false when an enumeration began meanwhile, and the folder must be listed again.
    private func readListing(
        _ folder: Inode,
        by reference: ItemReference
    ) async throws(ProviderError) -> Bool {
        let enumeration = try await enumeration()
        let began = nextOrdinal()
        var items: [Item] = []
        var token: PageToken?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token.rawValue) }
            let page = try await provider.children(of: reference, page: token)
            items += page.items
            token = page.next
        } while token != nil
        var observations = Observations(changes: items.map { .changed($0) })
        observations.folder = folder
        observations.endsRun = false
        observations.enumeration = enumeration
        observations.suspects = suspects(since: began)
        let applied = try await storedAsync { [observations] () throws(CatalogError) in
            try await self.catalog.apply(observations, to: self.account)
        }
        return applied != nil
    }

    // MARK: Trouble

    func isReachable() {
        offlineTries = 0
        pausedUntil = 0
        guard trouble != nil else { return }
        trouble = nil
        feedPause?.cancel()
        keepTrouble(nil)
        planSoon()
    }

    /// Stores the trouble for the commands that look while no mount runs.
    private func keepTrouble(_ words: String?) {
        do throws(CatalogError) { try catalog.setTrouble(words, of: account) } catch {
            logger.error("the account's trouble was not stored", metadata: ["error": "\(error)"])
        }
    }

    /// Asks for what is unsure after an operation: what cannot be asked for now stays unsure, and is
    /// asked for with the next news.
    func lookAtUnsureAfterwards() async {
        do throws(ProviderError) { try await lookAtUnsure() } catch { note(error) }
    }

    /// What an error says of the account as a whole.
    func note(_ error: ProviderError) {
        switch error.kind {
        case .signedOut:
            trouble = .signedOut(error.detail)
            keepTrouble("signed out: sign in again (\(error.detail))")
        case .clientRefused:
            trouble = .clientRefused(error.detail)
            pausedUntil = now + settings.refusalInterval.inMilliseconds
            wake(at: pausedUntil)
        case .offline:
            trouble = .offline
            offlineTries += 1
            pausedUntil = now + backoff(after: offlineTries, error).inMilliseconds
            wake(at: pausedUntil)
        default: break
        }
        tellWatchers()
        logger.notice("the service cannot be used for now", metadata: ["error": "\(error)"])
    }

    /// How long to wait after so many failures: doubled each time, never the same for all.
    func backoff(after tries: Int, _ error: ProviderError) -> Duration {
        if let asked = error.retryAfter { return asked }
        // To ask whether the network is there again costs the service nothing.
        let bound = error.kind == .offline ? settings.longestOfflineWait : settings.longestBackoff
        let longest = min(
            bound,
            .seconds(1) * (1 << min(max(tries - 1, 0), 12))
        )
        return longest * Double.random(in: 0.5...1)
    }

    /// Translates the catalog's errors once: a fault of the local disk.
    func stored<T>(_ body: () throws(CatalogError) -> T) throws(ProviderError) -> T {
        do throws(CatalogError) { return try body() } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
    }

    func storedAsync<T: Sendable>(
        _ body: () async throws(CatalogError) -> T
    ) async throws(ProviderError) -> T {
        do throws(CatalogError) { return try await body() } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
    }
}

/// A page of the feed that was asked for.
struct PageRequest {
    /// Where it begins; nil for the first one of an enumeration.
    var cursor: Cursor?
    /// The enumeration that ran or had run when it was asked for.
    var enumeration: Int64
    /// When it was asked for.
    var began: UInt64
    var task: Task<Result<ChangePage, ProviderError>, Never>

    /// Its answer; who is cancelled does not wait for it.
    fileprivate func answer() async throws(ProviderError) -> ChangePage {
        let task = task
        let result = await withTaskCancellationHandler {
            await task.value
        } onCancel: {
            task.cancel()
        }
        return try result.get()
    }
}
