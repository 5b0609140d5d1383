import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortPlanner

/// Work for the service: planned, and carried out as far as may be under way at once.
extension SyncEngine {
    /// Plans and sends for as long as the engine lives.
    func pushLoop() async {
        await withTaskGroup { group in
            waker.yield()
            for await _ in wakeups {
                if Task.isCancelled { break }
                defer { tellWatchers() }
                guard isIdentified, !settings.isReadOnly || needsPlan else { continue }
                if case .signedOut = trouble { continue }
                if !isPaused {
                    for round in await unansweredRounds() {
                        group.addTask { await self.interruptibly { await self.resolve(round) } }
                    }
                }
                let plans = queue.number
                await planIfNeeded()
                if queue.number != plans {
                    // What programs removed and what a merge replaced.
                    group.addTask { [store] in await store.collectGarbage() }
                }
                if isHeld, !feed.hasGrownOld { feed.growsOld(order.next()) }
                guard !isPaused else { continue }
                for content in hashes.next(at: now) {
                    group.addTask { await self.hash(content) }
                }
                while let batch = nextBatch() {
                    group.addTask {
                        guard batch.isLarge else { return await self.perform(batch) }
                        await self.interruptibly { await self.perform(batch) }
                    }
                }
            }
            group.cancelAll()
        }
    }

    private func planIfNeeded() async {
        guard needsPlan || queue.isExhausted, !feed.isMidRun else { return }
        // A plan costs what is pending, and is asked for at every local change.
        let started = now
        // More than a minute ahead is a clock that was set back.
        guard started >= nextPlan || nextPlan > started + 60_000 else {
            return wake(at: nextPlan)
        }
        // While as much is sent as may be, a new plan makes nothing go out sooner.
        if queue.hasWork, (lastPlan...lastPlan + Self.planInterval).contains(started) {
            return wake(at: lastPlan + Self.planInterval)
        }
        if let moment = hashes.delaysPlan(at: started) { return wake(at: moment) }
        defer {
            lastPlan = now
            lastPlanLength = max(lastPlan - started, 0)
            nextPlan = lastPlan + min((lastPlan - started) * 4, 10_000)
        }
        needsPlan = false
        isPlanning = true
        defer { isPlanning = false }
        let provider = provider
        var conditions = PlanningConditions(
            now: now,
            settle: urgentCallers > 0 ? 0 : settings.settle.inMilliseconds,
            hash: { bytes in
                var hasher = provider.makeHasher()
                hasher.update(bytes[...])
                return hasher.finalize()
            }
        )
        conditions.busy = Set(queue.running.keys)
        do throws(CatalogError) {
            let work = try await catalog.plan(account, with: planner, under: conditions)
            queue.load(
                settings.isReadOnly ? [] : work.operations,
                newsNumber: work.newsNumber
            )
            failures.keepStale(of: queue.planned)
            hashes.load(settings.isReadOnly ? [] : work.unhashed)
            if let moment = work.nextMoment, !settings.isReadOnly { wake(at: moment) }
            // This plan left alone what has ended while it was made.
            if !conditions.busy.isSubset(of: queue.running.keys) { planSoon() }
            withholdUnread()
        } catch {
            guard !Task.isCancelled else { return }
            logger.error("the plan could not be made", metadata: ["error": "\(error)"])
            // Until then there is something to plan: nothing is idle.
            needsPlan = true
            wake(at: now + 1000)
        }
    }

    /// Whether an operation is not to go out once anything was heard that its plan did not know: a
    /// deletion takes along what came into the folder, also far below it, and a folder that another
    /// machine made would be made twice.
    private func isSpoiltByNews(_ operation: RemoteOperation) -> Bool {
        operation.action == .delete || isDoubled(operation.action)
    }

    /// Whether it makes a folder that the service would make twice.
    private func isDoubled(_ action: RemoteOperation.Action) -> Bool {
        guard !provider.traits.refusesTakenNames, case .createFolder(let place) = action else {
            return false
        }
        // In a folder that is not there yet nobody has made anything.
        return ask(place.parent) { $0?.remoteID != nil }
    }

    /// Whether the feed is to be read before an operation goes out.
    ///
    /// A folder's deletion: no service can be asked to delete one only if nothing came into it, and what
    /// came while there was no network is not known. And a folder's creation where the service does not
    /// refuse one whose name is taken: another machine may have made it.
    private func restsOnFeed(_ operation: RemoteOperation) -> Bool {
        operation.action == .delete
            ? ask(operation.inode) { $0?.kind == .folder } : isDoubled(operation.action)
    }

