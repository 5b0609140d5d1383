import OortCatalog
import OortContentStore
import OortModel
import OortSync
import OortTesting
import Testing

@Suite("what stays here by rules", .timeLimit(.minutes(15)))
struct IgnoreTests {
    private static let lines = ["node_modules/", "*.tmp", "!keep.tmp", "/top/only"]

    /// A machine with rules, whose engine runs.
    private func run(
        _ cloud: MemoryCloud = MemoryCloud(),
        _ body: (World) async throws -> Void
    ) async throws {
        let world = try World(cloud)
        try world.catalog.setIgnoreRules(IgnoreRules(Self.lines), of: world.account.id)
        world.start()
        do { try await body(world) } catch {
            await world.end()
            throw error
        }
        await world.end()
    }

    /// Sends all that goes out; what the cloud has then is `expected`.
    private func sync(_ world: World, _ expected: [String: String]) async throws {
        let outcome = await world.engine.sync(timeout: .seconds(600))
        #expect(outcome.isComplete, "\(outcome)")
        #expect(world.cloud.tree == expected)
        #expect(try await world.catalog.pendingCount(world.account.id) == 0)
    }

    private func held(_ world: World) async throws -> Int {
        try await world.catalog.heldCount(world.account.id)
    }

    @Test("what matches is never sent, and all in a folder that matches")
    func stays() async throws {
        try await run { world in
            try world.makeFolder("p")
            try world.write("p/main.js", "code")
            try world.makeFolder("p/node_modules")
            try world.makeFolder("p/node_modules/m")
            try world.write("p/node_modules/m/index.js", "theirs")
            try world.write("p/x.tmp", "draft")
            try world.write("p/keep.tmp", "kept")
            try world.makeLink("link.tmp", to: "p")
            try await sync(world, ["p/": "", "p/main.js": "code", "p/keep.tmp": "kept"])
            #expect(try await held(world) == 5)
            let tree = try await world.tree()
            #expect(tree["p/node_modules/m/index.js"] == "theirs" && tree["p/x.tmp"] == "draft")
            #expect(try world.node("p/x.tmp").isHeld)
            // Changed, read, and removed as on any disk.
            try world.write("p/x.tmp", "draft 2")
            try world.remove("p/node_modules")
            #expect(try await world.tree()["p/x.tmp"] == "draft 2")
            try await sync(world, ["p/": "", "p/main.js": "code", "p/keep.tmp": "kept"])
            #expect(try await held(world) == 2)
        }
    }

    @Test("what is renamed out of the rules goes out, a folder with all that lies in it")
    func out() async throws {
        try await run { world in
            try world.makeFolder("node_modules")
            try world.makeFolder("node_modules/m")
            try world.write("node_modules/m/index.js", "code")
            try world.write("node_modules/m/x.tmp", "draft")
            try world.write("a.tmp", "a")
            try await sync(world, [:])
            try world.rename("node_modules", to: "modules")
            try world.rename("a.tmp", to: "a.txt")
            let sent = [
                "modules/": "", "modules/m/": "", "modules/m/index.js": "code", "a.txt": "a",
            ]
            try await sync(world, sent)
            #expect(try await held(world) == 1)
            // And back: what the service has stays there, under any name.
            try world.rename("modules", to: "node_modules")
            try world.rename("a.txt", to: "a.tmp")
            try world.write("node_modules/new.js", "new")
            try world.write("a.tmp", "b")
            try await sync(
                world,
                [
                    "node_modules/": "", "node_modules/m/": "", "node_modules/m/index.js": "code",
                    "a.tmp": "b",
                ]
            )
            #expect(try await held(world) == 2)
        }
    }

    @Test("a pattern with a path follows a folder that is renamed")
    func anchored() async throws {
        try await run { world in
            try world.makeFolder("other")
            try world.write("other/only", "1")
            try world.makeFolder("top")
            try world.write("top/only", "2")
            try await sync(world, ["other/": "", "other/only": "1", "top/": ""])
            try world.rename("top", to: "third")
            try await sync(
                world,
                ["other/": "", "other/only": "1", "third/": "", "third/only": "2"]
            )
        }
    }

