import OortCatalog
import OortModel
import OortSync
import Testing

/// A service whose hash does not tell all contents apart, as OneDrive's: here those of the same bytes in
/// another order have one.
///
/// That two hashes are equal proves that what was sent arrived, and nothing else.
@Suite("a service whose hashes do not tell contents apart", .timeLimit(.minutes(15)))
struct WeakHashTests {
    private func run(
        _ change: (inout ProviderTraits) -> Void = { _ in },
        _ body: (World) async throws -> Void
    ) async throws {
        let cloud = MemoryCloud { traits in
            traits.copiesFiles = true
            change(&traits)
        }
        cloud.tellWeakHashes()
        try await World.run(cloud, body)
    }

    private func settle(_ world: World) async throws {
        let outcome = await world.engine.sync(timeout: .seconds(600))
        #expect(outcome.isComplete, "\(outcome)")
        try await world.agree()
        #expect(try await world.catalog.pending(world.account.id).isEmpty)
    }

    /// The machine's and the cloud's tree are this.
    private func expect(_ tree: [String: String], _ world: World) async throws {
        try await settle(world)
        #expect(world.cloud.tree == tree)
        #expect(try await world.tree() == tree)
    }

    @Test("a save is sent although it has the hash of what the service has")
    func saved() async throws {
        try await run { world in
            try world.write("f", "north")
            try await settle(world)
            try world.write("f", "thorn")
            try await expect(["f": "thorn"], world)
            #expect(world.cloud.takeCalls() == ["upload": 2])
        }
    }

    @Test("what is written rests after one upload")
    func rests() async throws {
        try await run { world in
            try world.write("f", "north")
            try world.write("empty", "")
            try await settle(world)
            try world.copy("f", to: "g")
            try await expect(["f": "north", "g": "north", "empty": ""], world)
            #expect(world.cloud.takeCalls() == ["upload": 2, "copy": 1])
        }
    }

    @Test("a save whose upload never arrived is sent again, not taken for what was there before")
    func neverArrived() async throws {
        try await run { world in
            try world.write("f", "north")
            try await settle(world)
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            try world.write("f", "thorn")
            try await expect(["f": "thorn"], world)
        }
    }

    @Test("an upload whose answer was lost is ours, and is sent once", arguments: [false, true])
    func lostAnswer(isReplacement: Bool) async throws {
        try await run { world in
            if isReplacement {
                try world.write("f", "before")
                try await settle(world)
                _ = world.cloud.takeCalls()
            }
            world.cloud.loseAnswers(of: "upload")
            try world.write("f", "north")
            try await expect(["f": "north"], world)
            #expect(world.cloud.takeCalls() == ["upload": 1])
        }
    }

