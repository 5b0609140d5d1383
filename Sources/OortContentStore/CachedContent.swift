public import OortCatalog
public import OortModel
import Synchronization

/// The bytes of one revision, as far as they are here: a sparse file whose missing parts are fetched when a
/// program reads them.
///
/// Isolation: any thread. The lock is held for moments only, never while bytes travel. The store's
/// lock is never taken while it is held.
public final class CachedContent: Sendable {
    /// One range request in flight.
    struct Fetch {
        let id: Int
        /// Where the next bytes go.
        var position: Int64
        /// Where it stops; brought forward when a reader needs bytes far ahead.
        var end: Int64
        /// Raised when a program waits for the bytes that it brings.
        let urgency: RequestUrgency
        /// The first bytes, until the service has confirmed their revision.
        var provisional: Range<Int64>?
        var task: Task<Void, Never>?
    }

    /// A reader that waits for bytes.
    struct Waiter {
        let id: Int
        let range: Range<Int64>
        /// Whether it waits until the service has confirmed their revision.
        let wantsConfirmed: Bool
        let continuation: CheckedContinuation<Result<Void, ContentError>, Never>
    }

    struct State {
        /// The row and file; nil until something is fetched.
        var id: ContentID?
        var present = RangeSet<Int64>()
        /// The confirmed ranges: all that are present, without the provisional ones.
        var confirmed: RangeSet<Int64> {
            var ranges = present
            for case let range? in fetches.lazy.map(\.provisional) {
                ranges.remove(contentsOf: range)
            }
            return ranges
        }
        var fetches: [Fetch] = []
        var waiters: [Waiter] = []
        var lastNumber = 0
        /// Counts how often all bytes were discarded; a fetch of an earlier generation is void.
        var generation = 0
        var isVerified = false
        /// How often in a row the complete bytes had another hash.
        var mismatches = 0
        /// Whether the item has another revision by now, and the service gives the bytes of that.
        var isOutdated = false
        /// Compares the complete bytes with the hash, while that is under way.
        var verification: Task<Void, Never>?
        var isVerifying: Bool { verification != nil }
        /// Whether bytes came that the catalog has no record of.
        var isUnsaved = false
        /// Whether another content has its key now, so that it gets no further bytes.
        var isSuperseded = false
        /// Makes the row and the file, once for all who need them.
        var preparation: Task<Result<ContentID, ContentError>, Never>?
    }

    /// The revision that the bytes are of, as the service names it now.
    public var key: ContentKey { keys.withLock(\.present) }
    /// The key under which store and catalog have it: the present one, unless that has another content.
    var filed: ContentKey { keys.withLock(\.filed) }
    let keys: Mutex<(present: ContentKey, filed: ContentKey)>
    /// Bytes in all.
    public let size: Int64
    /// The hash that the service gives, where it is known.
    public var expectedHash: ContentHash? { hash }
    let hash: ContentHash?
    let store: ContentStore
    let state: Mutex<State>

    init(
        key: ContentKey,
        size: Int64,
        hash: ContentHash?,
        id: ContentID?,
        present: RangeSet<Int64>,
        isVerified: Bool,
        mismatches: Int = 0,
        store: ContentStore
    ) {
        keys = Mutex((key, key))
        self.size = size
        self.hash = hash
        self.store = store
        state = Mutex(
            State(id: id, present: present, isVerified: isVerified, mismatches: mismatches)
        )
    }

    /// Whether all bytes are here.
    public var isComplete: Bool { state.withLock { $0.present.covers(0..<size) } }

    /// Whether no byte is here, confirmed or not.
    var isEmpty: Bool { state.withLock { $0.present.byteCount == 0 } }

    /// Bytes of some ranges that are not here.
    func missingBytes(in ranges: [Range<Int64>]) -> Int64 {
        state.withLock { state in
            ranges.flatMap { state.present.gaps(in: $0.clamped(to: 0..<size)) }
                .reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        }
    }

    /// Whether all bytes are here and were compared with the service's hash, where it has one.
    var isVerified: Bool { state.withLock { $0.isVerified } }

    /// The row, once there is one.
    var id: ContentID? { state.withLock { $0.id } }

    /// The row whose key is the present one; nil where there is none.
    var namingID: ContentID? {
        let isFiledAsNamed = keys.withLock { $0.present == $0.filed }
        return isFiledAsNamed ? id : nil
    }

    /// The local file, if it has all bytes of a range (which must lie within the size); nil when
    /// some are missing.
    ///
    /// Sequential reading continues to be fetched ahead.
    public func readIfPresent(
        _ range: Range<Int64>,
        by ahead: ReadAhead? = nil
    ) -> DiskFile? {
        let (id, isComplete) = state.withLock { state in
            state.present.covers(range) && !isWithheld(state)
                ? (state.id, state.isVerified) : (nil, false)
        }
        guard let id else { return nil }
        let file: DiskFile?
        do throws(ContentError) {
            file = try store.pool.fileIfPresent(store.paths.cached(id))
        } catch {
            // The reader that waits for the range meets the failure, too, and can report it.
            file = nil
        }
        guard let file else { return nil }
        if !isComplete { fetchAhead(range, by: ahead) }
        return file
    }

