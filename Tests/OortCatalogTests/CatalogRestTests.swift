import OortModel
import Synchronization
import Testing

@testable import OortCatalog

/// What waits until programs leave the catalog alone, and what is asked of it for each folder.
@Suite("a catalog that is used")
struct CatalogRestTests {
    /// Time that passes by being slept through, during which something is done.
    private final class BusyTime: Clock {
        struct Instant: InstantProtocol {
            var offset: Duration
            func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
            func duration(to other: Instant) -> Duration { other.offset - offset }
            static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
        }

        private let state = Mutex((now: Duration.zero, sleeps: 0))
        private let body: @Sendable (Int) -> Void

        init(_ body: @escaping @Sendable (Int) -> Void) { self.body = body }

        var now: Instant { Instant(offset: state.withLock { $0.now }) }
        var minimumResolution: Duration { .nanoseconds(1) }
        var sleeps: Int { state.withLock { $0.sleeps } }

        func sleep(until deadline: Instant, tolerance: Duration?) async throws {
            try Task.checkCancellation()
            let count = state.withLock { state in
                state.now = max(state.now, deadline.offset)
                state.sleeps += 1
                return state.sleeps
            }
            body(count)
        }
    }

    private let temporary: TemporaryCatalog

    init() throws { temporary = try TemporaryCatalog() }

    private static func use(_ catalog: Catalog) {
        do { _ = try catalog.account(AccountID(1)) } catch { Issue.record(error) }
    }

    @Test("what can wait begins when nobody has used it for a moment")
    func rest() async throws {
        let catalog = temporary.catalog
        let clock = BusyTime { if $0 < 4 { Self.use(catalog) } }
        try await catalog.waitForRest(of: .seconds(1), atMost: .seconds(30), clock: clock)
        #expect(clock.sleeps == 4)
    }

    @Test("what can wait begins in any case after some time")
    func noRest() async throws {
        let catalog = temporary.catalog
        let clock = BusyTime { _ in Self.use(catalog) }
        try await catalog.waitForRest(of: .seconds(1), atMost: .seconds(30), clock: clock)
        #expect(clock.sleeps == 30)
    }

    @Test("who ends meanwhile begins nothing")
    func cancelled() async {
        let catalog = temporary.catalog
        let clock = BusyTime { _ in Self.use(catalog) }
        let (end, _) = AsyncStream<Void>.makeStream()
        let waiting = Task {
            for await _ in end {}
            try await catalog.waitForRest(of: .seconds(1), atMost: .seconds(30), clock: clock)
        }
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
    }

    @Test("a walk through an account whose tree is known asks once whether it is")
    func enumerated() async throws {
        let fixture = try TemporaryAccount()
        let catalog = fixture.catalog
        try await catalog.beginEnumeration(of: fixture.account.id)
        #expect(try !catalog.isEnumerated(fixture.account.id))
        try await fixture.page([.told("d/", "d"), .told("e/", "e")]) { $0.endsEnumeration = true }
        let folders = try catalog.children(of: fixture.account.root, after: nil, limit: 10)
        #expect(try folders.count == 2 && catalog.isEnumerated(fixture.account.id))
        let before = catalog.uses.load(ordering: .relaxed)
        #expect(try folders.allSatisfy { try catalog.isKnown(folder: $0) })
        #expect(catalog.uses.load(ordering: .relaxed) == before)
    }
}
