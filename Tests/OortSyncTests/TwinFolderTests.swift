import OortCatalog
import OortModel
import OortSync
import Testing

/// Two machines make a folder of one name at a service that takes a name twice.
@Suite("a folder that two machines make is one", .timeLimit(.minutes(15)))
struct TwinFolderTests {
    private static func cloud() -> MemoryCloud {
        MemoryCloud(duplicates: true) { $0.takesClientIDs = true }
    }

    /// What there is when both have done their part.
    private static let merged = [
        "d/": "", "d/one": "one", "d/other": "other", "d/sub/": "", "d/sub/one": "deep one",
        "d/sub/other": "deep other",
    ]

    private func make(_ world: World, _ name: String) throws {
        for folder in ["d", "d/sub"] { try world.makeFolder(folder) }
        try world.write("d/\(name)", name)
        try world.write("d/sub/\(name)", "deep \(name)")
    }

    /// Both machines, and a fresh one, come to show what the service has, which is this.
    private func end(_ worlds: [World], _ cloud: MemoryCloud, _ words: String) async throws {
        func isMerged() async -> Bool {
            guard cloud.tree == Self.merged, cloud.count == Self.merged.count else { return false }
            for world in worlds where (try? await world.tree()) != Self.merged { return false }
            return true
        }
        let patience = ContinuousClock.now + .seconds(300)
        while !(await isMerged()), .now < patience {
            for world in worlds { _ = await world.engine.sync(timeout: .milliseconds(200)) }
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(cloud.tree == Self.merged, "\(words)")
        #expect(cloud.count == Self.merged.count, "\(words): something is there twice")
        let fresh = try World(cloud)
        fresh.start()
        try await until { try fresh.catalog.account(fresh.account.id)?.isEnumerated == true }
        for world in worlds + [fresh] { #expect(try await world.tree() == Self.merged, "\(words)") }
        for world in worlds + [fresh] { await world.end() }
    }

    @Test("what another machine made is read of before the folder is made")
    func heard() async throws {
        let cloud = Self.cloud()
        let (one, other) = (try World(cloud), try World(cloud))
        for world in [one, other] {
            world.start()
            try await world.settle()
        }
        cloud.fallSilent()
        try make(one, "one")
        #expect(await one.engine.sync(timeout: .seconds(600)).isComplete)
        _ = cloud.takeCalls()
        try make(other, "other")
        #expect(await other.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.calls("createFolder") == 0)
        #expect(cloud.calls("move") == 0)
        await one.restart()
        try await end([one, other], cloud, "heard")
    }
}
