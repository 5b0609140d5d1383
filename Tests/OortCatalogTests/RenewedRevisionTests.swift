import OortCatalog
import OortModel
import OortPlanner
import Synchronization
import Testing

/// A content that another revision has since something about the file but its bytes was changed.
@Suite("contents under another revision", .timeLimit(.minutes(15)))
struct RenewedRevisionTests {
    private static let hash = ContentHash(algorithm: .md5, value: "00")

    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }
    private let original: Inode
    private let copy: Inode
    private let holder = Holder()

    /// Notes which contents got other keys.
    private final class Holder: ContentHolder {
        let renames = Mutex<[[ContentKey]]>([])

        func rename(_ old: ContentKey, to new: ContentKey) -> Bool {
            renames.withLock { $0.append([old, new]) }
            return true
        }

        func follow(_ old: ContentKey, to new: ContentKey) {}
        func renamesEnd() {}
    }

    /// A file `f` in revision 1 at the service, and `copy` that is to be made of it.
    init() async throws {
        fixture = try TemporaryAccount(service: "nextcloud", setsTimes: true)
        try await fixture.page([Self.told("1", hash: nil, time: 1000)])
        original = try #require(
            try fixture.catalog.node(remoteID: ItemID("f"), account: fixture.account.id)
        ).inode
        copy = try fixture.catalog.create(.file, named: "copy", in: fixture.account.root).inode
        fixture.catalog.setContentHolder(holder)
    }

    private static func item(
        _ revision: String,
        hash: ContentHash?,
        time: Int64,
        size: Int64 = 4
    ) -> Item {
        var item = Item(
            id: ItemID("f"),
            kind: .file,
            fileName: "f",
            parentID: ItemID("root")
        )
        (item.rev, item.size, item.contentHash) = (Revision(revision), size, hash)
        item.clientModifiedTime = Timestamp(seconds: time)
        return item
    }

    private static func told(_ revision: String, hash: ContentHash?, time: Int64) -> Change {
        .changed(item(revision, hash: hash, time: time))
    }

    private func makeCopy(of revision: String, hash: ContentHash? = nil) throws {
        _ = try catalog.setCopiedContent(
            item: ItemID("f"),
            revision: Revision(revision),
            hash: hash,
            size: 4,
            modified: .now,
            of: copy
        )
    }

    @Test("nothing is copied of a revision that the original has no longer")
    func lateCopy() async throws {
        try await stamp(answer: Self.item("2", hash: nil, time: 2000))
        let late = try catalog.create(.file, named: "late", in: account.root).inode
        func copy(of revision: String) throws -> Node {
            try catalog.setCopiedContent(
                item: ItemID("f"),
                revision: Revision(revision),
                hash: nil,
                size: 4,
                modified: .now,
                of: late,
                from: original
            )
        }
        #expect(throws: CatalogError.notFound) { try copy(of: "1") }
        #expect(try content(of: late) == .none)
        #expect(
            try copy(of: "2").content == .revision(item: ItemID("f"), Revision("2"))
        )
    }

    private func key(_ revision: String) -> ContentKey {
        ContentKey(account: account.id, item: ItemID("f"), revision: Revision(revision))
    }

    private func content(of inode: Inode) throws -> NodeContent {
        try catalog.node(inode).content
    }

    /// Gives the file a time, of which the service says `answer`, while the copy is made of revision 1.
    private func stamp(answer: Item, timeChangesRevision: Bool = true) async throws {
        var change = NodeAttributes()
        change.modified = Timestamp(seconds: 2000)
        _ = try catalog.setAttributes(change, of: original)
        let operation = try #require(
            try await fixture.plan().first { $0.inode == original }
        )
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        try makeCopy(of: "1")
        _ = try await catalog.succeeded(
            start.intent,
            of: original,
            item: answer,
            sentModified: Timestamp(seconds: 2000),
            timeChangesRevision: timeChangesRevision
        )
    }

    @Test("a copy of a file that gets a time meanwhile is made of the revision that this makes")
    func stamped() async throws {
        try await stamp(answer: Self.item("2", hash: nil, time: 2000))
        #expect(try content(of: copy) == .revision(item: ItemID("f"), Revision("2")))
        #expect(try content(of: original) == .revision(item: ItemID("f"), Revision("2")))
        #expect(holder.renames.withLock(\.self) == [[key("1"), key("2")]])
        // It goes out before the file is changed.
        #expect(try await fixture.plan().map(\.inode) == [copy])
    }

    @Test(
        "what may be somebody else's content is not taken for the same",
        arguments: [(2000, 5), (2001, 4)] as [(Int64, Int64)]
    )
    func others(time: Int64, size: Int64) async throws {
        try await stamp(answer: Self.item("2", hash: nil, time: time, size: size))
        #expect(try content(of: copy) == .revision(item: ItemID("f"), Revision("1")))
    }

    @Test("where a time makes no other revision, another one is somebody else's content")
    func elsewhere() async throws {
        let answer = Self.item("2", hash: nil, time: 2000)
        try await stamp(answer: answer, timeChangesRevision: false)
        #expect(try content(of: copy) == .revision(item: ItemID("f"), Revision("1")))
    }

    @Test("somebody else's touch of a file with a hash leaves the content; an edit does not")
    func touched() async throws {
        try await fixture.page([Self.told("2", hash: Self.hash, time: 1000)])
        try await fixture.plan()
        try makeCopy(of: "2", hash: Self.hash)
        try await fixture.page([Self.told("3", hash: Self.hash, time: 3000)])
        try await fixture.plan()
        #expect(try content(of: copy) == .revision(item: ItemID("f"), Revision("3")))
        let other = ContentHash(algorithm: .md5, value: "11")
        try await fixture.page([Self.told("4", hash: other, time: 3000)])
        try await fixture.plan()
        #expect(try content(of: copy) == .revision(item: ItemID("f"), Revision("3")))
        #expect(holder.renames.withLock(\.self) == [[key("2"), key("3")]])
    }

    /// Whether the catalog has a cached content under a key, and which row.
    private func row(_ item: String, _ revision: String) throws -> ContentID? {
        try catalog.cachedContent(
            account: account.id,
            item: ItemID(item),
            revision: Revision(revision)
        )?.id
    }

    @Test(
        "a copy's bytes stay with the original while that is in the tree",
        arguments: [true, false]
    )
    func copied(isRemoved: Bool) async throws {
        let key = key("1")
        let id = try await catalog.insertCachedContent({ key }, size: 4, hash: Self.hash)
        try makeCopy(of: "1", hash: Self.hash)
        let operation = try #require(try await fixture.plan().first { $0.inode == copy })
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        if isRemoved { _ = try catalog.unlink("f", in: account.root) }
        var item = Self.item("c1", hash: Self.hash, time: 1000)
        (item.id, item.fileName) = (ItemID("c"), "copy")
        _ = try await catalog.succeeded(start.intent, of: copy, item: item, sentModified: nil)
        #expect(try row("f", "1") == (isRemoved ? nil : id))
        #expect(try row("c", "c1") == (isRemoved ? id : nil))
    }
}
