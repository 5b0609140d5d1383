import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortPlanner

/// Work for the service: planned, and carried out as far as requests may be under way at once.
extension SyncEngine {
    /// Plans and sends for as long as the engine lives.
    func pushLoop() async {
        await withDiscardingTaskGroup { group in
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
                    // Contents that programs removed and that a merge replaced.
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
        // A plan's cost grows with what is pending, and every local change asks for one.
        let started = now
        // A moment more than a minute ahead means that the clock was set back.
        guard started >= nextPlan || nextPlan > started + 60_000 else {
            return wake(at: nextPlan)
        }
        // While there is enough to send, a new plan would send nothing sooner.
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
            // This plan left items alone whose operations ended while it was made.
            if !conditions.busy.isSubset(of: queue.running.keys) { planSoon() }
            withholdUnread()
        } catch {
            guard !Task.isCancelled else { return }
            logger.error("the plan could not be made", metadata: ["error": "\(error)"])
            // There is still something to plan: the engine is not idle.
            needsPlan = true
            wake(at: now + 1000)
        }
    }

    /// Whether an operation must not go out after news that its plan did not know: a deletion takes along
    /// what came into the folder, also far below it, and a folder that another machine made would be made
    /// twice.
    private func isSpoiltByNews(_ operation: RemoteOperation) -> Bool {
        operation.action == .delete || isDoubled(operation.action)
    }

    /// Whether an operation creates a folder that the service would create a second time under one name.
    private func isDoubled(_ action: RemoteOperation.Action) -> Bool {
        guard !provider.traits.refusesTakenNames, case .createFolder(let place) = action else {
            return false
        }
        // In a folder that does not exist yet nobody can have made one.
        return ask(place.parent) { $0?.remoteID != nil }
    }

    /// Whether the feed must be read before an operation goes out.
    ///
    /// It must before a folder's deletion: no service can be asked to delete a folder only if nothing came
    /// into it, and what came while there was no network is not known. It must before a folder's creation
    /// where the service does not refuse taken names: another machine may have made it.
    private func restsOnFeed(_ operation: RemoteOperation) -> Bool {
        operation.action == .delete
            ? ask(operation.inode) { $0?.kind == .folder } : isDoubled(operation.action)
    }

    /// Leaves to a later plan the operations for which the feed must be read first, and has it read.
    ///
    /// A reading does not count if it was before or during a time when nothing could go out, or is long
    /// ago: others went on meanwhile. While nothing can go out, the feed is not read for this.
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
        // Of an item that is changed while the feed is read, the feed may report an older state; that item
        // then has to be asked for.
        let latest = oldest + Self.longestQuietWait
        // A longer wait means that the clock was set back.
        if (1...Self.longestQuietWait).contains(latest - now), queue.isAnythingUnderWay {
            wake(at: latest)
        } else {
            readFeedSoon()
        }
    }

    /// The answer to a question about a node; true while the catalog cannot be read.
    private func ask(_ inode: Inode, _ question: (Node?) -> Bool) -> Bool {
        do throws(CatalogError) { return question(try catalog.knownNode(inode)) } catch {
            logger.error("the catalog could not be read", metadata: ["error": "\(error)"])
            return true
        }
    }

    /// How long operations that news would spoil are tried before the news are looked at again.
    private static let longestTry = Duration.seconds(2)

    /// How long a reading of the feed for such an operation waits for operations under way, milliseconds.
    private static let longestQuietWait: Int64 = 2000

    /// How long a plan is carried out at least, while it holds anything that can be begun, before the next
    /// one is made; milliseconds.
    private static let planInterval: Int64 = 1000

    // MARK: Hashes

    /// The reading of a content has ended, with or without success.
    private func hashed(_ content: ContentID) {
        if hashes.ended(content, at: now) { planSoon() } else { waker.yield() }
    }

    /// Computes a staged content's hash, for which all of its bytes must be here.
    private func hash(_ content: ContentID) async {
        let ended = uploadsKept
        do throws(ProviderError) {
            let frozen = try await store.freeze(content)
            // Only after the hash is stored: whoever writes from then on makes it untrue.
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
            // Failures that pass by themselves, or may.
            let isPassing = error.isTransient || error.kind == .cancelled
            let wait = isPassing ? backoff(after: 3, error) : settings.refusalInterval
            let moment = now + wait.inMilliseconds
            await cannotHash(
                content,
                PushTrouble(
                    kind: "\(error.kind)",
                    detail: error.detail,
                    nextTry: moment
                ),
                uploadsKept: ended
            )
            wake(at: moment)
            hashed(content)
        }
    }

    /// The person must learn of it: the only copy may be damaged, or lack bytes that the service can no
    /// longer give.
    ///
    /// `before` is `uploadsKept` as the content's reading began: what lacked room is read again once another
    /// upload has ended, be it meanwhile.
    private func cannotHash(
        _ content: ContentID,
        _ trouble: PushTrouble,
        uploadsKept before: Int
    ) async {
        do throws(CatalogError) {
            // The node that has the content by now, perhaps a conflict copy; an intent for an older content
            // stays. A removed node sends nothing, and its deletion needs no content.
            guard let node = try catalog.node(staged: content), node.parent != nil else { return }
            try await catalog.failed(node.inode, trouble, isUnknown: true)
            guard store.lackedRoom(for: content) else { return }
            roomless.insert(node.inode)
            if uploadsKept != before { await retryRoomless() }
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

    /// Once there is news, leaves the operations that it spoils to the next plan, instead of asking the
    /// catalog about each in vain.
    ///
    /// Operations that depend on the feed are left, too, once its last run is too old.
    private func leaveSpoilt() {
        if queue.hears(catalog.newsNumber(of: account)), queue.leave(where: isSpoiltByNews) {
            planSoon()
        }
        if !feed.hasGrownOld, feed.isOld(at: now, planning: lastPlanLength) {
            feed.growsOld(order.next())
        }
        if feed.hasGrownOld, queue.leave(where: restsOnFeed) { planSoon() }
    }

    /// Whether nothing goes out now: a person paused it, or the engine waits before it asks the service
    /// again.
    private var isHeld: Bool { isPaused || rests }

    // MARK: Carrying out

    private func perform(_ batch: PushQueue.Batch) async {
        let retries = retries
        var requests: [OperationRequest] = []
        var failed: [Inode] = []
        /// The items whose operations must not be sent after news.
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
        // There may be news since the others were prepared.
        if batch.newsNumber != catalog.newsNumber(of: account), !spoilt.isEmpty {
            for request in requests where spoilt.contains(request.inode) { await takeBack(request) }
            requests.removeAll { spoilt.contains($0.inode) }
            needsPlan = true
        }
        // These are not tried for long without a look at the news.
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
        // The cause of a failure may have ended while these were under way: they are retried, like those
        // that had failed before.
        if retries != self.retries { await retryNow(failed) }
        // Items that could not be asked for while these were under way; where that fails, the next news
        // bring it.
        if feed.owesLooks { await lookAtUnsureAfterwards() }
        // A plan that was made meanwhile left these items alone.
        if queue.ended(batch) { needsPlan = true }
        waker.yield()
    }

    /// Gives up an operation of which nothing was sent: it is planned anew.
    private func takeBack(_ request: OperationRequest) async {
        do throws(ProviderError) { try await clear(request.inode) } catch {
            // The service is asked about it, as about any operation without an answer.
            unanswered.mayExist = true
            logger.warning("an operation was not taken back", metadata: ["error": "\(error)"])
        }
        queue.ended(request.inode)
    }

    /// Plans anew for an item that is not as the plan saw it; an item that never is must not cause a busy
    /// loop.
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
