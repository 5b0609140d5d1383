import OortCatalog
import OortModel
import OortPlanner
import Testing

/// What changes between the pages of an enumeration, without an engine.
@Suite("between the pages of an enumeration", .timeLimit(.minutes(15)))
struct EnumerationTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }

    init() throws { fixture = try TemporaryAccount() }

    private func node(_ path: String) throws -> Node? {
        try catalog.node(atPath: ["work"] + path.split(separator: "/").map(String.init))
    }

    private func page(_ changes: Change..., ends: Bool = false) async throws {
        try await fixture.page(changes, endsRun: ends) { $0.endsEnumeration = ends }
    }

    /// A whole enumeration with a file and a folder, and the first page of another one that has named
    /// both.
    private func secondEnumeration() async throws {
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/", "d"), .told("f", "f"), .told("g", "g"), ends: true)
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/", "d"), .told("f", "f"))
    }

    @Test("what the service did not let be seen is not taken for gone with what was not named")
    func untold() async throws {
        try await catalog.beginEnumeration(of: account.id)
        try await page(
            .told("d/", "d"),
            .told("d/e/", "e"),
            .told("d/e/deep", "deep"),
            .told("f", "f"),
            ends: true
        )
        try await catalog.beginEnumeration(of: account.id)
        try await fixture.page([.told("d/", "d")], endsRun: false) {
            $0.untold = [ItemID("d"), ItemID("unknown")]
        }
        try await page(ends: true)
        #expect(try node("d/e/deep") != nil)
        #expect(try node("f") == nil)
    }

    /// A new file with content whose hash is known.
    private func write(_ name: String, _ text: String) async throws -> Inode {
        let file = try catalog.create(.file, named: name, in: account.root)
        let staged = try catalog.stage(
            NewStagedContent(size: 3),
            account: account.id,
            modified: .now,
            of: file.inode,
            prepare: { _ in }
        ).id
        try catalog.recordStaged(staged, size: 3, modified: .now, isOpen: false)
        let hash = ContentHash(algorithm: .md5, value: text)
        #expect(try await catalog.setHash(hash, size: 3, ofStaged: staged))
        return file.inode
    }

    private func rename(_ name: String, to new: String) throws {
        _ = try catalog.rename(
            name,
            in: account.root,
            to: new,
            in: account.root,
            mode: .replace
        )
    }

    /// What the service answers after it took a file's content.
    private func answer(_ id: String, _ name: String, _ text: String) -> Item {
        var item = Item(id: ItemID(id), kind: .file, fileName: name)
        item.path = RemotePath([name])
        item.rev = Revision("2")
        item.size = 3
        item.contentHash = ContentHash(algorithm: .md5, value: text)
        return item
    }

    private func send(_ operation: RemoteOperation, answering item: Item?) async throws {
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        _ = try await catalog.succeeded(
            start.intent,
            of: operation.inode,
            item: item,
            sentModified: nil,
            answersUpload: true
        )
    }

    @Test(
        "who took over an identity keeps it when the enumeration ends",
        arguments: ["not sent", "sent"]
    )
    func handedOver(_ state: String) async throws {
        try await secondEnumeration()
        let heir = try await write(".tmp", "new")
        try rename(".tmp", to: "f")
        let operation = try #require(try await fixture.plan().first)
        #expect(operation.inode == heir)
        #expect(try catalog.node(heir).remoteID == ItemID("f"))
        if state == "sent" { try await send(operation, answering: answer("f", "f", "new")) }
        try await page(.told("g", "g"), ends: true)
        let left = try await fixture.plan()
        #expect(try node("f")?.inode == heir)
        #expect(try node("f")?.remoteID == ItemID("f"))
        #expect(left.map(\.inode) == (state == "sent" ? [] : [heir]))
    }

    @Test("an identity that was given up is deleted at the service after the enumeration, too")
    func givenUp() async throws {
        try await secondEnumeration()
        _ = try catalog.unlink("f", in: account.root)
        try await page(.told("g", "g"), ends: true)
        let left = try await fixture.plan()
        #expect(left.map(\.action) == [.delete])
        #expect(try node("f") == nil)
    }

    /// By where something comes in, below the folder that is deleted.
    @Test(
        "a planned deletion of a folder does not begin once something came into it",
        arguments: ["", "old", "old/older"]
    )
    func cameIn(_ inner: String) async throws {
        let folders = inner.split(separator: "/").map(String.init)
        let paths = folders.indices.map { "d/" + folders[...$0].joined(separator: "/") + "/" }
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/", "d"), ends: true)
        for path in paths { try await page(.told(path, path)) }
        try await fixture.plan()
        for (path, name) in zip(paths, folders).reversed() {
            let above = path.dropLast(name.count + 2)
            _ = try catalog.removeFolder(name, in: #require(try node(String(above))).inode)
        }
        _ = try catalog.removeFolder("d", in: account.root)
        let plan = try await fixture.planned()
        let deletion = try #require(plan.operations.last)
        #expect(deletion.action == .delete)
        // The feed is read between the plan and its first step.
        let place = (["d"] + folders + ["theirs"]).joined(separator: "/")
        try await page(.told(place, "theirs"))
        let start = try await catalog.begin(
            deletion,
            account: account.id,
            reservedID: nil,
            newsNumber: plan.newsNumber
        )
        #expect(start == nil)
        let rest = try await fixture.plan()
        #expect(rest.allSatisfy { $0.action != .delete })
        #expect(try node(place) != nil)
    }

    @Test("a planned deletion begins while nothing was heard since")
    func nothingCame() async throws {
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/", "d"), ends: true)
        _ = try catalog.removeFolder("d", in: account.root)
        let plan = try await fixture.planned()
        let start = try await catalog.begin(
            #require(plan.operations.last),
            account: account.id,
            reservedID: nil,
            newsNumber: plan.newsNumber
        )
        #expect(start != nil)
    }

    @Test("what was moved here before it was named stays")
    func moved() async throws {
        try await secondEnumeration()
        let inode = try node("g")?.inode
        try rename("g", to: "h")
        let operation = try #require(try await fixture.plan().first)
        var item = answer("g", "h", "old")
        item.contentHash = nil
        (item.rev, item.size) = (Revision("1"), 0)
        try await send(operation, answering: item)
        try await page(ends: true)
        try await fixture.plan()
        #expect(try node("h")?.inode == inode)
        #expect(try catalog.node(remoteID: ItemID("g"), account: account.id) != nil)
    }

    @Test("what was asked before an enumeration began is not gone after it, and asked for")
    func askedBefore() async throws {
        try await secondEnumeration()
        try await page(.told("g", "g"), ends: true)
        let made = try await write("new", "new")
        let operation = try #require(try await fixture.plan().first)
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        try await catalog.beginEnumeration(of: account.id)
        let isOpen = try await catalog.succeeded(
            start.intent,
            of: made,
            item: answer("n", "new", "new"),
            sentModified: nil,
            answersUpload: true
        )
        #expect(isOpen)
        #expect(try await catalog.unsureItems(of: account.id).map(\.id) == [ItemID("n")])
        try await page(.told("d/", "d"), .told("f", "f"), .told("g", "g"), ends: true)
        #expect(try node("new")?.inode == made)
    }

    @Test("what was asked for before an enumeration began is not applied after that")
    func staleAnswer() async throws {
        try await secondEnumeration()
        try await page(.told("g", "g"), ends: true)
        var answer = Observations(changes: [.told("old", "o"), .removed(ItemID("f"))])
        answer.endsRun = false
        answer.enumeration = try await catalog.enumeration(of: account.id)
        try await catalog.beginEnumeration(of: account.id)
        #expect(try await catalog.apply(answer, to: account.id) == nil)
        #expect(try node("old") == nil)
        #expect(try node("f") != nil)
    }

    @Test("a folder that was not named, with what was named in it, waits for the next run")
    func namedBelow() async throws {
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/", "d"), .told("d/f", "f"), ends: true)
        let inode = try node("d/f")?.inode
        try await catalog.beginEnumeration(of: account.id)
        try await page(.told("d/f", "f"))
        try await page(ends: true)
        try await fixture.plan()
        #expect(try await catalog.hasAnyThatMayBeGone(account.id))
        try await fixture.page([.told("f", "f")])
        try await fixture.plan()
        #expect(try node("f")?.inode == inode)
        #expect(try node("d") == nil)
        #expect(try await catalog.pendingCount(account.id) == 0)
    }

    @Test("an enumeration that was begun and not answered begins anew after a restart")
    func restart() async throws {
        try await secondEnumeration()
        #expect(try catalog.account(account.id)?.cursor != nil)
        try await catalog.beginEnumeration(of: account.id)
        try fixture.temporary.reopen()
        #expect(try catalog.account(account.id)?.cursor == nil)
    }
}
