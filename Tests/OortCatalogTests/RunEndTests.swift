import OortCatalog
import OortModel
import OortPlanner
import Testing

/// The end of a run of the feed decides about items that were reported as gone.
@Suite("the end of a run of the feed", .timeLimit(.minutes(15)))
struct RunEndTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }

    init() throws { fixture = try TemporaryAccount() }

    private func removed(_ path: String) -> Change {
        .removedPath(RemotePath(path.split(separator: "/").map(String.init)))
    }

    private func page(_ changes: Change..., endsRun: Bool = true) async throws {
        try await fixture.page(changes, endsRun: endsRun)
    }

    /// What the service answered when it was asked for one item.
    private func answer(_ change: Change) async throws {
        var observations = Observations(changes: [change])
        observations.endsRun = false
        _ = try await catalog.apply(observations, to: account.id)
    }

    private func node(_ path: String) throws -> Node? {
        try catalog.node(atPath: ["work"] + path.split(separator: "/").map(String.init))
    }

    private func unsure() async throws -> [String] {
        try await catalog.unsureItems(of: account.id).map(\.id.rawValue)
    }

    // MARK: Items that must be asked for

    @Test("what is removed and then moved along with its folder, in one run, is asked for")
    func removedAndMovedAlong() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"), .told("a/y", "y"))
        try await page(removed("a/x"), endsRun: false)
        // The removal may have been of the time before the move, or a part of it.
        try await page(removed("a"), .told("b/", "a"), .told("b/y", "y"))
        try await fixture.plan()
        #expect(try node("b/x") != nil)
        #expect(try await unsure() == ["x"])
        try await answer(.removed(ItemID("x")))
        #expect(try node("b/x") == nil)
        #expect(try node("b/y") != nil)
        #expect(try await unsure().isEmpty)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what is still to be asked for since an earlier run is not gone with this one")
    func unsureSinceBefore() async throws {
        try await page(.told("a/", "a"), .told("a/d/", "d"), .told("a/d/x", "x"))
        try await page(removed("a"), .told("b/", "a"), .told("b/d/", "d"))
        try await fixture.plan()
        #expect(try await unsure() == ["x"])
        try await page(removed("b/d/x"))
        try await fixture.plan()
        #expect(try node("b/d/x") != nil)
        #expect(try await catalog.hasAnyThatMayBeGone(account.id))
        try await answer(.told("b/d/x", "x"))
        try await fixture.plan()
        #expect(try node("b/d/x") != nil)
        #expect(try await unsure().isEmpty)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("a folder that was asked for in vain goes with the run that ends after that")
    func unsureFolder() async throws {
        try await page(.told("a/", "a"), .told("a/d/", "d"), .told("a/d/x", "x"))
        try await page(removed("a"), .told("b/", "a"), .told("b/d/x", "x"))
        try await fixture.plan()
        #expect(try await unsure() == ["d"])
        try await page(removed("b/d"))
        #expect(try node("b/d") != nil)
        try await answer(.removed(ItemID("d")))
        #expect(try await unsure().isEmpty)
        // What lay in it may have been moved out before.
        #expect(try node("b/d/x") != nil)
        try await page(.told("b/x", "x"))
        try await fixture.plan()
        #expect(try node("b/d") == nil)
        #expect(try node("b/x") != nil)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what was reported in a folder that turns out to be another one is asked for")
    func replacedFolder() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"))
        try await catalog.beginEnumeration(of: account.id)
        // The order of the entries is no promise: this is in a folder that comes later.
        try await page(.told("a/new", "new"), endsRun: false)
        try await fixture.page([.told("a/", "b")]) { $0.endsEnumeration = true }
        #expect(try await unsure() == ["new"])
        try await answer(.told("a/new", "new"))
        try await page()
        try await fixture.plan()
        #expect(try node("a")?.remoteID == ItemID("b"))
        #expect(try node("a/new") != nil)
        #expect(try node("a/x") == nil)
        #expect(try await unsure().isEmpty)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what is reported at a path is in the folder reported there, not in one to be asked for")
    func besideDoubt() async throws {
        try await page(.told("a/", "a"))
        // An operation of ours touched the former folder since this was asked for.
        try await fixture.page([.told("a/", "b")]) { $0.suspects = [ItemID("a")] }
        #expect(try await unsure() == ["a"])
        try await page(.told("a/new/", "new"))
        try await answer(.removed(ItemID("a")))
        try await page()
        try await fixture.plan()
        #expect(try node("a")?.remoteID == ItemID("b"))
        #expect(try node("a/new")?.remoteID == ItemID("new"))
        #expect(try await unsure().isEmpty)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test(
        "a time or a description alone, reported while an operation of ours runs, is asked for",
        arguments: [true, false]
    )
    func besideOperation(isTime: Bool) async throws {
        guard case .changed(var item) = Change.told("f", "x") else { return }
        item.clientModifiedTime = Timestamp(seconds: 1)
        try await page(.changed(item))
        // What the service has of our own operation is known, and asked for by nobody.
        try await fixture.page([.changed(item)]) { $0.suspects = [item.id] }
        #expect(try await unsure().isEmpty)
        // The revision stays, as where such a change is none of the content.
        if isTime {
            item.clientModifiedTime = Timestamp(seconds: 2)
        } else {
            item.description = "theirs"
        }
        let told = item
        try await fixture.page([.changed(told)]) { $0.suspects = [told.id] }
        #expect(try await unsure() == ["x"])
        try await answer(.changed(told))
        #expect(try await unsure().isEmpty)
        #expect(try node("f")?.modified == told.clientModifiedTime)
        #expect(try node("f")?.itemDescription == told.description)
    }

    // MARK: Items that may be gone

    @Test("a folder that may be gone is there until the run ends, and then gone with all in it")
    func mayBeGone() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"), .told("y", "y"))
        try await answer(.removed(ItemID("a")))
        try await page(removed("y"), endsRun: false)
        #expect(try await fixture.plan().isEmpty)
        #expect(try node("a/x") != nil)
        #expect(try node("y") != nil)
        #expect(try await catalog.hasAnyThatMayBeGone(account.id))
        try await page()
        #expect(try node("a") == nil)
        #expect(try node("y") == nil)
        #expect(try catalog.node(remoteID: ItemID("x"), account: account.id) == nil)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what moves out of a folder that goes is the item that it was, in any order")
    func movedOutOfGone() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"), .told("a/d/", "d"))
        try await page(.told("a/d/y", "y"))
        let before = try ["a/x", "a/d/y"].map { try node($0)?.inode }
        try await page(.removed(ItemID("a")), .told("x", "x"), endsRun: false)
        try await page(.told("y", "y"))
        try await fixture.plan()
        #expect(try ["x", "y"].map { try node($0)?.inode } == before)
        #expect(try node("a") == nil)
        #expect(try await unsure().isEmpty)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("what may be gone and is told again, here or elsewhere, stays the item that it was")
    func toldAgain() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"), .told("b/", "b"), .told("b/y", "y"))
        let before = try ["a", "a/x", "b", "b/y"].map { try node($0)?.inode }
        try await answer(.removed(ItemID("a")))
        try await answer(.removed(ItemID("b")))
        try await page(.told("a/", "a"), .told("c/", "b"), .told("c/y", "y"), removed("b"))
        #expect(try await fixture.plan().isEmpty)
        #expect(try ["a", "a/x", "c", "c/y"].map { try node($0)?.inode } == before)
        #expect(try node("b") == nil)
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("a restart between a removal and the end of its run changes nothing")
    func restart() async throws {
        try await page(.told("a/", "a"), .told("a/x", "x"))
        try await page(removed("a"), endsRun: false)
        try fixture.temporary.reopen()
        #expect(try node("a/x") != nil)
        #expect(try await catalog.hasAnyThatMayBeGone(account.id))
        try await page(.told("b/", "a"), .told("b/x", "x"))
        try await fixture.plan()
        #expect(try node("b/x")?.remoteID == ItemID("x"))
        #expect(try await !catalog.hasAnyThatMayBeGone(account.id))
    }

    // MARK: Plans that were made before

    /// A file of the service with new content from here, and the operation that is to send it.
    private func changedFile() async throws -> (Inode, RemoteOperation) {
        try await page(.told("d/", "d"), .told("d/f", "f"))
        let file = try #require(try node("d/f"))
        let staged = try catalog.stage(
            NewStagedContent(size: 3),
            account: account.id,
            modified: .now,
            of: file.inode,
            prepare: { _ in }
        ).id
        try catalog.recordStaged(staged, size: 3, modified: .now, isOpen: false)
        let hash = ContentHash(algorithm: .md5, value: "new")
        #expect(try await catalog.setHash(hash, size: 3, ofStaged: staged))
        let planned = try #require(try await fixture.plan().first)
        #expect(sends(planned, of: file.inode) == "new content")
        return (file.inode, planned)
    }

    /// Services take new content for what lies in the trash (Drive's `files.update` does): it would
    /// be there and nowhere else.
    @Test("a change is not sent to what was told to be gone after it was planned")
    func goneSincePlanned() async throws {
        let (inode, planned) = try await changedFile()
        try await page(.removed(ItemID("f")))
        #expect(try await begin(planned) == nil)
        let next = try #require(try await fixture.plan().first)
        #expect(sends(next, of: inode) == "a new file")
        #expect(try await begin(next) != nil)
        #expect(try node("d/f")?.inode == inode)
    }

    @Test("a change is not sent to what may be gone, until the run has told")
    func mayBeGoneSincePlanned() async throws {
        let (inode, planned) = try await changedFile()
        try await page(removed("d/f"), endsRun: false)
        #expect(try await begin(planned) == nil)
        try await page(.told("f", "f"))
        let next = try #require(try await fixture.plan().first)
        #expect(sends(next, of: inode) == "new content")
        #expect(try await begin(next) != nil)
        #expect(try node("f")?.inode == inode)
    }

    /// What an operation sends of a file, in words.
    private func sends(_ operation: RemoteOperation, of inode: Inode) -> String {
        guard operation.inode == inode else { return "another item" }
        return switch operation.action {
        case .replace: "new content"
        case .upload: "a new file"
        default: "\(operation.action)"
        }
    }

    private func begin(_ operation: RemoteOperation) async throws -> OperationStart? {
        try await catalog.begin(operation, account: account.id, reservedID: nil)
    }
}
