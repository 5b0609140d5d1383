import Foundation
import OortModel
import OortPlaces
import OortS3
import ServerTesting
import Testing

/// The core's view of an account of S3: through the map of places.
@Suite("an account of S3 as a provider", .serialized, .timeLimit(.minutes(5)))
struct S3ProviderTests {
    /// All items of a whole enumeration, by their ids.
    private func enumerate(_ provider: PlaceProvider) async throws -> [ItemID: Item] {
        var items: [ItemID: Item] = [:]
        var cursor: Cursor?
        repeat {
            let page = try await provider.changes(since: cursor)
            for change in page.changes {
                if case .changed(let item) = change { items[item.id] = item }
            }
            cursor = page.cursor
            guard page.hasMore else { return items }
        } while true
    }

    @Test("times, moves of folders and others' files come to the core", arguments: Store.allCases)
    func provider(_ store: Store) async throws {
        let world = try await World(store)
        let folder = NSTemporaryDirectory() + "oort-map-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try await world.raw("PUT", "a/x", body: Array("x".utf8))
        try await world.raw("PUT", "a/deep/y", body: Array("y".utf8))
        try await world.raw("PUT", "b", body: Array("b".utf8))
        let provider = PlaceProvider(
            client: world.client,
            map: try PlaceMap(path: folder + "/map.sqlite"),
            logger: quiet
        )
        let first = try await enumerate(provider)
        #expect(first.values.map(\.fileName).sorted() == ["a", "b", "deep", "x", "y"])
        let b = try #require(first.values.first { $0.fileName == "b" })
        #expect(b.serverModifiedTime != nil)
        // The list does not tell whether the ETag is one; the object itself does.
        #expect(b.contentHash == nil)

        let identity = try await provider.identity()
        let root = ItemReference(id: identity.rootID, path: .root)
        let looked = try await provider.item(ItemReference(id: b.id, path: .root))
        #expect(looked.contentHash?.value == "92eb5ffee6ae2fec3ad71c777531578f")
        let time = Timestamp(seconds: 1_500_000_000, nanoseconds: 7)
        let upload = world.upload(Array("mine".utf8), to: RemotePath(["mine"]), time: time)
        let mine = try await provider.upload(
            Upload(
                target: .create(parent: root, name: "mine", reservedID: nil),
                size: upload.size,
                hash: upload.hash,
                modifiedTime: time,
                mimeType: "text/plain",
                content: upload.content
            ),
            observer: SilentUploadObserver()
        )
        #expect(mine.clientModifiedTime == time)
        let a = try #require(first.values.first { $0.fileName == "a" })
        let moved = try await provider.move(
            Move(
                item: ItemReference(id: a.id, path: RemotePath(["a"])),
                oldParent: root,
                parent: root,
                name: "moved",
                modifiedTime: nil
            )
        )
        #expect(moved.id == a.id)
        #expect(try await world.names() == ["b", "mine", "moved/"])
        #expect(try await world.text("moved", "deep", "y") == "y")

        // What the bucket's list does not say of our own file stays known.
        let second = try await enumerate(provider)
        let listed = try #require(second[mine.id])
        #expect(listed.clientModifiedTime == time)
        #expect(listed.mimeType == "text/plain")
        #expect(listed.rev == mine.rev)
        #expect(second.values.map(\.fileName).sorted() == ["b", "deep", "mine", "moved", "x", "y"])
        #expect(
            second.values.first { $0.fileName == "y" }?.id
                == first.values.first { $0.fileName == "y" }?.id
        )
    }
}
