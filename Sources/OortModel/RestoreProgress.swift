import Synchronization

/// How far the restore of a folder came that a trash brings back file by file; all tries of it share one.
public final class RestoreProgress: Sendable {
    private struct State {
        var hasBegun = false
        var since: Timestamp?
        var done = 0
        var left = 0
    }

    private let state = Mutex(State())

    /// The progress of a restore of which nothing was sent.
    public init() {}

    /// Whether a step may have been done: what is at the restore's place may be its own.
    public var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// When the deletion began that the first try took back; later ones see a part of its files only.
    public var since: Timestamp? { state.withLock { $0.since } }

    /// How many files are back, of how many.
    public var files: (back: Int, all: Int) {
        state.withLock { ($0.done, $0.done + $0.left) }
    }

    /// Notes that the first step of a try is sent.
    ///
    /// - Parameters:
    ///   - files: how many are to come back yet.
    ///   - since: when their deletion began.
    public func begin(files: Int, since: Timestamp?) {
        state.withLock { state in
            state.hasBegun = true
            state.since = since
            state.left = files
        }
    }

    /// Notes that one more file is back.
    public func oneIsBack() {
        state.withLock { state in
            state.done += 1
            state.left -= 1
        }
    }
}
