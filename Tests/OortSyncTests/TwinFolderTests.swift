import Foundation
import OortCatalog
import OortModel
import OortSync
import OortTesting
import Synchronization
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

    /// What the other machine makes, where it is played by the service.
    private static let others = ["other": "other", "sub/": "", "sub/other": "deep other"]

    private func make(_ world: World, _ name: String) throws {
        for folder in ["d", "d/sub"] { try world.makeFolder(folder) }
        try world.write("d/\(name)", name)
        try world.write("d/sub/\(name)", "deep \(name)")
    }

    /// Both machines, and a fresh one, come to show what the service has, which is this.
    private func end(
        _ worlds: [World],
        _ cloud: MemoryCloud,
        _ words: String,
        _ wanted: [String: String] = merged
    ) async throws {
        func isMerged() async -> Bool {
            guard cloud.tree == wanted, cloud.count == wanted.count else { return false }
            for world in worlds where (try? await world.tree()) != wanted { return false }
            return true
        }
        let patience = ContinuousClock.now + .seconds(300)
        while !(await isMerged()), .now < patience {
            for world in worlds { _ = await world.engine.sync(timeout: .milliseconds(200)) }
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(cloud.tree == wanted, "\(words)")
        #expect(cloud.count == wanted.count, "\(words): something is there twice")
        let fresh = try World(cloud)
        fresh.start()
        try await until { try fresh.catalog.account(fresh.account.id)?.isEnumerated == true }
        for world in worlds + [fresh] { #expect(try await world.tree() == wanted, "\(words)") }
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

    @Test("two that are made at the same moment become one, for a third machine, too")
    func atOnce() async throws {
        let cloud = Self.cloud()
        let worlds = [try World(cloud), try World(cloud), try World(cloud)]
        for world in worlds {
            world.start()
            try await world.settle()
        }
        cloud.hold(.folders)
        try make(worlds[0], "one")
        try make(worlds[1], "other")
        let pushes = worlds.prefix(2).map { world in
            let engine = world.engine
            return Task { await engine.sync(timeout: .seconds(600)) }
        }
        try await until { cloud.waiting(at: .folders) == 2 }
        cloud.release(.folders)
        for push in pushes { _ = await push.value }
        try await end(worlds, cloud, "at once")
        #expect(cloud.removedFolders.contains("d"))
    }

    // MARK: The machine that made the later one

    /// A machine that has made its folder, and hears of an older one when it goes on.
    private func maker(_ cloud: MemoryCloud, secondsAgo: Int64 = 5) async throws -> World {
        let world = try World(cloud)
        world.start()
        try make(world, "one")
        try await world.settle()
        await world.stop()
        cloud.makeUnheard("d", secondsAgo: secondsAgo, Self.others)
        _ = cloud.takeCalls()
        return world
    }

    @Test("programs keep their folder, which is never shown under another name")
    func sameNumber() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        let before = try [world.node("d"), world.node("d/sub")].map(\.inode)
        let log = NameLog()
        cloud.hold(.feed)
        await world.restart()
        world.catalog.setListeners(
            CatalogListeners(
                news: { log.note($0) },
                localChange: { [engine = world.engine] _ in engine.localChange() }
            )
        )
        cloud.release(.feed)
        func isOver() -> Bool { cloud.tree == Self.merged && cloud.count == Self.merged.count }
        try await until {
            _ = await world.engine.sync(timeout: .milliseconds(200))
            return isOver()
        }
        #expect(try [world.node("d"), world.node("d/sub")].map(\.inode) == before)
        #expect(cloud.calls("createFolder") == 0)
        #expect(cloud.calls("upload") == 0)
        #expect(!log.left.contains("d"))
        try await end([world], cloud, "the same number")
    }

    @Test("it may die at any call", arguments: [false, true])
    func deaths(isDone: Bool) async throws {
        var wanted = Self.merged
        wanted["d/late"] = "late"
        wanted["d/sub/late"] = "deep late"
        wanted["d/new/"] = ""
        for call in 0..<1000 {
            let cloud = Self.cloud()
            let world = try await maker(cloud)
            try world.write("d/late", "late")
            try world.write("d/sub/late", "deep late")
            try world.makeFolder("d/new")
            cloud.stall(MemoryCloud.Stall(call: call, isDone: isDone, countsLooks: true))
            await world.restart()
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            func isOver() -> Bool { cloud.tree == wanted && cloud.count == wanted.count }
            try await until { cloud.isStalled || isOver() }
            let isStalled = cloud.isStalled
            push.cancel()
            await world.stop()
            cloud.stall(nil)
            await world.restart()
            try await end([world], cloud, "dead at call \(call)", wanted)
            guard isStalled else { return #expect(call > 6) }
        }
    }

    @Test("while it is away both are there; what came into its folder comes with it")
    func away() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        let visitor = try World(cloud)
        visitor.start()
        try await until {
            try visitor.catalog.account(visitor.account.id)?.isEnumerated == true
        }
        try visitor.write("d (2)/guest", "guest")
        #expect(await visitor.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.calls("move") == 0)
        #expect(cloud.folders == ["d", "d", "d/sub", "d/sub"])
        await world.restart()
        var wanted = Self.merged
        wanted["d/guest"] = "guest"
        try await end([world, visitor], cloud, "away", wanted)
    }

    @Test("a mount that may change nothing shows both, and merges them once it may")
    func readOnly() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        await world.restart(isReadOnly: true)
        try await until { try await world.tree()["d/other"] != nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(try await world.tree()["d (2)/one"] == "one")
        #expect(try await world.tree()["d/sub/one"] == nil)
        await world.restart(isReadOnly: false)
        try await end([world], cloud, "read-only")
    }

    @Test("a folder in which something may not be moved stays another one")
    func unmovable() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        cloud.permit([.read], of: try #require(try world.node("d/one").remoteID))
        await world.restart()
        try await until { try await world.tree()["d (2)/one"] != nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.folders.count == 4)
        await world.end()
    }

    @Test("news of several pages that come while two are made one are merged, too")
    func pages() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        try world.write("d/late", "late")
        let mine = try #require(try world.node("d").remoteID)
        let elder = try #require(cloud.eldest("d"))
        // As long as something is sent into it, the one that is to go stays.
        cloud.hold(.uploads)
        cloud.hold(.feed)
        await world.restart()
        let engine = world.engine
        let push = Task { await engine.sync(timeout: .seconds(600)) }
        try await until { cloud.isWaiting(.uploads) }
        cloud.release(.feed)
        try await until { try world.node("d").remoteID == elder }
        try await until { cloud.folders == ["d", "d", "d/sub"] }
        var wanted = Self.merged
        wanted["d/late"] = "late"
        cloud.tell(changesAtOnce: 1)
        for number in 0..<5 {
            cloud.put("to go \(number)", "more", in: mine)
            cloud.put("to stay \(number)", "more", in: elder)
            wanted["d/to go \(number)"] = "more"
            wanted["d/to stay \(number)"] = "more"
        }
        cloud.release(.uploads)
        _ = await push.value
        try await end([world], cloud, "several pages", wanted)
    }

    @Test("an upload into the folder that goes is waited for")
    func underWay() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        try world.write("d/late", "late")
        cloud.hold(.uploads)
        let elder = try #require(cloud.eldest("d"))
        cloud.hold(.feed)
        await world.restart()
        let engine = world.engine
        let push = Task { await engine.sync(timeout: .seconds(600)) }
        try await until { cloud.isWaiting(.uploads) }
        cloud.release(.feed)
        try await until { try world.node("d").remoteID == elder }
        // What is left of the folder below it goes; what the upload goes to stays.
        try await until { cloud.folders.count == 3 }
        #expect(cloud.folders == ["d", "d", "d/sub"])
        cloud.release(.uploads)
        _ = await push.value
        var wanted = Self.merged
        wanted["d/late"] = "late"
        try await end([world], cloud, "under way", wanted)
    }

    @Test("files of one name in both stay two, with numbers")
    func oneName() async throws {
        let cloud = Self.cloud()
        let world = try World(cloud)
        world.start()
        try world.makeFolder("d")
        try world.write("d/f", "mine")
        try await world.settle()
        cloud.makeUnheard("d", secondsAgo: 5, ["f": "theirs"])
        try await until {
            _ = await world.engine.sync(timeout: .milliseconds(200))
            return cloud.folders == ["d"]
        }
        let fresh = try World(cloud)
        fresh.start()
        try await until { try fresh.catalog.account(fresh.account.id)?.isEnumerated == true }
        let shown = try await fresh.tree()
        #expect(Set(shown.keys) == ["d/", "d/f", "d/f (2)"])
        #expect(Set(shown.values) == ["", "mine", "theirs"])
        try await until { try await world.tree() == shown }
        for world in [world, fresh] { await world.end() }
    }

    @Test("folders of one name in both become one, too, though this machine made both")
    func bothMine() async throws {
        let cloud = Self.cloud()
        let world = try World(cloud)
        world.start()
        for folder in ["x", "x/sub", "d", "d/sub"] { try world.makeFolder(folder) }
        try world.write("x/sub/one", "one")
        try world.write("d/sub/two", "two")
        try await world.settle()
        await world.stop()
        cloud.move("x/sub", into: cloud.makeUnheard("d", secondsAgo: 5, [:]))
        await world.restart()
        let wanted = ["d/": "", "d/sub/": "", "d/sub/one": "one", "d/sub/two": "two", "x/": ""]
        try await end([world], cloud, "both mine", wanted)
    }

    @Test("a folder of that name from another time is another folder")
    func another() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud, secondsAgo: 600)
        await world.restart()
        try await until { try await world.tree().count == 8 }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(try await world.tree()["d (2)/one"] == "one")
        #expect(cloud.calls("move") == 0)
        await world.end()
    }

    @Test("what got its name later, or was made by this machine, too, is another folder")
    func notTwins() async throws {
        let cloud = Self.cloud()
        let world = try World(cloud)
        world.start()
        for folder in ["a", "a/src", "b", "b/src", "e"] { try world.makeFolder(folder) }
        try world.write("a/src/f", "of a")
        try await world.settle()
        try world.rename("e", to: "d")
        try await world.settle()
        cloud.makeUnheard("d", secondsAgo: 5, [:])
        cloud.move("b/src", to: "a/src")
        try await until { try await world.tree()["d (2)/"] != nil && cloud.id("b/src") == nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.folders == ["a", "a/src", "a/src", "b", "d", "d"])
        #expect(Set(try await world.tree().keys).isSuperset(of: ["a/src/", "a/src (2)/"]))
        await world.end()
    }

    @Test("a folder that is moved to where one of its name was just made is one with it")
    func movedThere() async throws {
        let cloud = Self.cloud()
        for folder in ["x", "x/sub"] { cloud.put(folder, nil) }
        cloud.put("x/sub/theirs", "theirs")
        let world = try World(cloud)
        world.start()
        try world.makeFolder("d")
        try await world.settle()
        await world.stop()
        try world.makeFolder("d/sub")
        try world.write("d/sub/mine", "mine")
        cloud.move("x/sub", to: "d/sub")
        await world.restart()
        let wanted = [
            "d/": "", "d/sub/": "", "d/sub/theirs": "theirs", "d/sub/mine": "mine", "x/": "",
        ]
        try await end([world], cloud, "moved there", wanted)
    }

    /// By whose folder others were let into.
    @Test(
        "a folder that others were let into meanwhile stays another one",
        arguments: [true, false]
    )
    func shared(isMine: Bool) async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        let mine = try #require(try world.node("d").remoteID)
        let theirs = try #require(cloud.eldest("d"))
        cloud.letIn(to: isMine ? mine : theirs)
        await world.restart()
        try await until { try await world.tree()["d (2)/one"] != nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.folders.count == 4)
        #expect(cloud.calls("move") == 0)
        await world.end()
    }

    @Test("a folder that is shared from here is no twin from then on")
    func sharedHere() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        try await world.catalog.noteShared(try world.node("d").inode)
        await world.restart()
        try await until { try await world.tree()["d (2)/one"] != nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.folders.count == 4)
        await world.end()
    }

    @Test(
        "a folder that comes back since something came into it leaves the programs' one its number"
    )
    func comesBack() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        let before = try [world.node("d"), world.node("d/sub")].map(\.inode)
        let mine = try #require(try world.node("d").remoteID)
        cloud.putIntoDeleted("late")
        cloud.hold(.feed)
        await world.restart()
        cloud.release(.feed)
        func isOver() -> Bool { cloud.folders == ["d", "d/sub"] && cloud.id("d") != mine }
        try await until {
            _ = await world.engine.sync(timeout: .milliseconds(200))
            return isOver()
        }
        #expect(try [world.node("d"), world.node("d/sub")].map(\.inode) == before)
        await world.end()
    }

    @Test("a description that only the folder has that would go keeps both")
    func described() async throws {
        let cloud = Self.cloud()
        let world = try await maker(cloud)
        let mine = try #require(try world.node("d").remoteID)
        cloud.describe(mine, "what it is for")
        await world.restart()
        try await until { try await world.tree()["d (2)/one"] != nil }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(cloud.folders.count == 4)
        await world.end()
    }

    // MARK: At random

    private static let environment = ProcessInfo.processInfo.environment
    private static let histories = environment["OORT_TWINS"].flatMap { Int($0) } ?? 6

    @Test("machines that make the same folders at random, and die, end with one of each")
    func atRandom() async throws {
        let seed =
            Self.environment["OORT_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        print("twins: \(Self.histories) histories from OORT_SEED=\(seed)")
        let failure = await onThread {
            HistoryOutcome.shortestFailure(
                from: seed,
                count: Self.histories,
                steps: HistoryOutcome.chosenSteps ?? Array(0..<TwinHistory.length)
            ) { TwinHistory.run(seed: $0, steps: $1) }
        }
        if let failure { Issue.record("OORT_TWINS=1 \(failure)") }
    }
}

/// The names that left a folder or vanished.
private final class NameLog: Sendable {
    private let names = Mutex<Set<String>>([])

    var left: Set<String> { names.withLock { $0 } }

    func note(_ changes: [CatalogChange]) {
        for change in changes {
            switch change {
            case .entryLeft(_, let name, _), .entryRemoved(_, let name, _, _):
                names.withLock { _ = $0.insert(name) }
            case .entryAdded, .content, .attributes: continue
            }
        }
    }
}
