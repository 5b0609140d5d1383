import OortCatalog
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

/// A part of a file is changed of which nothing is here, and the service has another revision by the time
/// the rest is needed.
@Suite("bases of which nothing was read", .timeLimit(.minutes(15)))
struct UnreadBaseTests {
    private let fixture: StoreFixture
    private static let refusal = ProviderError(.preconditionFailed, detail: "another revision")
    private static let part: [UInt8] = [1, 2, 3]

    init() throws { fixture = try StoreFixture() }

    /// The service has a revision of `count` bytes that are all `byte`, and has reported it.
    @discardableResult
    private func put(_ revision: String, _ byte: UInt8, count: Int) async throws -> Node {
        fixture.service.put("a", [UInt8](repeating: byte, count: count))
        let inode = try await fixture.tellOfItem("a", revision: revision, size: Int64(count))
        return try fixture.catalog.node(inode)
    }

    private func first(count: Int) throws -> CachedContent {
        try fixture.store.open(fixture.key("a", "1"), size: Int64(count), hash: nil)
    }

    private func stage(over base: CachedContent, of node: Node) throws -> StagedContent {
        try fixture.store.stage(
            over: base,
            isUnread: true,
            of: node.inode,
            account: fixture.account.id,
            modified: .now
        ).content
    }

    /// Content over revision 1, of which the service refuses the next `refusals` requests, with a part
    /// written at 1,000.
    private func changed(
        count: Int,
        refusals: Int = 1
    ) async throws -> StagedContent {
        let node = try await put("1", 7, count: count)
        let base = try first(count: count)
        defer { fixture.store.close(base) }
        for _ in 0..<refusals { fixture.service.fail(Self.refusal) }
        let staged = try stage(over: base, of: node)
        #expect(try staged.write(Self.part, at: 1_000) == .done(offset: 1_000))
        return staged
    }

