import Synchronization

/// Who waits for a request: nobody, a person, or another request.
public enum RequestPriority: Int, Sendable, Comparable {
    /// The engine's own work: feeds, uploads, what is to be kept here.
    case background
    /// Bytes that a program will ask for soon, if it goes on reading as it does.
    case ahead
    /// A program waits in a system call.
    case interactive
    /// The answer to another request, which has begun to arrive, waits for this one's: this one cannot wait
    /// for that to end, however few requests the service allows at a time.
    case attendant

    /// The priority of whatever runs in the current task; transports send interactive requests
    /// before others.
    @TaskLocal public static var current: RequestPriority = .interactive

    /// A request that can wait longer is less.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// How long requests may be tried.
public enum RequestPatience {
    /// How long the current task's requests are tried before a failure is thrown; nil for as long as the
    /// transport thinks right.
    ///
    /// For requests that depend on news, which grow old: the caller looks at the news again before the next
    /// try.
    @TaskLocal public static var longest: Duration?
}

/// Raises a request that no program waited for to interactive once one waits for its bytes.
///
/// Isolation: any thread.
public final class RequestUrgency: Sendable {
    private struct State {
        var isRaised = false
        var action: (@Sendable () -> Void)?
    }

    /// The urgency of the requests that the current task sends below `.interactive`.
    @TaskLocal public static var current: RequestUrgency?

    private let state = Mutex(State())

    /// An urgency for requests that no program waits for yet.
    public init() {}

    /// A program waits now: the request that waits for its turn becomes interactive, and so do those that
    /// follow it.
    public func raise() {
        let action = state.withLock { state in
            state.isRaised = true
            defer { state.action = nil }
            return state.action
        }
        action?()
    }

    /// Runs `action` when a program begins to wait, or at once if one does; replaces the action given
    /// before.
    public func whenRaised(_ action: @escaping @Sendable () -> Void) {
        let isRaised = state.withLock { state in
            state.action = state.isRaised ? nil : action
            return state.isRaised
        }
        if isRaised { action() }
    }
}
