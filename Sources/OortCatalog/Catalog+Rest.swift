import Synchronization

extension Catalog {
    /// Returns when there was no read or change for a moment, or after some time in any case.
    ///
    /// For work that can wait: it must not take processor and disk from what programs do first in a new
    /// mount.
    ///
    /// - Throws: `CancellationError` when the task is cancelled.
    public func waitForRest(
        of moment: Duration,
        atMost limit: Duration,
        clock: any Clock<Duration> = ContinuousClock()
    ) async throws {
        var waited = Duration.zero
        var seen: UInt64?
        while waited < limit {
            let now = uses.load(ordering: .relaxed)
            if now == seen { return }
            seen = now
            try await clock.sleep(for: moment)
            waited += moment
        }
    }
}
