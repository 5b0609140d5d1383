import Synchronization

/// Who waits for a request: nobody, a person, or another request.
public enum RequestPriority: Int, Sendable, Comparable {
    /// The engine's own work: feeds, uploads, what is to be kept here.
    case background
    /// Bytes that a program will ask for soon, if it goes on reading as it does.
    case ahead
    /// A program waits in a system call.
    case interactive
    /// An answer that has begun to arrive is not read on before this one's: it cannot wait for
    /// that one's end, however few requests the service allows at a time.
    case attendant

    /// The priority of whatever runs in the current task; transports send interactive requests
    /// before others.
    @TaskLocal public static var current: RequestPriority = .interactive

    /// Who waits longer is less.
    public static func < (left: RequestPriority, right: RequestPriority) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// How long requests may be tried.
public enum RequestPatience {
    /// After this what failed is handed up by whatever sends requests in the current task; nil for as long
    /// as it thinks right.
    ///
    /// It is for what rests on news that grow old: whoever asked looks again before the next try.
    @TaskLocal public static var longest: Duration?
}

/// Makes a request that nobody waited for interactive once a program waits for its bytes.
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

    /// Of requests that nobody waits for yet.
    public init() {}

    /// A program waits now: the request that waits for its turn becomes interactive, and so are those
    /// that follow it.
    public func raise() {
        let action = state.withLock { state in
            state.isRaised = true
            defer { state.action = nil }
            return state.action
        }
        action?()
    }

    /// Runs `action` when a program comes to wait, at once where one does; in place of the action
    /// given before.
    public func whenRaised(_ action: @escaping @Sendable () -> Void) {
        let isRaised = state.withLock { state in
            state.action = state.isRaised ? nil : action
            return state.isRaised
        }
        if isRaised { action() }
    }
}
