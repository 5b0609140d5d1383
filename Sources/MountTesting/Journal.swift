import Synchronization

/// Counts what happened, by name, and lets tests wait for it instead of sleeping.
public final class Journal: Sendable {
    private struct Waiting {
        let event: String
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var counts: [String: Int] = [:]
        var waiting: [Waiting] = []
    }

    private let state = Mutex(State())

    /// An empty journal.
    public init() {}

    /// Counts an event.
    public func record(_ event: String, times: Int = 1) {
        let ready = state.withLock { state in
            state.counts[event, default: 0] += times
            let count = state.counts[event, default: 0]
            let ready = state.waiting.filter { $0.event == event && $0.count <= count }
            state.waiting.removeAll { $0.event == event && $0.count <= count }
            return ready
        }
        for waiting in ready { waiting.continuation.resume() }
    }

    /// How often an event was recorded.
    public subscript(_ event: String) -> Int { state.withLock { $0.counts[event, default: 0] } }

    /// Returns when an event was recorded at least `count` times.
    public func wait(for event: String, count: Int = 1) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if state.counts[event, default: 0] >= count { return true }
                state.waiting.append(
                    Waiting(event: event, count: count, continuation: continuation)
                )
                return false
            }
            if isReady { continuation.resume() }
        }
    }
}
