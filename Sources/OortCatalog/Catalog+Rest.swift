import Synchronization

extension Catalog {
    /// Returns when nobody has read or changed anything for a moment, or after some time in any case.
    ///
    /// For work that can wait: it is not to take the processor and the disk from what a program does
    /// first in a new mount.
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
