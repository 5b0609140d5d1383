import Logging
import OortCatalog
import OortModel
import Synchronization

/// The base of a staged content, which is settled by the first byte that is read of it.
///
/// A program that changes a part of a file of which nothing is here changes whatever the service has. If
/// that is another revision by the time the rest is needed, and the known one cannot be had any longer, the
/// written parts lie over the other one. Whether the change is in conflict with that is not decided here.
extension StagedContent {
    /// Bytes of the base, which is settled with them; only after `CachedContent.verifiedBytes` has compared
    /// them with the service's hash, if `isVerified`.
    ///
    /// - Throws: as `CachedContent.bytes`; `.damaged` where there is no base.
    func baseBytes(
        _ range: Range<Int64>,
        isVerified: Bool = false
    ) async throws(ContentError) -> [UInt8] {
        while true {
            guard let base else { throw .damaged(detail: "an overlay without its base") }
            do throws(ContentError) {
                let bytes =
                    isVerified
                    ? try await base.verifiedBytes(range) : try await base.bytes(range)
                if try settle(base) { return bytes }
            } catch {
                guard try rebase(from: base, after: error) else { throw error }
            }
        }
    }

    /// Notes that bytes of a base are about to be used: no other revision takes its place from now on.
    ///
    /// - Returns: false where another one has done so already.
    func settle(_ base: CachedContent) throws(ContentError) -> Bool {
        try locked { state throws(ContentError) in
            guard self.base === base else { return false }
            guard state.isBaseUnread else { return true }
            try state.journal?.append(.baseRead)
            state.isBaseUnread = false
            return true
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
        let newest: ContentOrigin?
        do throws(CatalogError) {
            newest = try store.catalog.newestRevision(of: key.item, account: key.account)
        } catch { throw ContentError(error) }
        guard let newest, newest.revision != key.revision, isUnread(old) else {
            return base !== old || old.key != key
        }
        let new = try store.open(
            ContentKey(account: key.account, item: newest.item, revision: newest.revision),
            size: newest.size,
            hash: newest.hash
        )
        var isTaken = false
        defer { store.close(isTaken ? old : new) }
        isTaken = try locked { state throws(ContentError) in
            guard base === old, state.isBaseUnread, old.isEmpty, newest.size >= state.baseEnd
            else { return false }
            // The catalog's size of the base is another one from now on.
            try state.journal?.append(.cut(state.baseEnd))
            let isDone: Bool
            do throws(CatalogError) {
                isDone = try store.catalog.setBase(ofStaged: id, from: key, to: newest)
            } catch { throw ContentError(error) }
            if isDone { setBase(new) }
            return isDone
        }
        if isTaken {
            store.logger.info(
                "the rest of a file is another revision's: nothing of the known one was read",
                metadata: ["content": "\(id.rawValue)", "item": "\(key.item)"]
            )
        }
        return base !== old || old.key != key
    }

    private func isUnread(_ base: CachedContent) -> Bool {
        state.withLock(\.isBaseUnread) && base.isEmpty
    }
}
