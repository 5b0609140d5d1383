import OortCatalog
import OortModel
import OortSync
import Testing

/// A service that reports no hash of a file, as OneDrive for Business can.
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

    @Test(
        "bytes of another file, of which no hash is known, are ours where their answer was lost",
        arguments: [false, true],
        [1, 2]
    )
    func lostForeignBytes(isBackup: Bool, lostAnswers: Int) async throws {
        try await run { world in
            world.cloud.put("f", "old")
            try await settle(world)
            world.cloud.loseAnswers(of: "upload", count: lostAnswers)
            if isBackup {
                try world.rename("f", to: "g")
                try world.write("f", "new")
            } else {
                try world.copy("f", to: "g")
            }
            try await settle(world)
            // The same once more, of a copy that the service has by now.
            world.cloud.loseAnswers(of: "upload", count: lostAnswers)
            try world.rename("g", to: "h")
            try world.write("g", "newer")
            let first = isBackup ? "new" : "old"
            try await expect(["f": first, "g": "newer", "h": "old"], world)
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

    /// A file that is not read in one go.
    private static let large = String(repeating: "0123456789", count: 200_000)

    /// A large new file, or a new revision, whose answer was lost and that the engine reads to compare it.
    ///
    /// Reads are held; what pushes is to be ended.
    private func compareLarge(
        _ path: String,
        _ world: World,
        isReplacement: Bool = false
    ) async throws -> Task<SyncOutcome, Never> {
        if isReplacement {
            try world.write(path, "old")
            try await settle(world)
        }
        _ = world.cloud.takeCalls()
        world.cloud.hold(.reads)
        world.cloud.loseAnswers(of: "upload")
        try world.write(path, Self.large)
        let engine = world.engine
        let push = Task { await engine.sync(timeout: .seconds(600)) }
        try await until { world.cloud.isWaiting(.reads) }
        return push
    }

    @Test(
        "while a file is read to be compared all else goes out, and what depends on it waits",
        arguments: [false, true]
    )
    func besides(isReplacement: Bool) async throws {
        try await run { world in
            try world.makeFolder("d")
            try world.makeFolder("gone")
            let push = try await compareLarge("d/large", world, isReplacement: isReplacement)
            let inode = try world.node("d/large").inode
            let transfers = await world.engine.status().transfers
            #expect(transfers.map(\.inode) == [inode])
            let size = Int64(Self.large.utf8.count)
            #expect(transfers.allSatisfy { !$0.isUpload && $0.size == size })
            #expect(await !world.engine.isIdle)
            try world.rename("d", to: "e")
            try world.remove("gone")
            for number in 0..<3 {
                // Each of them is another plan, with all that waits.
                try world.write("f\(number)", "text")
                try await until { world.cloud.tree["f\(number)"] == "text" }
            }
            try await until { world.cloud.tree["gone/"] == nil }
            #expect(world.cloud.tree["d/"] != nil && world.cloud.tree["e/"] == nil)
            world.cloud.release(.reads)
            let outcome = await push.value
            #expect(outcome.isComplete, "\(outcome)")
            try await expect(
                [
                    "e/": "", "e/large": Self.large, "f0": "text", "f1": "text", "f2": "text",
                ],
                world
            )
            #expect(world.cloud.calls("upload") == 4)
        }
    }

    @Test("small files whose answers were lost are asked for while large ones are read")
    func smallBesides() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            world.cloud.loseAnswers(of: "upload")
            try world.write("empty", "")
            try await until { try world.node("empty").remoteID != nil }
            world.cloud.release(.reads)
            _ = await push.value
            try await expect(["large": Self.large, "empty": ""], world)
            #expect(world.cloud.calls("upload") == 2)
        }
    }

    @Test("an engine that ends while a file is read to be compared ends, and the next one reads it")
    func endsWhileReading() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            push.cancel()
            await world.stop()
            world.cloud.release(.reads)
            await world.restart()
            try await expect(["large": Self.large], world)
            #expect(world.cloud.calls("upload") == 1)
        }
    }

    @Test("a pause ends the reading of a file to be compared, and it is read afterwards")
    func pausedWhileReading() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            await world.engine.setPaused(true)
            try await until { await world.engine.transfers.isEmpty }
            world.cloud.release(.reads)
            #expect(try world.node("large").remoteID == nil)
            await world.engine.setPaused(false)
            _ = await push.value
            try await expect(["large": Self.large], world)
            #expect(world.cloud.calls("upload") == 1)
        }
    }

    @Test("what a program writes while the former content is compared goes out after that")
    func writtenWhileReading() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            try world.write("large", "newer")
            world.cloud.release(.reads)
            _ = await push.value
            try await expect(["large": "newer"], world)
            #expect(world.cloud.calls("upload") == 2)
        }
    }

    @Test("what is removed while it is compared is removed at the service after that")
    func removedWhileReading() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            try world.remove("large")
            world.cloud.release(.reads)
            _ = await push.value
            try await expect([:], world)
        }
    }

    @Test(
        "a line that breaks while a file is compared lets it be read on from there",
        arguments: [false, true]
    )
    func breaks(isReplacement: Bool) async throws {
        try await run { world in
            let push = try await compareLarge("large", world, isReplacement: isReplacement)
            world.cloud.breakReads(3)
            world.cloud.release(.reads)
            _ = await push.value
            try await expect(["large": Self.large], world)
            #expect(world.cloud.calls("upload") == 1)
            let size = Int64(Self.large.utf8.count)
            let starts = [0, size / 2, size / 4 * 3, size / 8 * 7]
            #expect(Array(world.cloud.reads.prefix(4)) == starts.map { $0..<size })
        }
    }

    @Test("a line that breaks without a byte has the file compared later, and nothing is sent")
    func breaksAtOnce() async throws {
        try await run { world in
            let push = try await compareLarge("large", world)
            world.cloud.fail(reads: 3)
            world.cloud.release(.reads)
            _ = await push.value
            try await expect(["large": Self.large], world)
            #expect(world.cloud.calls("upload") == 1)
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
