import Foundation
import OortCatalog
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Cached content", .timeLimit(.minutes(15)))
struct CachedContentTests {
    @Test("a small file is one request, shared by all who read it")
    func small() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 1)
        let bytes = random.bytes(3 << 20)
        let content = try fixture.remote("a", bytes)
        fixture.service.hold()
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for start in stride(from: 0, to: bytes.count, by: 256 << 10) {
                group.addTask {
                    let range = start..<min(start + (256 << 10), bytes.count)
                    let found = try await content.bytes(
                        Int64(range.lowerBound)..<Int64(range.upperBound)
                    )
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
        var random = SeededNumbers(seed: 2)
        let bytes = random.bytes(6 << 20)
        let content = try fixture.remote("a", bytes)
        // The stream is held for good after its first parts are through: only they can be read.
        let first = try await content.bytes(0..<1000)
        #expect(first == Array(bytes[0..<1000]))
    }

    @Test("reading in order ramps up to several requests; all bytes are right")
    func ramp() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 3)
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
        #expect(requests.contains { $0.upperBound - $0.lowerBound >= 4 << 20 })
        #expect(requests.count < 30, "\(requests)")
        #expect(fixture.service.mostInFlight > 4)
        #expect(fixture.service.mostInFlight <= 25)
        // Nothing twice, and no remainders of a part.
        #expect(requests.reduce(0) { $0 + $1.upperBound - $1.lowerBound } == Int64(bytes.count))
        #expect(requests.allSatisfy { $0.upperBound - $0.lowerBound >= 1 << 20 }, "\(requests)")
    }

    @Test("many parts are on their way while the first of them is not here yet")
    func manyParts() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 31)
        let bytes = random.bytes(24 << 20)
        let content = try fixture.remote("a", bytes)
        let ahead = ReadAhead()
        _ = try await content.read(0..<(1 << 20), by: ahead)
        try await until { fixture.service.inFlight == 0 }
        fixture.service.hold()
        let reading = Task { try await content.read(1 << 20..<2 << 20, by: ahead) }
        try await until { fixture.service.waiting >= 8 }
        fixture.service.letGo()
        _ = try await reading.value
        fixture.store.close(content)
    }

    @Test(
        "the first bytes are given before the service confirms whose they are, and kept after that"
    )
    func provisional() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 32)
        let bytes = random.bytes(6 << 20)
        let (answers, answer) = AsyncStream<Void>.makeStream()
        fixture.service.confirm(
            by: Task {
                for await _ in answers {}
                return .success(())
            }
        )
        let content = try fixture.remote("a", bytes)
        // They come in two parts.
        #expect(try await content.bytes(0..<100_000) == Array(bytes[..<100_000]))
        // What is not confirmed is not stored: a machine that dies now knows nothing of it.
        #expect(content.state.withLock { $0.confirmed.byteCount } == 0)
        #expect(content.state.withLock { $0.present.byteCount } == 100_000)
        fixture.store.close(content)
        answer.finish()
        try await until { content.state.withLock { $0.fetches.isEmpty } }
        #expect(content.state.withLock { $0.confirmed.byteCount } == 100_000)
        let again = try fixture.store.open(fixture.key("a"), size: content.size, hash: nil)
        #expect(try await again.bytes(0..<again.size) == bytes)
    }

    @Test("bytes of another revision are taken back, and who reads on hears that it is gone")
    func takenBack() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 33)
        let bytes = random.bytes(6 << 20)
        let content = try fixture.remote("a", bytes)
        #expect(try await content.bytes(5 << 20..<6 << 20) == Array(bytes[(5 << 20)...]))
        let error = ProviderError(.preconditionFailed, detail: "test")
        fixture.service.confirm(by: Task { .failure(error) })
        await #expect(throws: ContentError.fetch(error)) {
            _ = try await content.bytes(0..<(1 << 20))
        }
        try await until { content.state.withLock { $0.fetches.isEmpty } }
        #expect(content.state.withLock { $0.present } == RangeSet(5 << 20..<6 << 20))
    }

    @Test("a connection that breaks before the confirmation begins again at the first byte")
    func brokenBeforeConfirmation() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 34)
        let bytes = random.bytes(6 << 20)
        let error = ProviderError(.outcomeUnknown(retryAfter: nil), detail: "test")
        fixture.service.confirm(by: Task { .failure(error) })
        let content = try fixture.remote("a", bytes)
        let reading = Task { try await content.bytes(0..<(1 << 20)) }
        try await until { fixture.service.requests.count > 1 }
        fixture.service.confirm(by: nil)
        #expect(try await reading.value == Array(bytes[..<(1 << 20)]))
        #expect(Set(fixture.service.requests) == [0..<(1 << 20)])
    }

    @Test("a small file that has the hash is given at once, and nobody is asked whose bytes it has")
    func provenByHash() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 35)
        let bytes = random.bytes(3 << 20)
        let (answers, answer) = AsyncStream<Void>.makeStream()
        fixture.service.confirm(
            by: Task {
                for await _ in answers {}
                return .success(())
            }
        )
        defer { answer.finish() }
        let content = try fixture.remote("a", bytes)
        #expect(try await content.bytes(0..<content.size) == bytes)
        #expect(fixture.service.confirmations == 0)
        #expect(content.isVerified)
        #expect(content.state.withLock { $0.confirmed } == RangeSet(0..<content.size))
    }

    @Test("a small file of another hash is what the service says of whose bytes it gave")
    func notProvenByHash() async throws {
        let fixture = try StoreFixture()
        let error = ProviderError(.preconditionFailed, detail: "test")
        fixture.service.confirm(by: Task { .failure(error) })
        let content = try fixture.remote("a", [1, 2, 3], hash: SumHasher.hash(of: [3, 2, 1]))
        await #expect(throws: ContentError.fetch(error)) { _ = try await content.bytes(0..<3) }
        #expect(fixture.service.confirmations == 1)
        try await until { content.state.withLock { $0.fetches.isEmpty } }
        #expect(content.state.withLock { $0.present.isEmpty })
        // The content does not count as damaged: the bytes are another revision's.
        #expect(content.state.withLock { $0.mismatches } == 0)
    }

    @Test("a small file whose transfer breaks goes on where it ended, once that is confirmed")
    func smallFileBroken() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 36)
        let bytes = random.bytes(1 << 20)
        fixture.service.confirm(by: Task { .success(()) })
        fixture.service.cutNext(after: 192 << 10)
        let content = try fixture.remote("a", bytes)
        #expect(try await content.bytes(0..<content.size) == bytes)
        let expected: [Range<Int64>] = [0..<1_048_576, 196_608..<1_048_576]
        #expect(fixture.service.requests == expected)
        // Of the second part the hash says it.
        #expect(fixture.service.confirmations == 1)
        #expect(content.isVerified)
    }

    @Test("a small file whose transfer breaks keeps nothing of another revision")
    func smallFileBrokenByReplacement() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 37)
        let error = ProviderError(.preconditionFailed, detail: "test")
        fixture.service.confirm(by: Task { .failure(error) })
        fixture.service.cutNext(after: 192 << 10)
        let content = try fixture.remote("a", random.bytes(1 << 20))
        await #expect(throws: ContentError.fetch(error)) { _ = try await content.bytes(0..<3) }
        try await until { content.state.withLock { $0.fetches.isEmpty } }
        #expect(content.state.withLock { $0.present.isEmpty })
    }

    @Test("a seek fetches what it needs and not the way to it")
    func seek() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 4)
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
        var random = SeededNumbers(seed: 5)
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
            "a",
            [1, 2, 3],
            hash: SumHasher.hash(of: [1, 2, 4])
        )
        await #expect(throws: ContentError.self) { _ = try await content.bytes(0..<3) }
        #expect(!content.isComplete)
        fixture.service.put("a", [1, 2, 4])
        #expect(try await content.bytes(0..<3) == [1, 2, 4])
        try await until { content.state.withLock { $0.isVerified } }
    }

    @Test("a restart keeps what was stored, and a content whose file is gone is fetched anew")
    func restart() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 6)
        let bytes = random.bytes(1 << 20)
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<Int64(bytes.count))
        try await until { content.state.withLock { $0.isVerified } }
        fixture.store.close(content)
        await fixture.store.save()
        #expect(try await fixture.restart().lost == 0)
        let again = try fixture.store.open(
            fixture.key("a"),
            size: Int64(bytes.count),
            hash: nil
        )
        #expect(again.isComplete)
        let file = try #require(again.readIfPresent(0..<Int64(bytes.count)))
        #expect(try file.read(at: 0, count: bytes.count) == bytes)
        #expect(fixture.service.requests.count == 1)
        fixture.store.close(again)

        let id = try #require(again.id)
        DiskFile.remove(fixture.store.paths.cached(id))
        #expect(try await fixture.restart().lost == 1)
        let third = try fixture.store.open(
            fixture.key("a"),
            size: Int64(bytes.count),
            hash: nil
        )
        #expect(try await third.bytes(0..<10) == Array(bytes[0..<10]))
    }

    /// Where a revision is a size and a second, one that is made right after another may be called the same.
    @Test("of two contents under one revision the one is given that the hash names")
    func oneRevisionOfTwo() async throws {
        let fixture = try StoreFixture()
        let first = try fixture.remote("a", [1, 2, 3, 4])
        #expect(try await first.bytes(0..<4) == [1, 2, 3, 4])
        try await until { first.state.withLock { $0.isVerified } }
        fixture.store.close(first)
        await fixture.store.save()
        let second = try fixture.remote("a", [4, 3, 2, 2])
        #expect(try await second.bytes(0..<4) == [4, 3, 2, 2])
        fixture.store.close(second)
        await fixture.store.save()
        let again = try fixture.store.open(fixture.key("a"), size: 4, hash: nil)
        #expect(try await again.bytes(0..<4) == [4, 3, 2, 2])
        fixture.store.close(again)
    }

    @Test("the least recently used goes at the limit; what is open or yet to be copied stays")
    func eviction() async throws {
        var settings = ContentStoreSettings()
        settings.limit = 3 << 20
        settings.reserve = 1
        // Saved and evicted when this says so: two at once may take one more than they have to.
        let fixture = try StoreFixture(settings: settings, saveInterval: .seconds(3600))
        var random = SeededNumbers(seed: 7)
        let open = try fixture.remote("open", random.bytes(1 << 20))
        _ = try await open.bytes(0..<(1 << 20))
        _ = try fixture.catalog.setCopiedContent(
            item: ItemID("f0"),
            revision: Revision("1"),
            hash: nil,
            size: 1 << 20,
            modified: .now,
            of: try fixture.file("copy").inode
        )
        for number in 0..<5 {
            let content = try fixture.remote("f\(number)", random.bytes(1 << 20))
            _ = try await content.bytes(0..<(1 << 20))
            try await until { content.state.withLock { $0.isVerified } }
            fixture.store.close(content)
            await fixture.store.save()
            await fixture.store.evict()
            // An eviction that was under way already goes on by itself.
            try await until { fixture.store.usage.cached <= 3 << 20 }
        }
        #expect(open.isComplete && open.readIfPresent(0..<(1 << 20)) != nil)
        try await until { fixture.files("cache").count <= 3 }
        for name in ["f0", "f4"] {
            let kept = try fixture.store.open(fixture.key(name), size: 1 << 20, hash: nil)
            #expect(kept.isComplete)
        }
    }

    @Test("a use counts from when it was, not from when it is stored")
    func usedBefore() async throws {
        var settings = ContentStoreSettings()
        (settings.limit, settings.reserve) = (5000, 1)
        let fixture = try StoreFixture(settings: settings, saveInterval: .seconds(3600))
        let store = fixture.store
        let bytes = [UInt8](repeating: 1, count: 4000)
        func tick() async throws {
            let began = Timestamp.now.inMilliseconds
            try await until { Timestamp.now.inMilliseconds > began }
        }
        for name in ["first", "second"] {
            try await tick()
            let content = try fixture.remote(name, bytes)
            _ = try await content.bytes(0..<4000)
            await content.verified()
            // The first one's use is noted, the second one's is known by its saving.
            if name == "first" { await store.save() }
            store.close(content)
            await store.save()
        }
        try await tick()
        await store.storeUses()
        await store.evict()
        #expect(try store.cachedRow(of: fixture.key("first")) == nil)
        #expect(try store.cachedRow(of: fixture.key("second")) != nil)
    }

    @Test(
        "readers at many offsets, of which some give up, get the right bytes whatever breaks",
        arguments: [21, 22, 23] as [UInt64]
    )
    func crowd(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let fixture = try StoreFixture()
        let bytes = random.bytes(12 << 20)
        let content = try fixture.remote("a", bytes)
        let service = fixture.service
        try await withThrowingTaskGroup(of: Void.self) { group in
            for reader in 0..<24 {
                var random = SeededNumbers(seed: seed * 1000 + UInt64(reader))
                group.addTask {
                    let ahead = ReadAhead()
                    for _ in 0..<8 {
                        let start = Int.random(in: 0..<bytes.count - 1, using: &random)
                        let end = min(
                            bytes.count,
                            start + Int.random(in: 1...(1 << 20), using: &random)
                        )
                        if Int.random(in: 0..<6, using: &random) == 0 {
                            service.cutNext(after: 64 << 10)
                        }
                        let range = Int64(start)..<Int64(end)
                        let reading = Task { try await content.read(range, by: ahead) }
                        if Int.random(in: 0..<4, using: &random) == 0 { reading.cancel() }
                        do {
                            let file = try await reading.value
                            let found = try file.read(at: range.lowerBound, count: end - start)
                            #expect(found == Array(bytes[start..<end]), "seed \(seed)")
                        } catch {
                            #expect(
                                (error as? ContentError)?.isCancellation == true,
                                "seed \(seed): \(error)"
                            )
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await content.bytes(0..<Int64(bytes.count)) == bytes)
        try await until { content.state.withLock { $0.isVerified } }
    }

    @Test("a body that stays short is an error for who waits, not a wait for ever")
    func short() async throws {
        let fixture = try StoreFixture()
        fixture.service.put("a", [1, 2, 3])
        let content = try fixture.store.open(fixture.key("a"), size: 10, hash: nil)
        await #expect {
            _ = try await content.bytes(0..<10)
        } throws: { error in
            guard case .fetch(let cause)? = error as? ContentError else { return false }
            return cause.isTransient
        }
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
    }

    @Test("what was read of a file is there after a restart, without the service; the rest is not")
    func partly() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 8)
        let bytes = random.bytes(20 << 20)
        let content = try fixture.remote("a", bytes)
        let start: Int64 = 10 << 20
        let range = start..<start + 4096
        _ = try await content.bytes(range)
        fixture.store.close(content)
        await fixture.store.save()
        _ = try await fixture.restart()
        let again = try fixture.store.open(fixture.key("a"), size: content.size, hash: nil)
        fixture.service.fail(ProviderError(.offline, detail: "test"))
        #expect(try await again.bytes(range) == Array(bytes[Int(start)..<Int(start) + 4096]))
        await #expect(throws: ContentError.fetch(ProviderError(.offline, detail: "test"))) {
            _ = try await again.bytes(0..<10)
        }
        #expect(try await again.bytes(0..<10) == Array(bytes[0..<10]))
        #expect(!again.isComplete)
    }

    @Test("the last reader's going ends a transfer, and what it brought is kept")
    func abandoned() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 9)
        let bytes = random.bytes(20 << 20)
        let content = try fixture.remote("a", bytes)
        let ahead = ReadAhead()
        _ = try await content.read(0..<4096, by: ahead)
        let fetched = content.state.withLock { $0.present }
        fixture.store.close(content)
        #expect(content.state.withLock { $0.fetches.isEmpty })
        try await until { fixture.service.inFlight == 0 }
        await fixture.store.save()
        _ = try await fixture.restart()
        let again = try fixture.store.open(fixture.key("a"), size: content.size, hash: nil)
        #expect(fetched.ranges.allSatisfy { again.state.withLock(\.present).covers($0) })
        #expect(fetched.byteCount >= 4096)
    }

    @Test("when a saving ends, what an earlier one took is stored, too")
    func savings() async throws {
        let fixture = try StoreFixture(saveInterval: .seconds(3600))
        var random = SeededNumbers(seed: 11)
        let bytes = random.bytes(4 << 20)
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<content.size)
        await content.verified()
        let store = fixture.store
        let earlier = Task { await store.save() }
        // At once: to write it to the disk takes a moment only.
        while !store.state.withLock({ $0.unsaved.isEmpty }) { await Task.yield() }
        await store.save()
        let rows = try fixture.catalog.contents()
        #expect(rows.map(\.bytesOnDisk) == [content.size])
        await earlier.value
    }

    @Test("what is closed while its state is being stored is whole for who opens it next")
    func closedWhileSaved() async throws {
        let fixture = try StoreFixture(saveInterval: .seconds(3600))
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<1000)
        await content.verified()
        let (catalog, account) = (fixture.catalog, fixture.account.id)
        let other = try fixture.file("other").inode
        let (isBlocked, mayGoOn) = (Gate(), Gate())
        // A thread of its own, which keeps the saving's transaction waiting; nothing of it stays.
        Thread.detachNewThread {
            _ = try? catalog.stage(
                NewStagedContent(size: 0),
                account: account,
                modified: .now,
                of: other
            ) { _ in
                isBlocked.open()
                while !mayGoOn.isOpen { usleep(1000) }
                throw CatalogError.exists
            }
        }
        defer { mayGoOn.open() }
        while !isBlocked.isOpen { try await Task.sleep(for: .milliseconds(1)) }
        let saving = Task { [store = fixture.store] in await store.save() }
        while content.state.withLock({ $0.isUnsaved }) {
            try await Task.sleep(for: .milliseconds(1))
        }
        fixture.store.close(content)
        let again = try fixture.store.open(
            fixture.key("a"),
            size: 1000,
            hash: SumHasher.hash(of: bytes)
        )
        #expect(again.isComplete)
        fixture.store.close(again)
        mayGoOn.open()
        await saving.value
        #expect(fixture.store.state.withLock { $0.cached.isEmpty })
        #expect(try fixture.store.cachedRow(of: fixture.key("a"))?.isComplete == true)
    }

    /// Something that happens once.
    private final class Gate: Sendable {
        private let state = Atomic(false)
        var isOpen: Bool { state.load(ordering: .acquiring) }
        func open() { state.store(true, ordering: .releasing) }
    }

    @Test("a file that is taken away while it is read is fetched anew, not an error")
    func taken() async throws {
        let fixture = try StoreFixture()
        var random = SeededNumbers(seed: 10)
        let bytes = random.bytes(8 << 20)
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<4096)
        let id = try #require(content.id)
        try await fixture.catalog.removeContents([id])
        fixture.store.pool.forget(fixture.store.paths.cached(id))
        DiskFile.remove(fixture.store.paths.cached(id))
        let start = 5 << 20
        #expect(
            try await content.bytes(Int64(start)..<Int64(start) + 100)
                == Array(bytes[start..<start + 100])
        )
        #expect(try await content.bytes(0..<4096) == Array(bytes[0..<4096]))
    }

    @Test("what is being fetched anew is not taken for complete after a kill")
    func takenAndKilled() async throws {
        // What comes is not stored while the row is looked at.
        let fixture = try StoreFixture(saveInterval: .seconds(3600))
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let content = try fixture.remote("a", bytes)
        _ = try await content.bytes(0..<100_000)
        await content.verified()
        await fixture.store.save()
        func row() throws -> ContentRow? { try fixture.store.cachedRow(of: content.key) }
        #expect(try row()?.isComplete == true)
        let path = fixture.store.paths.cached(try #require(content.id))
        fixture.store.pool.forget(path)
        DiskFile.remove(path)
        fixture.service.hold()
        let reader = Task { try await content.bytes(0..<100_000) }
        try await until { fixture.service.waiting > 0 }
        // The file is there and empty.
        #expect(DiskFile.exists(path))
        #expect(try row()?.present == nil)
        #expect(try row()?.isComplete == false)
        fixture.service.letGo()
        #expect(try await reader.value == bytes)
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