    /// The part that `changed` writes, over bytes that are all `byte`.
    private func wanted(_ byte: UInt8, count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: byte, count: count)
        bytes.replaceSubrange(1_000..<1_003, with: Self.part)
        return bytes
    }

    /// An upload of the content would send exactly these bytes.
    private func sends(_ bytes: [UInt8], _ id: ContentID) async throws {
        let frozen = try await fixture.store.freeze(id)
        #expect(frozen.size == Int64(bytes.count))
        #expect(frozen.hash == SumHasher.hash(of: bytes))
        fixture.store.release(frozen)
    }

    private func all(of content: StagedContent) async throws -> [UInt8] {
        try await content.bytes(0..<content.size)
    }

    @Test(
        "the part lies over the newer revision, also after a restart",
        arguments: [100_000, 6_000_000],
        [0, 5_000]
    )
    func newer(count: Int, longer: Int) async throws {
        let staged = try await changed(count: count)
        if count <= CachedContent.wholeFile {
            // The rest is asked for as soon as the file is written to.
            try await until { fixture.service.requests.count == 1 }
            await fixture.store.endCompletions()
        }
        try await put("2", 8, count: count + longer)
        #expect(try await all(of: staged) == wanted(8, count: count))
        try staged.record(modified: .now)
        let id = staged.id
        fixture.store.close(staged)
        let recovery = try await fixture.restart()
        #expect(recovery.damaged == [])
        let again = try fixture.store.open(staged: id)
        #expect(try await all(of: again) == wanted(8, count: count))
        #expect(!again.isBaseUnread)
        fixture.store.close(again)
        try await sends(wanted(8, count: count), id)
    }

    @Test("what was written before a restart lies over the newer revision, too")
    func restarted() async throws {
        let count = 6_000_000
        let staged = try await changed(count: count)
        try staged.record(modified: .now)
        let id = staged.id
        fixture.store.close(staged)
        _ = try await fixture.restart()
        try await put("2", 8, count: count)
        try await sends(wanted(8, count: count), id)
    }

    @Test("so does a part of what was cut")
    func cut() async throws {
        let count = 6_000_000
        let staged = try await changed(count: count)
        #expect(try staged.truncate(to: 5_000) == .done(offset: 5_000))
        try await put("2", 8, count: 5_500)
        #expect(try await all(of: staged) == wanted(8, count: 5_000))
        _ = try staged.truncate(to: 7_000)
        var wanted = wanted(8, count: 5_000)
        wanted += [UInt8](repeating: 0, count: 2_000)
        #expect(try await all(of: staged) == wanted)
        try staged.record(modified: .now)
        let id = staged.id
        fixture.store.close(staged)
        _ = try await fixture.restart()
        let again = try fixture.store.open(staged: id)
        #expect(try await all(of: again) == wanted)
        fixture.store.close(again)
    }

    @Test(
        "once a byte of it was read, nothing else takes its place",
        arguments: [Reading.before, .after, .beforeRestart, .byUpload]
    )
    func read(_ reading: Reading) async throws {
        let count = 6_000_000
        let node = try await put("1", 7, count: count)
        let base = try first(count: count)
        if reading == .before { _ = try await base.bytes(0..<10) }
        var staged = try stage(over: base, of: node)
        #expect(try staged.write(Self.part, at: 1_000) == .done(offset: 1_000))
        try staged.record(modified: .now)
        switch reading {
        case .before: break
        case .after, .beforeRestart: #expect(try await staged.bytes(0..<10).count == 10)
        case .byUpload:
            fixture.service.hold()
            let (store, id) = (fixture.store, staged.id)
            let frozen = Task { try await store.freeze(id) }
            try await until { fixture.service.waiting == 1 }
            for _ in 0..<20 { fixture.service.fail(Self.refusal) }
            fixture.service.letGo()
            await #expect(throws: Self.refusal) { _ = try await frozen.value }
        }
        let id = staged.id
        if reading == .beforeRestart {
            fixture.store.close(staged)
            fixture.store.close(base)
            await fixture.store.save()
            _ = try await fixture.restart()
            staged = try fixture.store.open(staged: id)
        }
        try await put("2", 8, count: count)
        for _ in 0..<20 { fixture.service.fail(Self.refusal) }
        await #expect(throws: ContentError.fetch(Self.refusal)) {
            _ = try await staged.bytes(5_900_000..<5_900_010)
        }
    }

    enum Reading {
        case before
        case after
        case beforeRestart
        case byUpload
    }

    @Test("a shorter revision takes no part in it, nor does none")
    func shorter() async throws {
        let count = 6_000_000
        let staged = try await changed(count: count, refusals: 0)
        try await put("2", 8, count: count - 1)
        fixture.service.fail(Self.refusal, Self.refusal)
        await #expect(throws: ContentError.fetch(Self.refusal)) {
            _ = try await staged.bytes(0..<10)
        }
        let gone = Observations(changes: [.removed(ItemID("a"))])
        _ = try await fixture.catalog.apply(gone, to: fixture.account.id)
        await #expect(throws: ContentError.fetch(Self.refusal)) {
            _ = try await staged.bytes(0..<10)
        }
        #expect(try await staged.bytes(1_000..<1_003) == Self.part)
    }

    @Test("a clone of it keeps to the known revision")
    func clone() async throws {
        let count = 6_000_000
        let staged = try await changed(count: count, refusals: 0)
        let file = try fixture.catalog.node(remoteID: ItemID("a"), account: fixture.account.id)
        let clone = try fixture.store.stage(
            try await fixture.store.thaw(staged),
            of: try #require(file).inode,
            account: fixture.account.id,
            modified: .now
        ).content
        // Readers of the original may have had bytes of it.
        #expect(!clone.isBaseUnread)
        #expect(try await all(of: clone) == wanted(7, count: count))
    }

    @Test(
        "what is cut while the rest is refused needs less of the newer revision",
        arguments: [true, false]
    )
    func cutMeanwhile(isSmall: Bool) async throws {
        let count = isSmall ? 100_000 : 6_000_000
        fixture.service.hold()
        let staged = try await changed(count: count)
        async let read = staged.bytes(0..<Int64(count))
        try await until { fixture.service.waiting == 1 }
        try await put("2", 8, count: 5_500)
        #expect(try staged.truncate(to: 5_000) == .done(offset: 5_000))
        fixture.service.letGo()
        #expect(try await read == wanted(8, count: 5_000))
        #expect(try await all(of: staged) == wanted(8, count: 5_000))
    }

    @Test("a small one needs neither the service nor the cache once its rest is here, cut or not")
    func small() async throws {
        let count = 100_000
        fixture.service.hold()
        let staged = try await changed(count: count)
        try await until { fixture.service.waiting == 1 }
        try await put("2", 8, count: count + 5_000)
        #expect(try staged.truncate(to: 50_000) == .done(offset: 50_000))
        fixture.service.letGo()
        let whole = StagedContent.Piece(range: 0..<50_000, isOwn: true)
        try await until { try staged.pieces(0..<50_000) == [whole] }
        #expect(try await all(of: staged) == wanted(8, count: 50_000))
    }

    @Test("bytes whose revision the service does not confirm bind nothing")
    func unconfirmed() async throws {
        let count = 6_000_000
        let refusal = Self.refusal
        let staged = try await changed(count: count, refusals: 0)
        let service = fixture.service
        let (steps, step) = AsyncStream.makeStream(of: Void.self)
        service.confirm(
            by: Task {
                for await _ in steps { break }
                return .failure(refusal)
            }
        )
        try await put("2", 8, count: count)
        async let read = staged.bytes(0..<10)
        try await until { service.confirmations == 1 }
        service.confirm(by: nil)
        step.yield()
        #expect(try await read == [UInt8](repeating: 8, count: 10))
        #expect(staged.base?.key.revision == Revision("2"))
    }

    @Test("readers at one time see one revision", arguments: 0..<20)
    func readers(seed: Int) async throws {
        let count = 6_000_000
        let staged = try await changed(count: count, refusals: 0)
        let service = fixture.service
        service.hold()
        // The first transfer is of the known revision; the second is refused.
        async let early = staged.bytes(0..<10)
        try await until { service.waiting == 1 }
        service.fail(Self.refusal)
        async let late = staged.bytes(5_900_000..<5_900_010)
        try await until { service.requests.count >= 2 }
        try await put("2", 8, count: count)
        service.letGo()
        let seen = try await early
        #expect(Set(seen).count == 1)
        do {
            #expect(try await late == seen)
        } catch {
            // The first reader had the known one.
            #expect(error as? ContentError == .fetch(Self.refusal))
            #expect(seen.first == 7)
        }
    }
}
