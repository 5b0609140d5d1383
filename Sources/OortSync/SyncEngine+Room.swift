import Logging
import OortCatalog
import OortModel
import Synchronization

/// The account's room: when it is asked for, and what is tried again when there is more of it.
extension SyncEngine {
    /// Asks for the account's room when it may have changed, and repeatedly while something waits for room:
    /// more room comes without any change of the tree.
    func readQuotaIfDue() async throws(ProviderError) {
        if roomWatch.isDue(at: now) { return try await readQuota() }
        let awaitsRoom = try await storedAsync { () throws(CatalogError) in
            try await self.catalog.hasRefused(
                self.account,
                kind: "\(ProviderError.Kind.quotaExceeded)"
            )
        }
        if awaitsRoom { try await readQuota() }
    }

    /// Asks for the account's room; where there is more of it, sends what had none.
    ///
    /// - Throws: where the catalog cannot be read or written; if the service does not answer, it is asked
    ///   again.
    private func readQuota() async throws(ProviderError) {
        roomWatch.asks(at: now)
        let quota: Quota
        do throws(ProviderError) { quota = try await provider.quota() } catch {
            // A service that cannot say never can.
            let isSaid = error.kind != .unsupported
            logger.log(
                level: isSaid ? .info : .debug,
                "the account's room is not known",
                metadata: ["error": "\(error)"]
            )
            if isSaid { roomWatch.failed() }
            return
        }
        let old = try stored { () throws(CatalogError) in
            let old = try catalog.account(account)?.quota
            try catalog.setQuota(quota, of: account)
            return old
        }
        guard let old, old.used > quota.used || old.total != quota.total else { return }
        try await retry([.quotaExceeded])
    }

    /// Somebody looks at the account's room (`statfs`): if what is known is old, the service is asked in
    /// the background.
    ///
    /// Returns at once, from any thread.
    public nonisolated func roomIsShown() {
        // Only one such task at a time; it ends with its one call.
        guard !isLookingAtRoom.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Task { await RequestPriority.$current.withValue(.background) { await self.lookAtRoom() } }
    }

    private func lookAtRoom() async {
        defer { isLookingAtRoom.store(false, ordering: .releasing) }
        // Nothing is asked of an account before it is known whose it is.
        guard isIdentified, roomWatch.isDueWhenShown(at: now) else { return }
        do throws(ProviderError) { try await readQuota() } catch { note(error) }
    }
}
