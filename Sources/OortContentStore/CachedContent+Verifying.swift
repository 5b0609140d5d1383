import Logging
import OortCatalog
import OortModel
import Synchronization

/// Comparing what the service gave with the hash that it gives.
///
/// What comes as one request is given to nobody before it was compared, and so is what was wrong before.
/// Of a larger content the first bytes are given as they come: there the comparison is too late for who
/// read it, but not for the next.
extension CachedContent {
    /// After how many times in a row a read fails.
    private static let mostMismatches = 3

    /// Whether no byte is to be given before all were compared with the hash.
    func isWithheld(_ state: State) -> Bool {
        !state.isVerified && hash != nil && (size <= Self.wholeFile || state.mismatches > 0)
    }

    /// How often a read of it may find other bytes than the hash says: at least once, since the service
    /// may have mended it.
    static func tries(after mismatches: Int) -> Int { max(mostMismatches - mismatches, 1) }

    /// Brings the next bytes of a content that is to be compared before any are given, or compares them.
    ///
    /// Below `.interactive` nothing is brought besides, since nobody waits.
    ///
    /// - Throws: `.fetch` of kind `.preconditionFailed` when the item has another revision by now, of kind
    ///   `.cancelled` when the calling task is cancelled or the store ends.
    func complete(
        inPartsOf part: Int64,
        _ priority: RequestPriority = .interactive
    ) async throws(ContentError) {
        if Task.isCancelled || store.isStopping { throw .noLongerNeeded }
        let (gap, isConfirmed, isOutdated) = state.withLock { state in
            (
                state.present.gaps(in: 0..<size).first, state.confirmed.covers(0..<size),
                state.isOutdated
            )
        }
        if isOutdated {
            throw .fetch(ProviderError(.preconditionFailed, detail: "replaced while it was read"))
        }
        if let gap {
            let length = size <= Self.wholeFile ? size : max(part, 1)
            let need = gap.lowerBound..<min(gap.upperBound, gap.lowerBound + length)
            startFetches(
                need: need,
                wish: ReadAhead.Wish(
                    range: need.lowerBound..<(priority < .interactive ? need.upperBound : size),
                    part: length
                ),
                priority
            )
            return try await wait(for: need)
        }
        guard isConfirmed else { return try await wait(for: 0..<size) }
        await startVerifying()?.value(orWhenCancelled: ())
    }

    /// Brings all bytes that are missing and compares them with the hash, for nobody who waits.
    ///
    /// - Throws: as `complete`; `.fetch` of kind `.contentDamaged` when the service keeps giving other
    ///   bytes than its hash says.
    func bring(_ priority: RequestPriority) async throws(ContentError) {
        let part = store.fetcher(of: key.account)?.largestRangeRequest ?? ReadAhead.firstWindow
        var mismatches = state.withLock { $0.mismatches }
        var tries = Self.tries(after: mismatches)
        while true {
            let id = try await prepare()
            let (isVerified, found) = state.withLock { ($0.isVerified, $0.mismatches) }
            tries -= max(found - mismatches, 0)
            mismatches = found
            guard tries > 0 else {
                throw .fetch(
                    ProviderError(.contentDamaged, detail: "other bytes than the hash says")
                )
            }
            if isVerified {
                if try store.pool.fileIfPresent(store.paths.cached(id)) != nil { return }
                // Somebody took the file away: what the state says of it is void.
                discard()
                continue
            }
            try await complete(inPartsOf: part, priority)
        }
    }

    /// Begins to compare the bytes with the hash when all are here and nobody has done so.
    @discardableResult
    func startVerifying() -> Task<Void, Never>? {
        state.withLock { state in
            if let known = state.verification { return known }
            guard state.confirmed.covers(0..<size), state.id != nil, !state.isVerified else {
                return nil
            }
            // Ends by itself, with the last byte.
            let verification = Task { await self.verify() }
            state.verification = verification
            return verification
        }
    }

    /// Returns when what is complete was compared with the hash.
    func verified() async { await startVerifying()?.value }

    /// What came of a comparison.
    private enum Verdict {
        /// The bytes are what the service says, or it says nothing that they could be compared with.
        case good
        /// They are others.
        case damaged
        /// They are others, and so is the item's revision by now.
        case outdated
        /// They cannot be read: the file was taken away.
        case lost
        /// Nobody needs it any longer.
        case brokenOff
    }

