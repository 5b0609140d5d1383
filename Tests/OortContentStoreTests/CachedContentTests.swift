import OortCatalog
import OortModel
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Cached content", .timeLimit(.minutes(2)))
struct CachedContentTests {
    @Test("a small file is one request, shared by all who read it")
    func small() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(1)
        let bytes = random.bytes(3 << 20)
        let content = try fixture.remote("a", bytes)
        fixture.service.hold()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for start in stride(from: 0, to: bytes.count, by: 256 << 10) {
                group.addTask {
                    let range = start..<min(start + (256 << 10), bytes.count)
                    let found = try await content.bytes(
                        Int64(range.lowerBound)..<Int64(range.upperBound))
                    return found == Array(bytes[range])
                }
            }
            try await until { fixture.service.waiting == 1 }
            fixture.service.letGo()
            for try await isRight in group { #expect(isRight) }
        }
        #expect(fixture.service.requests == [0..<Int64(bytes.count)])
    }

    @Test("a reader wakes when its bytes are there, not at the end of the request")
    func wakes() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(2)
        let bytes = random.bytes(2 << 20)
        let content = try fixture.remote("a", bytes)
        // The stream is held for good after its first parts are through: only they can be read.
        let first = try await content.bytes(0..<1000)
        #expect(first == Array(bytes[0..<1000]))
    }

    @Test("reading in order ramps up to several requests; all bytes are right")
    func ramp() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(3)
        let bytes = random.bytes(40 << 20)
        let content = try fixture.remote("a", bytes)
        let ahead = ReadAhead()
        var position = 0
        while position < bytes.count {
            let end = min(position + (128 << 10), bytes.count)
            let range = Int64(position)..<Int64(end)
            let file: DiskFile
            if let present = content.readIfPresent(range, by: ahead) {
                file = present
            } else {
                file = try await content.read(range, by: ahead)
            }
            let found = try file.read(at: range.lowerBound, count: end - position)
            guard found == Array(bytes[position..<end]) else {
                Issue.record("wrong bytes at \(position)")
                return
            }
            position = end
        }
        let requests = fixture.service.requests
        #expect(requests[0] == 0..<(1 << 20))
        #expect(requests.contains { $0.upperBound - $0.lowerBound > 4 << 20 })
        #expect(requests.count < 20)
        #expect(fixture.service.mostInFlight > 1)
        #expect(fixture.service.mostInFlight <= 5)
    }

    @Test("a seek fetches what it needs and not the way to it")
    func seek() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(4)
        let bytes = random.bytes(20 << 20)
        let content = try fixture.remote("a", bytes)
        let ahead = ReadAhead()
        let range: Range<Int64> = 15_728_640..<15_732_736
        let file = try await content.read(range, by: ahead)
        let found = try file.read(at: range.lowerBound, count: 4096)
        #expect(found == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
        let start: Int64 = 15 << 20
        let expected: [Range<Int64>] = [start..<start + 262_144]
        #expect(fixture.service.requests == expected)
    }

    @Test("a transfer that breaks goes on where it ended")
    func broken() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(5)
        let bytes = random.bytes(1 << 20)
        let content = try fixture.remote("a", bytes)
        fixture.service.cutNext(after: 192 << 10)
        #expect(try await content.bytes(0..<Int64(bytes.count)) == bytes)
        let expected: [Range<Int64>] = [0..<1_048_576, 196_608..<1_048_576]
        #expect(fixture.service.requests == expected)
    }

    @Test("what the service refuses is told to all who wait, and tried again by the next")
    func refused() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote("a", [1, 2, 3])
        fixture.service.fail(ProviderError(.offline, detail: "test"))
        await #expect(throws: ContentError.fetch(ProviderError(.offline, detail: "test"))) {
            _ = try await content.bytes(0..<3)
        }
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
    }

    @Test("a reader that gives up is let go at once")
    func cancelled() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote("a", [1, 2, 3])
        fixture.service.hold()
        let reader = Task { try await content.bytes(0..<3) }
        try await until { fixture.service.waiting == 1 }
        reader.cancel()
        await #expect {
            try await reader.value
        } throws: { error in
            (error as? ContentError)?.isCancellation == true
        }
        fixture.service.letGo()
    }

    @Test("a complete content whose hash is wrong is thrown away and fetched again")
    func damaged() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.remote(
            "a", [1, 2, 3], hash: SumHasher.hash(of: [1, 2, 4]))
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
        try await until { !content.isComplete }
        fixture.service.put("a", [1, 2, 4])
        #expect(try await content.bytes(0..<3) == [1, 2, 4])
        try await until { content.state.withLock { $0.isVerified } }
    }

    @Test("a restart keeps what was stored, and a content whose file is gone is fetched anew")
    func restart() async throws {
        let fixture = try StoreFixture()
        var random = Seeded(6)
        let bytes = random.bytes(1 << 20)
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<Int64(bytes.count))
        try await until { content.state.withLock { $0.isVerified } }
        fixture.store.close(content)
        await fixture.store.save()
        #expect(try await fixture.restart().lost == 0)
        let again = try fixture.store.open(
            fixture.key("a"), size: Int64(bytes.count), hash: nil)
        #expect(again.isComplete)
        let file = try #require(again.readIfPresent(0..<Int64(bytes.count)))
        #expect(try file.read(at: 0, count: bytes.count) == bytes)
        #expect(fixture.service.requests.count == 1)
        fixture.store.close(again)

        let id = try #require(again.id)
        DiskFile.remove(fixture.store.paths.cached(id))
        #expect(try await fixture.restart().lost == 1)
        let third = try fixture.store.open(
            fixture.key("a"), size: Int64(bytes.count), hash: nil)
        #expect(try await third.bytes(0..<10) == Array(bytes[0..<10]))
    }

    @Test("the least recently used goes when the limit is reached; what is open stays")
    func eviction() async throws {
        var settings = ContentStoreSettings()
        settings.limit = 3 << 20
        settings.reserve = 1
        let fixture = try StoreFixture(settings: settings)
        var random = Seeded(7)
        let open = try fixture.remote("open", random.bytes(1 << 20))
        _ = try await open.bytes(0..<(1 << 20))
        for number in 0..<5 {
            let content = try fixture.remote("f\(number)", random.bytes(1 << 20))
            _ = try await content.bytes(0..<(1 << 20))
            try await until { content.state.withLock { $0.isVerified } }
            fixture.store.close(content)
            await fixture.store.save()
            await fixture.store.evict()
        }
        #expect(fixture.store.usage.cached <= 3 << 20)
        #expect(open.isComplete && open.readIfPresent(0..<(1 << 20)) != nil)
        #expect(fixture.files("cache").count <= 3)
        let last = try fixture.store.open(fixture.key("f4"), size: 1 << 20, hash: nil)
        #expect(last.isComplete)
    }

    @Test("a range set knows its gaps and survives its record")
    func ranges() {
        var set = RangeSet<Int64>()
        set.insert(contentsOf: 10..<20)
        set.insert(contentsOf: 30..<40)
        let gaps: [Range<Int64>] = [5..<10, 20..<30]
        #expect(set.gaps(in: 5..<35) == gaps)
        let covered: [Range<Int64>] = [12..<20, 7..<7, 30..<40]
        let uncovered: [Range<Int64>] = [12..<21, 20..<30]
        for range in covered { #expect(set.covers(range)) }
        for range in uncovered { #expect(!set.covers(range)) }
        #expect(RangeSet(record: set.record, size: 40) == set)
        #expect(RangeSet(record: set.record, size: 39) == nil)
        #expect(RangeSet(record: [1, 2], size: 40) == nil)
    }
}
