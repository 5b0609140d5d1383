/// What the machine gives to a process unasked: the time, chance, and threads.
///
/// Tests that must repeat give it themselves; everywhere else it is the system's.
package struct SystemInputs: Sendable {
    /// What a test gives to the current task, and to all that this one begins; nil for the system's.
    ///
    /// Where a test gives it, there is one thread: databases are read and written on that thread.
    @TaskLocal package static var given: SystemInputs?

    /// The time now.
    package let time: @Sendable () -> Timestamp
    /// 64 random bits.
    package let number: @Sendable () -> UInt64
    /// Waits for so long; throws when the task is cancelled.
    package let sleep: @Sendable (Duration) async throws -> Void

    /// SystemInputs of a test; each function is called from any task of it.
    package init(
        time: @escaping @Sendable () -> Timestamp,
        number: @escaping @Sendable () -> UInt64,
        sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        (self.time, self.number, self.sleep) = (time, number, sleep)
    }

    /// Lets others go on that could.
    package static func yield() async {
        if let given { try? await given.sleep(.zero) } else { await Task.yield() }
    }

    /// Waits for so long.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    package static func sleep(for duration: Duration) async throws {
        if let given {
            try await given.sleep(duration)
        } else {
            try await Task.sleep(for: duration)
        }
    }
}

/// The random numbers of the current task's surroundings.
package struct SystemNumbers: RandomNumberGenerator {
    /// Numbers of the system, or of the test.
    package init() {}

    package func next() -> UInt64 {
        if let given = SystemInputs.given { return given.number() }
        var numbers = SystemRandomNumberGenerator()
        return numbers.next()
    }
}
