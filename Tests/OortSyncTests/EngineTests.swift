import OortCatalog
import OortContentStore
import OortModel
import OortPlanner
import OortSync
import Testing

@Suite("an account's engine", .timeLimit(.minutes(15)))
struct EngineTests {
    @Test("the service's tree appears, with its content")
    func enumeration() async throws {
        let cloud = MemoryCloud()
        cloud.put("a", nil)
        cloud.put("a/b", nil)
        cloud.put("a/b/f", "deep")
        try await World.run(cloud) { world in
            try await world.agree()
            cloud.put("a/b/f", "changed")
            cloud.rename("a", to: "z")
            try await world.agree()
            cloud.remove("z")
            try await world.agree()
            #expect(cloud.takeCalls().isEmpty)
        }
    }

    @Test("the account's room is known before its tree is")
    func earlyRoom() async throws {
        let cloud = MemoryCloud()
        cloud.hold(.feed)
        try await World.run(cloud) { world in
            try await until { cloud.isWaiting(.feed) }
            let account = try #require(try world.catalog.account(world.account.id))
            #expect(account.quota == Quota(used: 1, total: nil))
            #expect(!account.isEnumerated)
        }
    }

    @Test("what is written here arrives there, each content by one upload")
    func push() async throws {
        try await World.run { world in
            try world.makeFolder("d")
            try world.write("d/f", "one")
            for number in 0..<10 { try world.write("d/f", "save \(number)") }
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["createFolder": 1, "upload": 1])
            try world.write("d/f", "two")
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["upload": 1])
            try world.rename("d", to: "e")
            try await world.settle()
            #expect(world.cloud.takeCalls() == ["move": 1])
            #expect(world.cloud.tree == ["e/": "", "e/f": "two"])
        }
    }

    @Test("what somebody puts into an empty folder as it is removed stays, and the folder with it")
    func arrivalInRemoved() async throws {
        let cloud = MemoryCloud()
        cloud.put("d", nil)
        try await World.run(cloud) { world in
            try await world.agree()
            cloud.putIntoDeleted("theirs")
            try world.remove("d")
            try await world.settle()
            #expect(cloud.tree == ["d/": "", "d/theirs": "theirs"])
        }
    }

    @Test("a deleted tree of 1,000 files is one deletion, and what was made and removed is nothing")
    func deletion() async throws {
        let cloud = MemoryCloud()
        cloud.put("d", nil)
        for number in 0..<1000 { cloud.put("d/\(number)", nil) }
        try await World.run(cloud) { world in
            try await world.agree()
            try world.remove("d")
            try world.makeFolder("tmp")
            try world.write("tmp/x", "x")
            try world.remove("tmp")
            try await world.settle()
            #expect(cloud.takeCalls() == ["delete": 1])
        }
    }

    @Test("a save dance is a new revision of the same item", arguments: [false, true])
    func saveDance(isUploadedBefore: Bool) async throws {
        try await World.run { world in
            try world.write("f", "old")
            try await world.settle()
            let id = world.cloud.id("f")
            _ = world.cloud.takeCalls()
            try world.write(".f.tmp", "new")
            if isUploadedBefore { try await world.settle() }
            try world.rename(".f.tmp", to: "f")
            try await world.settle()
            #expect(world.cloud.id("f") == id)
            #expect(world.cloud.tree == ["f": "new"])
            #expect(
                world.cloud.takeCalls()
                    == (isUploadedBefore ? ["upload": 2, "delete": 1] : ["upload": 1])
            )
        }
    }

    @Test("a backup made by renaming is a copy, and the original keeps its item")
    func backup() async throws {
        try await World.run(MemoryCloud { $0.copiesFiles = true }) { world in
            try world.write("f", "old")
            try await world.settle()
            let id = world.cloud.id("f")
            try world.rename("f", to: "f~")
            try world.write("f", "new")
            try await world.settle()
            #expect(world.cloud.id("f") == id)
            #expect(world.cloud.tree == ["f": "new", "f~": "old"])
        }
    }

    @Test("folders change places though another machine has left its temporary names")
    func takenDetour() async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            for name in ["a", "b"] {
                try world.makeFolder(name)
                try world.write(name + "/f", name)
            }
            try await world.settle()
            let left = try ["a", "b"].map { Planner.detourName(of: try world.node($0).inode) }
            for name in left { cloud.put(name, "left") }
            try await world.agree()
            try world.exchange("a", "b")
            try await world.settle()
            #expect(cloud.tree["a/f"] == "b")
            #expect(cloud.tree["b/f"] == "a")
            #expect(cloud.tree.count == 6)
        }
    }

    @Test("a temporary name is found though one of a lower number is not where it was here")
    func detourBesideOneInMotion() async throws {
        let cloud = MemoryCloud()
        for name in ["a", "b"] {
            cloud.put(name, nil)
            cloud.put(name + "/f", name)
        }
        try await World.run(cloud) { world in
            try await world.agree()
            var left: [String] = []
            for name in ["a", "b"] {
                let inode = try world.node(name).inode
                left.append(Planner.detourName(of: inode))
                for number in 0...1 {
                    cloud.put(Planner.detourName(of: inode, number: number), "left")
                }
            }
            try await world.agree()
            // They keep their names at the service for as long as they are open.
            let opened = try left.map { try world.node($0).inode }
            for inode in opened { world.beginWriting(inode) }
            for name in left { try world.rename(name, to: name + ".later") }
            try world.exchange("a", "b")
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.tree["a/f"] == "b" && cloud.tree["b/f"] == "a" }
            for inode in opened { world.store.writers.closed(inode, hasWritten: true) }
            #expect(await push.value.isComplete)
            try await world.agree()
            #expect(cloud.tree.count == 8)
        }
    }

    @Test("files change places in a folder that is not yet where it is here")
    func detourInFolderInMotion() async throws {
        let cloud = MemoryCloud()
        cloud.put("d", nil)
        for name in ["d/a", "d/b", "e"] { cloud.put(name, name) }
        try await World.run(cloud) { world in
            try await world.agree()
            for name in ["d/a", "d/b"] {
                let left = Planner.detourName(of: try world.node(name).inode)
                cloud.put("d/" + left, "left")
            }
            try await world.agree()
            // The folder's new name is free at the service when what has it is closed.
            let opened = try world.node("e").inode
            world.beginWriting(opened)
            try world.rename("e", to: "later")
            try world.rename("d", to: "e")
            try world.exchange("e/a", "e/b")
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.tree["d/a"] == "d/b" && cloud.tree["d/b"] == "d/a" }
            world.store.writers.closed(opened, hasWritten: true)
            #expect(await push.value.isComplete)
            try await world.agree()
            #expect(cloud.tree.count == 6)
        }
    }

    @Test("two edits of one file both survive")
    func conflict() async throws {
        try await World.run { world in
            try world.write("f.txt", "base")
            try await world.settle()
            await world.stop()
            try world.write("f.txt", "mine")
            world.cloud.put("f.txt", "theirs")
            await world.restart()
            try await world.settle()
            let tree = world.cloud.tree
            #expect(tree["f.txt"] == "theirs")
            let copy = try #require(tree.keys.first { $0.hasPrefix("f (conflicted copy ") })
            #expect(copy.hasSuffix(").txt"))
            #expect(tree[copy] == "mine")
            #expect(tree.count == 2)
            #expect(await world.engine.status().conflicts.count == 1)
        }
    }

    @Test(
        "an edit of a revision that is no longer the newest is a conflict, not a replacement",
        arguments: [false, true]
    )
    func lateEdit(empties: Bool) async throws {
        try await World.run { world in
            try world.write("f.txt", "base")
            try await world.settle()
            let handle = try world.open("f.txt")
            world.cloud.put("f.txt", "theirs")
            try await world.agree()
            try world.write("f.txt", over: handle, empties: empties, "mine")
            try await world.settle()
            let tree = world.cloud.tree
            #expect(tree["f.txt"] == "theirs")
            #expect(
                tree.filter { $0.key.hasPrefix("f (conflicted copy ") }.values.map(\.self) == [
                    "mine"
                ]
            )
            #expect(tree.count == 2)
        }
    }

    @Test(
        "an edit of a file that was moved after it was opened is no conflict",
        arguments: [false, true]
    )
    func editAfterMove(empties: Bool) async throws {
        let cloud = MemoryCloud()
        cloud.makeRevisionsOfMoves()
        cloud.put("f.txt", "base")
        try await World.run(cloud) { world in
            // It is not read here.
            try await until { try world.catalog.node(atPath: ["work", "f.txt"]) != nil }
            let handle = try world.open("f.txt")
            try world.rename("f.txt", to: "g.txt")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            try world.write("g.txt", over: handle, empties: empties, "mine")
            try await world.settle()
            #expect(cloud.tree == ["g.txt": "mine"])
        }
    }

    @Test("attributes that each side changed alone are both kept")
    func attributesApart() async throws {
        try await World.run(MemoryCloud { $0.setsDescription = true }) { world in
            try world.write("f", "bytes")
            try await world.settle()
            await world.stop()
            try world.setModified("f", Timestamp(seconds: 5))
            world.cloud.describe("f", "theirs")
            await world.restart()
            try await world.settle()
            #expect(world.cloud.modified("f") == Timestamp(seconds: 5))
            // What the other side changed comes with the feed, whenever that is read.
            try await until { try world.node("f").itemDescription == "theirs" }
            let known = try world.node("f").modified
            #expect(known == Timestamp(seconds: 5))
        }
    }

    @Test("a copy keeps its own time where the service gives it the original's")
    func copiedTime() async throws {
        try await World.run(MemoryCloud { ($0.copiesFiles, $0.setsModifiedTime) = (true, false) }) {
            world in
            try world.write("f", "bytes")
            try world.setModified("f", Timestamp(seconds: 5))
            try await world.settle()
            let copied = try world.write("g", "bytes").modified
            try await world.settle()
            #expect(world.cloud.modified("g") == Timestamp(seconds: 5))
            #expect(try world.node("g").modified == copied)
            // Not when it is reported again, in another place, either.
            world.cloud.rename("g", to: "h")
            try await world.agree()
            #expect(try world.node("h").modified == copied)
        }
    }

    @Test(
        "a name that both took: the same is one, the other gets a number",
        arguments: [true, false]
    )
    func bothCreated(isSame: Bool) async throws {
        let world = try World()
        try world.makeFolder("d")
        try world.write("d/f.txt", "mine")
        world.cloud.put("d", nil)
        world.cloud.put("d/f.txt", isSame ? "mine" : "theirs")
        world.start()
        try await world.settle()
        #expect(
            world.cloud.tree
                == (isSame
                    ? ["d/": "", "d/f.txt": "mine"]
                    : ["d/": "", "d/f.txt": "theirs", "d/f (2).txt": "mine"])
        )
        await world.end()
    }

    @Test(
        "an answer that was lost does not make it happen twice",
        arguments: ["createFolder", "upload", "move", "delete"]
    )
    func lostAnswer(call: String) async throws {
        try await World.run { world in
            try world.makeFolder("d")
            try world.write("d/f", "one")
            try world.write("d/g", "gone")
            if call == "createFolder" || call == "upload" {
                world.cloud.loseAnswers(of: call)
                try await world.settle()
                #expect(world.cloud.takeCalls()["createFolder"] == 1)
            } else {
                try await world.settle()
                world.cloud.loseAnswers(of: call)
                _ = world.cloud.takeCalls()
                try world.rename("d/f", to: "h")
                try world.remove("d/g")
                try await world.settle()
                #expect(world.cloud.takeCalls() == ["move": 1, "delete": 1])
                #expect(world.cloud.tree == ["d/": "", "h": "one"])
            }
        }
    }

    @Test("what the service refuses stays, is told, and goes out when the cause is gone")
    func refusal() async throws {
        try await World.run { world in
            // Until it was seen: an upload that is tried again succeeds.
            world.cloud.refuse("upload", with: .quotaExceeded, times: 10_000)
            try world.write("f", "big")
            let missing = try await world.pushUntilRefused()
            world.cloud.refuse("upload", with: .quotaExceeded, times: 0)
            #expect(missing.map(\.path) == [["f"]])
            #expect(missing.first?.errorKind == "quotaExceeded")
            try await world.settle()
            #expect(world.cloud.tree == ["f": "big"])
        }
    }

    @Test("what was under way when somebody asked for everything to go out, and is refused then")
    func refusedMeanwhile() async throws {
        try await World.run { world in
            world.cloud.refuse("upload", with: .quotaExceeded)
            world.cloud.hold(.uploads)
            try world.write("f", "big")
            let (cloud, engine) = (world.cloud, world.engine)
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.isWaiting(.uploads) }
            // The room is there for the second try, which no one should have to wait for.
            await engine.pushingAtOnce { _ in
                cloud.release(.uploads)
                try? await until { cloud.tree == ["f": "big"] }
            }
            #expect(await push.value.isComplete)
        }
    }

    @Test(
        "to push at once ends the waits that grew in bad weather",
        arguments: ["upload", "look"]
    )
    func waits(call: String) async throws {
        try await World.run { world in
            // So often that the next wait would be minutes.
            if call == "look" { world.cloud.loseAnswers(of: "upload") }
            world.cloud.refuse(call, with: .locked, times: 9)
            try world.write("f", "bytes")
            let engine = world.engine
            for _ in 0..<9 {
                _ = world.cloud.takeCalls()
                let push = Task { await engine.sync(timeout: .seconds(600)) }
                try await until {
                    let pending = await engine.status().pendingCount
                    return world.cloud.calls(call) > 0 || pending == 0
                }
                push.cancel()
                _ = await push.value
            }
            // One more failure is one more, and not the tenth.
            world.cloud.refuse(call, with: .locked)
            try await world.settle()
        }
    }

    @Test("content that can no longer be read whole is told, not only tried again")
    func unreadable() async throws {
        try await World.run { world in
            let text = String(repeating: "0123456789", count: 1000)
            world.cloud.put("f", text)
            try await until { try world.catalog.node(atPath: ["work", "f"]) != nil }
            let handle = try world.open("f")
            world.cloud.put("f", "theirs")
            try world.write("f", over: handle, empties: false, "mine")
            // Until theirs has the name, and mine is a conflict copy.
            let missing = try await world.pushUntilRefused {
                try world.node("f").size == "theirs".count
            }
            #expect(missing.first?.errorKind == "preconditionFailed")
            // Written whole it needs nothing of the service's, and goes out.
            let path = try #require(missing.first?.path.joined(separator: "/"))
            try world.remove(path)
            try await world.settle()
        }
    }

    @Test("content that arrives damaged is sent again, in place of the damaged and of nothing else")
    func damagedUpload() async throws {
        try await World.run { world in
            world.cloud.damage(uploads: 2)
            try world.write("f", "one")
            try await world.settle()
            #expect(world.cloud.takeCalls()["upload"] == 3)
            #expect(world.cloud.tree == ["f": "one"])
            world.cloud.damage(uploads: 1)
            try world.write("f", "two")
            try await world.settle()
            #expect(world.cloud.tree == ["f": "two"])
            #expect(try await world.tree() == ["f": "two"])
        }
    }

    @Test("content that arrives damaged each time is sent three times, and stays here")
    func damagedForEver() async throws {
        try await World.run { world in
            world.cloud.damage(uploads: .max)
            try world.write("f", "one")
            let pending = try await world.pushUntilRefused {
                world.cloud.calls("upload") == 3
            }
            #expect(pending.first?.errorKind == "contentDamaged")
            try await until { await world.engine.isIdle }
            let resting = try #require(await world.engine.status().pending.first)
            #expect(resting.nextTry == WaitMoment.never)
            #expect(world.cloud.calls("upload") == 3)
            #expect(try await world.tree() == ["f": "one"])
            // Asked for, it is sent once.
            _ = try await world.pushUntilRefused { world.cloud.calls("upload") == 4 }
            try await until { await world.engine.isIdle }
            #expect(world.cloud.calls("upload") == 4)
            // Another content is sent by itself, until that is damaged three times.
            world.cloud.damage(uploads: 2)
            try world.write("f", "two")
            try await world.settle()
            #expect(world.cloud.tree == ["f": "two"])
        }
    }

    @Test("what the service writes into an uploaded document is taken as its change")
    func rewrittenUpload() async throws {
        try await World.run { world in
            world.cloud.rewriteUploads()
            try world.write("f", "one")
            try await world.settle()
            #expect(world.cloud.takeCalls()["upload"] == 1)
            #expect(world.cloud.tree == ["f": "one (rewritten)"])
            #expect(try await world.tree() == ["f": "one (rewritten)"])
        }
    }

    @Test("a restart goes on where the engine stopped; a lost cursor loses nothing")
    func restart() async throws {
        try await World.run { world in
            try world.write("f", "one")
            try await world.settle()
            await world.stop()
            world.cloud.remove("f")
            world.cloud.put("g", "theirs")
            try world.write("h", "mine")
            world.cloud.loseCursors()
            await world.restart()
            try await world.settle()
            #expect(world.cloud.tree == ["g": "theirs", "h": "mine"])
        }
    }

    @Test("content that the account has is copied at the service")
    func serverSideCopy() async throws {
        try await World.run(MemoryCloud { $0.copiesFiles = true }) { world in
            try world.write("f", "the same bytes")
            try await world.settle()
            let bytes = world.cloud.bytesUp
            try world.write("g", "the same bytes")
            try await world.settle()
            #expect(world.cloud.bytesUp == bytes)
            #expect(world.cloud.tree == ["f": "the same bytes", "g": "the same bytes"])
        }
    }

    @Test(
        "content of a hash that can be forged is sent, and never replaced by a copy of other bytes",
        arguments: [HashAlgorithm.md5, .sha1, .quickXor]
    )
    func forgedHashes(algorithm: HashAlgorithm) async throws {
        let cloud = MemoryCloud { $0.copiesFiles = true }
        cloud.tellWeakHashes(as: algorithm)
        try await World.run(cloud) { world in
            try world.write("good", "ab")
            try await world.settle()
            try world.write("evil", "ba")
            try await world.settle()
            #expect(world.cloud.tree == ["good": "ab", "evil": "ba"])
        }
    }

    @Test("two items of one name are both shown, always the same way")
    func duplicates() async throws {
        let cloud = MemoryCloud(duplicates: true)
        cloud.put("one.txt", "first")
        cloud.put("two.txt", "second")
        cloud.rename("two.txt", to: "one.txt")
        try await World.run(cloud) { world in
            let outcome = await world.engine.sync(timeout: .seconds(600))
            #expect(outcome.isComplete)
            try await until { try await world.tree().count == 2 }
            #expect(try await Set(world.tree().keys) == ["one.txt", "one (2).txt"])
            #expect(cloud.takeCalls().isEmpty)
        }
    }

    @Test("a read-only mount pushes nothing")
    func readOnly() async throws {
        var settings = SyncSettings()
        settings.isReadOnly = true
        settings.settle = .zero
        let cloud = MemoryCloud()
        cloud.put("f", "theirs")
        try await World.run(cloud, settings: settings) { world in
            try await world.agree()
            try world.write("g", "mine")
            #expect(await !world.engine.sync(timeout: .milliseconds(300)).isComplete)
            #expect(cloud.takeCalls().isEmpty)
        }
    }
}
