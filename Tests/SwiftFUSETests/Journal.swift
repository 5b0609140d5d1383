import Synchronization

/// Counts what happened, by name, and lets tests wait for it instead of sleeping.
final class Journal: Sendable {
    private struct Waiting {
        let condition: @Sendable ([String: Int]) -> Bool
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var counts: [String: Int] = [:]
        var waiting: [Waiting] = []
    }

    private let state = Mutex(State())

    func record(_ event: String, times: Int = 1) {
        let ready = state.withLock { state in
            state.counts[event, default: 0] += times
            let ready = state.waiting.filter { $0.condition(state.counts) }
            state.waiting.removeAll { $0.condition(state.counts) }
            return ready
        }
        for waiting in ready { waiting.continuation.resume() }
    }

    subscript(_ event: String) -> Int { state.withLock { $0.counts[event, default: 0] } }

    /// Returns when `event` was recorded at least `count` times.
    func wait(for event: String, count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let waiting = Waiting(
                condition: { $0[event, default: 0] >= count },
                continuation: continuation
            )
            let isReady = state.withLock { state in
                if waiting.condition(state.counts) { return true }
                state.waiting.append(waiting)
                return false
            }
            if isReady { continuation.resume() }
        }
    }
}
