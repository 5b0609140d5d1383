import Synchronization

/// How one open file is being read, and so what to fetch before it is asked for.
///
/// Sequential reading ramps up: first 1 MiB ahead, then eight times as much as was read in order, and twice
/// as much once that is more than most files have; the parts grow with it, so that many of them are under
/// way at once. After a seek it begins again, with little.
public final class ReadAhead: Sendable {
    /// What is worth having, and in parts of what size.
    struct Wish: Hashable {
        /// From the read's begin to as far ahead as it makes sense.
        var range: Range<Int64>
        /// Bytes of one range request.
        var part: Int64
    }

    private struct State {
        /// Where reading in order began, and where it has come to; nil before the first read.
        var run: Range<Int64>?
    }

    static let firstWindow: Int64 = 1 << 20
    static let seekWindow: Int64 = 256 << 10
    /// The most that is fetched for one open file before it is asked for: while less than half as much was
    /// read, and at any time.
    static let (far, farthest): (Int64, Int64) = (96 << 20, 192 << 20)
    /// One connection brings a part of this size in some tenths of a second; the wait for its first byte is
    /// a tenth of that.
    static let largestPart: Int64 = 8 << 20
    /// Into how many parts the bytes ahead are divided at most: about as many as any service allows one
    /// account at a time.
    private static let parts: Int64 = 24
    /// The kernel's own readahead sends its requests slightly out of order.
    private static let slack: Int64 = 1 << 20

    private let state = Mutex(State())

    /// A reading that has not begun.
    public init() {}

    /// Notes a read, and returns what to have.
    ///
    /// The range is not empty; `largest` are the bytes that are worth asking for at once.
    func note(_ range: Range<Int64>, largest: Int64) -> Wish {
        state.withLock { state in
            let isNear =
                state.run.map { run in
                    range.lowerBound >= run.upperBound - Self.slack
                        && range.lowerBound - run.upperBound <= Self.slack
                } ?? (range.lowerBound == 0)
            guard isNear else {
                state.run = range
                return Self.wish(range, ahead: Self.seekWindow, part: Self.seekWindow)
            }
            guard let run = state.run else {
                state.run = range
                let window = min(Self.firstWindow, largest)
                return Self.wish(range, ahead: window, part: window)
            }
            let next = max(run.upperBound, range.upperBound)
            let start = min(run.lowerBound, range.lowerBound)
            state.run = start..<next
            let read = min(next - start, Self.farthest)
            let ahead = max(
                Self.firstWindow,
                min(read * 8, Self.far),
                min(read * 2, Self.farthest)
            )
            var part = min(Self.firstWindow, largest)
            let parts = min(max(12, ahead / (4 << 20)), Self.parts)
            while part * parts < ahead, part * 2 <= min(Self.largestPart, largest) {
                part *= 2
            }
            // Whole parts only: the next read would ask for the rest of a part by itself.
            let end = (range.upperBound.addingReportingOverflow(ahead).partialValue / part) * part
            return Wish(range: range.lowerBound..<max(range.upperBound, end), part: part)
        }
    }

    /// The bytes from a read's beginning to `ahead` past it.
    private static func wish(_ range: Range<Int64>, ahead: Int64, part: Int64) -> Wish {
        let end = range.lowerBound.addingReportingOverflow(ahead)
        return Wish(
            range: range.lowerBound..<max(range.upperBound, end.overflow ? .max : end.partialValue),
            part: part
        )
    }
}
