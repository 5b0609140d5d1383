import OortCatalog
import OortModel
import OortPlanner
import OortSync
import Testing

@Suite("an engine that dies, and the one after it", .timeLimit(.minutes(15)))
struct RestartTests {
    /// What is done at first, and what then; the engine dies at one of the calls for the latter.
    private func scene(_ world: World) async throws {
        for path in ["keep", "replaced", "moved", "gone", "danced", "backed"] {
            try world.write(path, "old \(path)")
        }
        try await world.settle()
    }

    private func act(_ world: World) throws {
        try world.makeFolder("new")
        try world.makeFolder("new/deep")
        try world.write("new/deep/file", "created")
        try world.write("replaced", "replaced")
        try world.rename("moved", to: "new/moved")
        try world.remove("gone")
        try world.write("tmp", "danced")
        try world.rename("tmp", to: "danced")
        try world.rename("backed", to: "backed~")
        try world.write("backed", "backed anew")
        try world.setModified("keep", Timestamp(seconds: 5))
    }

    private static let outcome = [
        "keep": "old keep", "new/": "", "new/deep/": "", "new/deep/file": "created",
        "replaced": "replaced", "new/moved": "old moved", "danced": "danced",
        "backed~": "old backed", "backed": "backed anew",
    ]

    @Test("of two plans at once, a backup's heir is either uploaded or takes over, never both")
    func heirs() async throws {
        let world = try World(MemoryCloud { $0.copiesFiles = true })
        world.start()
        try world.write("f", "old")
        try await world.settle()
        await world.stop()
        try world.rename("f", to: "f~")
        try world.write("f", "new")
        let heir = try world.node("f").inode
        let root = world.account.root
        let copy = RemoteOperation(
            inode: try world.node("f~").inode,
            action: .duplicate(at: Place(parent: root, name: "f~"), heir: heir)
        )
        let upload = RemoteOperation(
            inode: heir,
            action: .upload(at: Place(parent: root, name: "f"), ContentIdentity(size: 3))
        )
        for (first, second) in [(copy, upload), (upload, copy)] {
            func begin(_ operation: RemoteOperation) async throws -> OperationStart? {
                try await world.catalog.begin(
                    operation,
                    account: world.account.id,
                    reservedID: nil
                )
            }
            #expect(try await begin(first) != nil)
            #expect(try await begin(second) == nil)
            try await world.catalog.failed(first.inode, nil, isUnknown: false)
        }
        await world.end()
    }

    @Test("an id that was used up by a try that came to nothing is not tried for ever")
    func usedUpID() async throws {
        let world = try World(MemoryCloud { $0.takesClientIDs = true })
        world.start()
        try world.makeFolder("d")
        try world.write("d/f", "bytes")
        world.cloud.useUp(["createFolder", "upload"])
        try await world.settle()
        #expect(world.cloud.tree == ["d/": "", "d/f": "bytes"])
        await world.end()
    }

    @Test("news that were to be asked for when the process died are asked for by the next")
    func unsure() async throws {
        let world = try World()
        world.start()
        try world.write("f", "bytes")
        try await world.settle()
        await world.stop()
        world.cloud.rename("f", to: "g")
        let known = try world.catalog.account(world.account.id)
        let page = try await world.cloud.changes(since: known?.cursor)
        var observations = Observations(changes: page.changes)
        observations.cursor = page.cursor
        // An operation of ours touched the item while the page was on its way.
        observations.suspects = Set([world.cloud.id("g")].compactMap(\.self))
        _ = try await world.catalog.apply(observations, to: world.account.id)
        #expect(try await world.tree() == ["f": "bytes"])
        await world.restart()
        try await world.agree()
        #expect(try await world.tree() == ["g": "bytes"])
        await world.end()
    }

