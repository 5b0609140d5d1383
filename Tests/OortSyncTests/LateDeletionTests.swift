import OortModel
import OortTesting
import Testing

@testable import OortSync

@Suite("a folder whose deletion had to wait", .timeLimit(.minutes(5)))
struct LateDeletionTests {
    /// A folder `d` at the service, whose news come only to those who ask.
    private func with(_ body: (World, MemoryCloud) async throws -> Void) async throws {
        let cloud = MemoryCloud()
        var settings = SyncSettings()
        (settings.settle, settings.longestBackoff) = (.seconds(60), .milliseconds(10))
        try await World.run(cloud, settings: settings) { world in
            try world.makeFolder("d")
            try world.write("d/f", "f")
            try await world.settle()
            cloud.fallSilent()
            try await read(world)
            try await body(world, cloud)
        }
    }

    /// Has the feed read once.
    private func read(_ world: World) async throws {
        let before = world.cloud.looksForNews
        await world.engine.readFeedSoon()
        try await until { world.cloud.looksForNews > before }
    }

    private func expectKept(_ world: World) async throws {
        _ = await world.engine.sync(timeout: .seconds(600))
        let kept = ["d/": "", "d/theirs": "theirs"]
        #expect(world.cloud.tree == kept)
        #expect(try await world.tree() == kept)
        // Now that it was seen, it is deleted.
        try world.remove("d")
        _ = await world.engine.sync(timeout: .seconds(600))
        #expect(world.cloud.tree.isEmpty)
    }

    @Test("shows the folder again where the service never reports what lies in it")
    func hidden() async throws {
        let cloud = MemoryCloud()
        var settings = SyncSettings()
        (settings.settle, settings.longestBackoff) = (.zero, .milliseconds(10))
        try await World.run(cloud, settings: settings) { world in
            try world.makeFolder("d")
            try await world.settle()
            cloud.hideContents()
            try world.remove("d")
            try world.makeFolder("e")
            try await until { try await world.tree() == ["d/": "", "e/": ""] }
            // Its name is not taken by what nobody sees: what is put there goes out.
            try world.write("d/f", "f")
            _ = await world.engine.sync(timeout: .seconds(600))
            #expect(cloud.tree == ["d/": "", "d/f": "f", "e/": ""])
        }
    }

    @Test("keeps what somebody put there while it was paused, after the last look")
    func paused() async throws {
        try await with { world, cloud in
            await world.engine.setPaused(true)
            try world.remove("d")
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { await !world.engine.needsPlan }
            try await read(world)
            try await until { await !world.engine.needsPlan }
            cloud.put("d/theirs", "theirs")
            await world.engine.setPaused(false)
            _ = await push.value
            try await expectKept(world)
        }
    }

    @Test(
        "keeps what somebody put there before it was tried again",
        arguments: [
            ProviderError.Kind.rateLimited(retryAfter: .milliseconds(200)),
            ProviderError.Kind.offline, ProviderError.Kind.outcomeUnknown(retryAfter: nil),
            ProviderError.Kind.locked,
        ]
    )
    func triedAgain(kind: ProviderError.Kind) async throws {
        try await with { world, cloud in
            cloud.refuse("delete", with: kind)
            cloud.atNextRefusal { cloud.put("d/theirs", "theirs") }
            try world.remove("d")
            try await expectKept(world)
        }
    }
}
