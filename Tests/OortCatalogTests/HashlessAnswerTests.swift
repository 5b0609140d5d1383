import OortCatalog
import OortModel
import OortPlanner
import Testing

/// Answers of a service that tells no hash of a file, as OneDrive for Business can.
@Suite("answers without a hash", .timeLimit(.minutes(1)))
struct HashlessAnswerTests {
    private let temporary: TemporaryCatalog
    private var catalog: Catalog { temporary.catalog }
    private let account: Account
    private let file: Inode

    /// A file that has the content of another item, 4 bytes of which no hash is known.
    init() async throws {
        temporary = try TemporaryCatalog()
        account = try temporary.catalog.registerAccount(
            name: "work",
            service: "onedrive",
            names: Rules.folding
        )
        try temporary.catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: ItemID("root")),
            of: account.id
        )
        file = try temporary.catalog.create(.file, named: "f", in: account.root).inode
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

    private func plan() async throws -> [RemoteOperation] {
        try await catalog.plan(
            account.id,
            with: Planner(
                traits: PlannerTraits(comparison: .caseInsensitive, allowsDuplicates: false)
            ),
            under: PlanningConditions(
                now: 1_000_000,
                settle: 0,
                isOpen: { _ in false },
                hash: { ContentHash(algorithm: .md5, value: String($0.count)) }
            )
        ).operations
    }

    /// What is planned after the upload that is planned now, of which the service then has `size`
    /// bytes.
    private func upload(
        answersUpload: Bool = true,
        size: Int64 = 4,
        meanwhile: () throws -> Void = {}
    ) async throws -> [RemoteOperation] {
        let operation = try #require(try await plan().first)
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
        (item.rev, item.size) = (Revision("2"), size)
        _ = try await catalog.succeeded(
            start.intent,
            of: file,
            item: item,
            sentModified: start.node.modified,
            answersUpload: answersUpload
        )
        return try await plan()
    }

    @Test("what was sent is what the service has: the file rests")
    func sent() async throws {
        #expect(try await upload().isEmpty)
        #expect(try await catalog.pendingCount(account.id) == 0)
        #expect(try catalog.node(file).content == .revision(item: ItemID("i"), Revision("2")))
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
