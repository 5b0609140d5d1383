import Foundation
import OortModel
import OortSimulators
import OortWebDAV
import Testing

@Suite("an account at an ownCloud 10", .timeLimit(.minutes(5)))
struct OwnCloudTests {
    @Test("it is recognised, and signed in to by an app password")
    func signIn() async throws {
        try await Cloud.with(isOwnCloud: true) { cloud in
            let server = try await WebDAVDiscovery.server(
                at: Cloud.url(cloud.simulator) + "/index.php/apps/files/?dir=/Photos",
                http: cloud.http
            )
            #expect(server.dialect == .owncloud10 && server.product == "ownCloud 10.15.0")
            #expect(server.address.folder == ["Photos"])
            #expect(cloud.account.address.userID == NextcloudSimulator.userID)
            #expect(cloud.account.displayName == "Ada Example")
            // It counts milliseconds.
            #expect(cloud.account.abilities.cloud?.pollSeconds == 30)
            let made = try await WebDAVDiscovery.appPassword(for: cloud.account, http: cloud.http)
            #expect(made == nil)
            let client = cloud.client()
            #expect(try await client.owner().id == cloud.account.ownerID)
            #expect(client.trash == nil && client.versions == nil && client.links == nil)
            await #expect(throws: WebDAVSignInError.self) {
                try await NextcloudLoginFlow.start(at: server, name: "Oort", http: cloud.http)
            }
        }
    }

    @Test("files go up, are replaced, moved and removed; ids stay, hashes are the server's own")
    func roundTrip() async throws {
        try await Cloud.with(isOwnCloud: true) { cloud in
            let client = cloud.client()
            _ = try await client.createFolder(at: .init(["docs"]))
            let first = try await client.put("first", to: "docs/a b#?%.txt")
            #expect(first.permissions == .all && first.key != nil)
            #expect(
                await failure { try await client.put("x", to: "docs/a b#?%.txt") } == .nameTaken
            )
            let second = try await client.put(
                "second",
                to: "docs/a b#?%.txt",
                before: .file(first.revision)
            )
            #expect(second.key == first.key && second.revision != first.revision)
            #expect(
                await failure {
                    try await client.put("x", to: "docs/a b#?%.txt", before: .file(first.revision))
                } == .preconditionFailed
            )
            let moved = try await client.move(
                .file,
                from: .init(["docs", "a b#?%.txt"]),
                to: .init(["moved"])
            )
            #expect(moved.key == first.key && moved.revision == second.revision)
            #expect(moved.hash == second.hash && moved.hash != nil)
            #expect(try await client.text("moved", revision: second.revision, range: 2..<4) == "co")
            #expect(await failure { try await client.put("x", to: "none/x") } == .parentNotFound)
            let copy = try await client.copy(from: .init(["moved"]), to: .init(["copy"]))
            #expect(copy.key != moved.key && copy.hash == moved.hash)
            #expect(
                await failure {
                    try await client.delete(.file, at: .init(["moved"]), revision: first.revision)
                } == .preconditionFailed
            )
            try await client.delete(.file, at: .init(["moved"]), revision: second.revision)
            #expect(try await client.names() == ["docs", "copy"])
            cloud.write("somebody else's", to: ["theirs"])
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.first { $0.name == "theirs" }?.hash != nil)
            try await client.put("x", to: "a.png")
            let picture = try await client.thumbnail(of: .init(["a.png"]), edge: 256)
            #expect(try await picture.collect(atMost: 1 << 20).starts(with: [0x89, 0x50]))
        }
    }

    @Test("content with another sum is refused, in one piece and in parts")
    func damage() async throws {
        try await Cloud.with(isOwnCloud: true) { cloud in
            let client = cloud.client(partSize: 1 << 20)
            func send(_ bytes: [UInt8], to name: String) async -> ProviderError.Kind? {
                await failure {
                    _ = try await client.upload(
                        PlaceUpload(
                            path: .init([name]),
                            before: .nothing,
                            size: Int64(bytes.count),
                            hash: ContentHash(
                                algorithm: .sha1,
                                value: String(repeating: "0", count: 40)
                            ),
                            modifiedTime: nil,
                            mimeType: nil,
                            content: BytesSource(bytes)
                        ),
                        observer: SilentUploadObserver()
                    )
                }
            }
            #expect(await send([1, 2, 3], to: "small") == .contentDamaged)
            #expect(
                await send([UInt8](repeating: 7, count: 2_500_000), to: "large") == .contentDamaged
            )
            #expect(try await client.names().isEmpty)
            let bytes = [UInt8](repeating: 8, count: 2_500_000)
            let entry = try await client.put(bytes, to: RemotePath(["large"]))
            #expect(entry.size == 2_500_000 && cloud.item("large")?.head?.content.bytes == bytes)
            #expect(
                await failure { try await client.put(bytes, to: RemotePath(["large"])) }
                    == .nameTaken
            )
            #expect(cloud.simulator.counts["PUT uploads"]?.calls ?? 0 >= 6)
        }
    }

    @Test("folders' tags tell of what changed below, and an old time is taken")
    func stamps() async throws {
        try await Cloud.with(isOwnCloud: true) { cloud in
            let client = cloud.client()
            cloud.write("x", to: ["a", "b", "file"])
            cloud.write("x", to: ["c", "file"])
            func stamps() async throws -> [FolderStamp?] {
                var found: [FolderStamp?] = []
                let folders: [RemotePath] = [.root, .init(["a"]), .init(["a", "b"]), .init(["c"])]
                for result in await client.stamps(of: folders) { found.append(try result.get()) }
                return found
            }
            let before = try await stamps()
            #expect(!before.contains(nil))
            cloud.write("other", to: ["a", "b", "file"])
            let after = try await stamps()
            #expect(zip(before, after).map { $0 != $1 } == [true, true, true, false])
            let timed = try await client.setModifiedTime(
                Timestamp(seconds: 1_600_000_000),
                of: .init(["a", "b", "file"]),
                revision: client.entry(at: .init(["a", "b", "file"])).revision
            )
            #expect(timed.modifiedTime?.seconds == 1_600_000_000)
        }
    }
}
