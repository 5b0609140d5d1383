import Logging
import OortCatalog
import OortModel
import Synchronization

/// The base of a staged content, which is bound to its revision by the first byte that is used of it.
///
/// A program that changes a part of a file of which nothing was read changes whatever the service has. If
/// that is another revision by the time the rest is needed, and the known one cannot be had any longer, the
/// written parts lie over the other one. Whether the change is in conflict with that is not decided here.
extension StagedContent {
    /// Whether the base may be another revision yet.
    public var isBaseUnread: Bool { state.withLock(\.isBaseUnread) }

    /// Bytes of the base, which is bound by them; only after `CachedContent.verifiedBytes` has compared
    /// them with the service's hash, if `isVerified`.
    ///
    /// - Returns: nil where the content was cut while they came, so that others are needed.
    /// - Throws: as `CachedContent.bytes`; `.damaged` where there is no base.
    func baseBytes(
        _ range: Range<Int64>,
        isVerified: Bool = false
    ) async throws(ContentError) -> [UInt8]? {
        while true {
            guard let base else { throw .damaged(detail: "an overlay without its base") }
            guard range.upperBound <= base.size else {
                guard state.withLock({ $0.baseEnd < range.upperBound }) else {
                    throw .damaged(detail: "the base is shorter than it was")
                }
                return nil
            }
            do throws(ContentError) {
                // Bytes whose revision is not confirmed bind nothing.
                let bytes =
                    isVerified || isBaseUnread
                    ? try await base.verifiedBytes(range) : try await base.bytes(range)
                if try bind(to: base) { return bytes }
            } catch {
                guard try rebase(from: base, after: error) else { throw error }
            }
        }
    }

    /// Notes that bytes of a base are about to be used: no other revision takes its place from now on.
    ///
    /// - Returns: false where another one has done so already.
    private func bind(to base: CachedContent) throws(ContentError) -> Bool {
        try locked { state throws(ContentError) in
            guard self.base === base else { return false }
            try bind(&state)
            return true
        }
    }

    /// The base, which no other revision replaces from now on.
    func boundBase() throws(ContentError) -> CachedContent? {
        try locked { state throws(ContentError) in
            try bind(&state)
            return base
        }
    }

    private func bind(_ state: inout State) throws(ContentError) {
        guard state.isBaseUnread else { return }
        // Otherwise bytes of this revision might count as the former one's after the death of the machine.
        if state.owesBaseNote {
            do throws(CatalogError) { try store.catalog.persist() } catch {
                throw ContentError(error)
            }
            state.owesBaseNote = false
        }
        try state.journal?.append(.baseRead)
        state.isBaseUnread = false
    }

    /// Lets another revision take the base's place until a byte of it is used.
    func leaveBaseOpen() throws(ContentError) {
        try locked { state throws(ContentError) in
            try state.journal?.append(.baseUnread)
            state.isBaseUnread = true
        }
    }

    /// Takes the newest revision for the base, after a fetch that the service refused because it has the
    /// base's no longer.
    ///
    /// Only where nothing of the base was read, and the newest one has all bytes that the content uses.
    ///
    /// - Returns: whether the fetch is worth another try.
    private func rebase(
        from old: CachedContent,
        after cause: ContentError
    ) throws(ContentError) -> Bool {
        guard case .fetch(let refusal) = cause,
            refusal.kind == .preconditionFailed || refusal.kind == .notFound
        else { return false }
        let key = old.key
        func isWorthIt() -> Bool { base !== old || old.key != key }
        // Its last user must not let the old base go meanwhile.
        guard store.useAgain(self) else { return isWorthIt() }
        defer { store.close(self) }
        let newest: ContentOrigin?
        do throws(CatalogError) {
            newest = try store.catalog.newestRevision(of: key.item, account: key.account)
        } catch { throw ContentError(error) }
        guard let newest, newest.revision != key.revision, isBaseUnread else {
            return isWorthIt()
        }
        let new = try store.open(
            ContentKey(account: key.account, item: newest.item, revision: newest.revision),
            size: newest.size,
            hash: newest.hash
        )
        var isTaken = false
        defer { store.close(isTaken ? old : new) }
        isTaken = try locked { state throws(ContentError) in
            guard base === old, state.isBaseUnread, new.size >= state.baseEnd else { return false }
            // On the disk before the catalog has the new size of the base: otherwise what lies behind the
            // old one might count as the base's after the death of the machine.
            try state.journal?.append(.cut(state.baseEnd))
            try state.journal?.synchronise()
            do throws(CatalogError) {
                let isSet = try store.catalog.setBase(ofStaged: id, to: new.key, size: new.size) {
                    old.key == key
                }
                guard isSet else { return false }
            } catch { throw ContentError(error) }
            setBase(new)
            state.owesBaseNote = true
            return true
        }
        if isTaken {
            store.logger.info(
                "the rest of a file is another revision's: nothing of the known one was read",
                metadata: ["content": "\(id.rawValue)", "item": "\(key.item)"]
            )
        }
        return isWorthIt()
    }
}
