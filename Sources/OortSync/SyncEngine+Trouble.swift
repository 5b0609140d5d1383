import Logging
import OortCatalog
import OortModel

/// What keeps the account as a whole from working.
extension SyncEngine {
    func isReachable() {
        offlineTries = 0
        pausedUntil = 0
        guard accountTrouble != nil else { return }
        accountTrouble = nil
        feedPause?.cancel()
        keepTrouble(nil)
        planSoon()
    }

    /// Stores the trouble for commands that run while nothing is mounted.
    private func keepTrouble(_ words: String?) {
        do throws(CatalogError) { try catalog.setTrouble(words, of: account) } catch {
            logger.error("the account's trouble was not stored", metadata: ["error": "\(error)"])
        }
    }

    /// Asks for unsure items after an operation; those that cannot be asked for now stay unsure until the
    /// next run of the feed.
    func lookAtUnsureAfterwards() async {
        do throws(ProviderError) { try await lookAtUnsure() } catch { note(error) }
    }

    /// Notes what an error says about the account as a whole.
    func note(_ error: ProviderError) {
        switch error.kind {
        case .signedOut:
            accountTrouble = .signedOut(error.detail)
            keepTrouble("signed out: sign in again (\(error.detail))")
        case .clientRefused:
            accountTrouble = .clientRefused(error.detail)
            rest(for: settings.refusalInterval)
        case .offline:
            accountTrouble = .offline(error.detail)
            offlineTries += 1
            rest(for: backoff(after: offlineTries, error))
        default: break
        }
        tellWatchers()
        logger.notice("the service cannot be used for now", metadata: ["error": "\(error)"])
    }

    /// Sends nothing for so long; what was read of the service before is too old by then.
    func rest(for wait: Duration) {
        pausedUntil = now + wait.inMilliseconds
        feed.growsOld(order.next())
        wake(at: pausedUntil)
    }

    /// Whether nothing goes out for now.
    var rests: Bool { WaitMoment.wait(until: pausedUntil, now: now) != nil }

    /// How long to wait after so many failures: doubled each time, never the same for all.
    func backoff(after tries: Int, _ error: ProviderError) -> Duration {
        if let asked = error.retryAfter { return asked }
        // Trying whether the network is back costs the service nothing.
        let bound = error.kind == .offline ? settings.longestOfflineWait : settings.longestBackoff
        let longest = min(
            bound,
            .seconds(1) * (1 << min(max(tries - 1, 0), 12))
        )
        var numbers = SystemNumbers()
        return longest * Double.random(in: 0.5...1, using: &numbers)
    }

    /// Translates the catalog's errors once: a fault of the local disk.
    func stored<T>(_ body: () throws(CatalogError) -> T) throws(ProviderError) -> T {
        do throws(CatalogError) { return try body() } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
    }

    func storedAsync<T: Sendable>(
        _ body: () async throws(CatalogError) -> T
    ) async throws(ProviderError) -> T {
        do throws(CatalogError) { return try await body() } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
    }
}
