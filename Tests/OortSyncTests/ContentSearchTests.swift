import OortCatalog
import OortModel
import OortSync
import OrderedCollections
import Synchronization
import Testing

/// A search whose pages are written down.
private struct WrittenSearch: ContentSearching {
    let pages: [[Item]]

    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let number = page.flatMap { Int($0.rawValue) } ?? 0
        guard pages.indices.contains(number) else {
            throw ProviderError(.offline, detail: "no such page")
        }
        return ListingPage(
            items: pages[number],
            next: number + 1 < pages.count ? PageToken("\(number + 1)") : nil
        )
    }
}

@Suite("searching inside files", .timeLimit(.minutes(15)))
struct ContentSearchTests {
    private final class Found: Sendable {
        let pages = Mutex<[[String]]>([])
        var all: [String] { pages.withLock { $0.flatMap(\.self) } }
    }

    private func search(
        _ engine: SyncEngine,
        stopAfter count: Int = .max
    ) async throws -> (outcome: ContentSearchOutcome, found: Found) {
        let found = Found()
        let outcome = try await engine.searchContents(for: ["word"]) { results in
            found.pages.withLock { pages in
                pages.append(results.map { $0.path.joined(separator: "/") })
                return pages.flatMap(\.self).count < count
            }
        }
        return (outcome, found)
    }

    private func item(_ path: String, _ cloud: MemoryCloud) async throws -> Item {
        let id = try #require(cloud.id(path))
        return try await cloud.item(ItemReference(id: id, path: .root))
    }

    @Test("results have their places in the tree, whatever became of them since")
    func places() async throws {
        let cloud = MemoryCloud()
        cloud.put("a", nil)
        cloud.put("a/known.txt", "word")
        cloud.put("a/gone.txt", "word")
        cloud.put("a/removed.txt", "word")
        try await World.run(cloud) { world in
            try await until { try world.catalog.node(atPath: ["work", "a", "known.txt"]) != nil }
            try await until { try world.catalog.node(atPath: ["work", "a", "removed.txt"]) != nil }
            let known = try await item("a/known.txt", cloud)
            let gone = try await item("a/gone.txt", cloud)
            let removed = try await item("a/removed.txt", cloud)
            // Removed here, and not sent yet.
            try world.remove("a/removed.txt")
            cloud.hold(.feed)
            cloud.put("a/new", nil)
            let folder = try #require(cloud.id("a/new"))
            cloud.put("a/new/late.txt", "word")
            let late = try await item("a/new/late.txt", cloud)
            #expect(late.parentID == folder)
            cloud.remove("a/gone.txt")
            var trashed = try await item("a", cloud)
            (trashed.id, trashed.isTrashed) = (ItemID("in the trash"), true)
            let stranger = Item(id: ItemID("nobody's"), kind: .file, fileName: "s.txt")
            cloud.state.withLock {
                $0.search = WrittenSearch(
                    pages: [[known, trashed], [], [removed, stranger, known], [late]]
                )
                $0.entries[stranger.id] = MemoryCloud.Entry(item: stranger, bytes: [])
            }
            let (outcome, found) = try await search(world.engine)
            #expect(found.pages.withLock { $0 } == [["a/known.txt"], [], [], ["a/new/late.txt"]])
            #expect(outcome == .done(outside: 1))
            let (_, few) = try await search(world.engine, stopAfter: 1)
            #expect(few.all == ["a/known.txt"])
            // The feed will report items that the catalog has and the service no longer does.
            cloud.state.withLock { $0.search = WrittenSearch(pages: [[gone]]) }
            #expect(try await search(world.engine).found.all == ["a/gone.txt"])
            cloud.release(.feed)
        }
    }

    @Test("a service that does not search is not asked, and one that fails says so")
    func others() async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            let outcome = try await search(world.engine).outcome
            #expect(outcome == .impossible)
            cloud.state.withLock { $0.search = WrittenSearch(pages: []) }
            await #expect(throws: ProviderError.self) { try await search(world.engine) }
        }
    }
}
