import OortCatalog
import OortModel
import OortTesting
import Testing

@testable import OortContentStore

/// Bytes whose revision has another name at the service by now.
@Suite("contents under another key", .timeLimit(.minutes(15)))
struct RenamedContentTests {
    private let fixture: StoreFixture
    private let bytes: [UInt8]
    private var first: ContentKey { fixture.key("a", "1") }
    private var second: ContentKey { fixture.key("a", "2") }

    /// A file of which the service has revision 1.
    init() async throws {
        fixture = try StoreFixture()
        var random = SeededNumbers(seed: 7)
        bytes = random.bytes(100_000)
        fixture.service.put("a", bytes)
        _ = try await tell("1")
    }

    /// The feed reports a revision of the same bytes.
    private func tell(_ revision: String) async throws -> Node {
        try await Self.tell(revision, bytes, fixture.catalog, fixture.account.id)
    }

    private static func tell(
        _ revision: String,
        _ bytes: [UInt8],
        _ catalog: Catalog,
        _ account: AccountID
    ) async throws -> Node {
        let root = ItemID("root")
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: root),
            of: account
        )
        var item = Item(id: ItemID("a"), kind: .file, fileName: "a", parentID: root)
        (item.size, item.rev) = (Int64(bytes.count), Revision(revision))
        item.contentHash = SumHasher.hash(of: bytes)
        _ = try await catalog.apply(Observations(changes: [.changed(item)]), to: account)
        return try #require(try catalog.node(remoteID: ItemID("a"), account: account))
    }

    private func open(_ key: ContentKey) throws -> CachedContent {
        try fixture.store.open(
            key,
            size: Int64(bytes.count),
            hash: SumHasher.hash(of: bytes)
        )
    }

    private func all(of content: CachedContent) async throws -> [UInt8] {
        try await content.bytes(0..<Int64(bytes.count))
    }

    @Test("a content that is here is not fetched again under its new revision")
    func closed() async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        await content.verified()
        fixture.store.close(content)
        await fixture.store.save()
        _ = try await tell("2")
        let renamed = try open(second)
        #expect(try await all(of: renamed) == bytes)
        fixture.store.close(renamed)
        _ = try await fixture.restart()
        let later = try open(second)
        #expect(later.isComplete)
        #expect(try await all(of: later) == bytes)
        #expect(fixture.service.requests.count == 1)
    }

    @Test("who has it open and who opens it anew share one content")
    func shared() async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        _ = try await tell("2")
        _ = try await tell("3")
        #expect(content.key == fixture.key("a", "3"))
        let renamed = try open(fixture.key("a", "3"))
        #expect(renamed === content)
        // In use, it is not removed.
        await fixture.store.save()
        let freed = try await fixture.store.free(below: nil, unusedSince: nil)
        #expect(freed.freed.count == 0 && freed.inUse.count == 1)
        fixture.store.close(renamed)
        #expect(try await all(of: content) == bytes)
        fixture.store.close(content)
        await fixture.store.save()
        #expect(try await fixture.store.free(below: nil, unusedSince: nil).freed.count == 1)
        #expect(fixture.service.requests.count == 1)
    }

    @Test("unsent content over it keeps its base, also after a restart", arguments: [true, false])
    func base(isRenamedFirst: Bool) async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        await content.verified()
        await fixture.store.save()
        if isRenamedFirst { _ = try await tell("2") }
        let node = try #require(
            try fixture.catalog.node(remoteID: ItemID("a"), account: fixture.account.id)
        )
        let staged = try fixture.stage(over: content, of: node)
        #expect(try staged.write([1, 2, 3], at: 50_000) == .done(offset: 50_000))
        try staged.record(modified: .now)
        let id = staged.id
        if !isRenamedFirst { _ = try await tell("2") }
        fixture.store.close(staged)
        fixture.store.close(content)
        let recovery = try await fixture.restart()
        #expect(recovery.damaged == [])
        let again = try fixture.store.open(staged: id)
        defer { fixture.store.close(again) }
        var wanted = bytes
        wanted.replaceSubrange(50_000..<50_003, with: [1, 2, 3])
        #expect(try await again.bytes(0..<Int64(bytes.count)) == wanted)
        #expect(fixture.service.requests.count == 1)
    }

    @Test("who still knows the former key gets a content of its own, and harms no other")
    func former() async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        await content.verified()
        fixture.store.close(content)
        await fixture.store.save()
        _ = try await tell("2")
        let renamed = try open(second)
        #expect(renamed.isComplete)
        let late = try open(first)
        #expect(late !== renamed)
        #expect(try await all(of: late) == bytes)
        #expect(late.id != renamed.id)
        #expect(try await all(of: renamed) == bytes)
        await fixture.store.save()
        fixture.store.close(late)
        fixture.store.close(renamed)
        _ = try await fixture.restart()
        #expect(try open(second).isComplete)
    }

    @Test("a key that comes back is the content's own again")
    func comingBack() async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        fixture.store.close(content)
        await fixture.store.save()
        _ = try await tell("2")
        #expect(try await fixture.store.free(below: nil, unusedSince: nil).freed.count == 1)
        _ = try await tell("1")
        let again = try open(first)
        #expect(again.key == first)
        #expect(try await all(of: again) == bytes)
        _ = try await tell("2")
        _ = try await tell("1")
        #expect(again.key == first)
        #expect(try open(first) === again)
    }

    @Test("where both keys have contents, each keeps its own")
    func both() async throws {
        let content = try open(first)
        #expect(try await all(of: content) == bytes)
        let early = try open(second)
        #expect(try await all(of: early) == bytes)
        _ = try await tell("2")
        #expect(content.key == second)
        #expect(content.id != early.id)
        #expect(try open(second) === early)
        await fixture.store.save()
        #expect(try await all(of: content) == bytes)
        #expect(try await all(of: early) == bytes)
        #expect(try await fixture.store.free(below: nil, unusedSince: nil).inUse.count == 2)
    }

    @Test("bytes that are asked for while the key changes are asked for again under the new one")
    func whileFetched() async throws {
        let service = fixture.service
        service.hold()
        service.fail(ProviderError(.preconditionFailed, detail: "another revision"))
        let content = try open(first)
        let size = Int64(bytes.count)
        async let read = content.bytes(0..<size)
        try await until { service.waiting == 1 }
        _ = try await tell("2")
        service.letGo()
        #expect(try await read == bytes)
        #expect(service.requests.count == 2)
    }

    @Test("contents are opened, read and closed while their keys change")
    func races() async throws {
        let (store, catalog, account) = (fixture.store, fixture.catalog, fixture.account.id)
        let (bytes, size) = (bytes, Int64(bytes.count))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<4 {
                group.addTask {
                    for number in 0..<60 {
                        let node = try catalog.node(remoteID: ItemID("a"), account: account)
                        guard let revision = node?.revision else { continue }
                        let content = try store.open(
                            ContentKey(account: account, item: ItemID("a"), revision: revision),
                            size: size,
                            hash: SumHasher.hash(of: bytes)
                        )
                        #expect(try await content.bytes(0..<size) == bytes)
                        store.close(content)
                        if reader == 0, number % 10 == 0 {
                            _ = try await store.free(below: nil, unusedSince: nil)
                        }
                    }
                }
            }
            group.addTask {
                for number in 2..<60 {
                    _ = try await Self.tell("\(number % 7 + 1)", bytes, catalog, account)
                }
            }
            try await group.waitForAll()
        }
        await store.save()
        let node = try #require(
            try fixture.catalog.node(remoteID: ItemID("a"), account: fixture.account.id)
        )
        let last = try open(fixture.key("a", try #require(node.revision).rawValue))
        #expect(try await all(of: last) == bytes)
    }
}
