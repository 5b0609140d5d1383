import OortCatalog
import OortModel
import Testing

/// What a service tells of many items may be older than what it told of one before.
@Suite("what may lag", .timeLimit(.minutes(15)))
struct LagTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }
    private let asked = Timestamp.now.inMilliseconds

    /// Of a service that tells places by ids, as all do whose answers lag.
    init() throws {
        fixture = try TemporaryAccount()
        catalog.setLag(.seconds(600), of: account.id)
    }

    private func item(
        _ name: String,
        in folder: String = "root",
        _ change: (inout Item) -> Void = { _ in }
    ) -> Change {
        let isFolder = name.hasSuffix("/")
        let id = name.filter { $0 != "/" }
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: id,
            parentID: ItemID(folder)
        )
        if !isFolder { (item.rev, item.size) = (Revision("1"), 0) }
        change(&item)
        return .changed(item)
    }

    /// What the service answered when it was asked for one item.
    private func answer(_ change: Change) async throws {
        var observations = Observations(changes: [change])
        observations.endsRun = false
        _ = try await catalog.apply(observations, to: account.id)
    }

    /// What a listing of a folder answered that was asked for now.
    private func list(_ folder: String, _ changes: Change...) async throws {
        var observations = Observations(changes: changes)
        observations.folder = try node(folder)?.inode
        observations.endsRun = false
        observations.asked = Timestamp.now.inMilliseconds
        _ = try await catalog.apply(observations, to: account.id)
    }

    private func node(_ path: String) throws -> Node? {
        try catalog.node(atPath: ["work"] + path.split(separator: "/").map(String.init))
    }

    private func unsure() async throws -> [String] {
        try await catalog.unsureItems(of: account.id).map(\.id.rawValue)
    }

    @Test(
        "a folder that was asked for and is trashed or gone goes with the next run",
        arguments: [true, false]
    )
    func goneFolder(isTrashed: Bool) async throws {
        try await fixture.page([item("a/"), item("x", in: "a")])
        try await answer(item("a/"))
        try await answer(isTrashed ? item("a/") { $0.isTrashed = true } : .removed(ItemID("a")))
        try await fixture.page([]) { $0.asked = Timestamp.now.inMilliseconds }
        #expect(try node("a") == nil)
        #expect(try await unsure().isEmpty)
    }

    @Test("a folder that is gone goes with the next run, whatever is said of what lay in it")
    func goneWithChild() async throws {
        try await fixture.page([item("a/"), item("x", in: "a")])
        try await answer(item("x", in: "a"))
        try await fixture.page([.removed(ItemID("a"))]) { $0.asked = Timestamp.now.inMilliseconds }
        #expect(try await unsure() == ["x"])
        #expect(try node("a/x") != nil)
        try await answer(item("x", in: "a"))
        try await fixture.page([]) { $0.asked = Timestamp.now.inMilliseconds }
        #expect(try node("a") == nil)
        #expect(try await unsure().isEmpty)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
    }

    @Test("a listing that shows a former state answers no question")
    func staleListing() async throws {
        try await fixture.page([item("a/"), item("x", in: "a"), item("y", in: "a")])
        try await answer(item("x", in: "a"))
        let news = item("x", in: "a") { $0.rev = Revision("2") }
        try await fixture.page([news]) { $0.asked = Timestamp.now.inMilliseconds }
        #expect(try await unsure() == ["x"])
        try await list("a", item("x", in: "a"), item("y", in: "a"))
        let asked = try await catalog.unsureItems(of: account.id)
        #expect(asked.map(\.id.rawValue) == ["x"])
        #expect(asked.map(\.mayLag) == [true])
        try await answer(news)
        #expect(try node("a/x")?.revision == Revision("2"))
        #expect(try await unsure().isEmpty)
    }

    @Test("an enumeration does not take out what it may not show, however long it takes")
    func longEnumeration() async throws {
        try await catalog.beginEnumeration(of: account.id)
        try await fixture.page([item("old"), item("stays")]) {
            $0.isEnumeration = true
            $0.endsEnumeration = true
            $0.asked = asked
        }
        try await answer(item("new"))
        try await catalog.beginEnumeration(of: account.id)
        for minute in 1...20 as ClosedRange<Int64> {
            try await fixture.page([item("stays")], endsRun: minute == 20) {
                $0.isEnumeration = true
                $0.endsEnumeration = minute == 20
                $0.asked = asked + minute * 60_000
            }
        }
        #expect(try node("new") != nil)
        #expect(try await unsure() == ["new"])
        #expect(try node("old") == nil)
        #expect(try node("stays") != nil)
    }

    @Test("a known state brings what is new besides, also while an operation is under way")
    func besides() async throws {
        try await fixture.page([item("f")])
        _ = try catalog.rename(
            "f",
            in: account.root,
            to: "g",
            in: account.root,
            mode: .replace
        )
        let operation = try #require(try await fixture.plan().first)
        _ = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        try await fixture.page([
            item("f") {
                $0.permissions = .read
                $0.isShared = true
            }
        ])
        let file = try #require(try node("g"))
        #expect(file.permissions == .read)
        let details = try catalog.details(of: file.inode)
        #expect(details?.isShared == true)
        #expect(try await unsure().isEmpty)
    }
}
