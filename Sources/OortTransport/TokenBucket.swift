import Synchronization

/// Limits the bytes that pass to so many a second.
///
/// Bytes pass at once and are paid for afterwards: the next caller waits until the bytes before are paid.
/// Nothing is saved up in quiet times, so that no burst follows them.
///
/// Isolation: any thread; no lock is held while a caller waits.
public final class TokenBucket: Sendable {
    private struct State {
        /// Nil for no limit.
        var bytesPerSecond: Int64?
        /// When all that passed is paid for.
        var paid = Duration.zero
        /// Counts changes of the limit: waiting callers then begin anew.
        var changes = 0
    }

    private let time: Timekeeper
    private let state = Mutex(State())

    /// No wait is longer before the limit is looked at again.
    private static let longestSleep = Duration.milliseconds(200)

    /// A bucket without a limit.
    public init(time: Timekeeper = .continuous) { self.time = time }

    /// The limit; nil for none, which ends all waits soon.
    public var bytesPerSecond: Int64? {
        get { state.withLock { $0.bytesPerSecond } }
        set {
            state.withLock { state in
                guard state.bytesPerSecond != newValue else { return }
                state.bytesPerSecond = newValue.map { max($0, 1) }
                state.paid = time.now
                state.changes += 1
            }
        }
    }

    /// Counts bytes that pass without waiting.
    public func charge(_ bytes: Int64) {
        _ = state.withLock { reserve(bytes, &$0) }
    }

    /// Returns when bytes may pass.
    ///
    /// - Throws: `.cancelled` when the task was cancelled meanwhile.
    public func take(_ bytes: Int64) async throws(TransportError) {
        var (moment, changes) = state.withLock { (reserve(bytes, &$0), $0.changes) }
        while let wanted = moment, time.now < wanted {
            try await time.sleep(min(wanted - time.now, Self.longestSleep))
            state.withLock { state in
                guard state.changes != changes else { return }
                changes = state.changes
                moment = reserve(bytes, &state)
            }
        }
    }

    /// Pays for bytes; the moment at which they may pass, nil for at once.
    private func reserve(_ bytes: Int64, _ state: inout State) -> Duration? {
        guard let rate = state.bytesPerSecond, bytes > 0 else { return nil }
        let moment = max(state.paid, time.now)
        state.paid = moment + .seconds(Double(bytes) / Double(rate))
        return moment
    }
}
