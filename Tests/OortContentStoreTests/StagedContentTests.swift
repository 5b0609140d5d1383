import Foundation
import OortCatalog
import OortModel
import OortTesting
import Synchronization
import Testing

@testable import OortContentStore

@Suite("Staged content", .timeLimit(.minutes(15)))
struct StagedContentTests {
    /// Random writes, cuts and reads on an overlay agree with an array of bytes, also after the
    /// process dies between any two of them.
    @Test("what is cut on a full disk is cut, and the base's bytes never come back")
    func cutOnAFullDisk() async throws {
        let fixture = try StoreFixture()
        let base = try fixture.remote("base", Array(1...10))
        // The base does not come before all is done.
        fixture.service.hold()
        let file = try fixture.file("f")
        let content = try fixture.stage(over: base, of: file)
        let full = OverlayJournal(file: try DiskFile.open("/dev/full"))
        let journal = content.state.withLock { state in
            defer { state.journal = full }
            return state.journal
        }
        #expect(try content.truncate(to: 5) == .done(offset: 5))
        // The disk that has no room for a note has room otherwise.
        #expect(throws: ContentError.noSpace) { try content.truncate(to: 8) }
        #expect(content.size == 5)
        content.state.withLock { $0.journal = journal }
        #expect(try content.truncate(to: 8) == .done(offset: 8))
        try content.record(modified: .now)
        fixture.service.letGo()
        _ = try await fixture.restart()
        let again = try fixture.store.open(staged: content.id)
        #expect(try await again.bytes(0..<100) == Array(1...5) + [0, 0, 0])
    }

