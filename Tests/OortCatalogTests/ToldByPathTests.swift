import OortCatalog
import OortModel
import OortPlanner
import Testing

/// A feed that reports items by their paths, as Dropbox's does.
@Suite("items that the service reports by path", .timeLimit(.minutes(15)))
struct ToldByPathTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }

    init() throws { fixture = try TemporaryAccount() }

    /// An operation is under way: what is new is placed by a plan and not at once.
    private func beginOperation() async throws {
        let folder = try catalog.create(.folder, named: "ours", in: account.root)
        let start = try await catalog.begin(
            RemoteOperation(
                inode: folder.inode,
                action: .createFolder(at: Place(parent: account.root, name: "ours"))
            ),
            account: account.id,
            reservedID: nil
        )
        #expect(start != nil)
    }

    @Test("many new ones in one folder, while we send something, take a time that grows as they do")
    func many() async throws {
        try await fixture.page([.told("d/", "d")])
        try await beginOperation()
        try await fixture.page((0..<4000).map { Change.told("d/\($0)", "f\($0)") })
        #expect(try await catalog.pendingCount(account.id) == 1)
        for id in ["f0", "f3999"] {
            #expect(try catalog.node(remoteID: ItemID(id), account: account.id)?.parent == nil)
        }
    }

    @Test("of one path told twice in a page, while we send something, the newer is there alone")
    func replaced() async throws {
        try await fixture.page([.told("d/", "d"), .told("d/old", "1")])
        try await beginOperation()
        try await fixture.page([
            // Read, and then reached by each way in which a name is reported.
            .told("d/other", "2"), .told("d/OTHER", "3"), .told("d/old", "4"),
            .told("d/moved", "2"), .told("d/Moved", "5"),
        ])
        let there = try ["1", "2", "3", "4", "5"].filter {
            try catalog.node(remoteID: ItemID($0), account: account.id) != nil
        }
        #expect(there == ["3", "4", "5"])
    }

    /// An upload makes the folders of its path, and its answer names none of them.
    @Test("a folder that somebody removed and an upload made again is one until the feed has told")
    func remade() async throws {
        try await fixture.page([.told("d/", "d"), .told("d/old", "1")])
        let folder = try #require(try catalog.node(atPath: ["work", "d"])).inode
        let file = try catalog.create(.file, named: "new", in: folder).inode
        let upload = try #require(try await fixture.plan().first)
        let start = try #require(
            try await catalog.begin(upload, account: account.id, reservedID: nil)
        )
        guard case .changed(let answer) = Change.told("d/new", "2") else { return }
        _ = try await catalog.succeeded(start.intent, of: file, item: answer, sentModified: nil)
        try await fixture.page([.told("d/", "3")], endsRun: false)
        #expect(try await fixture.plan().isEmpty)
        #expect(try shown() == ["d"])
        #expect(try catalog.node(atPath: ["work", "d", "new"])?.inode == file)
        try await fixture.page([.told("d/new", "2")])
        #expect(try await fixture.plan().isEmpty)
        #expect(try shown() == ["d"])
        #expect(try catalog.node(atPath: ["work", "d"])?.remoteID == ItemID("3"))
        #expect(try catalog.node(atPath: ["work", "d", "new"])?.inode == file)
        #expect(try catalog.node(remoteID: ItemID("1"), account: account.id) == nil)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    private func shown() throws -> [String] {
        try catalog.children(of: account.root, after: nil, limit: 1000).map(\.name)
    }
}
