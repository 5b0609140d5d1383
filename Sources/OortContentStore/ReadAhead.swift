import Synchronization

/// How one open file is being read, and so what to fetch before it is asked for.
///
/// Reading in order ramps up: 1 MiB first, then windows that double up to the provider's largest
/// range request, three of them ahead. A seek begins again, with little.
public final class ReadAhead: Sendable {
    /// What is worth having, and in parts of which size.
    struct Wish: Hashable {
        /// From the read's begin to as far ahead as it makes sense.
        var range: Range<Int64>
        /// Bytes of one range request.
        var part: Int64
    }

    private struct State {
        var next: Int64 = 0
        var window: Int64 = 0
        var grownAt: Int64 = 0
    }

    static let firstWindow: Int64 = 1 << 20
    static let seekWindow: Int64 = 256 << 10
    /// The kernel's own readahead sends its requests slightly out of order.
    private static let slack: Int64 = 1 << 20

    private let state = Mutex(State())

    /// For a file of which nothing was read yet.
    public init() {}

    /// Notes a read, and says what to have.
    func note(_ range: Range<Int64>, largest: Int64) -> Wish {
        state.withLock { state in
            let isFirst = state.window == 0
            let isNear =
                range.lowerBound >= state.next - Self.slack
                && range.lowerBound <= state.next + Self.slack
            guard isNear, !isFirst || range.lowerBound == 0 else {
                state = State(
                    next: range.upperBound,
                    window: Self.seekWindow,
                    grownAt: range.lowerBound
                )
                return Wish(
                    range: range
                        .lowerBound..<max(
                            range.upperBound,
                            range.lowerBound + Self.seekWindow
                        ),
                    part: Self.seekWindow
                )
            }
            state.next = max(state.next, range.upperBound)
            if isFirst {
                state.window = min(Self.firstWindow, largest)
                return Wish(
                    range: range
                        .lowerBound..<max(
                            range.upperBound,
                            range.lowerBound + state.window
                        ),
                    part: state.window
                )
            }
            if state.next - state.grownAt >= state.window {
                state.window = min(state.window * 2, largest)
                state.grownAt = state.next
            }
            return Wish(
                range: range.lowerBound..<range.upperBound + 3 * state.window,
                part: state.window
            )
        }
    }
}