    /// The local file, once it has all bytes of a range, which must lie within the size.
    ///
    /// - Throws: `ContentError`; `.fetch` of kind `.cancelled` when the calling task is cancelled, of kind
    ///   `.contentDamaged` when the service keeps giving other bytes than its hash says.
    public func read(
        _ range: Range<Int64>,
        by ahead: ReadAhead? = nil
    ) async throws(ContentError) -> DiskFile {
        let fetcher = store.fetcher(of: key.account)
        let wish =
            ahead?.note(range, largest: fetcher?.largestRangeRequest ?? ReadAhead.firstWindow)
            ?? ReadAhead.Wish(range: range, part: ReadAhead.firstWindow)
        var mismatches = state.withLock { $0.mismatches }
        var tries = Self.tries(after: mismatches)
        while true {
            let id = try await prepare()
            let (isEarly, found) = state.withLock { (isWithheld($0), $0.mismatches) }
            if isEarly {
                // Mismatches that other readers met meanwhile count, too.
                tries -= max(found - mismatches, 0)
                mismatches = found
                guard tries > 0 else {
                    throw .fetch(
                        ProviderError(.contentDamaged, detail: "other bytes than the hash says")
                    )
                }
                try await complete(
                    inPartsOf: fetcher?.largestRangeRequest ?? ReadAhead.firstWindow
                )
                continue
            }
            if state.withLock({ $0.present.covers(range) }) {
                if let file = try store.pool.fileIfPresent(store.paths.cached(id)) {
                    startFetches(need: nil, wish: wish)
                    return file
                }
                // The file was removed: the state no longer describes it.
                discard()
                continue
            }
            startFetches(need: range, wish: wish)
            try await wait(for: range)
        }
    }

    /// Bytes of a range, which must lie within the size.
    public func bytes(_ range: Range<Int64>) async throws(ContentError) -> [UInt8] {
        guard !range.isEmpty else { return [] }
        let file = try await read(range)
        return try file.read(
            at: range.lowerBound,
            count: Int(range.upperBound - range.lowerBound)
        )
    }

    /// Bytes of a range as `bytes` gives them; but only after the service has confirmed their revision and, if
    /// the content became complete, after it was compared with the service's hash.
    ///
    /// - Throws: `.fetch` of kind `.contentDamaged` when the service keeps giving other bytes.
    func verifiedBytes(_ range: Range<Int64>) async throws(ContentError) -> [UInt8] {
        for _ in 0..<3 {
            let generation = state.withLock { $0.generation }
            let bytes = try await bytes(range)
            try await wait(for: range, isConfirmed: true)
            await verified()
            let isGood = state.withLock {
                $0.generation == generation && $0.confirmed.covers(range)
            }
            if isGood { return bytes }
        }
        throw .fetch(ProviderError(.contentDamaged, detail: "other bytes than the hash says"))
    }

    private func fetchAhead(_ range: Range<Int64>, by ahead: ReadAhead?) {
        guard let ahead, let fetcher = store.fetcher(of: key.account) else { return }
        startFetches(
            need: nil,
            wish: ahead.note(range, largest: fetcher.largestRangeRequest)
        )
    }

    /// The row and the file of the content, made if they are not there.
    func prepare() async throws(ContentError) -> ContentID {
        if let id { return id }
        let preparation = state.withLock { state in
            if state.isSuperseded {
                let detail = "the document was exported anew: it must be opened again"
                return Task {
                    Result<ContentID, ContentError>.failure(.damaged(detail: detail))
                }
            }
            if let id = state.id { return Task { Result<ContentID, ContentError>.success(id) } }
            if let preparation = state.preparation { return preparation }
            let preparation = Task { await self.makeFile() }
            state.preparation = preparation
            return preparation
        }
        return try await preparation.value.get()
    }

    private func makeFile() async -> Result<ContentID, ContentError> {
        let result: Result<ContentID, ContentError>
        do {
            let id = try await store.catalog.insertCachedContent(
                { self.filed },
                size: size,
                hash: hash
            )
            let file = try store.pool.create(store.paths.cached(id))
            try file.resize(to: size)
            result = .success(id)
        } catch let error as ContentError {
            result = .failure(error)
        } catch {
            result = .failure(.catalog(detail: "\(error)"))
        }
        state.withLock { state in
            state.preparation = nil
            if case .success(let id) = result { state.id = id }
        }
        return result
    }

    /// Ends the content: its bytes are gone, and another content has its key from now on.
    func supersede() async {
        let preparation = state.withLock { state in
            state.isSuperseded = true
            return state.preparation
        }
        _ = await preparation?.value
        discard()
    }

    /// Discards all bytes: they are wrong, or the file is gone.
    ///
    /// The next reader fetches anew; a reader of the old file keeps that.
    func discard() {
        let (id, tasks, waiters) = state.withLock { state in
            let id = state.id
            store.room.addCached(-state.present.byteCount)
            state.present = RangeSet()
            state.generation += 1
            state.isVerified = false
            state.id = nil
            let tasks = state.fetches.map(\.task)
            state.fetches = []
            return (id, tasks, state.takeWaiters { _ in true })
        }
        for task in tasks { task?.cancel() }
        for waiter in waiters { waiter.continuation.resume(returning: .success(())) }
        guard let id else { return }
        store.pool.forget(store.paths.cached(id))
        DiskFile.remove(store.paths.cached(id))
        store.markChanged(self)
    }
}