    /// Compares the complete content with the service's hash, and throws it away if it differs.
    ///
    /// Broken off when the bytes are thrown away meanwhile, or the store ends.
    private func verify() async {
        let generation = state.withLock { $0.generation }
        let verdict = await verdict(generation)
        let isCurrent = state.withLock { state in
            state.verification = nil
            guard state.generation == generation else { return false }
            switch verdict {
            case .good: (state.isVerified, state.mismatches) = (true, 0)
            case .damaged: state.mismatches += 1
            case .outdated: state.isOutdated = true
            case .lost, .brokenOff: break
            }
            return true
        }
        guard isCurrent else { return }
        switch verdict {
        case .good: store.note(mismatches: 0, of: key)
        case .damaged:
            let count = state.withLock { $0.mismatches }
            store.note(mismatches: count, of: key)
            store.logger.error(
                "content differs from the service's hash; it will be fetched again",
                metadata: [
                    "item": "\(key.item)", "revision": "\(key.revision)", "time": "\(count)",
                ]
            )
            discard()
            // What the kernel keeps of it is as wrong.
            do throws(CatalogError) {
                if let inode = try node()?.inode { store.catalog.announce([.content(inode)]) }
            } catch {
                store.logger.error(
                    "the kernel keeps what it read of a damaged content",
                    metadata: ["item": "\(key.item)", "error": "\(error)"]
                )
            }
        case .outdated, .lost: discard()
        case .brokenOff: return
        }
        store.markChanged(self)
    }

    private func verdict(_ generation: Int) async -> Verdict {
        let found: ContentHash
        switch await comparison(generation) {
        case .same, .incomparable: return .good
        case .lost: return .lost
        case .brokenOff: return .brokenOff
        case .differs(let other): found = other
        }
        do throws(CatalogError) {
            // What the feed told since the content was opened counts.
            guard let node = try node(), let revision = node.revision else { return .damaged }
            if revision != key.revision { return .outdated }
            return found == node.hash ? .good : .damaged
        } catch {
            // Whether the bytes are right is not known: they are fetched again.
            store.logger.error(
                "what a content should be could not be read",
                metadata: ["item": "\(key.item)", "error": "\(error)"]
            )
            return .lost
        }
    }

    /// Whether all bytes are here and have the revision's hash, which counts as verified then.
    ///
    /// That says more than the service's word of which revision it sent, so bytes that it has not
    /// confirmed yet are good. Anything else says nothing of these.
    func isProven(_ generation: Int) async -> Bool {
        guard isComplete, case .same = await comparison(generation) else { return false }
        let isProven = state.withLock { state in
            guard state.generation == generation, state.present.covers(0..<size) else {
                return false
            }
            (state.isVerified, state.mismatches) = (true, 0)
            for index in state.fetches.indices { state.fetches[index].provisional = nil }
            return true
        }
        if isProven { store.note(mismatches: 0, of: key) }
        return isProven
    }

    /// What the bytes are beside the service's hash.
    private enum Comparison {
        case same
        case differs(ContentHash)
        /// The service gives no hash, or another than can be computed here.
        case incomparable
        /// They cannot be read: the file was taken away.
        case lost
        /// Nobody needs it any longer.
        case brokenOff
    }

    private func comparison(_ generation: Int) async -> Comparison {
        guard let hash, let id, let fetcher = store.fetcher(of: key.account) else {
            return .incomparable
        }
        var hasher = fetcher.makeHasher()
        do throws(ContentError) {
            let file = try store.pool.file(store.paths.cached(id))
            var position: Int64 = 0
            while position < size {
                let bytes = try file.read(at: position, count: 1 << 20)
                guard !bytes.isEmpty else { break }
                hasher.update(bytes[...])
                position += Int64(bytes.count)
                await Task.yield()
                if store.isStopping || state.withLock({ $0.generation != generation }) {
                    return .brokenOff
                }
            }
        } catch { return .lost }
        let found = hasher.finalize()
        if found == hash { return .same }
        return found.algorithm == hash.algorithm ? .differs(found) : .incomparable
    }

    private func node() throws(CatalogError) -> Node? {
        try store.catalog.node(remoteID: key.item, account: key.account)
    }
}

extension ContentStore {
    /// Contents of which the service gave other bytes than its own hash says, as long as no right ones
    /// came.
    public var damagedContents: [ContentKey] { state.withLock { Array($0.mismatches.keys) } }

    func note(mismatches: Int, of key: ContentKey) {
        state.withLock { state in
            guard mismatches > 0 else {
                state.mismatches[key] = nil
                return
            }
            // Of more than a person reads some are forgotten.
            if state.mismatches.count > 1000 { state.mismatches.removeFirst() }
            state.mismatches[key] = mismatches
        }
    }
}

extension Dictionary {
    fileprivate mutating func removeFirst() {
        if let key = keys.first { self[key] = nil }
    }
}