    @Test("what stays here goes out when its person renames the folder, and when nobody else does")
    func movedAtTheService() async throws {
        try await run { world in
            world.cloud.put("node_modules", nil)
            world.cloud.put("node_modules/theirs.js", "theirs")
            world.cloud.put("top", nil)
            world.cloud.put("top/theirs", "2")
            try await world.agree()
            try world.makeFolder("node_modules/m")
            try world.write("node_modules/m/report.pdf", "mine")
            try world.write("top/only", "mine, too")
            try await sync(
                world,
                [
                    "node_modules/": "", "node_modules/theirs.js": "theirs", "top/": "",
                    "top/theirs": "2",
                ]
            )
            #expect(try await held(world) == 3)
            world.cloud.move("node_modules", to: "final")
            world.cloud.move("top", to: "last")
            try await until {
                try ["final", "last"].allSatisfy {
                    try world.catalog.node(atPath: ["work", $0]) != nil
                }
            }
            let theirs = [
                "final/": "", "final/theirs.js": "theirs", "last/": "", "last/theirs": "2",
            ]
            try await sync(world, theirs)
            #expect(try await held(world) == 3)
            // The same rules at the next start are no person's act.
            await world.stop()
            try world.catalog.setIgnoreRules(IgnoreRules(Self.lines), of: world.account.id)
            await world.restart()
            try await sync(world, theirs)
            #expect(try await held(world) == 3)
            try world.rename("final/m", to: "final/done")
            try world.rename("last", to: "third")
            try await sync(
                world,
                [
                    "final/": "", "final/theirs.js": "theirs", "final/done/": "",
                    "final/done/report.pdf": "mine", "third/": "", "third/theirs": "2",
                    "third/only": "mine, too",
                ]
            )
            #expect(try await held(world) == 0)
        }
    }

    @Test("what somebody else moved out of its rule goes out with that rule, not with others")
    func otherRules() async throws {
        try await run { world in
            world.cloud.put("top", nil)
            world.cloud.put("top/theirs", "2")
            try await world.agree()
            try world.write("top/only", "mine")
            try await sync(world, ["top/": "", "top/theirs": "2"])
            world.cloud.move("top", to: "last")
            try await until { try world.catalog.node(atPath: ["work", "last"]) != nil }
            let theirs = ["last/": "", "last/theirs": "2"]
            try await sync(world, theirs)
            func setRules(_ lines: [String]) async throws {
                await world.stop()
                try world.catalog.setIgnoreRules(IgnoreRules(lines), of: world.account.id)
                await world.restart()
            }
            for lines in [Self.lines + ["*.log"], Self.lines, ["/top/only"]] {
                try await setRules(lines)
                try await sync(world, theirs)
                #expect(try await held(world) == 1)
            }
            // Its person renames it: what held it elsewhere holds it no longer.
            try world.rename("last/only", to: "last/x.tmp")
            try await sync(world, theirs.merging(["last/x.tmp": "mine"]) { $1 })
        }
    }

    @Test("a held item that its person renames to a name that matches, too, is held by that one")
    func renamedBetweenRules() async throws {
        try await run { world in
            try world.makeFolder("node_modules")
            try world.write("node_modules/only", "mine")
            try world.rename("node_modules", to: "x.tmp")
            try world.write("a.tmp", "a")
            try await sync(world, [:])
            await world.stop()
            try world.catalog.setIgnoreRules(IgnoreRules(["node_modules/"]), of: world.account.id)
            await world.restart()
            try await sync(world, ["x.tmp/": "", "x.tmp/only": "mine", "a.tmp": "a"])
        }
    }

    @Test("what gets a name that matches while it is sent stays here when it did not arrive")
    func renamedMeanwhile() async throws {
        try await run { world in
            world.cloud.hold(.uploads)
            try world.write("draft", "secret")
            try await until { world.cloud.isWaiting(.uploads) }
            try world.rename("draft", to: "key.tmp")
            // It is on its way, and may get an id yet.
            #expect(try !world.node("key.tmp").isHeld)
            world.cloud.refuse("upload", with: .outcomeUnknown(retryAfter: nil))
            world.cloud.release(.uploads)
            try await sync(world, [:])
            #expect(try world.node("key.tmp").isHeld)
            #expect(world.cloud.history.isEmpty)
        }
    }

