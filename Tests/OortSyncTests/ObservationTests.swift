import OortCatalog
import OortModel
import OortPlanner
import Testing

/// The service's reports, applied to a catalog without an engine.
@Suite("what the service tells")
struct ObservationTests {
    private let world: World
    private var catalog: Catalog { world.catalog }
    private var account: AccountID { world.account.id }

    init() throws { try self.init(duplicates: false) }

    private init(duplicates: Bool) throws {
        world = try World(MemoryCloud(duplicates: duplicates))
        try world.catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: MemoryCloud.rootID),
            of: world.account.id
        )
    }

    /// Whether the service reports places by id or by path.
    enum Addressing: CaseIterable { case id, path }

    private func item(
        _ path: String,
        _ id: String,
        in parent: String = "root",
        rev: String? = nil,
        _ addressing: Addressing = .id
    ) -> Change {
        let isFolder = path.hasSuffix("/")
        let parts = path.split(separator: "/").map(String.init)
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: parts.last ?? ""
        )
        switch addressing {
        case .id: item.parentID = ItemID(parent)
        case .path: item.path = RemotePath(parts)
        }
        if !isFolder {
            item.rev = Revision(rev ?? "1")
            item.size = 0
        }
        return .changed(item)
    }

    private func apply(
        _ changes: [Change],
        begins: Bool = false,
        ends: Bool = false,
        endsRun: Bool = true
    ) async throws {
        if begins { try await catalog.beginEnumeration(of: account) }
        var observations = Observations(changes: changes)
        observations.endsEnumeration = ends
        observations.endsRun = endsRun
        observations.cursor = Cursor("c")
        _ = try await catalog.apply(observations, to: account)
    }

    /// Merges what is left to merge, as the engine does after each page.
    @discardableResult
    private func merge() async throws -> PlannedWork {
        let planner = Planner(traits: PlannerTraits(world.cloud.traits))
        return try await catalog.plan(
            account,
            with: planner,
            under: PlanningConditions(
                now: Timestamp.now.seconds * 1000,
                settle: 0,
                hash: { bytes in
                    var hasher = MemoryHasher()
                    hasher.update(bytes[...])
                    return hasher.finalize()
                }
            )
        )
    }

    private func paths(below folder: Inode? = nil, _ prefix: String = "") throws -> Set<String> {
        var found: Set<String> = []
        let top = folder ?? world.account.root
        for node in try catalog.children(of: top, after: nil, limit: 10_000) {
            if node.kind == .folder {
                found.insert(prefix + node.name + "/")
                found.formUnion(try paths(below: node.inode, prefix + node.name + "/"))
            } else {
                found.insert(prefix + node.name)
            }
        }
        return found
    }

    @Test(
        "a whole account is there when its enumeration ends, children told before their folders",
        arguments: Addressing.allCases
    )
    func childrenFirst(addressing: Addressing) async throws {
        try await apply(
            [
                item("a/b/c/f", "f", in: "c", addressing), item("a/b/c/", "c", in: "b", addressing),
                item("a/b/g", "g", in: "b", addressing),
            ],
            begins: true
        )
        try await apply([item("a/b/", "b", in: "a", addressing)])
        #expect(try paths().isEmpty)
        try await apply(
            [item("a/", "a", addressing), item("h", "h", addressing)],
            ends: true
        )
        #expect(try paths() == ["a/", "a/b/", "a/b/c/", "a/b/c/f", "a/b/g", "h"])
        #expect(try catalog.account(account)?.isEnumerated == true)
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test("a file that waits for its folder is as the service had it last, or not there at all")
    func waitingChanges() async throws {
        try await apply(
            [
                item("a/f", "f", rev: "1", .path), item("a/g", "g", .path),
                item("a/h", "h", .path),
            ])
        try await apply([item("a/f2", "f", rev: "2", .path), .removed(ItemID("g"))])
        try await apply([.removedPath(RemotePath(["A", "H"]))])
        try await merge()
        try await apply([item("a/", "a", .path)])
        #expect(try paths() == ["a/", "a/f2"])
        #expect(try catalog.node(atPath: ["work", "a", "f2"])?.revision == Revision("2"))
        await world.end()
    }

    @Test("a move told as a removal and a new entry, pages apart, keeps the inode and the children")
    func tombstones() async throws {
        try await apply(
            [item("a/", "a", .path), item("a/f", "f", .path), item("b", "b", .path)],
            begins: true,
            ends: true
        )
        let folder = try #require(try catalog.node(atPath: ["work", "a"])).inode
        let file = try #require(try catalog.node(atPath: ["work", "a", "f"])).inode
        try await apply(
            [.removedPath(RemotePath(["a"])), .removedPath(RemotePath(["b"]))],
            endsRun: false
        )
        #expect(try paths() == ["a/", "a/f", "b"])
        try await apply([item("new/", "a", .path), item("new/f", "f", .path)])
        try await merge()
        #expect(try paths() == ["new/", "new/f"])
        #expect(try catalog.node(atPath: ["work", "new"])?.inode == folder)
        #expect(try catalog.node(atPath: ["work", "new", "f"])?.inode == file)
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test("what is told at a path replaces what was there, and has its own children")
    func replacedByPath() async throws {
        try await apply(
            [
                item("a/", "1", .path), item("a/f", "2", .path), item("b", "3", .path),
                item("c", "4", .path),
            ],
            begins: true,
            ends: true
        )
        // A removal and a new item at one path are one entry; c moved over b before b's news.
        try await apply(
            [
                item("a/", "5", .path), item("a/f", "6", .path), item("a/g", "7", .path),
                item("b", "4", .path), item("c", "8", .path),
            ])
        try await merge()
        #expect(try paths() == ["a/", "a/f", "a/g", "b", "c"])
        func id(_ names: String...) throws -> ItemID? {
            try catalog.node(atPath: ["work"] + names)?.remoteID
        }
        #expect(try id("a") == ItemID("5"))
        #expect(try id("a", "f") == ItemID("6"))
        #expect(try id("b") == ItemID("4"))
        #expect(try id("c") == ItemID("8"))
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test("what was at a path that another item is told to have may be told elsewhere")
    func displacedByPath() async throws {
        try await apply([item("a", "1", .path), item("b", "2", .path)], begins: true, ends: true)
        let first = try #require(try catalog.node(atPath: ["work", "a"])).inode
        try await apply([item("a", "3", .path)], endsRun: false)
        try await apply([item("c", "1", .path)])
        try await merge()
        #expect(try paths() == ["a", "b", "c"])
        #expect(try catalog.node(atPath: ["work", "c"])?.inode == first)
        // One that is asked for by itself proves nothing of where the other one is.
        let looked = Observations(changes: [item("b", "4", .path)])
        #expect(try await catalog.apply(looked, to: account) == [ItemID("2")])
        await world.end()
    }

    @Test("a number that was given in passing is taken back when the name is free")
    func givenBack() async throws {
        try await apply([item("a", "1"), item("b/", "2")], begins: true, ends: true)
        // Two items change places by way of a name that is not seen here.
        try await apply([item("a/", "2")])
        try await merge()
        #expect(try paths() == ["a", "a (2)/"])
        try await apply([item("b", "1")])
        try await merge()
        #expect(try paths() == ["a/", "b"])
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test("what was not said for certain is to be asked for until it is")
    func unsure() async throws {
        try await apply([item("a", "1"), item("b", "2")], begins: true, ends: true)
        var observations = Observations(changes: [item("c", "1"), item("d", "2")])
        observations.suspects = [ItemID("1"), ItemID("2")]
        observations.cursor = Cursor("later")
        _ = try await catalog.apply(observations, to: account)
        #expect(try paths() == ["a", "b"])
        #expect(try await unsureIDs() == ["1", "2"])
        try await apply([item("c", "1")])
        #expect(try await unsureIDs() == ["2"])
        try await apply([.removed(ItemID("2"))])
        #expect(try await unsureIDs().isEmpty)
        await world.end()
    }

    private func unsureIDs() async throws -> [String] {
        try await catalog.unsureItems(of: account).map(\.id.rawValue)
    }

    @Test("what is not told again of a folder that somebody moved is asked for")
    func movedFolders() async throws {
        try await apply(
            [
                item("a/", "a", .path), item("a/x", "x", .path), item("a/y", "y", .path),
                item("a/in/", "in", .path), item("a/in/z", "z", .path),
            ],
            begins: true,
            ends: true
        )
        // Somebody removed y and z, then moved a to b: their old paths are reported with a's.
        try await apply([.removedPath(RemotePath(["a"])), item("b/", "a", .path)], endsRun: false)
        try await apply([item("b/in/", "in", .path), item("b/x", "x", .path)])
        try await merge()
        #expect(try paths() == ["b/", "b/x", "b/y", "b/in/", "b/in/z"])
        #expect(try await unsureIDs() == ["y", "z"])
        try await apply([.removed(ItemID("y")), .removed(ItemID("z"))])
        #expect(try paths() == ["b/", "b/x", "b/in/"])
        #expect(try await unsureIDs().isEmpty)
        await world.end()
    }

    @Test("what is told to lie in a folder does not come into a file that was at that path before")
    func folderInPlaceOfAFile() async throws {
        try await apply(
            [item("a", "a", .path), item("d/", "d", .path), item("d/x", "x", .path)],
            begins: true,
            ends: true
        )
        try await merge()
        // Somebody exchanges both. The first one is reported by the answer to a question for one item.
        try await apply([item("a/x", "x", .path)], endsRun: false)
        try await merge()
        #expect(try paths() == ["a", "d/", "d/x"])
        try await apply([item("d", "a", .path), item("a/", "d", .path), item("a/x", "x", .path)])
        try await merge()
        #expect(try paths() == ["a/", "a/x", "d"])
        #expect(try await unsureIDs().isEmpty)
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test("what is not told again of a folder that we moved is asked for")
    func foldersMovedHere() async throws {
        try await apply(
            [item("a/", "a", .path), item("a/x", "x", .path), item("a/y", "y", .path)],
            begins: true,
            ends: true
        )
        try world.rename("a", to: "b")
        let move = try #require(try await merge().operations.first)
        let start = try #require(
            try await catalog.begin(move, account: account, reservedID: nil)
        )
        guard case .changed(let answer) = item("b/", "a", .path) else { return }
        _ = try await catalog.succeeded(
            start.intent,
            of: move.inode,
            item: answer,
            sentModified: nil
        )
        #expect(try await unsureIDs().isEmpty)
        // Somebody had removed y before.
        try await apply(
            [.removedPath(RemotePath(["a"])), item("b/", "a", .path), item("b/x", "x", .path)]
        )
        #expect(try await unsureIDs() == ["y"])
        try await apply([.removed(ItemID("y"))])
        #expect(try paths() == ["b/", "b/x"])
        // Once is enough.
        try await apply([item("b/", "a", .path)])
        #expect(try await unsureIDs().isEmpty)
        await world.end()
    }

    @Test("a file told below a folder that has another path by now is asked for")
    func oldPaths() async throws {
        try await apply(
            [item("b/", "a", .path), item("b/x", "x", .path)],
            begins: true,
            ends: true
        )
        try await apply([item("a/x", "x", rev: "2", .path)])
        let asked = try await catalog.unsureItems(of: account)
        #expect(asked.map(\.id) == [ItemID("x")])
        #expect(asked.first?.reference?.path == RemotePath(["a", "x"]))
        try await apply([item("b/x", "x", rev: "2", .path)])
        try await merge()
        #expect(try paths() == ["b/", "b/x"])
        #expect(try catalog.node(atPath: ["work", "b", "x"])?.revision == Revision("2"))
        #expect(try await unsureIDs().isEmpty)
        await world.end()
    }

    /// What the service answered when it was asked for one item.
    private func look(_ change: Change) async throws {
        var observations = Observations(changes: [change])
        observations.endsRun = false
        _ = try await catalog.apply(observations, to: account)
    }

    @Test("a folder that is not found takes nothing along before the feed told what lay in it")
    func missingFolders() async throws {
        try await apply(
            [
                item("a/", "1", .path), item("a/b/", "2", .path), item("a/b/f", "3", .path),
                item("a/g", "4", .path), item("c/", "5", .path), item("c/h", "6", .path),
            ],
            begins: true,
            ends: true
        )
        let kept = try world.node("a/b").inode
        try world.write("a/mine", "mine")
        try await look(.removed(ItemID("1")))
        try await look(.removed(ItemID("5")))
        // Nothing is sent by way of a folder that may be gone.
        #expect(try await merge().operations.isEmpty)
        #expect(try paths() == ["a/", "a/b/", "a/b/f", "a/g", "a/mine", "c/", "c/h"])
        // Somebody removed a and c; b was made by its path, and a new a with it.
        try await apply(
            [
                .removedPath(RemotePath(["c"])), item("a/", "7", .path), item("a/b/", "2", .path),
                item("a/b/f", "3", .path),
            ]
        )
        try await merge()
        #expect(try paths() == ["a/", "a/b/", "a/b/f", "a/mine"])
        #expect(try world.node("a").remoteID == ItemID("7"))
        #expect(try world.node("a/b").inode == kept)
        #expect(try await catalog.pending(account).map(\.path) == [["a", "mine"]])
        await world.end()
    }

    @Test("a removal takes nothing along that we touched since, until that was asked for")
    func touchedBelowRemoved() async throws {
        try await apply(
            [item("a/", "1", .path), item("a/b/", "2", .path), item("a/b/f", "3", .path)],
            begins: true,
            ends: true
        )
        let kept = try world.node("a/b/f").inode
        var page = Observations(changes: [
            item("a/", "7", .path), item("a/b/", "2", .path), item("a/b/f", "3", .path),
        ])
        page.suspects = [ItemID("2"), ItemID("3")]
        page.cursor = Cursor("later")
        _ = try await catalog.apply(page, to: account)
        try await merge()
        #expect(try await unsureIDs() == ["2", "3"])
        #expect(try await catalog.hasAnyThatMayBeGone(account))
        try await look(item("a/b/", "2", .path))
        try await look(item("a/b/f", "3", .path))
        try await apply([])
        try await merge()
        #expect(try paths() == ["a/", "a/b/", "a/b/f"])
        #expect(try world.node("a").remoteID == ItemID("7"))
        #expect(try world.node("a/b/f").inode == kept)
        #expect(try await !catalog.hasAnyThatMayBeGone(account))
        #expect(try await catalog.pending(account).isEmpty)
        await world.end()
    }

    @Test(
        "what was told of an item that we touched and that is not here is asked for",
        arguments: Addressing.allCases
    )
    func touchedUnknown(addressing: Addressing) async throws {
        try await apply([item("a/", "a", addressing)], begins: true, ends: true)
        var page = Observations(changes: [
            item("a/x", "x", in: "a", addressing), item("a/y", "y", in: "a", addressing),
            item("b/z", "z", in: "b", addressing),
        ])
        page.suspects = [ItemID("x"), ItemID("y"), ItemID("z")]
        page.cursor = Cursor("later")
        _ = try await catalog.apply(page, to: account)
        try await merge()
        #expect(try paths() == ["a/"])
        let asked = try await catalog.unsureItems(of: account)
        let folder = try world.node("a").inode
        #expect(asked.map(\.folder) == [folder, folder, nil])
        #expect(asked.allSatisfy { !$0.isKnown })
        #expect(
            asked.map(\.reference?.path.parts)
                == [["a", "x"], ["a", "y"], addressing == .path ? ["b", "z"] : ["z"]]
        )
        try await look(item("a/x", "x", in: "a", addressing))
        try await look(.removed(ItemID("y")))
        try await look(.removed(ItemID("z")))
        #expect(try paths() == ["a/", "a/x"])
        #expect(try await unsureIDs().isEmpty)
        await world.end()
    }

    @Test("what an enumeration did not name is gone, and what was made or changed here is not")
    func enumerationEnd() async throws {
        try await apply(
            [
                item("gone", "1"), item("stays", "2"), item("d/", "3"), item("d/f", "4", in: "3"),
                item("e/", "5"), item("e/f", "6", in: "5"),
            ],
            begins: true,
            ends: true
        )
        try world.write("e/mine", "mine")
        try world.write("d/f", "changed")
        try await apply([item("stays", "2")], begins: true)
        #expect(try paths().count == 7)
        try await apply([], ends: true)
        try await merge()
        #expect(try paths() == ["stays", "d/", "d/f", "e/", "e/mine"])
        #expect(
            try await Set(catalog.pending(account).map { $0.path.joined(separator: "/") })
                == ["d", "d/f", "e", "e/mine"]
        )
        await world.end()
    }

    @Test("items of one name are numbered, and stay so however they are told again")
    func duplicates() async throws {
        let tests = try ObservationTests(duplicates: true)
        try await tests.apply(
            [item("f.txt", "1"), item("f.txt", "2"), item("f.txt", "3")],
            begins: true,
            ends: true
        )
        func name(_ id: String) throws -> String? {
            try tests.catalog.node(remoteID: ItemID(id), account: tests.account)?.name
        }
        let before = try ["1", "2", "3"].map(name)
        #expect(before == ["f.txt", "f (2).txt", "f (3).txt"])
        try await tests.apply(
            [item("f.txt", "3"), item("f.txt", "2"), item("f.txt", "1")],
            begins: true,
            ends: true
        )
        try await tests.merge()
        #expect(try ["1", "2", "3"].map(name) == before)
        // What is alone with its name has no number, as on a machine that never saw the other.
        try await tests.apply([.removed(ItemID("1")), .removed(ItemID("3"))])
        #expect(try name("2") == "f.txt")
        #expect(try await tests.catalog.pending(tests.account).isEmpty)
        await tests.world.end()
        await world.end()
    }

    @Test("two normal forms of a name are two files, and a rename between them is seen")
    func normalForms() async throws {
        let tests = try ObservationTests(duplicates: true)
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        try await tests.apply(
            [item(composed, "1"), item(decomposed, "2")],
            begins: true,
            ends: true
        )
        func bytes(_ id: String) throws -> [UInt8]? {
            try tests.catalog.node(remoteID: ItemID(id), account: tests.account)
                .map { Array($0.name.utf8) }
        }
        #expect(try bytes("1") == Array(composed.utf8))
        #expect(try bytes("2") == Array(decomposed.utf8))
        try await tests.apply([.removed(ItemID("1")), item(composed, "2")])
        #expect(try bytes("2") == Array(composed.utf8))
        await tests.world.end()
        await world.end()
    }
}
