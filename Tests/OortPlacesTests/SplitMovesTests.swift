import OortModel
import OortPlaces
import OortTesting
import Testing

/// What cannot be moved or asked about by itself, and holds up nothing else.
@Suite("single entries that a service of places refuses", .timeLimit(.minutes(5)))
struct SplitMovesTests {
    private static let root = ItemReference(id: ItemID("root"), path: .root)

    private func kind(
        _ body: () async throws -> Void
    ) async throws -> ProviderError.Kind? {
        do {
            try await body()
            return nil
        } catch let error as ProviderError { return error.kind }
    }

    @Test(
        "an entry whose move is refused for good stays, all others are moved, and status names it",
        arguments: [
            ProviderError.Kind.badRequest, .noPermission, .limitExceeded, .contentBlocked,
            .notAFile,
        ]
    )
    func refusedPiece(refusal: ProviderError.Kind) async throws {
        let world = try PlacesWorld(RandomPlacesTests.Kind.s3.client)
        defer { world.end() }
        for name in ["a", "b/deep", "c"] { world.client.write("/old/\(name)", name) }
        await world.readFeed()
        world.client.answer("move", at: "/old/b/deep", with: refusal)
        let folder = try #require(world.paths["/old/"])
        #expect(world.provider.remarks.isEmpty)
        _ = try await world.provider.move(
            Move(
                item: ItemReference(id: folder.id, path: .root),
                oldParent: Self.root,
                parent: Self.root,
                name: "new",
                modifiedTime: nil
            )
        )
        let files = world.client.contents.keys.filter { !$0.hasSuffix("/") }.sorted()
        #expect(files == ["/new/a", "/new/c", "/old/b/deep"])
        let remark = try #require(world.provider.remarks.first)
        #expect(remark.hasPrefix("old was moved to new, but old/b/deep stays there: "))
        for _ in 0..<3 { await world.readFeed() }
        #expect(Set(world.paths.keys) == Set(world.client.contents.keys))
    }

    @Test("what was known by a map that was damaged is gone once all was listed anew, not before")
    func earlierMap() async throws {
        let world = try PlacesWorld(RandomPlacesTests.Kind.s3.client)
        defer { world.end() }
        world.client.write("/folder/file", "text")
        await world.readFeed()
        let old = try #require(world.paths["/folder/file"])
        let reference = ItemReference(id: old.id, path: .root)
        let folder = try #require(world.paths["/folder/"])
        let above = ItemReference(id: folder.id, path: .root)
        try world.damageMap()
        func look() async throws -> ProviderError.Kind? {
            let provider = world.provider
            return try await kind { _ = try await provider.item(reference) }
        }
        for _ in 0..<2 {
            #expect(try await look() == .outcomeUnknown(retryAfter: nil))
            await world.readFeed()
            #expect(world.hasRead)
            #expect(try await look() == .notFound)
            let provider = world.provider
            let found = try await kind {
                _ = try await provider.items(named: "file", in: above)
            }
            #expect(found == .parentNotFound)
            let deleted = try await kind {
                try await provider.delete(Deletion(item: reference, revision: old.rev))
            }
            #expect(deleted == .notFound)
            #expect(world.client.contents["/folder/file"] == "text")
            let new = try #require(world.paths["/folder/file"])
            #expect(new.id != old.id)
            // The next process knows it from the feed's place alone.
            try world.restart()
        }
    }
}