    @Test("a save of what the service has by a name that matches is sent, however it is done")
    func saves() async throws {
        try await run { world in
            world.cloud.put("notes.tmp", "theirs")
            try await world.agree()
            let id = try world.node("notes.tmp").remoteID
            try world.write("notes.tmp", "mine")
            try await sync(world, ["notes.tmp": "mine"])
            // Over it.
            try world.write("new.tmp", "mine 2")
            #expect(try world.node("new.tmp").isHeld)
            try world.rename("new.tmp", to: "notes.tmp")
            try await sync(world, ["notes.tmp": "mine 2"])
            #expect(try world.node("notes.tmp").remoteID == id)
            // Deleted, then written anew.
            try world.remove("notes.tmp")
            try world.write("notes.tmp", "mine 3")
            try await sync(world, ["notes.tmp": "mine 3"])
            // From a name that stays here over one that does not.
            try world.write("doc", "1")
            try await sync(world, ["notes.tmp": "mine 3", "doc": "1"])
            let document = try world.node("doc").remoteID
            try world.write("doc.tmp", "2")
            try world.rename("doc.tmp", to: "doc")
            try await sync(world, ["notes.tmp": "mine 3", "doc": "2"])
            #expect(try world.node("doc").remoteID == document)
            #expect(try await held(world) == 0)
        }
    }

