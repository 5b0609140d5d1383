import OortModel
import OortPlaces
import OortTesting
import Testing

@Suite("a server whose folders' times do not change", .timeLimit(.minutes(5)))
struct StandingStampsTests {
    @Test("is found out by the first file of ours, and tells of what others do all the same")
    func news() async throws {
        let world = try PlacesWorld(MemoryPlaces(.folderStamps, freshness: .seconds(1_000_000)))
        defer { world.end() }
        for number in 0..<40 { world.client.write("/\(number)/file", "1") }
        for _ in 0..<4 { await world.readFeed() }
        world.client.stopStamps()
        let folder = ItemReference(id: try #require(world.paths["/7/"]?.id), path: .root)
        try await PlacesWorld.Act.send(
            "ours",
            to: .create(parent: folder, name: "ours", reservedID: nil),
            world.provider
        )
        await world.readFeed()
        world.client.write("/11/theirs", "theirs")
        // A part of the folders each time.
        for _ in 0..<3 { await world.readFeed() }
        #expect(world.paths["/11/theirs"] != nil)
        #expect(Set(world.paths.keys) == Set(world.client.contents.keys))
    }

    @Test("is none where they do: a look lists no folder that is as it was")
    func quiet() async throws {
        let world = try PlacesWorld(MemoryPlaces(.folderStamps, freshness: .seconds(1_000_000)))
        defer { world.end() }
        for number in 0..<40 { world.client.write("/\(number)/file", "1") }
        for _ in 0..<4 { await world.readFeed() }
        let folder = ItemReference(id: try #require(world.paths["/7/"]?.id), path: .root)
        try await PlacesWorld.Act.send(
            "ours",
            to: .create(parent: folder, name: "ours", reservedID: nil),
            world.provider
        )
        for _ in 0..<3 { await world.readFeed() }
        let before = world.client.calls["listing", default: 0]
        for _ in 0..<3 { await world.readFeed() }
        // The folder that a program used is looked at for a while.
        #expect(world.client.calls["listing", default: 0] - before <= 3)
    }
}
