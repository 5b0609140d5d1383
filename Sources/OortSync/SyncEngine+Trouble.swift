import Logging
import OortCatalog
import OortModel

/// What keeps the account as a whole from working, and what its errors are called.
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

    /// Stores the trouble for the commands that look while no mount runs.
    private func keepTrouble(_ words: String?) {
        do throws(CatalogError) { try catalog.setTrouble(words, of: account) } catch {
            logger.error("the account's trouble was not stored", metadata: ["error": "\(error)"])
        }
    }

    /// Asks for what is unsure after an operation: what cannot be asked for now stays unsure, and is
    /// asked for after the next run of the feed.
    func lookAtUnsureAfterwards() async {
        do throws(ProviderError) { try await lookAtUnsure() } catch { note(error) }
    }

    /// What an error says of the account as a whole.
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

    /// Nothing goes out for so long; what was heard of the service before is old by then.
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
        // To ask whether the network is there again costs the service nothing.
        let bound = error.kind == .offline ? settings.longestOfflineWait : settings.longestBackoff
        let longest = min(
            bound,
            .seconds(1) * (1 << min(max(tries - 1, 0), 12))
        )
        return longest * Double.random(in: 0.5...1)
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
