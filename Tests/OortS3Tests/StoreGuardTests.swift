import OortModel
import OortS3
import ServerTesting
import Synchronization
import Testing

/// What another client saves while something is under way here, on each store.
@Suite("saves of others at a store", .serialized, .timeLimit(.minutes(5)))
struct StoreGuardTests {
    private static let folder = RemotePath(["folder"])

    @Test(
        "a folder is deleted with what is known of it, and not with anything else",
        arguments: Store.allCases
    )
    func knownContents(_ store: Store) async throws {
        let world = try await World(store)
        _ = try await world.client.createFolder(at: Self.folder)
        var contents = PlaceContents()
        contents.folders = [Self.folder]
        for name in ["a", "b", "c"] {
            let entry = try await world.upload(name, to: "folder", name)
            let revision = try #require(entry.revision)
            contents.files.append((Self.folder.appending(name), revision))
        }
        func delete(_ contents: PlaceContents) async -> ProviderError.Kind? {
            await kind {
                try await world.client.deleteFolder(
                    at: Self.folder,
                    holding: contents,
                    mark: nil
                )
            }
        }
        // Somebody else's new content, and a file that nobody here knows.
        _ = try await world.raw("PUT", "folder/b", body: Array("theirs".utf8))
        #expect(await delete(contents) == .preconditionFailed)
        #expect(try await world.text("folder", "b") == "theirs")
        let now = try await world.client.entry(at: Self.folder.appending("b")).revision
        contents.files[1].revision = try #require(now)
        _ = try await world.raw("PUT", "folder/new", body: Array("theirs".utf8))
        #expect(await delete(contents) == .preconditionFailed)
        #expect(try await world.names("folder") == ["a", "b", "c", "new"])
        let new = try await world.client.entry(at: Self.folder.appending("new")).revision
        contents.files.append((Self.folder.appending("new"), try #require(new)))
        #expect(await delete(contents) == nil)
        #expect(try await world.snapshot() == [])
    }

    /// A content during whose first reading something happens.
    private final class MeddledSource: ContentSource {
        private let bytes: BytesSource
        private let hook: Mutex<(@Sendable () async -> Void)?>
        var size: Int64 { bytes.size }

        init(_ bytes: [UInt8], _ hook: @escaping @Sendable () async -> Void) {
            self.bytes = BytesSource(bytes)
            self.hook = Mutex(hook)
        }

        func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
            let hook = hook.withLock { hook in
                defer { hook = nil }
                return hook
            }
            await hook?()
            return try await bytes.read(at: offset, count: count)
        }
    }

    @Test(
        "a save by somebody else while a large file is on its way is not written over",
        arguments: Store.allCases
    )
    func savesDuringUpload(_ store: Store) async throws {
        let world = try await World(store)
        let path = RemotePath(["large"])
        let first = try await world.upload("first", to: "large")
        let bytes = [UInt8](repeating: 7, count: 6 << 20)
        let content = MeddledSource(bytes) {
            _ = try? await world.raw("PUT", "large", body: Array("theirs".utf8))
        }
        let refused = await kind {
            _ = try await world.client.upload(
                world.upload(bytes, to: path, before: .file(first.revision), content: content),
                observer: SilentUploadObserver()
            )
        }
        #expect(refused == .preconditionFailed)
        #expect(try await world.text("large") == "theirs")
    }
}
