import OortCatalog
import OortModel
import OortPlanner
import Testing

/// Answers of a service that reports no hash of a file, as OneDrive for Business can.
@Suite("answers without a hash", .timeLimit(.minutes(15)))
struct HashlessAnswerTests {
    private let fixture: TemporaryAccount
    private var catalog: Catalog { fixture.catalog }
    private var account: Account { fixture.account }
    private let file: Inode

    /// A file that has the content of another item, 4 bytes of which no hash is known.
    init() async throws {
        fixture = try TemporaryAccount(service: "onedrive")
        file = try fixture.catalog.create(.file, named: "f", in: fixture.account.root).inode
        try take("original", "1")
    }

    private func take(_ item: String, _ revision: String) throws {
        _ = try catalog.setCopiedContent(
            item: ItemID(item),
            revision: Revision(revision),
            hash: nil,
            size: 4,
            modified: .now,
            of: file
        )
    }

    /// What is planned after the upload that is planned now, of which the service then has `size`
    /// bytes.
    private func upload(
        answersUpload: Bool = true,
        size: Int64 = 4,
        hash: ContentHash? = nil,
        meanwhile: () throws -> Void = {}
    ) async throws -> [RemoteOperation] {
        let operation = try #require(try await fixture.plan().first)
        let start = try #require(
            try await catalog.begin(operation, account: account.id, reservedID: nil)
        )
        try meanwhile()
        var item = Item(
            id: ItemID("i"),
            kind: .file,
            fileName: "f",
            parentID: ItemID("root")
        )
        (item.rev, item.size, item.contentHash) = (Revision("2"), size, hash)
        _ = try await catalog.succeeded(
            start.intent,
            of: file,
            item: item,
            sentModified: start.node.modified,
            answersUpload: answersUpload
        )
        return try await fixture.plan()
    }

    @Test("what was sent is what the service has: the file rests")
    func sent() async throws {
        #expect(try await upload().isEmpty)
        #expect(try await catalog.pendingCount(account.id) == 0)
        #expect(try catalog.node(file).content == .revision(item: ItemID("i"), Revision("2")))
    }

    @Test("so it does where the answer has the hash of what was sent, of which none was known here")
    func sentAndHashed() async throws {
        let text = "sha256:" + String(repeating: "a", count: 64)
        let hash = try #require(ContentHash(description: text))
        #expect(try await upload(hash: hash) { try take("original", "2") }.count == 1)
        #expect(try await upload(hash: hash).isEmpty)
        #expect(try catalog.node(file).hash == hash)
    }

    @Test("what was only found there, or of another size, goes out again")
    func notSent() async throws {
        #expect(try await upload(answersUpload: false).count == 1)
        #expect(try await upload(size: 5).count == 1)
        #expect(try await upload().isEmpty)
    }

    @Test("what the file was given while it was sent goes out after that")
    func changedMeanwhile() async throws {
        #expect(try await upload { try take("original", "2") }.count == 1)
        #expect(try await upload { try take("another", "2") }.count == 1)
        #expect(try await upload().isEmpty)
    }
}
