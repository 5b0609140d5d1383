import Logging
public import OortCatalog
import OortModel
import Synchronization

/// Compares the service's bytes with the service's hash.
///
/// Bytes that come in one request reach no program before the comparison, and neither does a content that
/// was wrong before. Of a larger content the first bytes are given out as they come: the comparison is too
/// late for that reader, but not for the next.
extension CachedContent {
    /// After how many mismatches in a row a read fails.
    private static let mostMismatches = 3

    /// Whether no byte may be given out before all were compared with the hash.
    func isWithheld(_ state: State) -> Bool {
        !state.isVerified && hash != nil && (size <= Self.wholeFile || state.mismatches > 0)
    }

    /// How many mismatches a read may meet: at least one, since the service may have mended the content.
    static func tries(after mismatches: Int) -> Int { max(mostMismatches - mismatches, 1) }

    /// Brings the next bytes of a content that must be compared before any are given out, or compares it.
    ///
    /// Below `.interactive` nothing more is fetched, since no program waits.
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

    /// Brings all bytes that are missing and compares them with the hash; no program waits for them.
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
                // The file was removed: the state no longer describes it.
                discard()
                continue
            }
            try await complete(inPartsOf: part, priority)
        }
    }

    /// Begins to compare the bytes with the hash if all are here and that was not done.
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

    /// Returns when a complete content was compared with the hash.
    func verified() async { await startVerifying()?.value }

    /// The result of a comparison.
    private enum Verdict {
        /// The bytes have the service's hash, or it gives none that they could be compared with.
        case good
        /// The bytes are others.
        case damaged
        /// The bytes are others, and the item has another revision by now.
        case outdated
        /// The bytes cannot be read: the file was removed.
        case lost
        /// The content is no longer needed.
        case brokenOff
    }

    /// Compares the complete content with the service's hash, and discards it if it differs.
    ///
    /// Broken off when the bytes are discarded meanwhile, or the store ends.
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
            // The kernel's cached pages are wrong, too.
            announceOtherBytes()
        case .outdated, .lost: discard()
        case .brokenOff: return
        }
        store.markChanged(self)
    }

    /// Has the kernel drop what it caches of the item's file: bytes that were given out are another content's.
    func announceOtherBytes() {
        do throws(CatalogError) {
            if let inode = try node()?.inode { store.catalog.announce([.content(inode)]) }
        } catch {
            store.logger.error(
                "the kernel keeps what it read of another content",
                metadata: ["item": "\(key.item)", "error": "\(error)"]
            )
        }
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
            // The feed may have reported a newer revision since the content was opened.
            guard let node = try node(), let revision = node.revision else { return .damaged }
            if revision != key.revision { return .outdated }
            return found == node.hash ? .good : .damaged
        } catch {
            // It is not known whether the bytes are right: they are fetched again.
            store.logger.error(
                "what a content should be could not be read",
                metadata: ["item": "\(key.item)", "error": "\(error)"]
            )
            return .lost
        }
    }

    /// Whether all bytes are here and have the revision's hash, which then counts as verified.
    ///
    /// The hash proves more than the service's statement of the revision that it sent, so bytes that are
    /// not confirmed yet are good. A mismatch proves nothing about these.
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

    /// The result of comparing the bytes with the service's hash.
    private enum Comparison {
        case same
        case differs(ContentHash)
        /// The service gives no hash, or another than can be computed here.
        case incomparable
        /// The bytes cannot be read: the file was removed.
        case lost
        /// The content is no longer needed.
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
                await SystemInputs.yield()
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
    /// Contents of which the service gave bytes with another hash than its own, until right ones came.
    public var damagedContents: [ContentKey] { state.withLock { Array($0.mismatches.keys) } }

    func note(mismatches: Int, of key: ContentKey) {
        state.withLock { state in
            guard mismatches > 0 else {
                state.mismatches[key] = nil
                return
            }
            // Beyond a number that no person reads, some are forgotten.
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
