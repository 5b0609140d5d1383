import OortCatalog
import OortModel
import Testing

@testable import OortContentStore

@Suite("Exported documents", .timeLimit(.minutes(15)))
struct ExportTests {
    @Test("a document that is opened several times at once is exported once, and all read it")
    func shared() async throws {
        let fixture = try StoreFixture()
        let (store, service, key) = (fixture.store, fixture.service, fixture.key("doc"))
        let exports = (3...10).map { [UInt8](repeating: UInt8($0), count: $0) }
        service.export(exports)
        service.hold()
        let opening = (0..<8).map { _ in Task { try await store.export(key) } }
        try await until { service.waiting > 0 }
        for _ in 0..<10_000 { await Task.yield() }
        service.letGo()
        var contents: [CachedContent] = []
        for task in opening { contents.append(try await task.value) }
        for content in contents {
            #expect(content === contents[0])
            #expect(try await content.bytes(0..<content.size) == [3, 3, 3])
        }
        #expect(service.exportCount == 1)
        #expect(store.usage.cached == 3)
        for content in contents { store.close(content) }
        await store.save()
        _ = try await fixture.restart()
        let again = try await fixture.store.export(key)
        #expect(try await again.bytes(0..<3) == [3, 3, 3])
        #expect(service.exportCount == 1)
        #expect(fixture.store.usage.cached == 3)
    }

    @Test("an export that fails is told to all who wait, and tried again by the next")
    func refused() async throws {
        let fixture = try StoreFixture()
        let (store, service, key) = (fixture.store, fixture.service, fixture.key("doc"))
        let offline = ProviderError(.offline, detail: "test")
        service.fail(offline)
        await #expect(throws: ContentError.fetch(offline)) { _ = try await store.export(key) }
        service.export([[1, 2]])
        let content = try await store.export(key)
        #expect(try await content.bytes(0..<2) == [1, 2])
        #expect(store.usage.cached == 2)
    }

    @Test("who gives up waiting for an export is let go at once, and the others get it")
    func cancelled() async throws {
        let fixture = try StoreFixture()
        let (store, service, key) = (fixture.store, fixture.service, fixture.key("doc"))
        service.export([[1, 2], [3, 4]])
        service.hold()
        let first = Task { try await store.export(key) }
        try await until { service.waiting > 0 }
        let second = Task { try await store.export(key) }
        first.cancel()
        await #expect {
            try await first.value
        } throws: { error in
            (error as? ContentError)?.isCancellation == true
        }
        service.letGo()
        #expect(try await second.value.bytes(0..<2) == [1, 2])
        #expect(service.exportCount == 1)
    }

    @Test("what is exported anew since its file is gone is counted once")
    func gone() async throws {
        let fixture = try StoreFixture()
        let (store, service, key) = (fixture.store, fixture.service, fixture.key("doc"))
        service.export([[1, 2, 3], [4, 5], [6, 7], [8, 9, 10, 11]])
        let first = try await store.export(key)
        let id = try #require(first.id)
        store.close(first)
        await store.save()
        store.pool.forget(store.paths.cached(id))
        DiskFile.remove(store.paths.cached(id))
        let second = try await store.export(key)
        #expect(try await second.bytes(0..<2) == [4, 5])
        #expect(store.usage.cached == 2)

        // As when it is evicted at the moment at which it is opened.
        second.discard()
        let third = try await store.export(key)
        #expect(third === second)
        #expect(try await second.bytes(0..<2) == [6, 7])
        #expect(store.usage.cached == 2)

        second.discard()
        let fourth = try await store.export(key)
        #expect(fourth.size == 4)
        await #expect(throws: ContentError.self) { try await second.bytes(0..<2) }
        store.close(second)
        store.close(third)
        #expect(try await fourth.bytes(0..<4) == [8, 9, 10, 11])
        await store.save()
        #expect(store.usage.cached == 4)
        #expect(try fixture.catalog.contents().map(\.bytesOnDisk) == [4])
        #expect(fixture.files("cache").count == 1)
    }

    @Test("a document that leaves no room for the catalog is not kept, and nothing is left of it")
    func withoutRoom() async throws {
        let fixture = try StoreFixture(settings: .onDisk(of: 200_000))
        fixture.service.export([[UInt8](repeating: 1, count: 300_000), [1, 2, 3]])
        await #expect(throws: ContentError.noSpace) {
            _ = try await fixture.store.export(fixture.key("doc"))
        }
        let paths = fixture.store.paths
        #expect(paths.files(in: paths.stagedFolder).isEmpty && fixture.store.usage.cached == 0)
        let content = try await fixture.store.export(fixture.key("doc"))
        #expect(try await content.bytes(0..<3) == [1, 2, 3])
        fixture.store.close(content)
    }
}