    @Test("what the service has does not go into a folder that stays here")
    func into() async throws {
        try await run { world in
            try world.makeFolder("node_modules")
            try world.write("sent", "1")
            try world.write("copied", "2")
            try world.makeFolder("folder")
            try await sync(world, ["sent": "1", "copied": "2", "folder/": ""])
            for path in ["sent", "folder"] {
                #expect(throws: CatalogError.staysHere) {
                    try world.rename(path, to: "node_modules/\(path)")
                }
            }
            // Neither by a folder that is new itself.
            try world.makeFolder("new")
            try world.rename("sent", to: "new/sent")
            #expect(throws: CatalogError.staysHere) {
                try world.rename("new", to: "node_modules/new")
            }
            // What is to become a copy of the service's own has no bytes here.
            try world.copy("copied", to: "copy")
            #expect(throws: CatalogError.staysHere) {
                try world.rename("copy", to: "node_modules/copy")
            }
            try world.write("fresh", "3")
            try world.rename("fresh", to: "node_modules/fresh")
            // A folder that matches and holds what the service has goes there.
            try world.makeFolder("node_modules/deep")
            try world.rename("new", to: "folder/node_modules")
            let outcome = await world.engine.sync(timeout: .seconds(600))
            #expect(outcome.isComplete)
            #expect(world.cloud.tree["folder/node_modules/sent"] == "1")
            #expect(world.cloud.tree["copy"] == "2")
            #expect(world.cloud.tree["node_modules/"] == nil)
            #expect(try await held(world) == 3)
        }
    }

    @Test("what stays here outlives a folder that somebody deletes at the service")
    func folderGone() async throws {
        try await run { world in
            try world.makeFolder("p")
            try world.write("p/sent", "1")
            try world.makeFolder("p/node_modules")
            try world.write("p/node_modules/x.js", "only here")
            try world.write("p/x.tmp", "draft")
            try await sync(world, ["p/": "", "p/sent": "1"])
            world.cloud.remove("p")
            try await until {
                _ = await world.engine.sync(timeout: .seconds(600))
                return try await world.tree()["p/sent"] == nil
            }
            let tree = try await world.tree()
            #expect(tree["p/node_modules/x.js"] == "only here" && tree["p/x.tmp"] == "draft")
            try await sync(world, ["p/": ""])
            #expect(try await held(world) == 3)
        }
    }

    @Test("something of the same name that comes from the service takes nothing away")
    func sameNames() async throws {
        try await run { world in
            try world.write("x.tmp", "mine")
            try world.makeFolder("node_modules")
            try world.write("node_modules/mine.js", "mine")
            try await sync(world, [:])
            world.cloud.put("x.tmp", "theirs")
            world.cloud.put("node_modules", nil)
            world.cloud.put("node_modules/theirs.js", "theirs")
            try await until { try await world.tree()["node_modules/theirs.js"] == "theirs" }
            try await until { try await world.tree()["x.tmp"] == "theirs" }
            let tree = try await world.tree()
            #expect(tree["x (2).tmp"] == "mine" && tree["node_modules/mine.js"] == "mine")
            try await sync(
                world,
                ["x.tmp": "theirs", "node_modules/": "", "node_modules/theirs.js": "theirs"]
            )
            #expect(try await held(world) == 2)
        }
    }

    @Test("new rules hold from the next start on, for what is not at the service")
    func newRules() async throws {
        try await run { world in
            try world.makeFolder("node_modules")
            try world.write("node_modules/x.js", "1")
            try world.write("a.tmp", "2")
            try world.write("sent.log", "3")
            try await sync(world, ["sent.log": "3"])
            await world.stop()
            try world.write("new.log", "4")
            func set(_ lines: [String]) throws {
                try world.catalog.setIgnoreRules(IgnoreRules(lines), of: world.account.id)
            }
            try set(["*.log", "*.tmp"])
            await world.restart()
            let sent = ["sent.log": "3", "node_modules/": "", "node_modules/x.js": "1"]
            try await sync(world, sent)
            #expect(try await held(world) == 2)
            await world.stop()
            try set([])
            await world.restart()
            try await sync(
                world,
                sent.merging(["a.tmp": "2", "new.log": "4"]) { one, _ in one }
            )
            #expect(try await held(world) == 0)
        }
    }

    private func isHeld(_ path: String, _ world: World) throws -> Bool {
        let names = path.split(separator: "/").map(String.init)
        return try world.catalog.node(atPath: ["work"] + names)?.isHeld ?? false
    }

    /// All contents in a tree; each was written once.
    private func contents(_ tree: [String: String]) -> Set<String> { Set(tree.values) }

    @Test(
        "whatever is done on both sides, what stays here stays, and all else is the same",
        arguments: [1, 2, 3, 4, 5, 6] as [UInt64]
    )
    func random(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let names = ["a", "b", "x.tmp", "keep.tmp", "node_modules", "only", "top"]
        try await run { world in
            var count = 0
            func path(_ folders: [String]) -> String {
                let folder = folders.randomElement(using: &random) ?? ""
                let name = names.randomElement(using: &random) ?? ""
                return folder.isEmpty ? name : folder + "/" + name
            }
            for _ in 0..<12 {
                for _ in 0..<12 {
                    let tree = try await world.tree()
                    let folders =
                        [""] + tree.keys.filter { $0.hasSuffix("/") }.map { String($0.dropLast()) }
                    let all = tree.keys.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
                    let target = path(folders.sorted())
                    let other = all.sorted().randomElement(using: &random)
                    count += 1
                    do {
                        switch Int.random(in: 0..<8, using: &random) {
                        case 0...2: try world.write(target, "content \(count)")
                        case 3: try world.makeFolder(target)
                        case 4...6: if let other { try world.rename(other, to: target) }
                        default: if let other { try world.remove(other) }
                        }
                    } catch is CatalogError {
                    } catch is ContentError {}
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        _ = await world.engine.sync(timeout: .seconds(600))
                    }
                }
                let before = try await world.tree()
                let kept = Set(
                    try before.filter { try !$0.key.hasSuffix("/") && isHeld($0.key, world) }
                        .values
                )
                let remote = world.cloud.tree.keys.map {
                    $0.hasSuffix("/") ? String($0.dropLast()) : $0
                }.sorted()
                for _ in 0..<4 {
                    count += 1
                    let item = remote.randomElement(using: &random)
                    let folders =
                        [""]
                        + world.cloud.tree.keys.filter { $0.hasSuffix("/") }
                        .map { String($0.dropLast()) }.sorted()
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: if let item { world.cloud.remove(item) }
                    case 1:
                        if let item, let name = names.randomElement(using: &random),
                            world.cloud.id(
                                (item.split(separator: "/").dropLast() + [name[...]]).joined(
                                    separator: "/"
                                )
                            ) == nil
                        {
                            world.cloud.rename(item, to: name)
                        }
                    default:
                        let place = path(folders)
                        let isThere = world.cloud.id(place) != nil
                        if !isThere {
                            world.cloud.put(
                                place,
                                Bool.random(using: &random) ? "content \(count)" : nil
                            )
                        }
                    }
                }
                var held: Set<String> = []
                var here: [String: String] = [:]
                try await until {
                    let outcome = await world.engine.sync(timeout: .seconds(600))
                    #expect(outcome.isComplete, "seed \(seed): \(outcome)")
                    let tree = try await world.tree()
                    held = Set(try tree.keys.filter { try isHeld($0, world) })
                    here = tree.filter { !held.contains($0.key) }
                    return here == world.cloud.tree
                }
                let tree = try await world.tree()
                let stays = Set(tree.filter { held.contains($0.key) }.values)
                #expect(kept.subtracting(contents(tree)).isEmpty, "seed \(seed)")
                #expect(
                    stays.subtracting([""]).isDisjoint(with: contents(world.cloud.tree)),
                    "seed \(seed)"
                )
            }
        }
    }
}
