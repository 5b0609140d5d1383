import OortCatalog
import OortModel
import Synchronization

/// What a staged content copies from its base revision.
extension StagedContent {
    /// Bytes of the base that are copied before all of them are synchronised.
    private static let mostUnsynchronised: Int64 = 64 << 20
    /// How often to look for room: for a second.
    private static let tries = 10

    /// Copies what is missing from the base: afterwards the staged file has all bytes.
    ///
    /// Only while frozen. Room for all of it is made before anything is fetched: a disk that is full to its
    /// last byte would block all accounts, and nothing could be removed any more.
    ///
    /// - Throws: `.noSpace` when the disk has no room for all; `.fetch`, `.damaged`, `.disk`.
    func materialise() async throws(ContentError) {
        guard base != nil else { return }
        defer { store.room.setPromise(nil, to: id) }
        try await makeRoom()
        looking: while true {
            let missing = try pieces(0..<size).filter { !$0.isOwn }.map(\.range)
            guard !missing.isEmpty, successor == nil else { return }
            var filled = RangeSet<Int64>()
            var count: Int64 = 0
            let lacking = Self.length(missing)
            do throws(ContentError) {
                for gap in missing {
                    var position = gap.lowerBound
                    while position < gap.upperBound, count < Self.mostUnsynchronised {
                        try checkNeed(looking: position >= 16 << 20)
                        let part = position..<min(gap.upperBound, position + (4 << 20))
                        // The bytes that go up with a program's must be of exactly the base revision.
                        guard let bytes = try await baseBytes(part, isVerified: true) else {
                            // Frozen contents are not cut: the next look is the last.
                            continue looking
                        }
                        // Others may take room meanwhile.
                        let length = part.upperBound - part.lowerBound
                        guard store.room.hasRoom(toComplete: length, cached: 0) else {
                            throw .noSpace
                        }
                        try fill(part, with: bytes)
                        filled.insert(contentsOf: part)
                        count += length
                        position = part.upperBound
                        let left = Room.Promise(
                            lacking: lacking - count,
                            cached: base?.missingBytes(in: missing) ?? 0
                        )
                        store.room.setPromise(left, to: id)
                    }
                }
            } catch {
                // Filled bytes take room, and need not be fetched again.
                if count > 0 { try claim(filled) }
                throw error
            }
            // The upload that this is for gives room back: the limit does not refuse it.
            try claim(filled)
        }
    }

    private func makeRoom() async throws(ContentError) {
        var tries = 0
        while tries < Self.tries {
            let missing = try pieces(0..<size).filter { !$0.isOwn }.map(\.range)
            guard !missing.isEmpty, successor == nil else { return }
            let promise = Room.Promise(
                lacking: Self.length(missing),
                cached: base?.missingBytes(in: missing) ?? 0
            )
            if store.room.promise(promise, to: id) { return }
            await store.makeCacheRoom(for: promise.cached, staged: promise.lacking)
            await store.collectGarbage()
            if store.room.promise(promise, to: id) { return }
            // Another caller may be making room just now; contents with a promise are waited for.
            repeat {
                try checkNeed(looking: true)
                guard (try? await store.clock.sleep(for: .milliseconds(100))) != nil else {
                    throw .noLongerNeeded
                }
            } while store.room.hasPromises(toOthersThan: id)
            tries += 1
        }
        throw .noSpace
    }

    private static func length(_ ranges: [Range<Int64>]) -> Int64 {
        ranges.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
    }

    /// Copies all that is missing from a small base, fetched and verified first, while programs may write:
    /// from then on the content needs neither the cache nor the service.
    ///
    /// If there is no room for it, the base is needed until the upload.
    func standAlone(in turn: CompletionTurn) async throws(ContentError) {
        while true {
            let used = state.withLock { 0..<$0.baseEnd }
            guard base != nil, !used.isEmpty else { return }
            if try await baseBytes(used, isVerified: true) != nil { break }
        }
        // Bound now.
        guard let base, base.size <= CachedContent.wholeFile else { return }
        let whole = 0..<base.size
        _ = try await base.verifiedBytes(whole)
        try await turn.take { () throws(ContentError) in
            let missing = state.withLock { $0.missing(in: whole) }
            let count = missing.reduce(Int64(0)) { $0 + ($1.upperBound - $1.lowerBound) }
            // Read once more, so that none of it is held in memory while other contents are written.
            guard !Task.isCancelled, count > 0, store.room.hasRoom(for: count), base.isVerified,
                let file = base.readIfPresent(whole)
            else { return }
            try fill(whole, with: try file.read(at: 0, count: Int(base.size)))
            try claim(RangeSet(whole))
        }
    }

    /// Ends long work that is no longer needed: the calling task is cancelled, the store ends or, with
    /// `looking`, the file was removed.
    ///
    /// - Throws: `.fetch` of kind `.cancelled`.
    func checkNeed(looking: Bool) throws(ContentError) {
        var isNeeded = !Task.isCancelled && !store.isStopping
        if isNeeded, looking {
            do throws(CatalogError) {
                isNeeded = try store.catalog.node(staged: id)?.parent != nil
            } catch {
                // If the catalog cannot be asked, the work goes on.
            }
        }
        guard isNeeded else { throw .noLongerNeeded }
    }

    /// Writes the base's bytes of a range where the program wrote none; they count only once claimed.
    private func fill(_ range: Range<Int64>, with bytes: [UInt8]) throws(ContentError) {
        guard bytes.count == range.upperBound - range.lowerBound else {
            throw .damaged(detail: "\(bytes.count) bytes of the base in place of \(range)")
        }
        try locked { state throws(ContentError) in
            guard state.cached == nil else { return }
            for gap in state.missing(in: range) {
                let first = Int(gap.lowerBound - range.lowerBound)
                let end = Int(gap.upperBound - range.lowerBound)
                try file().write(bytes[first..<end], at: gap.lowerBound)
            }
        }
    }

    /// Counts filled bytes as the content's own, where the program wrote nothing since.
    ///
    /// Bytes that the sidecar lists must be on the disk by then. Otherwise a death of the machine would
    /// leave holes where the sidecar says that the base is not to be asked.
    private func claim(_ filled: RangeSet<Int64>) throws(ContentError) {
        try file().synchronise()
        try locked { state throws(ContentError) in
            guard state.cached == nil else { return }
            let gaps = filled.ranges.flatMap { state.missing(in: $0) }
            for gap in gaps {
                try state.journal?.append(.written(gap))
                state.own.insert(contentsOf: gap)
            }
            store.room.set(state.own.byteCount, of: id)
            // The next record counts them.
            if !gaps.isEmpty { try state.journal?.synchronise() }
        }
    }
}

/// Small bases are copied one after the other: each is synchronised, which blocks a thread.
actor CompletionTurn {
    func take(_ body: @Sendable () throws(ContentError) -> Void) throws(ContentError) {
        try body()
    }
}

extension StagedContent.State {
    /// The parts of a range that are still the base's.
    fileprivate func missing(in range: Range<Int64>) -> [Range<Int64>] {
        let range = range.clamped(to: 0..<baseEnd)
        return range.isEmpty ? [] : Array(own.gaps(in: range))
    }
}
