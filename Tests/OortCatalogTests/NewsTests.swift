import OortCatalog
import OortModel
import OortPlanner
import Testing

@Suite("What counts as news, so that a deletion planned before does not begin")
struct NewsTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var number: UInt64 { catalog.newsNumber(of: fixture.account.id) }

    init() throws { fixture = try TemporaryAccount() }

    /// Two folders with a file in one of them, of which all is known.
    private func begin() async throws {
        try await fixture.page([
            .told("d/", "d"), .told("e/", "e"), .told("e/f", "f"),
        ])
        try await fixture.plan()
    }

    @Test("what is told as it is known is none, and a planned deletion begins after it")
    func echo() async throws {
        try await begin()
        _ = try catalog.removeFolder("d", in: fixture.account.root)
        let plan = try await fixture.planned()
        try await fixture.page([.told("e/", "e"), .told("e/f", "f"), .removed(ItemID("nobody"))])
        #expect(number == plan.newsNumber)
        let start = try await catalog.begin(
            #require(plan.operations.last),
            account: fixture.account.id,
            reservedID: nil,
            newsNumber: plan.newsNumber
        )
        #expect(start != nil)
    }

    @Test(
        "what appears, is gone, or has another place or revision is news",
        arguments: [
            Change.told("d/new", "new"), .told("x/new", "new"), .told("d/f", "f"),
            .told("e/g", "f"),
            .told("e/f/", "f"), .removed(ItemID("f")), .removedPath(RemotePath(["e", "f"])),
            .revised("e/f", "f"),
        ]
    )
    func news(change: Change) async throws {
        try await begin()
        let before = number
        // What is as it was beside it hides nothing.
        try await fixture.page([.told("e/", "e"), change])
        #expect(number != before, "\(change)")
    }

    @Test("what a listing does not name any more, and the end of an enumeration, are news")
    func unnamed() async throws {
        try await begin()
        var before = number
        let folder = try #require(
            try catalog.node(remoteID: ItemID("e"), account: fixture.account.id)
        )
        var listing = Observations(changes: [])
        (listing.folder, listing.endsRun) = (folder.inode, false)
        _ = try await catalog.apply(listing, to: fixture.account.id)
        #expect(number != before)
        before = number
        try await fixture.page([.told("e/", "e")]) { $0.endsEnumeration = true }
        #expect(number != before)
    }
}

extension Change {
    /// As `told`, of another revision.
    fileprivate static func revised(_ path: String, _ id: String) -> Change {
        guard case .changed(var item) = Change.told(path, id) else { return .removed(ItemID(id)) }
        item.rev = Revision("another")
        return .changed(item)
    }
}
