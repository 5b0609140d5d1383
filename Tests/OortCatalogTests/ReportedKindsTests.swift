import OortCatalog
import OortModel
import OortPlanner
import Testing

/// A folder does not become a file, nor does anything lie in one: such a report is of another item.
@Suite("reports of an item as another kind", .timeLimit(.minutes(15)))
struct ReportedKindsTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }

    init() throws { fixture = try TemporaryAccount(service: "drive", names: Rules.exact) }

    private func item(_ id: String, _ kind: ItemKind, _ name: String, in parent: String) -> Change {
        var item = Item(id: ItemID(id), kind: kind, fileName: name, parentID: ItemID(parent))
        if kind == .file { (item.rev, item.size) = (Revision("1"), 0) }
        return .changed(item)
    }

    private func node(_ path: String) throws -> Node? {
        try catalog.node(atPath: ["work"] + path.split(separator: "/").map(String.init))
    }

    /// Writes a new file that is to be sent.
    private func write(_ name: String, in folder: Inode) async throws -> Node {
        let file = try catalog.create(.file, named: name, in: folder) { _, _ in }
        let content = try #require(file.staged)
        try catalog.recordStaged(content, size: 4, modified: .now, isOpen: false)
        _ = try await catalog.setHash(Self.hash, size: 4, ofStaged: content)
        return file
    }

    private static let hash = ContentHash(algorithm: .md5, value: "mine")

    @Test("a folder that is reported as a file is gone with all in it, and comes back")
    func folderAsFile() async throws {
        try await fixture.page([
            item("d", .folder, "d", in: "root"), item("x", .file, "x", in: "d"),
        ])
        #expect(try node("d/x") != nil)
        try await fixture.page([item("d", .file, "d", in: "root")])
        #expect(try node("d")?.kind == .file)
        #expect(try catalog.node(remoteID: ItemID("x"), account: account.id) == nil)
        try await fixture.page([
            item("d", .folder, "d", in: "root"), item("x", .file, "x", in: "d"),
        ])
        try await fixture.plan()
        #expect(try node("d/x")?.kind == .file)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what was written in a folder that is reported as a file stays, in a folder")
    func folderWithWorkAsFile() async throws {
        try await fixture.page([item("d", .folder, "d", in: "root")])
        let file = try await write("mine", in: try #require(try node("d")).inode)
        try await fixture.page([item("d", .file, "d", in: "root")])
        let operations = try await fixture.plan()
        let path = try #require(try catalog.shownPath(of: file.inode))
        #expect(path.last == "mine")
        #expect(operations.contains { if case .upload = $0.action { true } else { false } })
        let other = try #require(try catalog.node(remoteID: ItemID("d"), account: account.id))
        #expect(other.kind == .file && other.parent == account.root)
    }

    @Test("a changed file that is reported as a folder stays beside it")
    func fileAsFolder() async throws {
        try await fixture.page([item("f", .file, "f", in: "root")])
        let file = try #require(try node("f"))
        let (content, _) = try catalog.stage(
            NewStagedContent(size: 4),
            account: account.id,
            modified: .now,
            of: file.inode
        ) { _ in }
        try catalog.recordStaged(content, size: 4, modified: .now, isOpen: false)
        try await fixture.page([item("f", .folder, "f", in: "root")])
        try await fixture.plan()
        #expect(try catalog.node(staged: content)?.parent == account.root)
        let folder = try catalog.node(remoteID: ItemID("f"), account: account.id)
        #expect(folder?.kind == .folder && folder?.parent == account.root)
    }

    @Test("what is reported in a file waits until its folder is known")
    func parentIsFile() async throws {
        try await fixture.page([
            item("f", .file, "f", in: "root"), item("x", .file, "x", in: "f"),
        ])
        try await fixture.plan()
        #expect(try catalog.node(remoteID: ItemID("x"), account: account.id)?.parent == nil)
        try await fixture.page([item("f", .folder, "f", in: "root")])
        try await fixture.plan()
        #expect(try node("f/x") != nil)
    }

    @Test("what was sent into a folder that is gone before the answer does not vanish with it")
    func answerInGoneFolder() async throws {
        try await fixture.page([item("d", .folder, "d", in: "root")])
        let file = try await write("mine", in: try #require(try node("d")).inode)
        let operation = try #require(try await fixture.plan().first)
        let start = try await catalog.begin(operation, account: account.id, reservedID: nil)
        let intent = try #require(start).intent
        try await fixture.page([.removed(ItemID("d"))])
        var answer = Item(
            id: ItemID("m"),
            kind: .file,
            fileName: "mine",
            parentID: ItemID("d")
        )
        (answer.rev, answer.size, answer.contentHash) = (Revision("1"), 4, Self.hash)
        let isOpen = try await catalog.succeeded(
            intent,
            of: file.inode,
            item: answer,
            sentModified: nil,
            answersUpload: true
        )
        #expect(isOpen)
        try await fixture.plan()
        #expect(try node("d/mine") != nil)
        // Only the service knows which of the two came first.
        var observations = Observations(changes: [.removed(ItemID("m"))])
        observations.endsRun = false
        _ = try await catalog.apply(observations, to: account.id)
        try await fixture.plan()
        #expect(try node("d/mine") == nil)
    }

    @Test("what was made in a folder that nobody knows is asked for, and is not made again")
    func answerInUnknownFolder() async throws {
        try await fixture.page([item("d", .folder, "d", in: "root")])
        let file = try await write("mine", in: try #require(try node("d")).inode)
        let operation = try #require(try await fixture.plan().first)
        let start = try await catalog.begin(operation, account: account.id, reservedID: nil)
        var answer = Item(
            id: ItemID("m"),
            kind: .file,
            fileName: "mine",
            parentID: ItemID("somewhere")
        )
        (answer.rev, answer.size, answer.contentHash) = (Revision("1"), 4, Self.hash)
        let isOpen = try await catalog.succeeded(
            try #require(start).intent,
            of: file.inode,
            item: answer,
            sentModified: nil,
            answersUpload: true
        )
        #expect(isOpen)
        #expect(try node("d/mine")?.remoteID == ItemID("m"))
        #expect(try await fixture.plan().isEmpty)
    }

    @Test("a backup's copy in a folder that nobody knows is asked for, and is not made again")
    func copyInUnknownFolder() async throws {
        try await fixture.page([
            item("d", .folder, "d", in: "root"), item("x", .file, "f", in: "d"),
        ])
        let folder = try #require(try node("d")).inode
        _ = try catalog.rename("f", in: folder, to: "f~", in: folder, mode: .replace)
        let file = try await write("f", in: folder)
        let operation = try #require(try await fixture.plan().first)
        guard case .duplicate = operation.action else {
            Issue.record("\(operation) is no backup")
            return
        }
        let start = try await catalog.begin(
            operation,
            account: account.id,
            reservedID: nil,
            copiesFiles: true
        )
        var answer = Item(
            id: ItemID("copy"),
            kind: .file,
            fileName: "f~",
            parentID: ItemID("somewhere")
        )
        (answer.rev, answer.size) = (Revision("2"), 0)
        let isOpen = try await catalog.succeeded(
            try #require(start).intent,
            of: operation.inode,
            item: answer,
            sentModified: nil
        )
        #expect(isOpen)
        #expect(try node("d/f~")?.remoteID == ItemID("copy"))
        #expect(try node("d/f")?.remoteID == ItemID("x"))
        let next = try await fixture.plan()
        #expect(next.map(\.inode) == [file.inode])
        #expect(next.allSatisfy { if case .replace = $0.action { true } else { false } })
    }

    @Test("an answer that names the account's root makes nothing of it")
    func answerNamesRoot() async throws {
        let folder = try catalog.create(.folder, named: "new", in: account.root)
        let operation = try #require(try await fixture.plan().first)
        let start = try await catalog.begin(operation, account: account.id, reservedID: nil)
        let intent = try #require(start).intent
        let isOpen = try await catalog.succeeded(
            intent,
            of: folder.inode,
            item: Item(id: ItemID("root"), kind: .folder, fileName: "new"),
            sentModified: nil
        )
        #expect(isOpen)
        #expect(try node("new")?.inode == folder.inode)
        #expect(try await fixture.plan().map(\.inode) == [folder.inode])
    }
}
