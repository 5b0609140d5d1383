import Logging
import OortCatalog
import OortModel
import Synchronization

/// What is fetched of a content, and when.
extension CachedContent {
    /// A file up to this size is fetched by one request: the cheapest call wins.
    static let wholeFile: Int64 = 4 << 20
    /// A reader whose bytes are farther than this beyond a transfer's position does not wait for it.
    private static let worthWaiting: Int64 = 2 << 20

    /// Starts transfers for what is needed and not under way, and then, while there are free slots, for
    /// what is wished.
    ///
    /// Below `.interactive` no program waits for what is needed.
    func startFetches(
        need: Range<Int64>?,
        wish: ReadAhead.Wish,
        _ priority: RequestPriority = .interactive
    ) {
        let most = store.fetcher(of: key.account)?.rangesAhead ?? 0
        let urgent: [RequestUrgency] = state.withLock { state in
            let isWhole = size <= Self.wholeFile
            if let need, !isWhole, priority >= .interactive { cutBack(for: need, &state) }
            let coming = state.presentOrComing
            let part = isWhole ? size : max(wish.part, 1)
            let wished =
                isWhole && need != nil
                ? 0..<size : wish.range.clamped(to: 0..<size)
            search: for gap in coming.gaps(in: wished) {
                var position = gap.lowerBound
                while position < gap.upperBound {
                    let isNeeded =
                        need.map { position < $0.upperBound && $0.lowerBound < gap.upperBound }
                        ?? false
                    guard isNeeded || state.fetches.count < most else { break search }
                    // Read-ahead parts begin at multiples of their size, so that no remainders are left.
                    let full = isNeeded ? part : part - position % part
                    let end = min(position + full, gap.upperBound)
                    start(position..<end, isNeeded ? priority : .ahead, &state)
                    position = end
                }
            }
            guard let need, priority >= .interactive else { return [] }
            let missing = state.present.gaps(in: need)
            return state.fetches.filter { fetch in
                missing.contains { $0.lowerBound < fetch.end && fetch.position < $0.upperBound }
            }.map(\.urgency)
        }
        for urgency in urgent { urgency.raise() }
    }

    /// Lets a transfer end earlier when a reader needs bytes far beyond its position.
    private func cutBack(for need: Range<Int64>, _ state: inout State) {
        for index in state.fetches.indices {
            let fetch = state.fetches[index]
            let begin = state.present.gaps(in: need).first?.lowerBound ?? need.upperBound
            if begin < fetch.end, begin > fetch.position + Self.worthWaiting {
                state.fetches[index].end = begin
            }
        }
    }

    private func start(
        _ range: Range<Int64>,
        _ priority: RequestPriority,
        _ state: inout State
    ) {
        state.lastNumber += 1
        let number = state.lastNumber
        let generation = state.generation
        let urgency = RequestUrgency()
        var fetch = Fetch(
            id: number,
            position: range.lowerBound,
            end: range.upperBound,
            urgency: urgency,
            provisional: nil
        )
        // Owned by this content; cancelled by `stopFetching` and `discard`.
        fetch.task = Task {
            await RequestPriority.$current.withValue(priority) {
                await RequestUrgency.$current.withValue(urgency) {
                    await self.run(number, generation: generation)
                }
            }
        }
        state.fetches.append(fetch)
    }

    /// Carries out one range request; continues where a broken transfer ended.
    private func run(_ number: Int, generation: Int) async {
        var fruitless = 0
        while let rest = rest(of: number, generation: generation), !rest.isEmpty {
            let asked = key
            do throws(ContentError) {
                try await transfer(rest, number: number, generation: generation)
                fruitless = 0
            } catch {
                let now = self.rest(of: number, generation: generation)
                fruitless = now?.lowerBound == rest.lowerBound ? fruitless + 1 : 0
                if case .fetch(let cause) = error, cause.kind == .preconditionFailed,
                    fruitless < 3, await isRenamed(since: asked)
                {
                    continue
                }
                guard case .fetch(let cause) = error, cause.isTransient, cause.kind != .offline,
                    fruitless < 3
                else {
                    end(number, generation: generation, error: error)
                    return
                }
                try? await store.clock.sleep(for: .milliseconds(100 << fruitless))
            }
        }
        end(number, generation: generation, error: nil)
    }

