import OortCatalog
import OortModel
import Synchronization
import Testing

@testable import OortContentStore

@Suite("What a crash leaves of staged content", .timeLimit(.minutes(15)))
struct CrashTests {
    private func staged(
        _ fixture: StoreFixture,
        _ name: String,
        _ bytes: [UInt8],
        over base: CachedContent? = nil
    ) throws -> StagedContent {
        let node = try fixture.file(name)
        let content = try fixture.stage(over: base, of: node)
        _ = try content.write(bytes, at: 0)
        try content.record(modified: .now)
        return content
    }

    @Test("a change after the record is known before its first byte, and voids the hash")
    func reopened() async throws {
        let fixture = try StoreFixture()
        let content = try staged(fixture, "f", [1, 2, 3])
        let hash = SumHasher.hash(of: [1, 2, 3])
        #expect(try await fixture.catalog.setHash(hash, size: 3, ofStaged: content.id))
        #expect(try fixture.catalog.content(content.id)?.isOpen == false)
        _ = try content.write([9], at: 0)
        #expect(try fixture.catalog.content(content.id)?.isOpen == true)
        let recovery = try await fixture.restart()
        #expect(recovery.recovered == 1 && recovery.damaged.isEmpty)
        // A hash of what the bytes were would have another file's content copied in their place.
        #expect(try fixture.catalog.content(content.id)?.hash == nil)
        let frozen = try await fixture.store.freeze(content.id)
        #expect(frozen.hash == SumHasher.hash(of: [9, 2, 3]))
        fixture.store.release(frozen)
    }

    @Test("a small base is kept with what was written, though the cache is stored later")
    func base() async throws {
        let fixture = try StoreFixture(saveInterval: .seconds(3600))
        let base = try fixture.remote("base", [UInt8](repeating: 7, count: 1000))
        let content = try staged(fixture, "f", [1, 2, 3], over: base)
        let id = content.id
        try await until { try content.readIfPresent(0..<1000) != nil }
        _ = try await fixture.restart()
        // Somebody replaced it.
        fixture.service.fail(ProviderError(.preconditionFailed, detail: "newer"))
        let frozen = try await fixture.store.freeze(id)
        #expect(try await frozen.read(at: 0, count: 5) == [1, 2, 3, 7, 7])
        fixture.store.release(frozen)
    }