    /// Leaves to a later plan what rests on the feed until that was read, and has it read.
    ///
    /// What was read before or while nothing could go out does not count, nor what was read long ago:
    /// others went on meanwhile. While nothing can go out it is not read for that.
    private func withholdUnread() {
        guard !isHeld else { return }
        var planned: Set<Inode> = []
        var oldest: Int64?
        queue.leave { operation in
            guard restsOnFeed(operation) else { return false }
            let inode = operation.inode
            planned.insert(inode)
            guard let since = feed.waits(inode, at: now, order.next()) else { return false }
            oldest = min(oldest ?? .max, since)
            return true
        }
        feed.keepWaiting(planned)
        guard let oldest else { return }
        // Of what is sent while the feed is read it may tell what was before, and then that has to be
        // asked for.
        let latest = oldest + Self.longestQuietWait
        // A longer wait is of a clock that was set back.
        if (1...Self.longestQuietWait).contains(latest - now), queue.isAnythingUnderWay {
            wake(at: latest)
        } else {
            readFeedSoon()
        }
    }

    /// What a node is, or yes while the catalog cannot be read and nobody can say.
    private func ask(_ inode: Inode, _ question: (Node?) -> Bool) -> Bool {
        do throws(CatalogError) { return question(try catalog.knownNode(inode)) } catch {
            logger.error("the catalog could not be read", metadata: ["error": "\(error)"])
            return true
        }
    }

    /// How long what is spoilt by news is tried before they are looked at again.
    private static let longestTry = Duration.seconds(2)

    /// How long the reading of the feed for such an operation waits for what is under way,
    /// milliseconds.
    private static let longestQuietWait: Int64 = 2000

    /// How long a plan is carried out at least before the next one is made, as long as it holds
    /// anything to begin with, milliseconds.
    private static let planInterval: Int64 = 1000

    // MARK: Hashes

    /// A content is not read any more, however that went.
    private func hashed(_ content: ContentID) {
        if hashes.ended(content, at: now) { planSoon() } else { waker.yield() }
    }

    /// Computes a staged content's hash, for which all of its bytes must be here.
    private func hash(_ content: ContentID) async {
        do throws(ProviderError) {
            let frozen = try await store.freeze(content)
            // Before it is let go: whoever writes from then on makes the hash untrue.
            defer { store.release(frozen) }
            let isStored = try await storedAsync { () throws(CatalogError) in
                try await self.store.recordHash(of: frozen)
            }
            guard isStored else {
                throw ProviderError(.localContent, detail: "the content is not staged")
            }
            hashes.succeeded(content)
            hashed(content)
        } catch {
            guard !Task.isCancelled else { return }
            logger.warning(
                "a content could not be read",
                metadata: ["content": "\(content.rawValue)", "error": "\(error)"]
            )
            // What passes by itself, or may.
            let isPassing = error.isTransient || error.kind == .cancelled
            let wait = isPassing ? backoff(after: 3, error) : settings.refusalInterval
            let moment = now + wait.inMilliseconds
            await cannotHash(
                content,
                PushTrouble(
                    kind: "\(error.kind)",
                    detail: error.detail,
                    nextTry: moment
                )
            )
            wake(at: moment)
            hashed(content)
        }
    }

    /// The user must hear of it: the only copy may be damaged, or lack what the service can no
    /// longer give.
    private func cannotHash(_ content: ContentID, _ trouble: PushTrouble) async {
        do throws(CatalogError) {
            // Whoever has it by now: it may have become a conflict copy's. What is asked of the
            // service for an older content stays asked.
            // Of what was removed meanwhile nothing is sent, and its deletion needs no content.
            guard let node = try catalog.node(staged: content), node.parent != nil else { return }
            if store.lackedRoom(for: content) { roomless.insert(node.inode) }
            try await catalog.failed(node.inode, trouble, isUnknown: true)
        } catch { hashes.delay(content, until: now + 1000) }
    }

    // MARK: Choosing

    private func nextBatch() -> PushQueue.Batch? {
        let now = now
        guard !isHeld else { return nil }
        leaveSpoilt()
        var moment: Int64?
        defer { if let moment { wake(at: moment) } }
        return queue.next(at: now, waitsUntil: &moment)
    }

    /// Once anything was heard, what it spoils is left to the next plan, in place of asking the catalog for
    /// each in vain.
    ///
    /// So is what rests on the feed where nothing was heard for long.
    private func leaveSpoilt() {
        if queue.hears(catalog.newsNumber(of: account)), queue.leave(where: isSpoiltByNews) {
            planSoon()
        }
        if !feed.hasGrownOld, feed.isOld(at: now, planning: lastPlanLength) {
            feed.growsOld(order.next())
        }
        if feed.hasGrownOld, queue.leave(where: restsOnFeed) { planSoon() }
    }

