import OortCatalog
import OortModel
import OortPlanner
import Testing

/// A feed that tells items by their paths, as Dropbox's does.
@Suite("items that are told by path", .timeLimit(.minutes(1)))
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
            // Read, and then come by each way in which a name is told.
            .told("d/other", "2"), .told("d/OTHER", "3"), .told("d/old", "4"),
            .told("d/moved", "2"), .told("d/Moved", "5"),
        ])
        let there = try ["1", "2", "3", "4", "5"].filter {
            try catalog.node(remoteID: ItemID($0), account: account.id) != nil
        }
        #expect(there == ["3", "4", "5"])
    }
}
