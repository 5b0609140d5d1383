import OortCatalog
import OortModel
import OortTesting
import Testing

@testable import OortContentStore

/// Contents that were to be removed, and that somebody uses between the list and the removal.
@Suite("contents that are listed to be removed", .timeLimit(.minutes(15)))
struct FreeTests {
    private let fixture: StoreFixture
    private let bytes: [UInt8]
    private var size: Int64 { Int64(bytes.count) }

    init() throws {
        fixture = try StoreFixture()
        var random = SeededNumbers(seed: 11)
        bytes = random.bytes(3 << 20)
        fixture.service.put("a", bytes)
    }

    /// Reads a part of the revision, and closes it.
    private func read(_ part: Range<Int64>) async throws {
        let content = try fixture.remote("a", bytes, hash: SumHasher.hash(of: bytes))
        _ = try await content.bytes(part)
        fixture.store.close(content)
        await fixture.store.save()
    }

    private func listed() async throws -> [ContentRow] {
        let rows = try await fixture.catalog.cachedContents(below: nil, unusedSince: nil).free
        #expect(rows.count == 1)
        return rows
    }

    @Test("one that a program writes a part of stays")
    func written() async throws {
        _ = try await fixture.tellOfItem("a", revision: "1", size: size)
        try await read(0..<size)
        let rows = try await listed()
        let base = try fixture.remote("a", bytes, hash: SumHasher.hash(of: bytes))
        let node = try #require(
            try fixture.catalog.node(remoteID: ItemID("a"), account: fixture.account.id)
        )
        let staged = try fixture.stage(over: base, of: node)
        #expect(try staged.write([1, 2, 3], at: 7) == .done(offset: 7))
        fixture.store.close(staged)
        fixture.store.close(base)
        let removed = try await fixture.store.remove(cached: rows)
        #expect(removed.count == 0 && removed.bytes == 0)
        let requests = fixture.service.requests.count
        try await read(0..<size)
        #expect(fixture.service.requests.count == requests)
    }

    @Test("one that a person pins stays")
    func pinned() async throws {
        let inode = try await fixture.tellOfItem("a", revision: "1", size: size)
        try await read(0..<size)
        let rows = try await listed()
        _ = try await fixture.catalog.pin(inode, until: nil)
        #expect(try await fixture.store.remove(cached: rows).count == 0)
    }

    @Test("one that was read since the moment that was asked for stays")
    func used() async throws {
        try await read(0..<size)
        let moment = Timestamp.now.inMilliseconds + 1000
        let rows = try await listed()
        let id = try #require(rows.first?.id)
        try await fixture.catalog.markUsed([id: moment + 1])
        #expect(try await fixture.store.remove(cached: rows, unusedSince: moment).count == 0)
        #expect(try await fixture.store.remove(cached: rows).count == 1)
    }

    @Test("of one that grew meanwhile all bytes are given back")
    func grown() async throws {
        try await read(0..<size)
        // As it was listed when only a part of it had been fetched.
        var rows = try await listed()
        rows[0].bytesOnDisk = 1000
        #expect(fixture.store.room.used.cached == size)
        #expect(try await fixture.store.remove(cached: rows).bytes == size)
        #expect(fixture.store.room.used.cached == 0)
    }
}
