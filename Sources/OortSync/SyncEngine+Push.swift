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
                if !isPaused { await resolveIntents() }
                let plans = planNumber
                await planIfNeeded()
                if planNumber != plans {
                    // What programs removed and what a merge replaced.
                    group.addTask { [store] in await store.collectGarbage() }
                }
                guard !isPaused else { continue }
                for content in contentsToHash() {
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
        let isExhausted = inFlight == 0 && !operations.isEmpty
        guard needsPlan || isExhausted, !isMidRun else { return }
        // A plan costs what is pending, and is asked for at every local change.
        let started = now
        // More than a minute ahead is a clock that was set back.
        guard started >= nextPlan || nextPlan > started + 60_000 else {
            return wake(at: nextPlan)
        }
        // While as much is sent as may be, a new plan makes nothing go out sooner.
        if hasWork, (lastPlan...lastPlan + Self.planInterval).contains(started) {
            return wake(at: lastPlan + Self.planInterval)
        }
        // Small contents that are hashed one after the other are to go up in the same calls; one
        // that takes long (its bytes have to be fetched) holds nothing up.
        if isHashingSmall, newHashes < mostNewHashes,
            (lastHash...lastHash + 1000).contains(started)
        {
            return wake(at: lastHash + 1000)
        }
        defer {
            lastPlan = now
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
        conditions.busy = Set(running.keys)
        do throws(CatalogError) {
            let work = try await catalog.plan(account, with: planner, under: conditions)
            planNumber += 1
            plannedNews = work.newsNumber
            leftNews = plannedNews
            operations = settings.isReadOnly ? [] : work.operations
            isStarted = Array(repeating: false, count: operations.count)
            if !staleRounds.isEmpty {
                // What is not planned for any more is not waited for.
                let planned = Set(operations.map(\.inode))
                staleRounds = staleRounds.filter { planned.contains($0.key) }
            }
            isDone = isStarted
            firstUnstarted = 0
            unhashed = settings.isReadOnly ? [] : work.unhashed.sorted { $0.size > $1.size }
            newHashes = 0
            if let moment = work.nextMoment, !settings.isReadOnly { wake(at: moment) }
            // This plan left alone what has ended while it was made.
            if !conditions.busy.isSubset(of: running.keys) { planSoon() }
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

    /// Before a folder is deleted the feed is read once more: no service can be asked to delete one
    /// only if nothing came into it, and what came while there was no network is not known.
    ///
    /// So it is before a folder is made where the service does not refuse one whose name is taken:
    /// another machine may have made it.
    private func withholdUnread() {
        var found: [Inode: AwaitedRun] = [:]
        var oldest: Int64?
        for index in operations.indices {
            let inode = operations[index].inode
            if operations[index].action == .delete {
                guard ask(inode, { $0?.kind == .folder }) else { continue }
            } else {
                guard isDoubled(operations[index].action) else { continue }
            }
            let awaited = awaitedRuns[inode] ?? AwaitedRun(ordinal: nextOrdinal(), found: now)
            found[inode] = awaited
            guard lastRun < awaited.ordinal else { continue }
            isStarted[index] = true
            oldest = min(oldest ?? .max, awaited.found)
        }
        awaitedRuns = found
        guard let oldest else { return }
        // Of what is sent while the feed is read it may tell what was before, and then that has to be
        // asked for.
        let latest = oldest + Self.longestQuietWait
        // A longer wait is of a clock that was set back.
        if (1...Self.longestQuietWait).contains(latest - now), isAnythingUnderWay {
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

    /// How long the reading of the feed for such an operation waits for what is under way,
    /// milliseconds.
    private static let longestQuietWait: Int64 = 2000

    /// How long a plan is carried out at least before the next one is made, as long as it holds
    /// anything to begin with, milliseconds.
    private static let planInterval: Int64 = 1000

    /// Whether anything is asked of the service, or will be at once.
    private var isAnythingUnderWay: Bool { inFlight > 0 || hasWork }

    /// Whether the plan holds something that can be begun.
    private var hasWork: Bool {
        operations.indices.suffix(from: firstUnstarted).contains { index in
            !isStarted[index] && operations[index].after.allSatisfy { isDone[$0] }
        }
    }

    // MARK: Hashes

    private func contentsToHash() -> [ContentID] {
        let now = now
        var new: [ContentID] = []
        while hashing.count < 4, let next = unhashed.popLast() {
            // A failure that could not be stored is listed again by every plan.
            guard nextHashes[next.content] ?? 0 <= now, hashing[next.content] == nil else {
                continue
            }
            hashing[next.content] = next.size
            lastHash = now
            new.append(next.content)
        }
        return new
    }

    /// After how many hashes a plan is made, though more are under way: as many as fill all calls
    /// that may be under way, and no more than are worth waiting for.
    private var mostNewHashes: Int {
        min(1000, provider.traits.batchSizes.upload * provider.traits.maximumWritesInFlight)
    }

    private var isHashingSmall: Bool {
        hashing.values.contains { $0 <= smallUpload }
            || unhashed.last.map { $0.size <= smallUpload } ?? false
    }

    /// Plans once for many small contents, so that they go up in as few calls as can be, but lets
    /// nothing small wait for something large.
    private func hashed(_ content: ContentID) {
        hashing[content] = nil
        newHashes += 1
        lastHash = now
        if !isHashingSmall || newHashes >= mostNewHashes { planSoon() } else { waker.yield() }
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
            nextHashes[content] = nil
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
            try await catalog.failed(node.inode, trouble, isUnknown: true)
        } catch { nextHashes[content] = now + 1000 }
    }

    // MARK: Choosing

    /// One operation, or several of a kind that the service takes in one call.
    struct Batch: Sendable {
        var plan: UInt64
        /// What its plan knew (`PlannedWork.newsNumber`).
        var newsNumber: UInt64
        var members: [(index: Int, operation: RemoteOperation)] = []
        /// Whether no more goes into it.
        var isFull = false
        /// Whether it is one large content.
        var isLarge = false
        /// Whether it is of small contents that share calls.
        var isUploadBatch = false
        /// The engine's count of `retries` when it was begun.
        var retries: UInt64
    }

    private func nextBatch() -> Batch? {
        let now = now
        guard inFlight < max(1, provider.traits.maximumWritesInFlight), pausedUntil <= now else {
            return nil
        }
        leaveSpoilt()
        while firstUnstarted < operations.count, isStarted[firstUnstarted] { firstUnstarted += 1 }
        var choice = self.choice { _ in true }
        // While one is under way, more come to share the calls of the next one.
        let latest = lastUploadBatch + Self.longestFilling
        if choice.isUploadBatch, !choice.isFull, uploadBatches > 0,
            (lastUploadBatch..<latest).contains(now)
        {
            wake(at: latest)
            choice = self.choice { !isBatchedUpload($0) }
        }
        guard !choice.members.isEmpty else { return nil }
        for member in choice.members {
            isStarted[member.index] = true
            running[member.operation.inode] = SyncStatus.Transfer(
                inode: member.operation.inode,
                sent: 0,
                size: bytes(of: member.operation)
            )
        }
        inFlight += 1
        if choice.isLarge { largeInFlight += 1 }
        if choice.isUploadBatch {
            uploadBatches += 1
            lastUploadBatch = now
        }
        return choice
    }

    /// Once anything was heard, what it spoils is left to the next plan, in place of asking the catalog for
    /// each in vain.
    private func leaveSpoilt() {
        let news = catalog.newsNumber(of: account)
        guard leftNews != news else { return }
        leftNews = news
        for index in operations.indices
        where !isStarted[index] && isSpoiltByNews(operations[index]) {
            isStarted[index] = true
            planSoon()
        }
    }

    /// The first operation that can be begun, of those that are wanted, and what can go with it.
    private func choice(_ isWanted: (RemoteOperation) -> Bool) -> Batch {
        var batch = Batch(plan: planNumber, newsNumber: plannedNews, retries: retries)
        var room = 1
        var total: Int64 = 0
        for index in firstUnstarted..<operations.count where !isStarted[index] {
            let operation = operations[index]
            guard operation.after.allSatisfy({ isDone[$0] }), running[operation.inode] == nil,
                isWanted(operation),
                bytes(of: operation) <= smallUpload || largeInFlight < Self.mostLarge
            else { continue }
            if let first = batch.members.first {
                guard isAlike(first.operation, operation) else { continue }
                guard total + bytes(of: operation) <= Self.largestBatch else {
                    batch.isFull = true
                    continue
                }
            } else {
                room = batchSize(of: operation)
                batch.isLarge = bytes(of: operation) > smallUpload
                batch.isUploadBatch = isBatchedUpload(operation)
            }
            batch.members.append((index, operation))
            total += bytes(of: operation)
            if batch.members.count >= room {
                batch.isFull = true
                break
            }
        }
        return batch
    }

    /// How long a batch of uploads that is not full waits for those under way at most, milliseconds.
    private static let longestFilling: Int64 = 5000

    private func isBatchedUpload(_ operation: RemoteOperation) -> Bool {
        switch operation.action {
        case .upload, .replace: batchSize(of: operation) > 1
        case .createFolder, .move, .delete, .setAttributes, .duplicate: false
        }
    }

    /// How many large contents go up at once, each by as many requests as its provider sends: more
    /// would only make all of them end later.
    private static let mostLarge = 4

    private func bytes(of operation: RemoteOperation) -> Int64 {
        switch operation.action {
        case .upload(_, let content), .replace(_, let content): content.size
        case .createFolder, .move, .delete, .setAttributes, .duplicate: 0
        }
    }

    private func isAlike(_ one: RemoteOperation, _ other: RemoteOperation) -> Bool {
        switch (one.action, other.action) {
        case (.createFolder, .createFolder), (.move, .move), (.delete, .delete): true
        case (.upload, .upload), (.upload, .replace), (.replace, .upload), (.replace, .replace):
            bytes(of: other) <= smallUpload
        default: false
        }
    }

    /// Bytes of the contents of one batch at most, so that none takes long.
    private static let largestBatch: Int64 = 32 << 20
    /// What goes up in one call with others: larger contents use the connection alone.
    private var smallUpload: Int64 { provider.traits.batchSizes.largestUpload }

    private func batchSize(of operation: RemoteOperation) -> Int {
        let sizes = provider.traits.batchSizes
        switch operation.action {
        case .createFolder: return sizes.createFolder
        case .upload, .replace:
            return bytes(of: operation) <= smallUpload ? sizes.upload : 1
        case .move: return sizes.move
        case .delete: return sizes.delete
        case .setAttributes, .duplicate: return 1
        }
    }

    // MARK: Carrying out

    private func perform(_ batch: Batch) async {
        var requests: [OperationRequest] = []
        var failed: [Inode] = []
        /// What is not to be sent once anything was heard.
        var spoilt: Set<Inode> = []
        for (index, operation) in batch.members {
            let known = isSpoiltByNews(operation) ? batch.newsNumber : nil
            switch await prepare(operation, index: index, newsNumber: known) {
            case .ready(let request):
                if known != nil { spoilt.insert(operation.inode) }
                staleRounds[operation.inode] = nil
                runningItems[operation.inode] = request.start.item?.id
                requests.append(request)
            case .stale:
                running[operation.inode] = nil
                if let known, known != catalog.newsNumber(of: account) {
                    needsPlan = true
                } else {
                    foundStale(operation)
                }
            case .failed(let start, let error):
                await conclude(start, of: operation.inode, error)
                failed.append(operation.inode)
                running[operation.inode] = nil
                needsPlan = true
            }
        }
        // While the others were prepared something may have been heard.
        if batch.newsNumber != catalog.newsNumber(of: account), !spoilt.isEmpty {
            for request in requests where spoilt.contains(request.inode) { await takeBack(request) }
            requests.removeAll { spoilt.contains($0.inode) }
            needsPlan = true
        }
        let results = await send(requests)
        for (request, result) in zip(requests, results) {
            let isDone = await finish(request, result)
            running[request.inode] = nil
            runningItems[request.inode] = nil
            if isDone, batch.plan == planNumber {
                self.isDone[request.index] = true
            } else if !isDone {
                failed.append(request.inode)
                needsPlan = true
            }
        }
        // The cause went while these were under way: another try is due, as of what had failed.
        if batch.retries != retries { await retryNow(failed) }
        // A plan made meanwhile left these items alone.
        if batch.plan != planNumber { needsPlan = true }
        // What was told meanwhile; who could not be asked now is asked with the next news.
        if !owedLooks.isEmpty || owesRun { await lookAtUnsureAfterwards() }
        inFlight -= 1
        if batch.isLarge { largeInFlight -= 1 }
        if batch.isUploadBatch { uploadBatches -= 1 }
        waker.yield()
    }

    /// Nothing of it was sent: it is planned for anew.
    private func takeBack(_ request: OperationRequest) async {
        do throws(ProviderError) { try await clear(request.inode) } catch {
            // It is asked for like anything that nobody answered.
            hasOpenIntents = true
            logger.warning("an operation was not taken back", metadata: ["error": "\(error)"])
        }
        running[request.inode] = nil
        runningItems[request.inode] = nil
    }

    /// The item is not as the plan saw it: it is planned for anew, but what is never as planned must
    /// not become a loop.
    private func foundStale(_ operation: RemoteOperation) {
        let rounds = (staleRounds[operation.inode] ?? 0) + 1
        staleRounds[operation.inode] = rounds
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