    /// Whether nothing goes out now: the person paused it, or the service is not to be asked.
    private var isHeld: Bool { isPaused || rests }

    // MARK: Carrying out

    private func perform(_ batch: PushQueue.Batch) async {
        let retries = retries
        var requests: [OperationRequest] = []
        var failed: [Inode] = []
        /// What is not to be sent once anything was heard.
        var spoilt: Set<Inode> = []
        for (index, operation) in batch.members {
            let known = isSpoiltByNews(operation) ? batch.newsNumber : nil
            switch await prepare(operation, index: index, newsNumber: known) {
            case .ready(let request):
                if known != nil { spoilt.insert(operation.inode) }
                failures.foundCurrent(operation.inode)
                queue.changes(request.start.item?.id, in: operation.inode)
                requests.append(request)
            case .stale:
                queue.ended(operation.inode)
                if let known, known != catalog.newsNumber(of: account) {
                    needsPlan = true
                } else {
                    foundStale(operation)
                }
            case .failed(let start, let error):
                await conclude(start, of: operation.inode, error)
                failed.append(operation.inode)
                queue.ended(operation.inode)
                needsPlan = true
            }
        }
        // While the others were prepared something may have been heard.
        if batch.newsNumber != catalog.newsNumber(of: account), !spoilt.isEmpty {
            for request in requests where spoilt.contains(request.inode) { await takeBack(request) }
            requests.removeAll { spoilt.contains($0.inode) }
            needsPlan = true
        }
        // What news spoil is not tried for long without them.
        let results = await RequestPatience.$longest.withValue(
            spoilt.isEmpty ? nil : Self.longestTry
        ) {
            await send(requests)
        }
        for (request, result) in zip(requests, results) {
            let isDone = await finish(request, result)
            queue.ended(request.inode)
            if isDone {
                queue.done(request.index, of: batch)
            } else {
                failed.append(request.inode)
                needsPlan = true
            }
        }
        // The cause went while these were under way: another try is due, as of what had failed.
        if retries != self.retries { await retryNow(failed) }
        // What was told meanwhile; who could not be asked now is asked with the next news.
        if feed.owesLooks { await lookAtUnsureAfterwards() }
        // A plan made meanwhile left these items alone.
        if queue.ended(batch) { needsPlan = true }
        waker.yield()
    }

    /// Nothing of it was sent: it is planned for anew.
    private func takeBack(_ request: OperationRequest) async {
        do throws(ProviderError) { try await clear(request.inode) } catch {
            // It is asked for like anything that nobody answered.
            unanswered.mayExist = true
            logger.warning("an operation was not taken back", metadata: ["error": "\(error)"])
        }
        queue.ended(request.inode)
    }

    /// The item is not as the plan saw it: it is planned for anew, but what is never as planned must
    /// not become a loop.
    private func foundStale(_ operation: RemoteOperation) {
        let rounds = failures.foundStale(operation.inode)
        guard rounds > 3 else {
            needsPlan = true
            return
        }
        logger.warning(
            "an operation does not fit the catalog",
            metadata: ["inode": "\(operation.inode)", "operation": "\(operation.action)"]
        )
        nextPlan = now + min(5000, 100 << Int64(min(rounds, 16)))
        wake(at: nextPlan)
    }

    private func send(
        _ requests: [OperationRequest]
    ) async -> [Result<Item?, ProviderError>] {
        guard requests.count > 1 else {
            guard let request = requests.first else { return [] }
            do throws(ProviderError) { return [.success(try await send(request))] } catch {
                return [.failure(error)]
            }
        }
        var folders: [NewFolder] = []
        var uploads: [Upload] = []
        var moves: [Move] = []
        var deletions: [Deletion] = []
        for request in requests {
            switch request.call {
            case .createFolder(let folder): folders.append(folder)
            case .upload(let upload): uploads.append(upload)
            case .move(let move): moves.append(move)
            case .delete(let deletion): deletions.append(deletion)
            case .copy, .setAttributes: break
            }
        }
        func some(_ results: [Result<Item, ProviderError>]) -> [Result<Item?, ProviderError>] {
            results.map { $0.map { $0 } }
        }
        if folders.count == requests.count { return some(await provider.createFolders(folders)) }
        if uploads.count == requests.count { return some(await provider.upload(uploads)) }
        if moves.count == requests.count { return some(await provider.move(moves)) }
        if deletions.count == requests.count {
            return await provider.delete(deletions).map { $0.map { nil } }
        }
        // Copies among uploads: one by one.
        var results: [Result<Item?, ProviderError>] = []
        for request in requests { results += await send([request]) }
        return results
    }
}
