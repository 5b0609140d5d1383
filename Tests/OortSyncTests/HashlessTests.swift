import OortCatalog
import OortModel
import OortSync
import Testing

/// A service that tells no hash of a file, as OneDrive for Business can.
@Suite("a service that tells no hashes", .timeLimit(.minutes(15)))
struct HashlessTests {
    private func run(_ body: (World) async throws -> Void) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.tellNoHashes()
        try await World.run(cloud, body)
    }

    /// Pushes everything; a file that is never at rest would go out for ever.
    private func settle(_ world: World) async throws {
        let outcome = await world.engine.sync(timeout: .seconds(600))
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

    // MARK: Lost answers

    /// The machine's and the cloud's tree are this, and nothing is in conflict.
    private func expect(_ tree: [String: String], _ world: World) async throws {
        try await settle(world)
        #expect(world.cloud.tree == tree)
        #expect(try await world.tree() == tree)
        #expect(await world.engine.status().conflicts.isEmpty)
    }

    @Test("a new file whose answer was lost is ours, and is sent once", arguments: ["", "text"])
    func lostCreation(text: String) async throws {
        try await run { world in
            world.cloud.loseAnswers(of: "upload")
            try world.write("f", text)
            try await expect(["f": text], world)
            #expect(world.cloud.takeCalls() == ["upload": 1])
        }
    }

    @Test("a new revision whose answer was lost is ours, and is sent once", arguments: ["", "new"])
    func lostReplacement(text: String) async throws {
        try await run { world in
            try world.write("f", "old")
            try await settle(world)
            _ = world.cloud.takeCalls()
            world.cloud.loseAnswers(of: "upload")
            try world.write("f", text)
            try await expect(["f": text], world)
            #expect(world.cloud.takeCalls() == ["upload": 1])
        }
    }

    @Test("what never arrived is sent again, be it a file or a revision", arguments: [false, true])
    func neverArrived(isReplacement: Bool) async throws {
        try await run { world in
            if isReplacement {
                try world.write("f", "old")
                try await settle(world)
            }
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            try world.write("f", "new")
            try await expect(["f": "new"], world)
        }
    }

    @Test("somebody else's file of equal size and name is not taken for ours: both are kept")
    func strangersFile() async throws {
        try await run { world in
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.atNextLook { [cloud = world.cloud] in cloud.put("f", "theirs") }
            try world.write("f", "mine..")
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["mine..", "theirs"])
            #expect(world.cloud.tree["f"] == "theirs")
        }
    }

    @Test("somebody else's revision of equal size is not taken for ours: both are kept")
    func strangersRevision() async throws {
        try await run { world in
            try world.write("f", "before")
            try await settle(world)
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.atNextLook { [cloud = world.cloud] in cloud.put("f", "theirs") }
            try world.write("f", "mine..")
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["mine..", "theirs"])
            #expect(world.cloud.tree["f"] == "theirs")
        }
    }

    @Test("a new file whose answer was lost, and that somebody moved away, is found where it is")
    func movedAway() async throws {
        try await run { world in
            world.cloud.loseAnswers(of: "upload")
            world.cloud.atNextLook { [cloud = world.cloud] in cloud.rename("f", to: "g") }
            try world.write("f", "text")
            try await expect(["g": "text"], world)
            #expect(world.cloud.takeCalls()["upload"] == 1)
        }
    }

    @Test("no death before, in or after any call doubles a file", arguments: [false, true])
    func deaths(isDone: Bool) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.tellNoHashes()
        for index in 0..<10 { cloud.put("theirs \(index)", "text \(index)") }
        let world = try World(cloud)
        world.start()
        try await world.agree()
        var tree = cloud.tree
        for round in 0..<12 {
            try world.write("f", "round \(round)")
            try world.write("g \(round)", "new \(round)")
            try world.write("theirs \(round % 10)", "mine \(round)")
            tree["f"] = "round \(round)"
            tree["g \(round)"] = "new \(round)"
            tree["theirs \(round % 10)"] = "mine \(round)"
            try await world.die(
                at: MemoryCloud.Stall(call: round % 4, isDone: isDone, countsLooks: round > 7)
            )
            await world.restart()
            try await expect(tree, world)
        }
        await world.end()
    }
}