    @Test(
        "an overlay agrees with a byte array, over restarts",
        arguments: [11, 12, 13, 14] as [UInt64]
    )
    func random(seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        let fixture = try StoreFixture()
        var model = random.bytes(Int.random(in: 1...(1 << 20), using: &random))
        let base = try fixture.remote("base", model)
        let node = try fixture.file("f")
        var content = try fixture.stage(over: base, of: node)
        let id = content.id
        for step in 0..<150 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let offset = Int.random(in: 0..<(1 << 20) + (1 << 18), using: &random)
                let bytes = random.bytes(Int.random(in: 1...30_000, using: &random))
                #expect(try content.write(bytes, at: Int64(offset)) == .done(offset: Int64(offset)))
                if model.count < offset + bytes.count {
                    model += [UInt8](repeating: 0, count: offset + bytes.count - model.count)
                }
                model.replaceSubrange(offset..<offset + bytes.count, with: bytes)
            case 5:
                let bytes = random.bytes(100)
                #expect(
                    try content.write(bytes, at: nil) == .done(offset: Int64(model.count))
                )
                model += bytes
            case 6:
                let size = Int.random(in: 0..<(1 << 20) + (1 << 19), using: &random)
                _ = try content.truncate(to: Int64(size))
                model =
                    size < model.count
                    ? Array(model[..<size])
                    : model + [UInt8](repeating: 0, count: size - model.count)
            case 7:
                _ = try await fixture.restart()
                content = try fixture.store.open(staged: id)
            default:
                let lower = Int.random(in: 0...model.count, using: &random)
                let upper = Int.random(in: lower...model.count + 10, using: &random)
                let found = try await content.bytes(Int64(lower)..<Int64(upper))
                guard found == Array(model[lower..<min(upper, model.count)]) else {
                    Issue.record("seed \(seed), step \(step): wrong bytes in \(lower)..<\(upper)")
                    return
                }
            }
            #expect(content.size == Int64(model.count))
        }
        #expect(try await content.bytes(0..<Int64(model.count)) == model)
        let frozen = try await fixture.store.freeze(id)
        #expect(frozen.size == Int64(model.count))
        #expect(frozen.hash == SumHasher.hash(of: model))
        #expect(try await frozen.read(at: 0, count: model.count) == model)
        fixture.store.release(frozen)
    }

    @Test("what a killed process wrote is recorded with the file at the next start")
    func recovery() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write([1, 2, 3], at: 0)
        #expect(try fixture.catalog.node(node.inode).size == 0)
        #expect(try await fixture.restart().recovered == 1)
        #expect(try fixture.catalog.node(node.inode).size == 3)
        #expect(fixture.store.usage.staged > 0)
    }

    @Test("a torn last record is dropped, a damaged earlier one is an error and nothing is deleted")
    func torn() async throws {
        let fixture = try StoreFixture()
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 1000))
        let node = try fixture.file("f")
        let content = try fixture.stage(over: base, of: node)
        _ = try content.write([1], at: 10)
        _ = try content.write([2], at: 20)
        let path = fixture.store.paths.journal(content.id)
        let journal = try DiskFile.open(path)
        try journal.resize(to: try journal.size() - 5)
        _ = try await fixture.restart()
        let again = try fixture.store.open(staged: content.id)
        let found = try await again.bytes(9..<22)
        let expected: [UInt8] = [7, 1, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]
        #expect(found == expected)

        _ = try again.write([3], at: 30)
        _ = try again.write([4], at: 40)
        try DiskFile.open(path).write([0xff][...], at: 3)
        #expect(try await fixture.restart().damaged == [content.id.rawValue])
        #expect(throws: ContentError.self) { try fixture.store.open(staged: content.id) }
        #expect(DiskFile.exists(path))
        DiskFile.remove(fixture.store.paths.staged(content.id))
        #expect(try await fixture.restart().damaged == [content.id.rawValue])
    }

    @Test("a write while an upload reads goes to a clone; the upload keeps its bytes")
    func frozen() async throws {
        let fixture = try StoreFixture()
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 100_000))
        let node = try fixture.file("f")
        let content = try fixture.stage(over: base, of: node)
        _ = try content.write([1, 1], at: 0)
        let frozen = try await fixture.store.freeze(content.id)
        #expect(try content.write([2], at: 0) == .frozen)
        let (clone, changed) = try fixture.store.stage(
            try await fixture.store.thaw(content),
            of: node.inode,
            account: fixture.account.id,
            modified: .now
        )
        #expect(changed?.staged == clone.id)
        _ = try clone.write([3], at: 1)
        #expect(try await frozen.read(at: 0, count: 3) == [1, 1, 7])
        #expect(try await clone.bytes(0..<3) == [1, 3, 7])

        let key = fixture.key("new", "9")
        await fixture.store.uploaded(frozen, as: key)
        let cached = try fixture.store.open(key, size: frozen.size, hash: frozen.hash)
        #expect(cached.isComplete)
        let requests = fixture.service.requests.count
        #expect(try await cached.bytes(0..<3) == [1, 1, 7])
        #expect(try await content.bytes(0..<3) == [1, 1, 7])
        #expect(fixture.service.requests.count == requests)
        fixture.store.close(content)
        fixture.store.close(clone)
        _ = try await fixture.restart()
        let again = try fixture.store.open(staged: clone.id)
        #expect(try await again.bytes(0..<3) == [1, 3, 7])
    }

    @Test("a write voids the hash of what was never recorded and is opened again")
    func unrecorded() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write([1, 1], at: 0)
        let frozen = try await fixture.store.freeze(content.id)
        #expect(try await fixture.store.recordHash(of: frozen))
        fixture.store.release(frozen)
        fixture.store.close(content)
        let again = try fixture.store.open(staged: content.id)
        #expect(again !== content)
        #expect(try fixture.catalog.content(content.id)?.hash != nil)
        _ = try again.write([2], at: 0)
        // Else the file would be taken for what the service has of the old bytes.
        #expect(try fixture.catalog.content(content.id)?.hash == nil)
        fixture.store.close(again)
    }

    @Test("the hash of a large content is computed once for an upload, and anew for the next")
    func rememberedHash() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        var bytes = [UInt8](repeating: 7, count: 4 << 20)
        _ = try content.write(bytes, at: 0)
        try content.record(modified: .now)
        let id = content.id
        fixture.store.close(content)
        func expectHash(of bytes: [UInt8], reading count: Int) async throws {
            let before = fixture.service.hashedBytes
            let frozen = try await fixture.store.freeze(id)
            #expect(try await fixture.store.recordHash(of: frozen))
            fixture.store.release(frozen)
            #expect(frozen.hash == SumHasher.hash(of: bytes))
            #expect(fixture.service.hashedBytes - before == count)
        }
        try await expectHash(of: bytes, reading: bytes.count)
        try await expectHash(of: bytes, reading: 0)
        // A disk that fails later is to be seen, too.
        try await expectHash(of: bytes, reading: bytes.count)
        let again = try fixture.store.open(staged: id)
        _ = try again.write([1], at: 5)
        try again.record(modified: .now)
        fixture.store.close(again)
        bytes[5] = 1
        try await expectHash(of: bytes, reading: bytes.count)
        try await expectHash(of: bytes, reading: 0)
        // What the machine that died kept of it is to be seen.
        _ = try await fixture.restart()
        try await expectHash(of: bytes, reading: bytes.count)
        let lost = [UInt8](repeating: 0, count: 9)
        try DiskFile.open(fixture.store.paths.staged(id)).write(lost[...], at: 9)
        _ = try await fixture.restart()
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(id) }
    }

    @Test("the rest of a small base comes at once; neither service nor cache is needed then")
    func smallBase() async throws {
        let fixture = try StoreFixture()
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 100_000))
        let node = try fixture.file("f")
        let content = try fixture.stage(over: base, of: node)
        _ = try content.write([1, 1], at: 0)
        try await until { try content.readIfPresent(0..<100_000) != nil }
        _ = try content.write([2], at: 50_000)
        _ = try content.truncate(to: 60_000)
        _ = try content.write([3], at: 70_000)
        try content.record(modified: .now)
        fixture.store.close(content)
        fixture.store.close(base)

        // Another client replaced it, and the cache must not hold an only copy.
        try FileManager.default.removeItem(at: fixture.folder.appendingPathComponent("cache"))
        #expect(try await fixture.restart().damaged == [])
        fixture.service.fail(ProviderError(.preconditionFailed, detail: "newer"))
        let frozen = try await fixture.store.freeze(content.id)
        #expect(frozen.size == 70_001)
        #expect(try await frozen.read(at: 0, count: 3) == [1, 1, 7])
        #expect(try await frozen.read(at: 49_999, count: 3) == [7, 2, 7])
        #expect(try await frozen.read(at: 59_999, count: 3) == [7, 0, 0])
        #expect(try await frozen.read(at: 69_999, count: 2) == [0, 3])
        #expect(fixture.service.requests == [0..<100_000])
        fixture.store.release(frozen)
    }

    @Test("what is not given in place of a content leaves that as writable as it was")
    func ungivenClone() async throws {
        let fixture = try StoreFixture()
        let content = try fixture.stage(of: try fixture.file("f"))
        _ = try content.write([1, 2], at: 0)
        let frozen = try await fixture.store.freeze(content.id)
        var thawed: ThawedContent? = try await fixture.store.thaw(content)
        let path = try #require(thawed?.path)
        #expect(DiskFile.exists(path))
        fixture.store.release(frozen)
        #expect(try content.write([3], at: 0) == .frozen)
        thawed = nil
        #expect(!DiskFile.exists(path))
        #expect(try content.write([3], at: 0) == .done(offset: 0))
        fixture.store.close(content)
    }

    @Test("an upload that somebody reads already leaves its file until the catalog is safe")
    func readWhileUploaded() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write([1, 2, 3], at: 0)
        try content.record(modified: .now)
        let frozen = try await fixture.store.freeze(content.id)
        let key = fixture.key("new", "9")
        let reader = try fixture.store.open(key, size: 3, hash: frozen.hash)
        // As the engine says before.
        _ = try fixture.catalog.setCopiedContent(
            item: key.item,
            revision: key.revision,
            hash: frozen.hash,
            size: 3,
            modified: .now,
            of: node.inode
        )
        await fixture.store.uploaded(frozen, as: key)
        #expect(DiskFile.exists(fixture.store.paths.staged(content.id)))
        #expect(try await reader.bytes(0..<3) == [1, 2, 3])
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
        #expect(fixture.service.requests == [])
        fixture.store.close(content)
        fixture.store.close(reader)
        await fixture.store.collectGarbage()
        #expect(!DiskFile.exists(fixture.store.paths.staged(content.id)))
        #expect(fixture.store.usage == (0, 3))
    }

    @Test("a clone that was made before the rest of a small base came needs nothing else either")
    func smallBaseOfAClone() async throws {
        let fixture = try StoreFixture()
        let (store, service) = (fixture.store, fixture.service)
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 1000))
        let node = try fixture.file("f")
        service.hold()
        let content = try fixture.stage(over: base, of: node)
        _ = try content.write([1], at: 0)
        let freezing = Task { try await store.freeze(content.id) }
        try await until { service.waiting > 0 && !content.state.withLock { $0.isWritable } }
        let clone = try store.stage(
            try await store.thaw(content),
            of: node.inode,
            account: fixture.account.id,
            modified: .now
        ).content
        _ = try clone.write([2], at: 1)
        service.letGo()
        store.release(try await freezing.value)
        try await until { try clone.readIfPresent(0..<1000) != nil }
        #expect(try clone.pieces(0..<1000) == [StagedContent.Piece(range: 0..<1000, isOwn: true)])
        #expect(try await clone.bytes(0..<4) == [1, 2, 7, 7])
        #expect(service.requests == [0..<1000])
        for used in [content, clone] { store.close(used) }
        store.close(base)
    }

    @Test("of a base that was cut before a clone was made nothing comes back in the clone")
    func cutBeforeAClone() async throws {
        let fixture = try StoreFixture()
        let (store, service) = (fixture.store, fixture.service)
        let base = try fixture.remote("base", Array(1...10))
        let node = try fixture.file("f")
        service.hold()
        let content = try fixture.stage(over: base, of: node)
        _ = try content.truncate(to: 5)
        let freezing = Task { try await store.freeze(content.id) }
        try await until { service.waiting > 0 && !content.state.withLock { $0.isWritable } }
        let clone = try store.stage(
            try await store.thaw(content),
            of: node.inode,
            account: fixture.account.id,
            modified: .now
        ).content
        _ = try clone.write([9], at: 0)
        _ = try clone.truncate(to: 8)
        service.letGo()
        store.release(try await freezing.value)
        _ = try await fixture.restart()
        let again = try fixture.store.open(staged: clone.id)
        #expect(try await again.bytes(0..<100) == [9, 2, 3, 4, 5, 0, 0, 0])
        fixture.store.close(again)
    }

    @Test("a disk that is full while a content's files are made is told as that, and none is left")
    func fullWhileMade() async throws {
        let fixture = try StoreFixture()
        let (store, node) = (fixture.store, try fixture.file("f"))
        #expect(throws: ContentError.noSpace) {
            try store.makeStaged(
                StagedContent.State(size: 0, baseEnd: 0, own: RangeSet()),
                over: nil,
                original: nil,
                of: node.inode,
                account: fixture.account.id,
                modified: .now
            ) { id throws(ContentError) in
                _ = try store.pool.create(store.paths.staged(id))
                throw .noSpace
            }
        }
        #expect(fixture.files("state") == [])
        #expect(try fixture.catalog.node(node.inode).staged == nil)
        #expect(try fixture.catalog.contents() == [])
    }

    @Test("the rest of a small base never covers what a program wrote before it came")
    func lateBase() async throws {
        let fixture = try StoreFixture()
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 100_000))
        fixture.service.hold()
        let content = try fixture.stage(over: base, of: fixture.file("f"))
        _ = try content.write([1, 1], at: 10)
        _ = try content.truncate(to: 50_000)
        _ = try content.write([2], at: 60_000)
        try await until { fixture.service.waiting > 0 }
        fixture.service.letGo()
        try await until { try content.readIfPresent(0..<60_001) != nil }
        #expect(try await content.bytes(9..<13) == [7, 1, 1, 7])
        #expect(try await content.bytes(49_999..<50_001) == [7, 0])
        #expect(try await content.bytes(60_000..<70_000) == [2])
        fixture.store.close(content)
        fixture.store.close(base)
    }

    @Test("what a program wrote is never completed with bytes that are not the base's")
    func otherBase() async throws {
        let fixture = try StoreFixture()
        let bytes = [UInt8](repeating: 7, count: 100_000)
        let other = [UInt8](repeating: 8, count: 100_000)
        let base = try fixture.remote("base", other, hash: SumHasher.hash(of: bytes))
        let content = try fixture.stage(over: base, of: fixture.file("f"))
        _ = try content.write([1, 1], at: 0)
        let error = await #expect(throws: ProviderError.self) {
            _ = try await fixture.store.freeze(content.id)
        }
        #expect(error?.kind == .contentDamaged)
        fixture.service.put("base", bytes)
        let frozen = try await fixture.store.freeze(content.id)
        #expect(try await frozen.read(at: 0, count: 100_000) == [1, 1] + bytes[2...])
        fixture.store.release(frozen)
    }

    @Test("an unlinked content goes with its last user, and its files with it")
    func discard() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write([1, 2, 3], at: 0)
        let other = try fixture.stage(of: node)
        await fixture.store.collectGarbage()
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
        fixture.store.close(content)
        fixture.store.close(other)
        await fixture.store.collectGarbage()
        #expect(fixture.store.usage.staged == 0)
        #expect(fixture.files("state").count == 1)
    }

    @Test("a write waits for an upload to make room, then is told that there is none")
    func full() async throws {
        let fixture = try StoreFixture(settings: .onDisk(of: 1000))
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        #expect(try content.write([UInt8](repeating: 1, count: 900), at: 0) == .done(offset: 0))
        #expect(try content.write([UInt8](repeating: 1, count: 200), at: 900) == .noRoom(for: 200))
        await #expect(throws: ContentError.noSpace) {
            try await fixture.store.makeRoom(for: 200)
        }
        await #expect(throws: ContentError.noSpace) {
            try await fixture.store.makeRoom(for: 1001)
        }
        let other = try fixture.file("g")
        let second = try fixture.stage(of: other)
        let store = fixture.store
        let waiter = Task { try await store.makeRoom(for: 200) }
        _ = try content.truncate(to: 100)
        try await waiter.value
        #expect(try second.write([UInt8](repeating: 1, count: 200), at: 0) == .done(offset: 0))
    }

    /// A content of 4 TiB, all holes, which takes hours to be hashed, and its hashing under way.
    private func hashing(
        _ fixture: StoreFixture
    ) async throws -> (StagedContent, Task<Result<Void, ProviderError>, Never>) {
        let content = try fixture.stage(of: try fixture.file("f"))
        _ = try content.truncate(to: 4 << 40)
        let store = fixture.store
        let task = Task { () -> Result<Void, ProviderError> in
            do throws(ProviderError) {
                store.release(try await store.freeze(content.id))
                return .success(())
            } catch { return .failure(error) }
        }
        try await until { content.state.withLock { $0.freezes > 0 } }
        return (content, task)
    }

    @Test("the hashing of a large content ends with the task, the file, and the store")
    func endedHashing() async throws {
        func kind(_ result: Result<Void, ProviderError>) -> ProviderError.Kind? {
            if case .failure(let error) = result { error.kind } else { nil }
        }
        for end in ["task", "file", "store"] {
            let fixture = try StoreFixture()
            let (content, task) = try await hashing(fixture)
            switch end {
            case "task": task.cancel()
            case "file": _ = try fixture.catalog.unlink("f", in: fixture.account.root)
            default: await fixture.store.stop()
            }
            #expect(kind(await task.value) == .cancelled, "\(end)")
            #expect(content.state.withLock { $0.freezes } == 0)
            fixture.store.close(content)
        }
    }

    @Test("data and holes are told as they are")
    func holes() async throws {
        let fixture = try StoreFixture()
        let node = try fixture.file("f")
        let content = try fixture.stage(of: node)
        _ = try content.write([1], at: 100)
        _ = try content.truncate(to: 300)
        #expect(content.nextBoundary(from: 0, isData: true) == 100)
        #expect(content.nextBoundary(from: 0, isData: false) == 0)
        #expect(content.nextBoundary(from: 100, isData: false) == 101)
        #expect(content.nextBoundary(from: 150, isData: true) == nil)
        #expect(content.nextBoundary(from: 300, isData: false) == nil)
        let written = try await content.bytes(0..<300).filter { $0 != 0 }
        #expect(written == [1])
    }
}