    /// Whether the service has the content under another key than one for which it was asked a moment ago;
    /// waits for an operation of ours that is about to say so.
    private func isRenamed(since asked: ContentKey) async -> Bool {
        do throws(CatalogError) {
            for _ in 0..<Self.tries {
                guard key == asked, !Task.isCancelled,
                    try store.catalog.mayBeRenamed(asked.item, account: asked.account)
                else { break }
                try? await store.clock.sleep(for: .milliseconds(100))
            }
        } catch {
            // The reader then meets the service's refusal.
            store.logger.error(
                "whether a revision is about to change could not be read",
                metadata: ["item": "\(asked.item)", "cause": "\(error)"]
            )
        }
        return key != asked
    }

    /// What a fetch still has to bring; nil when it is void.
    private func rest(of number: Int, generation: Int) -> Range<Int64>? {
        state.withLock { state in
            guard state.generation == generation,
                let fetch = state.fetches.first(where: { $0.id == number })
            else { return nil }
            return fetch.position..<max(fetch.end, fetch.position)
        }
    }

    /// Writes fetched bytes; other cached bytes give way to them.
    private func write(
        _ bytes: ArraySlice<UInt8>,
        at position: Int64,
        to path: String
    ) async throws(ContentError) {
        for _ in 0..<Self.tries {
            if store.room.hasCacheRoom(for: Int64(bytes.count)) {
                do throws(ContentError) {
                    return try store.pool.file(path).write(bytes, at: position)
                } catch {
                    guard error == .noSpace else { throw error }
                }
            }
            await store.makeCacheRoom(for: Int64(bytes.count) + (16 << 20))
            // What is being verified can be evicted only afterwards, which is soon.
            guard (try? await store.clock.sleep(for: .milliseconds(100))) != nil else { break }
        }
        throw .noSpace
    }

    /// How often to look for room: for some seconds.
    private static let tries = 50

    private func transfer(
        _ range: Range<Int64>,
        number: Int,
        generation: Int
    ) async throws(ContentError) {
        guard let fetcher = store.fetcher(of: key.account) else {
            throw .fetch(ProviderError(.offline, detail: "the account is not connected"))
        }
        // The fetch is void, for instance because the file was removed: the reader looks again, and makes a
        // new one.
        guard let id, try store.pool.fileIfPresent(store.paths.cached(id)) != nil else {
            discard()
            return
        }
        let path = store.paths.cached(id)
        var ofDisk: ContentError?
        do throws(ProviderError) {
            let stream = try await fetcher.fetch(key, range: range)
            // Bytes that no reader gets before they are compared need no confirmation besides.
            let isKeptBack =
                stream.provisionalBytes > 0 && size <= Self.wholeFile
                && state.withLock { isWithheld($0) }
            if isKeptBack { stream.letAllPass() }
            do throws(ProviderError) {
                try await receive(
                    stream,
                    range,
                    to: path,
                    isKeptBack: isKeptBack,
                    number: number,
                    generation: generation,
                    ofDisk: &ofDisk
                )
            } catch {
                if isKeptBack, error.isTransient, hasProvisional(number, generation) {
                    // Bytes that came before the transfer broke are kept, if they are the revision's.
                    try await stream.confirm()
                    confirm(number, generation: generation)
                }
                throw error
            }
        } catch {
            takeBack(number, generation: generation)
            if let ofDisk { throw ofDisk }
            throw error.kind == .localContent
                ? .disk(code: 0, detail: error.detail) : .fetch(error)
        }
    }

