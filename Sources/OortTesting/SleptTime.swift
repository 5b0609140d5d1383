import Synchronization

/// Time that passes only by being slept through, at once.
public final class SleptTime: Clock, Sendable {
    /// So long after the clock was made.
    public struct Instant: InstantProtocol {
        var offset: Duration

        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }
        public func duration(to other: Instant) -> Duration { other.offset - offset }
        public static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Duration.zero
        var sleeps: [Duration] = []
    }

    private let state = Mutex(State())

    /// A clock on which nothing was slept yet.
    public init() {}

    public var now: Instant { Instant(offset: state.withLock { $0.now }) }
    public var minimumResolution: Duration { .nanoseconds(1) }
    /// How long each sleep was, in order.
    public var sleeps: [Duration] { state.withLock { $0.sleeps } }

    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        state.withLock {
            $0.sleeps.append(deadline.offset - $0.now)
            $0.now = max($0.now, deadline.offset)
        }
    }
}
