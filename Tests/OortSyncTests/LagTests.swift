import OortCatalog
import OortModel
import OortSync
import Testing

/// What we did at a service whose answers about many items lag behind its answers about one, as Drive's and
/// OneDrive's.
@Suite("answers that lag", .timeLimit(.minutes(15)))
struct LagTests {
    /// Runs a test in which the service has `old` and `d/sub`, the machine knows both, and from then on answers
    /// about many items show nothing newer.
    private func run(_ body: (World) async throws -> Void) async throws {
        let cloud = MemoryCloud { $0.lag = .seconds(600) }
        cloud.put("old", "text")
        cloud.put("d", nil)
        cloud.put("d/sub", "in it")
        try await World.run(cloud) { world in
            try await world.agree()
            cloud.standBehind()
            try await body(world)
        }
    }

    /// Sends what is to be sent, has everything enumerated in its former state, perhaps by the next process,
    /// and then in its present one.
    private func hearOldNews(
        _ world: World,
        isKilled: Bool,
        _ wanted: [String: String]
    ) async throws {
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(world.cloud.tree == wanted)
        if isKilled { await world.restart() }
        _ = world.cloud.takeCalls()
        let enumeration = try world.catalog.account(world.account.id)?.enumeration
        world.cloud.loseCursors()
        world.cloud.put("news", "of somebody")
        try await until {
            _ = await world.engine.sync(timeout: .seconds(600))
            return try world.catalog.account(world.account.id)?.enumeration != enumeration
        }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(try await world.tree() == wanted)
        world.cloud.catchUp()
        try await world.settle()
        #expect(try await world.tree() == wanted.merging(["news": "of somebody"]) { $1 })
        let calls = world.cloud.takeCalls()
        #expect(calls["upload"] == nil && calls["move"] == nil && calls["delete"] == nil)
    }

    @Test("what was removed here stays so", arguments: [false, true])
    func removed(isKilled: Bool) async throws {
        try await run { world in
            try world.remove("old")
            try await hearOldNews(world, isKilled: isKilled, ["d/": "", "d/sub": "in it"])
        }
    }

    @Test("what was renamed, moved and written here stays so", arguments: [false, true])
    func changed(isKilled: Bool) async throws {
        try await run { world in
            try world.rename("old", to: "d/new")
            try world.write("d/sub", "changed")
            try world.makeFolder("e")
            try await hearOldNews(
                world,
                isKilled: isKilled,
                ["d/": "", "d/new": "text", "d/sub": "changed", "e/": ""]
            )
        }
    }

    @Test("what somebody does after us counts, however soon it is heard of")
    func theirs() async throws {
        try await run { world in
            try world.write("old", "ours")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            world.cloud.catchUp()
            world.cloud.put("old", "theirs")
            world.cloud.remove("d")
            try await world.settle()
            #expect(try await world.tree() == ["old": "theirs"])
        }
    }
}
