import Synchronization

/// How much passes a second, measured over the last seconds.
///
/// A value without a clock: times are passed in, and never go back.
public struct RateWindow: Sendable {
    /// All that was counted.
    public private(set) var total: Int64 = 0
    /// The amounts of those seconds of the window that have any, oldest first.
    private var seconds: [(second: Int64, amount: Int64)] = []
    /// The second in which counting began, after a silence as long as the window.
    private var beginning: Int64 = 0

    /// How many seconds back the rate is measured.
    private static let length: Int64 = 10

    /// A window in which nothing was counted yet.
    public init() {}

    /// Counts an amount at a time.
    public mutating func add(_ amount: Int64, at time: Duration) {
        total += amount
        let second = time.components.seconds
        if let last = seconds.last, last.second >= second {
            seconds[seconds.count - 1].amount += amount
            return
        }
        if (seconds.last?.second ?? .min) < second - Self.length { beginning = second }
        seconds.removeAll { $0.second < second - Self.length }
        seconds.append((second, amount))
    }

    /// The amount a second over the last whole seconds; nil before two of them were measured, or when
    /// nothing was counted in them.
    public func perSecond(at time: Duration) -> Double? {
        let now = time.components.seconds
        // The first second was counted only in part.
        let start = max(beginning + 1, now - Self.length)
        guard now - start >= 2 else { return nil }
        let amount = seconds.lazy.filter { (start..<now).contains($0.second) }
            .reduce(0) { $0 + $1.amount }
        return amount > 0 ? Double(amount) / Double(now - start) : nil
    }
}

/// Counts what passes, and how much of it passes a second.
///
/// Isolation: any thread; a lock is held for moments only.
public final class RateMeter: Sendable {
    private let start = ContinuousClock.now
    private let window = Mutex(RateWindow())

    /// A meter at 0.
    public init() {}

    /// Counts an amount, now.
    public func add(_ amount: Int64) {
        let time = ContinuousClock.now - start
        window.withLock { $0.add(amount, at: time) }
    }

    /// All that was counted.
    public var total: Int64 { window.withLock { $0.total } }

    /// The amount a second; nil before that is known, or when nothing passes.
    public var perSecond: Double? {
        let time = ContinuousClock.now - start
        return window.withLock { $0.perSecond(at: time) }
    }
}