    @Test("a closed file that is shorter than recorded is read, not sent, and written anew")
    func short() async throws {
        let fixture = try StoreFixture()
        let id = try staged(fixture, "f", [UInt8](repeating: 7, count: 1000)).id
        try DiskFile.open(fixture.store.paths.staged(id)).resize(to: 400)
        for _ in 0..<2 {
            #expect(try await fixture.restart().damaged == [id.rawValue])
            let content = try fixture.store.open(staged: id)
            #expect(try await content.bytes(0..<1000) == [UInt8](repeating: 7, count: 400))
            await #expect(throws: ProviderError.self) { try await fixture.store.freeze(id) }
            fixture.store.close(content)
        }
        let content = try fixture.store.open(staged: id)
        _ = try content.write([1], at: 400)
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(id) }
        _ = try content.truncate(to: 0)
        _ = try content.write([2], at: 0)
        try content.record(modified: .now)
        let frozen = try await fixture.store.freeze(id)
        #expect(frozen.hash == SumHasher.hash(of: [2]))
        fixture.store.release(frozen)
        #expect(try await fixture.restart().damaged.isEmpty)
    }

    @Test("bytes that were lost are not sent by way of a clone")
    func damagedClone() async throws {
        let fixture = try StoreFixture()
        let (store, catalog) = (fixture.store, fixture.catalog)
        let id = try staged(fixture, "f", [UInt8](repeating: 7, count: 1000)).id
        let node = try #require(try catalog.node(staged: id))
        try DiskFile.open(store.paths.staged(id)).resize(to: 400)
        #expect(try await fixture.restart().damaged == [id.rawValue])
        let content = try fixture.store.open(staged: id)
        // As when the answer to an upload of before was lost.
        _ = try fixture.catalog.setCopiedContent(
            item: ItemID("id-f"),
            revision: Revision("1"),
            hash: nil,
            size: 1000,
            modified: .now,
            of: node.inode
        )
        #expect(try content.write([1], at: 0) == .frozen)
        let clone = try fixture.store.stage(
            try await fixture.store.thaw(content),
            of: node.inode,
            account: fixture.account.id,
            modified: .now
        ).content
        _ = try clone.write([1], at: 0)
        try clone.record(modified: .now)
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(clone.id) }
        for content in [content, clone] { fixture.store.close(content) }
        #expect(try await fixture.restart().damaged == [clone.id.rawValue])
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(clone.id) }
        // Until all of it is written anew.
        let again = try fixture.store.open(staged: clone.id)
        _ = try again.truncate(to: 0)
        fixture.store.release(try await fixture.store.freeze(clone.id))
        fixture.store.close(again)
    }

    @Test("an upload that is refused for lost bytes holds no writer up")
    func damagedAndWritten() async throws {
        let fixture = try StoreFixture()
        let id = try staged(fixture, "f", [UInt8](repeating: 7, count: 1000)).id
        try DiskFile.open(fixture.store.paths.staged(id)).resize(to: 400)
        _ = try await fixture.restart()
        let store = fixture.store
        let content = try store.open(staged: id)
        let uploads = Task.detached {
            while !Task.isCancelled {
                if let frozen = try? await store.freeze(id) { store.release(frozen) }
                // A refusal waits for nothing: others would never get their turn.
                await Task.yield()
            }
        }
        for _ in 0..<50_000 {
            let outcome = try content.write([1], at: 0)
            guard outcome == .done(offset: 0) else {
                Issue.record("\(outcome)")
                break
            }
        }
        uploads.cancel()
        await uploads.value
        store.close(content)
    }

    @Test("a size that could not be recorded is known once the content is hashed")
    func unrecordedSize() async throws {
        let fixture = try StoreFixture()
        let content = try staged(fixture, "f", [1, 2, 3])
        _ = try content.write([4, 5], at: nil)
        let frozen = try await fixture.store.freeze(content.id)
        #expect(try await fixture.store.recordHash(of: frozen))
        fixture.store.release(frozen)
        #expect(try fixture.catalog.node(staged: content.id)?.size == 5)
        #expect(try fixture.catalog.content(content.id)?.size == 5)
    }

    @Test("bytes that are not those of the recorded hash are not sent")
    func other() async throws {
        let fixture = try StoreFixture()
        let id = try staged(fixture, "f", [1, 2, 3]).id
        let hash = SumHasher.hash(of: [1, 2, 3])
        #expect(try await fixture.catalog.setHash(hash, size: 3, ofStaged: id))
        try DiskFile.open(fixture.store.paths.staged(id)).write([0][...], at: 2)
        _ = try await fixture.restart()
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(id) }
    }

    @Test("after lost power, written bytes that are holes are the base's again")
    func holes() async throws {
        let fixture = try StoreFixture()
        let old = [UInt8](repeating: 5, count: 300_000)
        let base = try fixture.remote("base", old)
        let id = try staged(fixture, "f", [UInt8](repeating: 6, count: 100_000), over: base).id
        // What the disk did not keep, though the sidecar lists it.
        let file = try DiskFile.open(fixture.store.paths.staged(id))
        try file.resize(to: 0)
        try file.resize(to: 300_000)
        DiskFile.remove(fixture.store.paths.boot)
        let recovery = try await fixture.restart()
        #expect(recovery.isAfterPowerLoss)
        #expect(recovery.damaged == [id.rawValue])
        let content = try fixture.store.open(staged: id)
        #expect(try await content.bytes(0..<300_000) == old)
        fixture.store.close(content)
        #expect(try await fixture.restart().damaged == [id.rawValue])
        #expect(!(try await fixture.restart().isAfterPowerLoss))
        await #expect(throws: ProviderError.self) { try await fixture.store.freeze(id) }
    }

    @Test("content that was uploaded, and of which the catalog forgot that, is taken back")
    func forgotten() async throws {
        let fixture = try StoreFixture()
        let bytes = [UInt8](repeating: 3, count: 5000)
        let base = try fixture.remote("base", [UInt8](repeating: 1, count: 5000))
        let id = try staged(fixture, "f", bytes, over: base).id
        let paths = fixture.store.paths
        #expect(DiskFile.move(paths.staged(id), to: paths.cached(id)))
        DiskFile.remove(paths.journal(id))
        #expect(try await fixture.restart().damaged.isEmpty)
        let frozen = try await fixture.store.freeze(id)
        #expect(try await frozen.read(at: 0, count: 5000) == bytes)
        fixture.store.release(frozen)
    }

    @Test("cached bytes that the disk did not keep are fetched anew")
    func cached() async throws {
        let fixture = try StoreFixture()
        let bytes = [UInt8](repeating: 4, count: 200_000)
        let content = try fixture.remote("item", bytes)
        #expect(try await content.bytes(0..<200_000) == bytes)
        try await until { content.state.withLock { $0.isVerified && !$0.isUnsaved } }
        await fixture.store.save()
        let id = try #require(content.id)
        fixture.store.close(content)
        let file = try DiskFile.open(fixture.store.paths.cached(id))
        try file.resize(to: 0)
        try file.resize(to: 200_000)
        DiskFile.remove(fixture.store.paths.boot)
        #expect(try await fixture.restart().lost == 1)
        let again = try fixture.remote("item", bytes)
        #expect(try await again.bytes(0..<200_000) == bytes)
    }
}
