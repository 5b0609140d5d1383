import GRDB
import OortCatalog
import OortModel
import OortPlanner
import Testing

/// Two items of one name are shown apart by a number, on a service that has such or in passing.
@Suite("names that are shown with a number")
struct NumberedNameTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }

    init() throws { try self.init(names: Rules.exact) }

    private init(names: NameRules) throws {
        fixture = try TemporaryAccount(service: "drive", names: names)
    }

    // MARK: What others do at the service

    private func item(_ name: String, _ id: String, in folder: String = "root") -> Item {
        let isFolder = name.hasSuffix("/")
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: isFolder ? String(name.dropLast()) : name
        )
        item.parentID = ItemID(folder)
        if !isFolder {
            item.rev = Revision("1")
            item.size = 0
        }
        return item
    }

    private func told(
        _ changes: [Change],
        begins: Bool = false,
        ends: Bool = false
    ) async throws {
        if begins { try await fixture.catalog.beginEnumeration(of: fixture.account.id) }
        try await fixture.page(changes) { $0.endsEnumeration = ends }
    }

    private func told(_ items: Item...) async throws { try await told(items.map(Change.changed)) }

    /// The tree of most tests: two of one name, a folder beside.
    private func twins() async throws {
        let items = [
            item("f.txt", "1"), item("f.txt", "2"), item("d/", "d"), item("d/", "e"),
            item("g", "g", in: "e"),
        ]
        try await told(items.map(Change.changed), begins: true, ends: true)
        #expect(try names() == ["d", "d (2)", "f (2).txt", "f.txt"])
    }

    // MARK: What the engine does

    /// Carries out one planned operation; nil when the service deletes something.
    private func push(_ answer: Item?, _ isMeant: (RemoteOperation) -> Bool = { _ in true })
        async throws
    {
        let operation = try #require(try await fixture.plan().first(where: isMeant))
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        _ = try await catalog.succeeded(
            start.intent,
            of: operation.inode,
            item: answer,
            sentModified: nil
        )
    }

    // MARK: What the user sees

    private func names(in folder: Inode? = nil) throws -> [String] {
        try catalog.children(of: folder ?? account.root, after: nil, limit: 1000)
            .map(\.name).sorted()
    }

    private func node(_ id: String) throws -> Node? {
        try catalog.node(remoteID: ItemID(id), account: account.id)
    }

    private func path(_ id: String) throws -> String? {
        try node(id).flatMap { try catalog.shownPath(of: $0.inode)?.joined(separator: "/") }
    }

    // MARK: The name is free again

    /// What may become of the item that has the name without a number.
    enum Departure: String, CaseIterable {
        case deletedThere, trashedThere, movedThere, renamedThere, notEnumerated
        case deletedHere, movedHere, renamedHere
        case deletedOnBothSides, movedOnBothSides, renamedOnBothSides, deletedHereMovedThere
    }

    @Test("a number goes when the other item went, whichever way", arguments: Departure.allCases)
    func departure(_ departure: Departure) async throws {
        try await twins()
        let root = account.root
        let folder = try #require(try node("d")).inode
        func moveHere() throws {
            _ = try catalog.rename(
                "f.txt",
                in: root,
                to: "f.txt",
                in: folder,
                mode: .noReplace
            )
        }
        func renameHere() throws {
            _ = try catalog.rename("f.txt", in: root, to: "new", in: root, mode: .noReplace)
        }
        switch departure {
        case .deletedThere: try await told([.removed(ItemID("1"))])
        case .trashedThere:
            var trashed = item("f.txt", "1")
            trashed.isTrashed = true
            try await told(trashed)
        case .movedThere: try await told(item("f.txt", "1", in: "d"))
        case .renamedThere: try await told(item("new", "1"))
        case .notEnumerated:
            let rest = [item("f.txt", "2"), item("d/", "d"), item("d/", "e")]
            try await told(rest.map(Change.changed), begins: true, ends: true)
        case .deletedHere:
            _ = try catalog.unlink("f.txt", in: root)
            // Until the service did it there are two of that name.
            try await fixture.plan()
            #expect(try node("2")?.name == "f (2).txt")
            try await push(nil)
        case .movedHere:
            try moveHere()
            try await fixture.plan()
            #expect(try node("2")?.name == "f (2).txt")
            try await push(item("f.txt", "1", in: "d"))
        case .renamedHere:
            try renameHere()
            try await push(item("new", "1"))
        case .deletedOnBothSides:
            _ = try catalog.unlink("f.txt", in: root)
            try await told([.removed(ItemID("1"))])
        case .movedOnBothSides:
            try moveHere()
            try await told(item("f.txt", "1", in: "d"))
        case .renamedOnBothSides:
            try renameHere()
            try await told(item("new", "1"))
        case .deletedHereMovedThere:
            _ = try catalog.unlink("f.txt", in: root)
            try await told(item("f.txt", "1", in: "d"))
        }
        try await fixture.plan()
        #expect(try node("2")?.name == "f.txt")
        #expect(try node("2")?.serviceName == "f.txt")
        #expect(try await catalog.pending(account.id).isEmpty)
    }

    @Test("a folder's number goes, too, and what lies in it is told under its new path")
    func folders() async throws {
        try await twins()
        #expect(try path("g") == "d (2)/g")
        try await told([.removed(ItemID("d"))])
        #expect(try path("g") == "d/g")
    }

    @Test("the numbers of the others follow when one goes")
    func gaps() async throws {
        try await told(item("f", "1"), item("f", "2"), item("f", "3"))
        try await told([.removed(ItemID("2"))])
        #expect(try names() == ["f", "f (2)"])
        try await told([.removed(ItemID("1"))])
        #expect(try names() == ["f"])
    }

    @Test("of several the lowest number goes, and the others move up in their order")
    func several() async throws {
        try await told(item("f", "1"), item("f", "2"), item("f", "3"))
        try await told([.removed(ItemID("1"))])
        #expect(try ["2", "3"].map { try node($0)?.name } == ["f", "f (2)"])
    }

    @Test("names that show otherwise than the service has them get them back, too")
    func shownOtherwise() async throws {
        func document(_ id: String) -> Item {
            var item = item("plan", id)
            item.kind = .nativeDocument
            item.exports = [ExportFormat(mimeType: "m", fileExtension: "docx")]
            return item
        }
        func link(_ id: String) -> Item {
            var item = item("link.rclonelink", id)
            (item.isOwn, item.size) = (true, 5)
            return item
        }
        for (name, first, second) in [
            ("a∕b", item("a/b", "1"), item("a/b", "2")),
            ("link", link("1"), link("2")),
            ("plan.docx", document("1"), document("2")),
        ] {
            try await told([.changed(first), .changed(second)])
            #expect(try names() == [name, ShownName.numbered(name, 2)].sorted())
            _ = try catalog.unlink(name, in: account.root)
            try await push(nil)
            #expect(try names() == [name])
            try await told([.removed(ItemID("2"))])
        }
    }

    @Test("what comes back, or is moved by others, has no number where its name is free")
    func elsewhere() async throws {
        try await twins()
        let folder = try #require(try node("d")).inode
        // Deleted here with its number, then changed there: the change wins.
        _ = try catalog.unlink("f (2).txt", in: account.root)
        try await told([.removed(ItemID("1"))])
        var changed = item("f.txt", "2")
        changed.rev = Revision("2")
        try await told(changed)
        try await fixture.plan()
        #expect(try names() == ["d", "d (2)", "f.txt"])
        try await told(item("f.txt", "3"))
        try await told(item("f.txt", "3", in: "d"))
        #expect(try names(in: folder) == ["f.txt"])
    }

    @Test("a catalog of before, which did not note numbers, gives names back as well")
    func migrated() async throws {
        try await twins()
        try catalog.close()
        let database = try DatabaseQueue(path: fixture.temporary.path)
        try await database.write { database in
            try database.execute(
                sql: """
                    DROP INDEX node_by_plain_key;
                    DROP INDEX node_by_plain_name;
                    ALTER TABLE node DROP COLUMN plain_key;
                    DELETE FROM grdb_migrations WHERE identifier IN
                        ('names shown with a number', 'numbers of one folder');
                    """
            )
        }
        try database.close()
        try fixture.temporary.reopen()
        try await told([.removed(ItemID("1"))])
        #expect(try node("2")?.name == "f.txt")
    }

    @Test("where a name is given once, the item that the service lost leaves it to the other one")
    func displaced() async throws {
        let tests = try NumberedNameTests(names: Rules.folding)
        let root = tests.account.root
        try await tests.told(tests.item("f", "1"))
        // Saved here by replacing, while somebody else puts another file in its place there.
        let new = try tests.catalog.create(.file, named: ".f.tmp", in: root)
        _ = try tests.catalog.rename(".f.tmp", in: root, to: "f", in: root, mode: .replace)
        try await tests.fixture.plan()
        #expect(try tests.node("1")?.inode == new.inode)
        try await tests.told(tests.item("f", "2"))
        try await tests.fixture.plan()
        #expect(try tests.names() == ["f", "f (2)"])
        try await tests.told([.removed(ItemID("1"))])
        let operations = try await tests.fixture.plan()
        #expect(try tests.node("2")?.name == "f")
        #expect(try tests.catalog.node(new.inode).name == "f (3)")
        #expect(operations.map(\.inode) == [new.inode])
    }

    @Test("where a name is given once, what is moved here and renamed there takes a number along")
    func movedOntoName() async throws {
        let tests = try NumberedNameTests(names: Rules.folding)
        let root = tests.account.root
        try await tests.told(
            tests.item("f", "1"),
            tests.item("d/", "d"),
            tests.item("g", "2", in: "d")
        )
        let moved = try #require(try tests.node("2")).inode
        let folder = try #require(try tests.node("d")).inode
        _ = try tests.catalog.rename("g", in: folder, to: "h", in: root, mode: .replace)
        try await tests.told(tests.item("f", "2", in: "d"))
        let operations = try await tests.fixture.plan()
        #expect(try tests.names() == ["d", "f", "f (2)"])
        let place = Place(parent: root, name: "f (2)")
        #expect(operations.map(\.inode) == [moved])
        #expect(operations.map(\.action) == [.move(to: place, isDetour: false)])
    }

    // MARK: A number that stays

    @Test("a number that the item has at the service is its name")
    func realNumbers() async throws {
        try await told(item("f", "1"), item("f (2)", "2"))
        try await told([.removed(ItemID("1"))])
        try await fixture.plan()
        #expect(try names() == ["f (2)"])
    }

    @Test("a number that the user gave is the item's name")
    func givenNumbers() async throws {
        try await told(item("f", "1"), item("g", "2"))
        let root = account.root
        _ = try catalog.rename("g", in: root, to: "f (2)", in: root, mode: .noReplace)
        try await push(item("f (2)", "2"))
        try await told([.removed(ItemID("1"))])
        try await fixture.plan()
        #expect(try names() == ["f (2)"])
    }

    @Test("what is moved under its number has it at the service from then on")
    func movedWithNumber() async throws {
        try await twins()
        let folder = try #require(try node("d")).inode
        _ = try catalog.rename(
            "f (2).txt",
            in: account.root,
            to: "f (2).txt",
            in: folder,
            mode: .noReplace
        )
        let planned = try #require(try await fixture.plan().first)
        #expect(
            planned.action
                == .move(to: Place(parent: folder, name: "f (2).txt"), isDetour: false)
        )
        try await push(item("f (2).txt", "2", in: "d"))
        try await fixture.plan()
        #expect(try names(in: folder) == ["f (2).txt"])
        #expect(try names() == ["d", "d (2)", "f.txt"])
        #expect(try await catalog.pending(account.id).isEmpty)
    }

    @Test("two that change places have the names that are seen then")
    func exchanged() async throws {
        try await twins()
        let root = account.root
        _ = try catalog.rename("f.txt", in: root, to: "f (2).txt", in: root, mode: .exchange)
        #expect(try node("1")?.name == "f (2).txt")
        #expect(try node("1")?.serviceName == "f (2).txt")
        try await push(item("f (2).txt", "1"))
        try await fixture.plan()
        #expect(try node("2")?.name == "f.txt")
        #expect(try node("1")?.name == "f (2).txt")
        #expect(try await catalog.pending(account.id).isEmpty)
    }

    @Test("a file that is saved by replacing stays the service's item, and keeps its number")
    func replaced() async throws {
        try await twins()
        let root = account.root
        let new = try catalog.create(.file, named: ".f.txt.tmp", in: root)
        _ = try catalog.rename(".f.txt.tmp", in: root, to: "f (2).txt", in: root, mode: .replace)
        try await fixture.plan()
        #expect(try node("2")?.inode == new.inode)
        #expect(try node("2")?.name == "f (2).txt")
        try await told([.removed(ItemID("1"))])
        try await fixture.plan()
        #expect(try node("2")?.name == "f.txt")
    }
}
