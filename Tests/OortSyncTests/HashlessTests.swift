import OortCatalog
import OortModel
import OortSync
import Testing

/// A service that tells no hash of a file, as OneDrive for Business can.
@Suite("a service that tells no hashes", .timeLimit(.minutes(1)))
struct HashlessTests {
    private func run(_ body: (World) async throws -> Void) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.tellNoHashes()
        try await World.run(cloud, body)
    }

    /// Pushes everything; a file that is never at rest would go out for ever.
    private func settle(_ world: World) async throws {
        let outcome = await world.engine.sync(timeout: .seconds(20))
        #expect(outcome.isComplete, "\(outcome)")
        try await world.agree()
        #expect(try await world.catalog.pending(world.account.id).isEmpty)
    }

    @Test("what is written rests after one upload, be it empty or not", arguments: ["", "text"])
    func written(text: String) async throws {
        try await run { world in
            try world.write("f", text)
            try await settle(world)
            #expect(world.cloud.takeCalls() == ["upload": 1])
            try world.write("f", text + " and more")
            try await settle(world)
            #expect(world.cloud.takeCalls() == ["upload": 1])
        }
    }

    @Test("a backup by copy rests, and has the bytes that the original had")
    func backup() async throws {
        try await run { world in
            try world.write("f", "old")
            try await settle(world)
            try world.rename("f", to: "f~")
            try world.write("f", "new")
            try await settle(world)
            #expect(world.cloud.tree == ["f": "new", "f~": "old"])
        }
    }

    @Test("content that was copied from another file, whose bytes must be sent, rests")
    func copied() async throws {
        try await run { world in
            try world.write("f", "text")
            try await settle(world)
            try world.copy("f", to: "g")
            try await settle(world)
            #expect(world.cloud.tree == ["f": "text", "g": "text"])
            #expect(world.cloud.takeCalls() == ["upload": 2])
        }
    }
}
