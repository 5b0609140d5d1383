import OortCatalog
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Bytes that differ from the service's hash", .timeLimit(.minutes(15)))
struct DamagedDownloadTests {
    private let good: [UInt8]
    private let bad: [UInt8]

    init() {
        var random = SeededNumbers(seed: 91)
        good = random.bytes(100_000)
        bad = random.bytes(100_000)
    }

    private func isDamaged(_ error: (any Error)?) -> Bool {
        guard case .fetch(let cause) = error as? ContentError else { return false }
        return cause.kind == .contentDamaged
    }

    @Test("of a small file no reader gets any, and the read fails after the third time")
    func small() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote("a", bad, hash: SumHasher.hash(of: good))
        await withTaskGroup(of: Bool.self) { group in
            for reader in 0..<8 {
                group.addTask {
                    let start = Int64(reader) * 10_000
                    do {
                        _ = try await content.bytes(start..<start + 10_000)
                        return false
                    } catch { return isDamaged(error) }
                }
            }
            for await hasFailed in group { #expect(hasFailed) }
        }
        #expect(content.readIfPresent(0..<1) == nil)
        #expect(fixture.store.damagedContents == [content.key])
        let count = fixture.service.requests.count
        #expect(count >= 3)
        // Who tries again has it fetched once.
        let error = await #expect(throws: ContentError.self) { _ = try await content.bytes(0..<9) }
        #expect(isDamaged(error) && fixture.service.requests.count == count + 1)
        fixture.service.put("a", good)
        #expect(try await content.bytes(0..<100_000) == good)
        #expect(fixture.store.damagedContents.isEmpty)
        fixture.store.close(content)
    }

    @Test("a small file that is right the second time is given as if nothing had been")
    func mended() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote("a", bad, hash: SumHasher.hash(of: good))
        let service = fixture.service
        service.hold()
        let reading = Task { try await content.bytes(0..<100_000) }
        // The first answer is under way with what the service has now.
        try await until { service.waiting > 0 }
        service.put("a", good)
        service.letGo()
        #expect(try await reading.value == good)
        fixture.store.close(content)
    }

    @Test("of a large file what was wrong once is compared before it is given again")
    func large() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 92)
        let (right, wrong) = (random.bytes(6 << 20), random.bytes(6 << 20))
        let news = Mutex<[CatalogChange]>([])
        let content = try fixture.remote("a", wrong, hash: SumHasher.hash(of: right))
        // What was read is in the kernel's cache.
        let inode = try await fixture.tellOfItem("a", revision: "1", size: Int64(right.count))
        fixture.catalog.setListeners(
            CatalogListeners(news: { told in news.withLock { $0 += told } }, localChange: { _ in })
        )
        #expect(try await content.bytes(0..<1000) == Array(wrong[..<1000]))
        _ = try? await content.bytes(0..<content.size)
        try await until { content.state.withLock { $0.mismatches > 0 && !$0.isVerifying } }
        try await until { news.withLock { $0.contains(.content(inode)) } }
        let error = await #expect(throws: ContentError.self) { _ = try await content.bytes(0..<9) }
        #expect(isDamaged(error))
        #expect(content.state.withLock { $0.mismatches } >= 3)
        fixture.store.close(content)
        // The next who opens it knows.
        let again = try fixture.remote("a", right, hash: SumHasher.hash(of: right))
        #expect(again.state.withLock { $0.mismatches } >= 3)
        #expect(try await again.bytes(5 << 20..<6 << 20) == Array(right[(5 << 20)...]))
        #expect(fixture.store.damagedContents.isEmpty)
        fixture.store.close(again)
    }

    @Test("a file that the service changed meanwhile is no damage: its revision is gone")
    func changed() async throws {
        let fixture = try StoreFixture()
        _ = try await fixture.tellOfItem("a", revision: "2", size: 100_000)
        let content = try fixture.remote("a", bad, hash: SumHasher.hash(of: good))
        let error = await #expect(throws: ContentError.self) { _ = try await content.bytes(0..<9) }
        if case .fetch(let cause) = error { #expect(cause.kind == .preconditionFailed) }
        #expect(fixture.store.damagedContents.isEmpty)
        fixture.store.close(content)
    }

    @Test("a file that is taken away while it is compared is no damage")
    func taken() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote("a", good)
        let id = try await content.prepare()
        fixture.store.pool.forget(fixture.store.paths.cached(id))
        DiskFile.remove(fixture.store.paths.cached(id))
        #expect(try await content.bytes(0..<100_000) == good)
        #expect(fixture.store.damagedContents.isEmpty)
        fixture.store.close(content)
    }
}
