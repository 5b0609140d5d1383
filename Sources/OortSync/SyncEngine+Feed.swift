import Logging
import OortCatalog
import OortModel

/// News from the service.
extension SyncEngine {
    /// Reads the feed for as long as the engine lives.
    func feedLoop() async {
        while !Task.isCancelled {
            do throws(ProviderError) {
                try await identify()
                try await readFeed()
                feed.succeeded()
                try await waitForNews()
            } catch {
                guard !Task.isCancelled else { return }
                switch feed.failed(error) {
                case .beginAnew:
                    logger.notice("the change feed's place is lost: enumerating again")
                case .end: return note(error)
                case .rest(let tries):
                    note(error)
                    await restOfFeed(backoff(after: tries, error))
                }
            }
        }
    }

    /// Waits before the feed is read again; ends early when the service proves to be reachable.
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

    /// Asks whose account it is, once in the engine's life: the tokens may have been replaced by another
    /// person's, and that person must get nothing of what is here.
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
        // The first enumeration may take long: `df` must not show the local disk until it ends, and the
        // enumeration must not wait for the quota.
        let known = try stored { () throws(CatalogError) in try catalog.account(account) }
        if known?.quota == nil { roomIsShown() }
    }

    /// Applies pages until the feed has no more.
    private func readFeed() async throws(ProviderError) {
        feed.begins(order.next(), at: now)
        defer {
            feed.ends()
            order.readsNoPage()
            endWaitsForEnumeration()
        }
        do throws(ProviderError) { try await readPages() } catch {
            await dropPageAhead()
            throw error
        }
        feed.completes(at: now)
        // A later page may have reported what an earlier one left open.
        try await lookAtUnsure()
        planSoon()
        try await readQuotaIfDue()
    }

    /// Applies pages until one is the last; the next one is asked for while a large one is applied.
    private func readPages() async throws(ProviderError) {
        var walk = PageWalk()
        while true {
            let request = try await nextPage()
            order.readsPage(request.began)
            let page = try await request.answer()
            var observations = Observations(changes: page.changes)
            observations.cursor = page.cursor
            observations.untold = page.untold
            observations.enumeration = request.enumeration
            observations.isEnumeration = page.isEnumeration
            observations.endsEnumeration = page.isEnumeration && !page.hasMore
            observations.endsRun = !page.hasMore
            observations.asked = request.moment
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
            _ = try await store(observations, askedFor: request.began)
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
            feed.applied(hasMore: page.hasMore, isEnumeration: page.isEnumeration)
            isReachable()
            guard page.hasMore else { return }
            if let standstill { throw standstill }
        }
    }

    /// The page at the catalog's cursor: the one that was asked for ahead, if it is that one.
    ///
    /// It was asked for before the preceding page was applied. Like any answer, it is judged by the moment
    /// of its request: what changed since then it may not show.
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
        let (began, moment) = (order.next(), now)
        let provider = provider
        // Owned by the run of the feed, which awaits its answer or cancels it and awaits its end.
        let task = Task { @concurrent () -> Result<ChangePage, ProviderError> in
            do throws(ProviderError) {
                return .success(try await provider.changes(since: cursor))
            } catch { return .failure(error) }
        }
        return PageRequest(
            cursor: cursor,
            enumeration: enumeration,
            began: began,
            moment: moment,
            task: task
        )
    }

    /// Cancels the page that was asked for ahead.
    private func dropPageAhead() async {
        guard let ahead = pageAhead else { return }
        pageAhead = nil
        ahead.task.cancel()
        _ = await ahead.task.value
    }

    /// Where the feed goes on; nil when everything is to be enumerated: the enumeration has begun then.
    private func placeInFeed() async throws(ProviderError) -> Cursor? {
        let known = try stored { () throws(CatalogError) in try catalog.account(account) }
        if !feed.hasLostPlace, let cursor = known?.cursor { return cursor }
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.beginEnumeration(of: self.account)
        }
        feed.beganAnew()
        return nil
    }

    /// The number of the enumeration that runs or ran last: an answer to an earlier one's request says
    /// nothing about a later one.
    func enumeration() async throws(ProviderError) -> Int64 {
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.enumeration(of: self.account)
        }
    }

    /// Retries what was refused for these reasons, since the reasons may be gone.
    func retry(_ kinds: [ProviderError.Kind]) async throws(ProviderError) {
        retries += 1
        try await storedAsync { () throws(CatalogError) in
            try await self.catalog.retryNow(self.account, kinds: kinds.map { "\($0)" })
        }
        planSoon()
    }

    /// Whether a page reports a change of any of these items.
    private func concerns(_ changes: [Change], _ items: Set<ItemID>) -> Bool {
        !items.isEmpty
            && changes.contains { change in
                if case .changed(let item) = change { items.contains(item.id) } else { false }
            }
    }

    private func waitForNews() async throws(ProviderError) {
        let interval = settings.pollInterval ?? provider.traits.pollInterval
        while !Task.isCancelled, !feed.isWanted {
            guard
                let cursor = try stored({ () throws(CatalogError) in
                    try catalog.account(account)?.cursor
                })
            else { return }
            let news: FeedNews
            do throws(ProviderError) {
                news = try await waitForNews(since: cursor, atMost: interval)
            } catch {
                if error.kind == .cancelled, feed.isWanted { return }
                guard ![.cancelled, .signedOut, .cursorLost].contains(error.kind) else {
                    throw error
                }
                if feed.isWanted { return }
                // Some services tell that there are news at another host: whether the account can be reached, and
                // what is new, the feed shows. It is read as seldom as if nobody told.
                logger.info(
                    "the service does not say whether there are news",
                    metadata: ["error": "\(error)"]
                )
                await rest(min(backoff(after: feed.waitFailed(), error), interval))
                return
            }
            feed.waitSucceeded()
            switch news {
            case .changed: return
            case .quiet(let backoff):
                isReachable()
                try await readQuotaIfDue()
                if let backoff, (try? await clock.sleep(for: backoff)) == nil { return }
            }
        }
    }

    /// Waits for news; `readFeedSoon` ends the wait.
    private func waitForNews(
        since cursor: Cursor,
        atMost interval: Duration
    ) async throws(ProviderError) -> FeedNews {
        let provider = provider
        let news = await inNewsWait { () throws(ProviderError) in
            try await provider.waitForChanges(since: cursor, atMost: interval)
        }
        return try news.get()
    }

    /// Lets a time pass; `readFeedSoon` ends it.
    private func rest(_ duration: Duration) async {
        let clock = clock
        _ = await inNewsWait { () throws(ProviderError) in
            try? await clock.sleep(for: duration)
            return .changed
        }
    }

    /// Waits in a task that `readFeedSoon` cancels.
    private func inNewsWait(
        _ body: @escaping @Sendable () async throws(ProviderError) -> FeedNews
    ) async -> Result<FeedNews, ProviderError> {
        let wait = Task { () -> Result<FeedNews, ProviderError> in
            do throws(ProviderError) { return .success(try await body()) } catch {
                return .failure(error)
            }
        }
        newsWait = wait
        let result = await withTaskCancellationHandler {
            await wait.value
        } onCancel: {
            wait.cancel()
        }
        newsWait = nil
        return result
    }

    /// Has the feed read without waiting for news; after a failure, not before its pause is over.
    func readFeedSoon() {
        feed.want()
        newsWait?.cancel()
    }
}

/// A page of the feed that was asked for.
struct PageRequest {
    /// Where it begins; nil for the first one of an enumeration.
    var cursor: Cursor?
    /// The enumeration that was the last one when the page was asked for.
    var enumeration: Int64
    /// When it was asked for, as an ordinal and in milliseconds since 1970.
    var began: UInt64
    var moment: Int64
    var task: Task<Result<ChangePage, ProviderError>, Never>

    /// The page's answer; a cancelled caller does not wait for it.
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
