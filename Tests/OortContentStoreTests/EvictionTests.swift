import Dispatch
import OortCatalog
import OortModel
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Eviction while another is under way", .timeLimit(.minutes(5)))
struct EvictionTests {
    @Test("what was to fit in is counted once when an eviction looks again")
    func evictionLooksAgain() async throws {
        let size = Int64(1 << 20)
        let disk = SlowDisk()
        var settings = ContentStoreSettings()
        (settings.limit, settings.reserve) = (10 * size, 1)
        settings.freeBytes = { _ in disk.freeBytes() }
        let fixture = try StoreFixture(settings: settings, saveInterval: .seconds(3600))
        let store = fixture.store
        for number in 0..<10 {
            let content = try fixture.remote(
                "f\(number)",
                [UInt8](repeating: 1, count: Int(size))
            )
            _ = try await content.bytes(0..<size)
            await content.verified()
            store.close(content)
        }
        await store.save()
        try #require(store.usage.cached == 10 * size)
        // While it looks what there is, what was to fit in comes, and somebody asks once more.
        disk.meanwhile = {
            store.room.addCached(size)
            await store.evict()
        }
        await disk.evict(store, cached: size)
        #expect(disk.meanwhile == nil)
        #expect(store.usage.cached == 10 * size)
        #expect(fixture.files("cache").count == 9)
    }

    @Test("where what is pinned is above the limit, not each close looks for what may go")
    func pinnedAboveTheLimit() async throws {
        let size = Int64(1 << 20)
        var settings = ContentStoreSettings()
        (settings.limit, settings.reserve) = (size, 1)
        let fixture = try StoreFixture(settings: settings, saveInterval: .seconds(3600))
        let store = fixture.store
        for name in ["kept", "also kept"] {
            let inode = try await fixture.tellOfItem(name, revision: "1", size: size)
            try await fixture.catalog.pin(inode, until: nil)
        }
        func read(_ name: String) async throws {
            let content = try fixture.remote(name, [UInt8](repeating: 1, count: Int(size)))
            _ = try await content.bytes(0..<size)
            await content.verified()
            store.close(content)
            await store.save()
        }
        try await read("kept")
        try await read("also kept")
        #expect(store.mayEvict)
        await store.evict()
        #expect(store.usage.cached == 2 * size && !store.mayEvict)
        try await read("kept")
        #expect(!store.mayEvict)
        // One that may go is looked for, and found.
        try await read("other")
        #expect(store.mayEvict)
        await store.evict()
        #expect(store.usage.cached == 2 * size)
        await store.evict()
        #expect(!store.mayEvict)
        // So is what need not be kept any longer, by whoever takes its pin away.
        let pin = try #require(try await fixture.catalog.pins(at: 0).first?.inode)
        _ = try await fixture.catalog.unpin(pin)
        await store.evict()
        #expect(store.usage.cached == size)
    }
}

/// A disk that gives its room only after something else is done; on a thread of its own, which may wait.
private actor SlowDisk {
    private nonisolated let queue = SlowQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: queue)
    }

    private nonisolated let task = Mutex<(@Sendable () async -> Void)?>(nil)

    /// What is done the next time that somebody asks.
    nonisolated var meanwhile: (@Sendable () async -> Void)? {
        get { task.withLock { $0 } }
        set { task.withLock { $0 = newValue } }
    }

    nonisolated func freeBytes() -> Int64 {
        let meanwhile = task.withLock { task in
            defer { task = nil }
            return task
        }
        if let meanwhile {
            let isDone = DispatchSemaphore(value: 0)
            Task.detached {
                await meanwhile()
                isDone.signal()
            }
            isDone.wait()
        }
        return 1 << 40
    }

    func evict(_ store: ContentStore, cached: Int64) async { await store.evict(cached: cached) }
}

/// Runs an actor's jobs one after the other on a thread of their own.
private final class SlowQueue: SerialExecutor {
    private let queue = DispatchQueue(label: "slow disk")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { unsafe job.runSynchronously(on: UnownedSerialExecutor(ordinary: self)) }
    }
}