    /// Writes the bytes of a range as they come.
    ///
    /// `ofDisk` becomes the disk's error where that ended it.
    private func receive(
        _ stream: ByteStream,
        _ range: Range<Int64>,
        to path: String,
        isKeptBack: Bool,
        number: Int,
        generation: Int,
        ofDisk: inout ContentError?
    ) async throws(ProviderError) {
        var isProvisional = stream.provisionalBytes > 0
        var position = range.lowerBound
        while let bytes = try await stream.next() {
            guard let rest = rest(of: number, generation: generation) else { return }
            if isProvisional, !isKeptBack,
                position - range.lowerBound >= Int64(stream.provisionalBytes)
            {
                isProvisional = false
                confirm(number, generation: generation)
            }
            let count = min(Int64(bytes.count), rest.upperBound - position)
            if count > 0 {
                do throws(ContentError) {
                    try await write(bytes[..<Int(count)], at: position, to: path)
                } catch {
                    ofDisk = error
                    throw ProviderError(.localContent, detail: "\(error)")
                }
                position += count
                arrived(
                    position - count..<position,
                    isProvisional: isProvisional,
                    number: number,
                    generation: generation
                )
            }
            if position >= rest.upperBound {
                if isProvisional {
                    let isProven = isKeptBack ? await isProven(generation) : false
                    if !isProven { try await stream.confirm() }
                    confirm(number, generation: generation)
                }
                if position == range.upperBound {
                    // Letting a stream go before its end costs the service's connection.
                    do throws(ProviderError) { _ = try await stream.next() } catch {
                        // All of its bytes are here.
                    }
                }
                return
            }
        }
        throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "body ended early")
    }

    /// Whether a transfer brought bytes whose revision is not confirmed.
    private func hasProvisional(_ number: Int, _ generation: Int) -> Bool {
        state.withLock { state in
            state.generation == generation
                && state.fetches.contains { $0.id == number && $0.provisional != nil }
        }
    }

    /// Notes that the revision of a transfer's bytes is confirmed, and wakes readers that waited for that.
    private func confirm(_ number: Int, generation: Int) {
        let satisfied: [Waiter] = state.withLock { state in
            guard state.generation == generation else { return [] }
            if let index = state.fetches.firstIndex(where: { $0.id == number }) {
                state.fetches[index].provisional = nil
            }
            return takeSatisfied(&state)
        }
        for waiter in satisfied { waiter.continuation.resume(returning: .success(())) }
    }

    /// What counts as here for waiting readers: withheld bytes count only once confirmed, so that if a
    /// transfer's bytes are taken back, the wait ends with its error.
    private func here(_ state: State, isConfirmed: Bool) -> RangeSet<Int64> {
        isConfirmed || isWithheld(state) ? state.confirmed : state.present
    }

    /// Removes the waiters whose bytes are here, to be resumed outside of the lock.
    private func takeSatisfied(_ state: inout State) -> [Waiter] {
        guard !state.waiters.isEmpty else { return [] }
        let (here, confirmed) = (
            here(state, isConfirmed: false), here(state, isConfirmed: true)
        )
        return state.takeWaiters {
            ($0.wantsConfirmed ? confirmed : here).covers($0.range)
        }
    }

    /// Forgets a transfer's first bytes, if their revision was not confirmed.
    private func takeBack(_ number: Int, generation: Int) {
        let lost: Int64 = state.withLock { state in
            guard state.generation == generation,
                let index = state.fetches.firstIndex(where: { $0.id == number }),
                let provisional = state.fetches[index].provisional
            else { return 0 }
            state.fetches[index].provisional = nil
            state.fetches[index].position = provisional.lowerBound
            let before = state.present.byteCount
            state.present.remove(contentsOf: provisional)
            state.isUnsaved = true
            return before - state.present.byteCount
        }
        guard lost > 0 else { return }
        store.room.addCached(-lost)
        // The kernel may have them by now, and would show them to others.
        announceOtherBytes()
    }

    /// Notes bytes that are in the file now, and wakes readers that waited for exactly these.
    private func arrived(
        _ range: Range<Int64>,
        isProvisional: Bool,
        number: Int,
        generation: Int
    ) {
        let satisfied: [Waiter]? = state.withLock { state in
            // Of a transfer that was let go meanwhile nothing more is taken: its bytes may be unconfirmed.
            guard state.generation == generation,
                let index = state.fetches.firstIndex(where: { $0.id == number })
            else { return nil }
            state.present.insert(contentsOf: range)
            state.isUnsaved = true
            state.fetches[index].position = range.upperBound
            if isProvisional {
                let start = state.fetches[index].provisional?.lowerBound ?? range.lowerBound
                state.fetches[index].provisional = start..<range.upperBound
            }
            return takeSatisfied(&state)
        }
        guard let satisfied else { return }
        store.room.addCached(range.upperBound - range.lowerBound)
        for waiter in satisfied { waiter.continuation.resume(returning: .success(())) }
    }

    private func end(_ number: Int, generation: Int, error: ContentError?) {
        let concerned = state.withLock { state -> [Waiter] in
            guard state.generation == generation,
                let index = state.fetches.firstIndex(where: { $0.id == number })
            else { return [] }
            state.fetches.remove(at: index)
            // Readers of bytes that no transfer brings any longer must look again.
            let coming = state.presentOrComing
            return state.takeWaiters { !coming.covers($0.range) }
        }
        startVerifying()
        let result: Result<Void, ContentError> = error.map { .failure($0) } ?? .success(())
        for waiter in concerned { waiter.continuation.resume(returning: result) }
        store.markChanged(self)
    }

    /// Copies all bytes from a file that is known to have them; waiting readers get theirs, and nothing
    /// more is fetched.
    func fill(from source: DiskFile) async throws(ContentError) {
        let id = try await prepare()
        let generation = state.withLock { $0.generation }
        let file = try store.pool.file(store.paths.cached(id))
        var position: Int64 = 0
        while position < size {
            let bytes = try source.read(at: position, count: Int(min(1 << 20, size - position)))
            guard !bytes.isEmpty else { throw .disk(code: 0, detail: "a file that is too short") }
            guard !Task.isCancelled, !store.isStopping else { throw .noLongerNeeded }
            try file.write(bytes[...], at: position)
            position += Int64(bytes.count)
            await SystemInputs.yield()
        }
        filled(id, generation: generation)
    }

    /// Takes over a file that is known to have all bytes, as `fill` takes its bytes.
    func take(_ path: String, _ source: DiskFile) async throws(ContentError) {
        let id = try await prepare()
        let generation = state.withLock { $0.generation }
        let target = store.paths.cached(id)
        if DiskFile.move(path, to: target) {
            store.pool.forget(target)
        } else {
            let copy = try store.pool.create(target)
            try await copy.becomeCopy(of: source) { !self.store.isStopping }
        }
        filled(id, generation: generation)
    }

    /// Notes that the file has all bytes now, unless they were discarded meanwhile.
    private func filled(_ id: ContentID, generation: Int) {
        let (added, tasks, waiters) = state.withLock { state in
            guard state.generation == generation, state.id == id else {
                return (Int64(0), [Task<Void, Never>?](), [Waiter]())
            }
            let added = size - state.present.byteCount
            if size > 0 { state.present.insert(contentsOf: 0..<size) }
            state.isVerified = true
            state.isUnsaved = true
            let tasks = state.fetches.map(\.task)
            state.fetches = []
            return (added, tasks, state.takeWaiters { _ in true })
        }
        for task in tasks { task?.cancel() }
        store.room.addCached(added)
        for waiter in waiters { waiter.continuation.resume(returning: .success(())) }
        store.markChanged(self)
    }

    /// Waits until a range may be here, and its revision confirmed with `isConfirmed`; the caller checks
    /// again.
    func wait(
        for range: Range<Int64>,
        isConfirmed: Bool = false
    ) async throws(ContentError) {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver: Result<Void, ContentError>? = state.withLock { state in
                    if Task.isCancelled { return .failure(Self.cancelled) }
                    let isHere = here(state, isConfirmed: isConfirmed).covers(range)
                    guard !isHere, state.presentOrComing.covers(range) else {
                        return .success(())
                    }
                    state.waiters.append(
                        Waiter(
                            id: number,
                            range: range,
                            wantsConfirmed: isConfirmed,
                            continuation: continuation
                        )
                    )
                    return nil
                }
                if let isOver { continuation.resume(returning: isOver) }
            }
        } onCancel: {
            let waiters = state.withLock { $0.takeWaiters { $0.id == number } }
            for waiter in waiters {
                waiter.continuation.resume(returning: .failure(Self.cancelled))
            }
        }
        try result.get()
    }

    private static var cancelled: ContentError {
        .fetch(ProviderError(.cancelled, detail: "the caller no longer waits"))
    }

    /// Ends the transfers that no reader waits for, when the last reader has gone.
    ///
    /// A transfer whose first bytes are still to be confirmed ends once they are.
    func stopFetching() {
        let tasks = state.withLock { state in
            var idle = state.fetches.filter { fetch in
                let rest = fetch.position..<max(fetch.end, fetch.position)
                return !state.waiters.contains { $0.range.overlaps(rest) }
            }
            for index in state.fetches.indices where state.fetches[index].provisional != nil {
                let id = state.fetches[index].id
                guard let place = idle.firstIndex(where: { $0.id == id }) else { continue }
                idle.remove(at: place)
                state.fetches[index].end = state.fetches[index].position
            }
            state.fetches.removeAll { fetch in idle.contains { $0.id == fetch.id } }
            return idle.map(\.task)
        }
        for task in tasks { task?.cancel() }
        startVerifying()
    }
}

extension CachedContent.State {
    /// What is here, or under way.
    var presentOrComing: RangeSet<Int64> {
        var ranges = present
        for fetch in fetches where fetch.position < fetch.end {
            ranges.insert(contentsOf: fetch.position..<fetch.end)
        }
        return ranges
    }

    /// Removes the waiters that `body` selects, to be resumed outside of the lock.
    mutating func takeWaiters(
        _ body: (CachedContent.Waiter) -> Bool
    ) -> [CachedContent.Waiter] {
        let taken = waiters.filter(body)
        guard !taken.isEmpty else { return [] }
        waiters.removeAll { waiter in taken.contains { $0.id == waiter.id } }
        return taken
    }
}
