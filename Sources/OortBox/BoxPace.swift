import OortModel
import Synchronization

/// Lets a number of requests of a kind begin in a minute: some at once, the others spread evenly, which is
/// faster than being refused and waiting for all.
///
/// Isolation: any task; no lock is held while a request waits.
final class BoxPace: Sendable {
    private let burst: Double
    private let perSecond: Double
    private let clock: any Clock<Duration>
    private let elapsed: @Sendable () -> Duration
    private let state: Mutex<(left: Double, at: Duration)>

    /// `burst` requests at once, and `perMinute` further ones each minute.
    init(burst: Int, perMinute: Int, clock: some Clock<Duration>) {
        self.burst = Double(burst)
        perSecond = Double(perMinute) / 60
        self.clock = clock
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        state = Mutex((Double(burst), .zero))
    }

    /// Returns when the next request may begin.
    func take() async throws(ProviderError) {
        let now = elapsed()
        let wait = state.withLock { state -> Double in
            let passed = (now - state.at) / .seconds(1)
            state.left = min(burst, state.left + max(passed, 0) * perSecond) - 1
            state.at = now
            return state.left < 0 ? -state.left / perSecond : 0
        }
        guard wait > 0 else { return }
        do { try await clock.sleep(for: .seconds(wait)) } catch {
            throw ProviderError(.cancelled, detail: "cancelled")
        }
    }
}
