import OortCatalog
import OortModel
import OortSync
import Synchronization
import Testing

/// Opening folders while the first enumeration is under way.
@Suite("folders that are opened beside an enumeration", .timeLimit(.minutes(15)))
struct ListingPatienceTests {
    /// A machine whose first enumeration has given one of its pages, and a folder that was listed
    /// meanwhile, which took ten seconds.
    private func amidEnumeration(
        _ body: (World, MemoryCloud, HandClock) async throws -> Void
    ) async throws {
        let cloud = MemoryCloud()
        for name in ["1", "2", "3", "4", "5", "6"] { cloud.put(name, nil) }
        cloud.holdEnumeration(afterPages: 1)
        cloud.hold(.listings)
        let clock = HandClock()
        try await World.run(cloud, clock: clock) { world in
            try await until { cloud.isWaiting(.feed) }
            let (engine, root) = (world.engine, world.account.root)
            let listing = Task { try await engine.list(root) }
            try await until { cloud.isWaiting(.listings) }
            clock.advance(by: .seconds(10))
            cloud.release(.listings)
            try await listing.value
            _ = cloud.takeCalls()
            try await body(world, cloud, clock)
        }
    }

    @Test("the next one waits for the enumeration, which tells of it without a call of its own")
    func enumerationIsFaster() async throws {
        try await amidEnumeration { world, cloud, clock in
            let (engine, folder) = (world.engine, try world.node("3").inode)
            let listing = Task { try await engine.list(folder) }
            try await until { clock.awaited == 1 }
            cloud.release(.feed)
            try await listing.value
            #expect(cloud.takeCalls() == [:])
            #expect(try world.catalog.isKnown(folder: world.node("3")))
        }
    }

    @Test("the next one waits no longer than folders were listed, and the one after it not again")
    func enumerationIsSlower() async throws {
        try await amidEnumeration { world, cloud, clock in
            let (engine, folder) = (world.engine, try world.node("3").inode)
            let listing = Task { try await engine.list(folder) }
            try await until { clock.awaited == 1 }
            clock.advance(by: .seconds(9))
            #expect(cloud.takeCalls() == [:])
            clock.advance(by: .seconds(1))
            try await listing.value
            #expect(cloud.takeCalls() == ["list": 1])
            try await engine.list(try world.node("4").inode)
            #expect(cloud.takeCalls() == ["list": 1])
            cloud.release(.feed)
        }
    }

    @Test("many who open folders at once wait together as long as one would")
    func together() async throws {
        try await amidEnumeration { world, cloud, clock in
            let engine = world.engine
            let folders = try ["2", "3", "4", "5"].map { try world.node($0).inode }
            let listings = folders.map { folder in Task { try await engine.list(folder) } }
            try await until { clock.awaited == folders.count }
            clock.advance(by: .seconds(10))
            for listing in listings { try await listing.value }
            #expect(cloud.takeCalls() == ["list": folders.count])
            // None of the time in which they were listed has passed: nothing is left to wait for.
            try await engine.list(try world.node("6").inode)
            #expect(cloud.takeCalls() == ["list": 1])
            cloud.release(.feed)
        }
    }

    @Test("nobody waits for an enumeration that does not go on")
    func enumerationFails() async throws {
        try await amidEnumeration { world, cloud, clock in
            let (engine, folder) = (world.engine, try world.node("3").inode)
            let listing = Task { try await engine.list(folder) }
            try await until { clock.awaited == 1 }
            cloud.refuse("feed", with: .offline)
            cloud.release(.feed)
            try await listing.value
            #expect(cloud.takeCalls()["list"] == 1)
        }
    }

    @Test("an enumeration does not wait for the account's room")
    func room() async throws {
        let cloud = MemoryCloud()
        cloud.put("1", "1")
        cloud.hold(.room)
        try await World.run(cloud) { world in
            try await until { try world.catalog.isEnumerated(world.account.id) }
            try await until { cloud.isWaiting(.room) }
            cloud.release(.room)
            try await until { try world.catalog.account(world.account.id)?.quota != nil }
        }
    }
}

/// A clock that the test moves.
private final class HandClock: Clock, Sendable {
    struct Instant: InstantProtocol {
        var offset: Duration
        func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
        func duration(to other: Instant) -> Duration { other.offset - offset }
        static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
    }

    private struct State {
        var now = Duration.zero
        var last = 0
        var sleepers: [Int: (deadline: Duration, end: AsyncStream<Void>.Continuation)] = [:]
    }

    private let state = Mutex(State())

    var now: Instant { Instant(offset: state.withLock { $0.now }) }
    var minimumResolution: Duration { .nanoseconds(1) }

    /// How many sleep until ten seconds after now, as nothing else in these tests does.
    var awaited: Int {
        state.withLock { state in
            state.sleepers.values.count { $0.deadline == state.now + .seconds(10) }
        }
    }

    func advance(by duration: Duration) {
        let due = state.withLock { state in
            state.now += duration
            return state.sleepers.values.filter { [now = state.now] in $0.deadline <= now }
        }
        for sleeper in due { sleeper.end.finish() }
    }

    func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        let (ends, end) = AsyncStream<Void>.makeStream()
        let number: Int? = state.withLock { state in
            guard state.now < deadline.offset else { return nil }
            state.last += 1
            state.sleepers[state.last] = (deadline.offset, end)
            return state.last
        }
        guard let number else { return }
        for await _ in ends {}
        state.withLock { $0.sleepers[number] = nil }
        try Task.checkCancellation()
    }
}