    @Test(
        "a process that dies at any call leaves nothing undone and nothing done twice",
        arguments: 0..<10,
        [false, true]
    )
    func death(call: Int, isDone: Bool) async throws {
        let world = try World(MemoryCloud { $0.copiesFiles = true })
        world.start()
        try await scene(world)
        await world.stop()
        _ = world.cloud.takeCalls()
        let ids = ["replaced", "moved", "danced", "backed"].map { world.cloud.id($0) }
        try act(world)
        let isStalled = try await world.die(at: MemoryCloud.Stall(call: call, isDone: isDone))
        #expect(isStalled, "so many calls were not made")
        await world.restart()
        try await world.settle()
        #expect(world.cloud.tree == Self.outcome)
        #expect(["replaced", "new/moved", "danced", "backed"].map { world.cloud.id($0) } == ids)
        #expect(world.cloud.modified("keep") == Timestamp(seconds: 5))
        #expect(await world.engine.status().conflicts.isEmpty)
        #expect(
            world.cloud.takeCalls() == [
                "createFolder": 2, "upload": 4, "move": 1, "delete": 1, "copy": 1,
                "setAttributes": 1,
            ]
        )
        await world.end()
    }

    /// How the services differ in what a lost answer leaves.
    enum Kind: CaseIterable {
        /// A name once, ids by the service.
        case uniqueNames
        /// Names as often as one likes, ids by the client.
        case clientIDs

        var cloud: MemoryCloud {
            switch self {
            case .uniqueNames: MemoryCloud { $0.copiesFiles = true }
            case .clientIDs:
                MemoryCloud(duplicates: true) { ($0.copiesFiles, $0.takesClientIDs) = (true, true) }
            }
        }
    }

    @Test(
        "one that dies again while it finds out what the first did leaves no more behind",
        arguments: Kind.allCases,
        0..<10
    )
    func twoDeaths(kind: Kind, call: Int) async throws {
        for (isDone, second) in [(true, 0), (false, 1), (true, 2)] {
            let world = try World(kind.cloud)
            world.start()
            try await scene(world)
            await world.stop()
            _ = world.cloud.takeCalls()
            try act(world)
            try await world.die(at: MemoryCloud.Stall(call: call, isDone: isDone))
            try await world.die(
                at: MemoryCloud.Stall(call: second, isDone: true, countsLooks: true)
            )
            await world.restart()
            try await world.settle()
            #expect(world.cloud.tree == Self.outcome)
            #expect(world.cloud.modified("keep") == Timestamp(seconds: 5))
            #expect(await world.engine.status().conflicts.isEmpty)
            #expect(
                world.cloud.takeCalls() == [
                    "createFolder": 2, "upload": 4, "move": 1, "delete": 1, "copy": 1,
                    "setAttributes": 1,
                ]
            )
            await world.end()
        }
    }

    @Test(
        "what programs do before the next one starts is no conflict with what the last one sent",
        arguments: Kind.allCases,
        0..<10
    )
    func changesAfterDeath(kind: Kind, call: Int) async throws {
        for (isDone, second) in [(true, nil), (false, nil), (true, 1)] as [(Bool, Int?)] {
            let world = try World(kind.cloud)
            world.start()
            try await scene(world)
            await world.stop()
            let ids = ["replaced", "moved", "danced", "backed"].map { world.cloud.id($0) }
            try act(world)
            try await world.die(at: MemoryCloud.Stall(call: call, isDone: isDone))
            try world.write("new/deep/file", "created and changed")
            try world.write("replaced", "replaced again")
            try world.rename("new/moved", to: "new/deep/moved")
            try world.write("danced", "danced again")
            try world.write("backed", "backed once more")
            try world.setModified("keep", Timestamp(seconds: 7))
            if let second {
                try await world.die(
                    at: MemoryCloud.Stall(call: second, isDone: true, countsLooks: true)
                )
                try world.write("new/deep/file", "created and changed twice")
                try world.remove("backed~")
            }
            await world.restart()
            try await world.settle()
            var outcome = [
                "keep": "old keep", "new/": "", "new/deep/": "",
                "new/deep/file": "created and changed", "replaced": "replaced again",
                "new/deep/moved": "old moved", "danced": "danced again", "backed~": "old backed",
                "backed": "backed once more",
            ]
            if second != nil {
                outcome["new/deep/file"] = "created and changed twice"
                outcome["backed~"] = nil
            }
            #expect(world.cloud.tree == outcome)
            let places = ["replaced", "new/deep/moved", "danced", "backed"]
            #expect(places.map { world.cloud.id($0) } == ids)
            #expect(world.cloud.modified("keep") == Timestamp(seconds: 7))
            #expect(await world.engine.status().conflicts.isEmpty)
            await world.end()
        }
    }

    @Test("a time that was set while the folder was being moved is not given up")
    func timeInMovedFolder() async throws {
        let world = try World()
        world.start()
        try world.makeFolder("d")
        try world.write("d/f", "bytes")
        try await world.settle()
        try world.rename("d", to: "e")
        let isStalled = try await world.die(at: MemoryCloud.Stall(call: 0, isDone: true)) {
            try world.setModified("e/f", Timestamp(seconds: 5))
            // Planned for together: when the one is there, the other was looked at.
            try world.write("g", "bytes of another")
            try await until { world.cloud.tree["g"] != nil }
            let pending = await world.engine.status().pending
            #expect(pending.contains { $0.path == ["e", "f"] })
        }
        #expect(isStalled)
        await world.restart()
        try await world.settle()
        #expect(world.cloud.modified("e/f") == Timestamp(seconds: 5))
        await world.end()
    }

    @Test("an upload session goes on at its confirmed place after a restart")
    func session() async throws {
        let world = try World(
            MemoryCloud {
                $0.largestSimpleUpload = 100
                $0.uploadPartSize = 100
            }
        )
        let text = String((0..<250).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
        try world.write("f", text)
        try await world.die(at: MemoryCloud.Stall(call: 2, isDone: false))
        #expect(world.cloud.bytesUp == 200)
        await world.restart()
        try await world.settle()
        #expect(world.cloud.bytesUp == 250)
        #expect(world.cloud.tree == ["f": text])
        // Another content does not go on with it.
        try world.write("f", text.uppercased())
        try await world.settle()
        #expect(world.cloud.bytesUp == 500)
        #expect(world.cloud.tree == ["f": text.uppercased()])
        await world.end()
    }

    @Test("what a program wrote while an upload began is known as ours when its answer is lost")
    func writtenWhileItBegan() async throws {
        let world = try World(MemoryCloud { $0.replaceIsAtomic = false })
        world.start()
        try world.write("f", "old")
        try await world.settle()
        await world.stop()
        try world.write("f", "new")
        let overwrite = try world.overwriter(of: "f")
        // Whether the revision is current is asked after the intent was stored.
        world.cloud.atNextLook { try? overwrite("newer") }
        try await world.die(at: MemoryCloud.Stall(call: 0, isDone: true))
        #expect(world.cloud.tree == ["f": "newer"])
        try world.write("f", "newest")
        await world.restart()
        try await world.settle()
        #expect(world.cloud.tree == ["f": "newest"])
        #expect(world.cloud.history == ["old", "newer", "newest"].map { [UInt8]($0.utf8) })
        #expect(await world.engine.status().conflicts.isEmpty)
        await world.end()
    }

    @Test("an upload session does not go on with a content that was written to since")
    func sessionOfOtherBytes() async throws {
        let world = try World(
            MemoryCloud {
                $0.largestSimpleUpload = 100
                $0.uploadPartSize = 100
            }
        )
        try world.write("f", String(repeating: "old", count: 100))
        let overwrite = try world.overwriter(of: "f")
        try await world.die(at: MemoryCloud.Stall(call: 2, isDone: false))
        #expect(world.cloud.bytesUp == 200)
        try overwrite("new")
        await world.restart()
        try await world.settle()
        #expect(world.cloud.bytesUp == 200 + 300)
        let text = "new" + String(repeating: "old", count: 99)
        #expect(world.cloud.tree == ["f": text])
        #expect(world.cloud.history == [[UInt8](text.utf8)])
        await world.end()
    }

    @Test("an upload session of a new file does not go on once that replaces another one")
    func sessionOfAnotherItem() async throws {
        let world = try World(
            MemoryCloud {
                $0.largestSimpleUpload = 100
                $0.uploadPartSize = 100
            }
        )
        world.start()
        try world.write("f", "old")
        try await world.settle()
        let id = world.cloud.id("f")
        await world.stop()
        let text = String(repeating: "new", count: 100)
        try world.write(".tmp", text)
        try await world.die(at: MemoryCloud.Stall(call: 2, isDone: false))
        #expect(world.cloud.bytesUp == 3 + 200)
        try world.rename(".tmp", to: "f")
        await world.restart()
        try await world.settle()
        // The session would have made the temporary file at the service.
        #expect(world.cloud.bytesUp == 3 + 200 + 300)
        #expect(world.cloud.tree == ["f": text])
        #expect(world.cloud.id("f") == id)
        await world.end()
    }
}