    @Test("somebody else's file of one hash is not taken for ours: both are kept")
    func strangersFile() async throws {
        try await run { world in
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.atNextLook { [cloud = world.cloud] in cloud.put("f", "thorn") }
            try world.write("f", "north")
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["north", "thorn"])
            #expect(world.cloud.tree["f"] == "thorn")
        }
    }

    @Test("somebody else's revision of one hash is not taken for ours: both are kept")
    func strangersRevision() async throws {
        try await run { world in
            try world.write("f", "before")
            try await settle(world)
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.atNextLook { [cloud = world.cloud] in cloud.put("f", "thorn") }
            try world.write("f", "north")
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["north", "thorn"])
        }
    }

    @Test(
        "nor is it where the bytes that were sent have been replaced here since",
        arguments: [true, false]
    )
    func strangersAfterReplacement(isNew: Bool) async throws {
        try await run { world in
            if !isNew {
                try world.write("f", "before")
                try await settle(world)
            }
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.refuse("look", with: .offline, times: 100)
            _ = world.cloud.takeCalls()
            try world.write("f", "north")
            try await until {
                _ = await world.engine.sync(timeout: .milliseconds(20))
                return world.cloud.calls("look") > 0
            }
            await world.stop()
            world.cloud.refuse("look", with: [])
            world.cloud.put("f", "thorn")
            try world.write("f", "southern")
            await world.restart()
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["southern", "thorn"])
        }
    }

    @Test("of two files of one name and hash, made on both sides, both are kept")
    func madeOnBothSides() async throws {
        try await run { world in
            await world.stop()
            world.cloud.put("f", "thorn")
            try world.write("f", "north")
            await world.restart()
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["north", "thorn"])
        }
    }

    @Test("of two revisions of one hash, made on both sides, both are kept")
    func changedOnBothSides() async throws {
        try await run { world in
            try world.write("f", "before")
            try await settle(world)
            await world.stop()
            world.cloud.put("f", "thorn")
            try world.write("f", "north")
            await world.restart()
            try await settle(world)
            #expect(world.cloud.tree.values.sorted() == ["north", "thorn"])
        }
    }

    @Test("somebody's revision of one hash in our rename's answer is theirs: both are kept")
    func renamedMeanwhile() async throws {
        try await run { world in
            let (engine, cloud) = (world.engine, world.cloud)
            try world.write("f", "north")
            try await settle(world)
            cloud.hold(.feed)
            cloud.put("f", "thorn")
            try world.write("f", "mine")
            try world.rename("f", to: "g")
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.tree["g"] != nil }
            cloud.release(.feed)
            _ = await push.value
            try await settle(world)
            #expect(cloud.tree.values.sorted() == ["mine", "thorn"])
        }
    }

    @Test("what is saved while an upload of one hash is under way is sent after it")
    func savedMeanwhile() async throws {
        try await run { world in
            let (engine, cloud) = (world.engine, world.cloud)
            cloud.hold(.uploads)
            try world.write("f", "north")
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.uploading.count == 1 }
            try world.write("f", "thorn")
            // Long enough for its hash to be known.
            try await until {
                guard let staged = try world.node("f").staged else { return false }
                return try world.catalog.content(staged)?.hash != nil
            }
            cloud.release(.uploads)
            _ = await push.value
            try await expect(["f": "thorn"], world)
        }
    }

    @Test(
        "an upload session does not go on with another content of one hash",
        arguments: [false, true]
    )
    func session(isOverwritten: Bool) async throws {
        try await run({ ($0.largestSimpleUpload, $0.uploadPartSize) = (100, 100) }) { world in
            await world.stop()
            let half = String(repeating: ".", count: 145)
            try world.write("f", "north" + half + half)
            let overwrite = try world.overwriter(of: "f")
            try await world.die(at: MemoryCloud.Stall(call: 2, isDone: false))
            if isOverwritten {
                try overwrite("thorn")
            } else {
                try world.write("f", "thorn" + half + half)
            }
            await world.restart()
            try await expect(["f": "thorn" + half + half], world)
        }
    }

    @Test(
        "no death before, in or after any call loses a save of one hash",
        arguments: [false, true]
    )
    func deaths(isDone: Bool) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.tellWeakHashes()
        let texts = ["north", "thorn", "throne", "hornet"]
        cloud.put("theirs", "notre")
        let world = try World(cloud)
        world.start()
        try await world.agree()
        for round in 0..<12 {
            try world.write("f", texts[round % 2])
            try world.write("g \(round)", texts[round % 4])
            try world.write("theirs", texts[(round + 1) % 2])
            try await world.die(
                at: MemoryCloud.Stall(call: round % 4, isDone: isDone, countsLooks: round > 7)
            )
            await world.restart()
            try await settle(world)
            #expect(cloud.tree["f"] == texts[round % 2])
            #expect(cloud.tree["g \(round)"] == texts[round % 4])
            #expect(cloud.tree["theirs"] == texts[(round + 1) % 2])
            #expect(cloud.tree.count == round + 3)
        }
        await world.end()
    }
}
