/// A clock as the decorators need it; tests pass one that they move by hand.
public struct Timekeeper: Sendable {
    private let passed: @Sendable () -> Duration
    private let wait: @Sendable (Duration) async throws -> Void

    /// The time of `clock`, counted from now.
    public init<C: Clock>(_ clock: C) where C.Duration == Duration {
        let start = clock.now
        passed = { start.duration(to: clock.now) }
        wait = { try await clock.sleep(until: clock.now.advanced(by: $0), tolerance: nil) }
    }

    /// Time as it passes.
    public static var continuous: Timekeeper { Timekeeper(ContinuousClock()) }

    /// How long ago the timekeeper was made.
    public var now: Duration { passed() }

    /// Returns when so much time has passed.
    ///
    /// - Throws: `.cancelled` when the task was cancelled meanwhile.
    public func sleep(_ duration: Duration) async throws(TransportError) {
        do {
            try await wait(duration)
        } catch {
            throw .cancelled
        }
    }
}
