import OortCatalog
import OortModel
import OortPlanner
import Testing

/// A feed that tells items by their paths, as Dropbox's does.
@Suite("items that are told by path", .timeLimit(.minutes(1)))
struct ToldByPathTests {
    private let temporary: TemporaryCatalog
    private var catalog: Catalog { temporary.catalog }
    private let account: Account

    init() throws {
        temporary = try TemporaryCatalog()
        account = try temporary.catalog.registerAccount(
            name: "work",
            service: "dropbox",
            names: Rules.folding
        )
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: ItemID("root")),
            of: account.id
        )
    }

    private func told(_ path: String..., id: String, kind: ItemKind = .file) -> Change {
        var item = Item(id: ItemID(id), kind: kind, fileName: path.last ?? "")
        item.path = RemotePath(path)
        if kind == .file { (item.rev, item.size) = (Revision("1"), 0) }
        return .changed(item)
    }

    private func apply(_ changes: [Change]) async throws {
        var observations = Observations(changes: changes)
        observations.cursor = OortModel.Cursor("c")
        observations.endsRun = true
        _ = try await catalog.apply(observations, to: account.id)
    }

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
        try await apply([told("d", id: "d", kind: .folder)])
        try await beginOperation()
        try await apply((0..<4000).map { told("d", "\($0)", id: "f\($0)") })
        #expect(try await catalog.pendingCount(account.id) == 1)
        for id in ["f0", "f3999"] {
            #expect(try catalog.node(remoteID: ItemID(id), account: account.id)?.parent == nil)
        }
    }

    @Test("of one path told twice in a page, while we send something, the newer is there alone")
    func replaced() async throws {
        try await apply([told("d", id: "d", kind: .folder), told("d", "old", id: "1")])
        try await beginOperation()
        try await apply([
            // Read, and then come by each way in which a name is told.
            told("d", "other", id: "2"), told("d", "OTHER", id: "3"), told("d", "old", id: "4"),
            told("d", "moved", id: "2"), told("d", "Moved", id: "5"),
        ])
        let there = try ["1", "2", "3", "4", "5"].filter {
            try catalog.node(remoteID: ItemID($0), account: account.id) != nil
        }
        #expect(there == ["3", "4", "5"])
    }
}
