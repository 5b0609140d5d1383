import Foundation
import OortFTP
import OortModel
import OortTransport
import ServerTesting
import Synchronization
import Testing

/// What needs a server; one after the other, since some of it ends all of a server's connections.
@Suite("FTP servers", .timeLimit(.minutes(15)), .serialized)
enum FTPTests {}

/// What a program may rely on, against foreign servers.
extension FTPTests {
    @Suite("FTP at real servers")
    struct Client {
        private static func path(_ text: String) -> RemotePath { FTPWorld.path(text) }

        @Test("a file is made, read, replaced and removed", arguments: FTPServer.Kind.usable)
        func file(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                let client = world.client
                let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 * 7 + $0 >> 9) }
                let name = "/a b%#?;&\"*.bin"
                let made = try await world.upload(bytes, to: name)
                #expect(world.bytes(name) == bytes)
                #expect(made.size == 3_000_000)
                #expect(made.modifiedTime == Timestamp(seconds: 1_600_000_000))
                #expect(made.key != nil)
                #expect(world.names() == [String(name.dropFirst())])
                #expect(
                    try await client.listing(of: .root).entries.map(\.revision) == [made.revision]
                )
                #expect(
                    try await world.read(name, revision: made.revision, range: 100..<2100)
                        == Array(bytes[100..<2100])
                )
                #expect(
                    try await world.read(name, range: 2_900_000..<2_950_000)
                        == Array(bytes[2_900_000..<2_950_000])
                )
                #expect(try await world.read(name) == bytes)
                #expect(try await world.read(name, range: 4_000_000..<4_000_010).isEmpty)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o751],
                    ofItemAtPath: world.root + name
                )
                let new = try await world.upload([1, 2], to: name, .file(made.revision), time: 7)
                #expect(world.bytes(name) == [1, 2])
                #expect(new.modifiedTime == Timestamp(seconds: 7))
                if server.isProFTPD {
                    let attributes = try FileManager.default.attributesOfItem(
                        atPath: world.root + name
                    )
                    #expect(attributes[.posixPermissions] as? Int == 0o751)
                }
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await world.read(name, revision: made.revision)
                    } == .preconditionFailed
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await world.upload([3], to: name, .file(made.revision))
                    } == .preconditionFailed
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await world.upload([3], to: name)
                    } == .nameTaken
                )
                let path = Self.path(name)
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await client.delete(.file, at: path, revision: made.revision)
                    } == .preconditionFailed
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.setModifiedTime(
                            Timestamp(seconds: 1_111_111_111),
                            of: path,
                            revision: made.revision
                        )
                    } == .preconditionFailed
                )
                let later = try await client.setModifiedTime(
                    Timestamp(seconds: 1_234_567_890),
                    of: path,
                    revision: try await client.entry(at: path).revision
                )
                #expect(later.modifiedTime == Timestamp(seconds: 1_234_567_890))
                try await client.delete(.file, at: path, revision: later.revision)
                #expect(world.names() == [".oort-trash"])
                #expect(try await client.listing(of: .root).entries.isEmpty)
                // What is gone already is gone.
                try await client.delete(.file, at: path, revision: nil)
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.entry(at: path)
                    } == .notFound
                )
                #expect(try await world.upload([], to: "/empty").size == 0)
                #expect(world.bytes("/empty") == [])
                #expect(try await world.read("/empty").isEmpty)
            }
        }

        /// A content that notes the modes of all files at the server while its bytes are asked for.
        private final class WatchedContent: ContentSource {
            let size: Int64 = 1000
            let world: FTPWorld
            let modes = Mutex<[Int?]>([])

            init(_ world: FTPWorld) { self.world = world }

            func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
                modes.withLock { $0 += world.names().map { world.mode("/\($0)") } }
                return Array(repeating: 7, count: count)
            }
        }

        @Test(
            "what others may not read here, others at the server cannot read either, from the first byte",
            arguments: FTPServer.Kind.usable
        )
        func modes(kind: FTPServer.Kind) async throws {
            try await FTPWorld.with(kind) { world in
                let content = WatchedContent(world)
                let new = try await world.upload([], to: "/new", mode: 0o600, content: content)
                #expect(content.modes.withLock(\.self) == [0o600])
                #expect(world.names() == ["new"] && world.mode("/new") == 0o600)
                let next = WatchedContent(world)
                _ = try await world.upload(
                    [],
                    to: "/new",
                    .file(new.revision),
                    time: 1_600_000_001,
                    mode: kind.isProFTPD ? 0o644 : 0o600,
                    content: next
                )
                #expect(next.modes.withLock(\.self) == [0o600, 0o600])
                #expect(world.mode("/new") == 0o600)
                // To pyftpdlib modes are not asked for.
                guard kind.isProFTPD else { return }
                // What the server's umask, 022, takes away stays away, but for running what may be read.
                for (mode, wanted) in [0o755: 0o755, 0o775: 0o755, 0o666: 0o644, 0o640: 0o640] {
                    let path = "/mode\(mode)"
                    _ = try await world.upload([1], to: path, mode: UInt16(mode))
                    #expect(world.mode(path) == wanted, "\(mode)")
                    _ = try await world.client.createFolder(
                        at: FTPWorld.path(path + " folder"),
                        mode: UInt16(mode | 0o700)
                    )
                    #expect(world.mode(path + " folder") == wanted | 0o700, "\(mode)")
                }
                _ = try await world.upload([1], to: "/plain")
                #expect(world.mode("/plain") == 0o644)
            }
        }

        @Test("folders are made, listed, moved and removed", arguments: FTPServer.Kind.usable)
        func folders(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                let client = world.client
                let folder = try await client.createFolder(at: Self.path("/one"))
                #expect(folder.kind == .folder)
                #expect(folder.stamp != nil)
                for number in 0..<250 { try world.write("/one/file \(number)", "\(number)") }
                try world.write("/one/ü/deep", "deep")
                let listing = try await client.listing(of: Self.path("/one"))
                #expect(listing.entries.count == 251)
                #expect(listing.entries.filter { $0.kind == .folder }.map(\.name) == ["ü"])
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.createFolder(at: Self.path("/one"))
                    } == .nameTaken
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.createFolder(at: Self.path("/none/two"))
                    } == .parentNotFound
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await world.upload([1], to: "/none/two")
                    } == .parentNotFound
                )
                _ = try await client.createFolder(at: Self.path("/two"))
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.move(
                            .folder,
                            from: Self.path("/one"),
                            to: Self.path("/two")
                        )
                    } == .nameTaken
                )
                let before = await client.stamps(of: ["/one", "/two", "/none"].map(Self.path))
                #expect(try before[0].get() == listing.stamp)
                #expect(throws: ProviderError.self) { try before[2].get() }
                let moved = try await client.move(
                    .folder,
                    from: Self.path("/one"),
                    to: Self.path("/two/three")
                )
                #expect(moved.key == folder.key)
                #expect(world.bytes("/two/three/ü/deep") == Array("deep".utf8))
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.listing(of: Self.path("/one"))
                    } == .notFound
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.listing(of: Self.path("/two/three/file 1"))
                    } == .notAFolder
                )
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)],
                    ofItemAtPath: world.root + "/two"
                )
                let after = await client.stamps(of: [Self.path("/two")])
                #expect(try after[0].get() != before[1].get())
                try await client.delete(.folder, at: Self.path("/two"), revision: nil)
                #expect(world.names() == [".oort-trash"])
                #expect(world.mode("/.oort-trash") == 0o700)
                // Somebody empties it for good; the next one is closed as well.
                try FileManager.default.removeItem(atPath: world.root + "/.oort-trash")
                _ = try await client.createFolder(at: Self.path("/three"))
                try await client.delete(.folder, at: Self.path("/three"), revision: nil)
                #expect(world.mode("/.oort-trash") == 0o700)
            }
        }

        @Test(
            "what is in the trash goes after 30 days, whosever clock is wrong",
            arguments: FTPServer.Kind.usable,
            [0, 3650]
        )
        func oldDeletions(kind server: FTPServer.Kind, daysAhead: Int64) async throws {
            try await FTPWorld.with(server) { world in
                let day: Int64 = 86_400
                let now = Timestamp.now.seconds
                // The day that the deleting machine wrote, and the day at the server.
                for (name, written, told) in [("old", 40, 40), ("new", 1, 1), ("reset", 1, 20_000)]
                {
                    let folder = "/.oort-trash/\(now - Int64(written) * day)-\(name)"
                    try world.write(folder + "/file", name)
                    try FileManager.default.setAttributes(
                        [
                            .modificationDate: Date(
                                timeIntervalSince1970: Double(now - Int64(told) * day)
                            )
                        ],
                        ofItemAtPath: world.root + folder
                    )
                }
                try world.write("/.oort-trash/\(Int64.max)-x/file", "a stranger's")
                try world.write("/file", "deleted today")
                let ahead = world.another(now: { Timestamp(seconds: now + daysAhead * day) })
                try await ahead.delete(.file, at: Self.path("/file"), revision: nil)
                func kept() -> Set<String> {
                    Set(
                        world.names("/.oort-trash").compactMap {
                            $0.split(separator: "-").last.map(String.init)
                        }
                    )
                }
                while kept().contains("old") { try await Task.sleep(for: .milliseconds(5)) }
                // What goes too goes right after.
                for _ in 0..<20 { _ = try await ahead.listing(of: .root) }
                #expect(
                    kept().isSuperset(of: daysAhead == 0 ? ["new", "reset", "x"] : ["new", "x"])
                )
                await ahead.close()
            }
        }

        @Test(
            "what cannot go to the trash stays, and without a trash goes for good",
            arguments: FTPServer.Kind.usable
        )
        func noTrash(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                try world.write("/file", "content")
                try world.write("/folder/file", "content")
                // No folder can be made of that name.
                try world.write("/.oort-trash", "a file")
                for (what, name) in [(PlaceEntry.Kind.file, "/file"), (.folder, "/folder")] {
                    #expect(
                        await kind { () async throws(ProviderError) in
                            try await world.client.delete(what, at: Self.path(name), revision: nil)
                        } == .noPermission
                    )
                }
                #expect(world.bytes("/file") == Array("content".utf8))
                #expect(world.bytes("/folder/file") == Array("content".utf8))
                let client = world.another(keepsTrash: false)
                #expect(client.trash == nil)
                try await client.delete(.file, at: Self.path("/file"), revision: nil)
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await client.delete(.folder, at: Self.path("/folder"), revision: nil)
                    } == .unsupported
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await client.removeEmptyFolder(at: Self.path("/folder"))
                    } == .locked
                )
                try await client.delete(.file, at: Self.path("/folder/file"), revision: nil)
                for _ in 0..<2 { try await client.removeEmptyFolder(at: Self.path("/folder")) }
                #expect(world.names() == [".oort-trash"])
                await client.close()
            }
        }

        @Test(
            "what was deleted is listed with its place and comes back",
            arguments: FTPServer.Kind.usable
        )
        func trash(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                let client = world.client
                let trash = try #require(client.trash)
                let root = ItemReference(id: ItemID(""), path: .root)
                #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
                for path in ["/100% @ ü/a%2Fb/note.txt", "/top"] {
                    try world.write(path, path)
                    try await client.delete(.file, at: Self.path(path), revision: nil)
                }
                let all = try await trash.entries(below: root, page: nil).entries
                #expect(Set(all.map(\.name)) == ["note.txt", "top"])
                let note = try #require(all.first { $0.name == "note.txt" })
                #expect(note.path == Self.path("/100% @ ü/a%2Fb/note.txt"))
                #expect(note.size == Int64("/100% @ ü/a%2Fb/note.txt".utf8.count))
                #expect(note.deletedTime != nil)
                try world.write("/back", "theirs")
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await trash.restore(note, to: Placement(folder: root, name: "back"))
                    } == .nameTaken
                )
                #expect(world.bytes("/back") == Array("theirs".utf8))
                try await trash.restore(note, to: Placement(folder: root, name: "note"))
                #expect(world.bytes("/note") == Array("/100% @ ü/a%2Fb/note.txt".utf8))
                #expect(world.names("/.oort-trash").count == 1)
                var forged = note
                forged.id = "../back"
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await trash.restore(forged, to: Placement(folder: root, name: "moved"))
                    } != nil
                )
                #expect(world.bytes("/back") != nil)
            }
        }

        @Test("names keep their spaces and their bytes", arguments: FTPServer.Kind.usable)
        func names(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                let client = world.client
                let names = [
                    " in front", "behind ", "\u{301}x", "日本語", "-l", "~", "a\\b", "%41", "{x}",
                ]
                for name in names {
                    _ = try await client.createFolder(at: RemotePath([name]))
                    _ = try await world.upload(Array(name.utf8), to: "/\(name)/\(name)")
                    let inside = try await client.listing(of: RemotePath([name]))
                    #expect(inside.entries.map { Array($0.name.utf8) } == [Array(name.utf8)])
                    #expect(try await world.read("/\(name)/\(name)") == Array(name.utf8))
                }
                let listing = try await client.listing(of: .root)
                #expect(
                    Set(listing.entries.map { ExactText($0.name) })
                        == Set(names.map(ExactText.init))
                )
                for name in ["a\nb", "a\rb", "a\u{1B}b"] {
                    #expect(
                        await kind { () async throws(ProviderError) in
                            _ = try await client.createFolder(at: RemotePath([name]))
                        } == .nameRefused
                    )
                    #expect(client.traits.provider.names.refusal(name, .file, 0) != nil)
                    // Somebody else's is not shown, and hides nothing.
                    try world.write("/\(name)", "x")
                }
                #expect(try await client.listing(of: .root).entries.count == names.count)
                guard server.isProFTPD else { return }
                let raw = Array(world.root.utf8) + Array("/l".utf8) + [0xE4, 0x74]
                #expect(
                    FileManager.default.createFile(atPath: world.root + "/plain", contents: nil)
                )
                let path = raw.map { CChar(bitPattern: $0) } + [0]
                #expect(unsafe rename(world.root + "/plain", path) == 0)
                let found = try await client.listing(of: .root).entries.map(\.name)
                #expect(found.contains("l‛E4t"))
                _ = try await client.move(.file, from: Self.path("/l‛E4t"), to: Self.path("/plain"))
                #expect(world.names().contains("plain"))
            }
        }

        @Test("links are not shown, or lead nowhere without end", arguments: FTPServer.Kind.usable)
        func links(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                try world.write("/a/file", "x")
                try FileManager.default.createSymbolicLink(
                    atPath: world.root + "/a/loop",
                    withDestinationPath: "."
                )
                var place = Self.path("/a")
                var depth = 0
                while try await world.client.listing(of: place).entries.contains(where: {
                    $0.name == "loop"
                }) {
                    place = place.appending("loop")
                    depth += 1
                    try #require(depth < 12)
                }
                #expect(server == .pyftpdlib || depth == 0)
            }
        }

        @Test("a transfer that is cut off is an error, and the next one connects anew")
        func cutOff() async throws {
            try await FTPWorld.with(.proftpd) { world in
                let file = world.root + "/large"
                #expect(FileManager.default.createFile(atPath: file, contents: nil))
                let handle = try FileHandle(forWritingTo: URL(filePath: file))
                try handle.truncate(atOffset: 256 << 20)
                try handle.close()
                let stream = try await world.client.read(
                    Self.path("/large"),
                    revision: nil,
                    range: 0..<1 << 40
                )
                #expect(try await stream.next() != nil)
                await world.server.cutSessions()
                #expect(
                    await kind { () async throws(ProviderError) in
                        while try await stream.next() != nil {}
                    } != nil
                )
                // That the connections are new goes unnoticed.
                #expect(try await world.client.entry(at: Self.path("/large")).size == 256 << 20)
                await world.server.cutSessions()
                _ = try await world.client.createFolder(at: Self.path("/folder"))
                await world.server.cutSessions()
                #expect(try await world.upload([1], to: "/folder/file").size == 1)
                await world.server.cutSessions()
                #expect(try await world.client.listing(of: Self.path("/folder")).entries.count == 1)
            }
        }

        @Test("what is let go ends its transfer, and others have the connection then")
        func letGo() async throws {
            try await FTPWorld.with(.proftpd) { world in
                let file = world.root + "/large"
                #expect(FileManager.default.createFile(atPath: file, contents: nil))
                let handle = try FileHandle(forWritingTo: URL(filePath: file))
                try handle.truncate(atOffset: 256 << 20)
                try handle.close()
                // More than there are connections.
                for _ in 0..<5 {
                    let stream = try await world.client.read(
                        Self.path("/large"),
                        revision: nil,
                        range: 0..<1 << 40
                    )
                    #expect(try await stream.next() != nil)
                }
                let waiting = Task { try await world.read("/large") }
                waiting.cancel()
                _ = try? await waiting.value
                #expect(
                    try await world.read("/large", range: 0..<10) == Array(repeating: 0, count: 10)
                )
            }
        }

        @Test("what changes while it is read is an error at the end")
        func changedWhileRead() async throws {
            try await FTPWorld.with(.proftpd) { world in
                let bytes = Array(repeating: UInt8(1), count: 64 << 20)
                let made = try await world.upload(bytes, to: "/file")
                let stream = try await world.client.read(
                    Self.path("/file"),
                    revision: made.revision,
                    range: 0..<1 << 40
                )
                #expect(try await stream.next() != nil)
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)],
                    ofItemAtPath: world.root + "/file"
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        while try await stream.next() != nil {}
                    } == .preconditionFailed
                )
            }
        }

        @Test("an upload that fails leaves nothing", arguments: FTPServer.Kind.usable)
        func failedUpload(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await world.upload([], to: "/file", content: FailingSource())
                    } == .localContent
                )
                // The remains go behind the rest.
                for _ in 0..<600 where !world.names().isEmpty {
                    try await Task.sleep(for: .milliseconds(100))
                }
                #expect(world.names().isEmpty)
                #expect(try await world.upload([1], to: "/file").size == 1)
            }
        }

        /// A content whose second half cannot be read.
        private struct FailingSource: ContentSource {
            let size: Int64 = 4 << 20

            func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
                guard offset < 2 << 20 else {
                    throw ProviderError(.localContent, detail: "a bad disk")
                }
                return Array(repeating: 1, count: count)
            }
        }

        @Test("temporary files that nobody goes on with go, and younger ones stay")
        func leftovers() async throws {
            try await FTPWorld.with(.proftpd) { world in
                let old = String(Timestamp.now.seconds - 8 * 86_400, radix: 16)
                let young = String(Timestamp.now.seconds - 86_400, radix: 16)
                for second in [old, young] { try world.write("/.oort-\(second)-1.part", "x") }
                try world.write("/.oort-\(old)-2.part", "x")
                try world.write("/.oort-\(old)-2.part.old", "x")
                // A long upload that goes on.
                try world.write("/.oort-\(old)-3.part", "x")
                let past = Date(timeIntervalSinceNow: -8 * 86_400)
                for name in world.names() where !name.hasSuffix("-3.part") {
                    try FileManager.default.setAttributes(
                        [.modificationDate: past],
                        ofItemAtPath: "\(world.root)/\(name)"
                    )
                }
                #expect(
                    try await world.client.listing(of: .root).entries.map(\.name)
                        == [".oort-\(old)-2.part.old"]
                )
                for _ in 0..<600 where world.names().contains(".oort-\(old)-1.part") {
                    try await Task.sleep(for: .milliseconds(100))
                }
                #expect(
                    Set(world.names()) == [
                        ".oort-\(young)-1.part", ".oort-\(old)-2.part", ".oort-\(old)-2.part.old",
                        ".oort-\(old)-3.part",
                    ]
                )
            }
        }

        @Test("many transfers at once share few connections", arguments: FTPServer.Kind.usable)
        func many(kind server: FTPServer.Kind) async throws {
            try await FTPWorld.with(server) { world in
                await withTaskGroup(of: Void.self) { group in
                    for number in 0..<12 {
                        group.addTask {
                            let bytes = Array(repeating: UInt8(number), count: 100_000 + number)
                            let made = try? await world.upload(bytes, to: "/file \(number)")
                            #expect(made?.size == Int64(bytes.count))
                            let read = try? await world.read(
                                "/file \(number)",
                                revision: made?.revision
                            )
                            #expect(read == bytes)
                        }
                    }
                }
                let listing = try await world.client.listing(of: .root)
                #expect(listing.entries.count == 12)
            }
        }
    }

}

/// What a person hears at the sign-in.
extension FTPTests {
    @Suite("Signing in at FTP servers")
    struct SignIn {
        private func reason(
            _ server: FTPServer,
            _ address: FTPAddress,
            password: String = FTPServer.password,
            settings: FTPSettings? = nil
        ) async -> FTPSignIn.Failure.Reason? {
            do throws(FTPSignIn.Failure) {
                _ = try await FTPSignIn.account(
                    at: address,
                    password: password,
                    settings: settings ?? server.settings
                )
                return nil
            } catch { return error.reason }
        }

        @Test("what a server can do is found out", arguments: FTPServer.Kind.usable)
        func abilities(kind: FTPServer.Kind) async throws {
            let server = try await FTPServers.shared.running(kind)
            let account = try await FTPSignIn.account(
                at: server.address(),
                password: FTPServer.password,
                settings: server.settings
            )
            #expect(account.setsTimes)
            #expect(!account.asksForFacts)
            let client = FTPClient(
                account,
                secret: FixedToken(FTPServer.password),
                settings: server.settings
            )
            let owner = try await client.owner()
            #expect(!owner.id.contains("encrypted"))
            #expect(owner.displayName.contains("not encrypted") == (kind == .pyftpdlib))
            await client.close()
        }

        @Test("each refusal has its reason")
        func refusals() async throws {
            let server = try await FTPServers.shared.running(.proftpd)
            #expect(await reason(server, server.address(), password: "wrong") == .refused)
            #expect(await reason(server, server.address(user: "eve")) == .refused)
            #expect(await reason(server, server.address(), settings: FTPSettings()) == .untrusted)
            #expect(await reason(server, server.address("none")) == .noFolder)
            var plain = server.address()
            plain.security = .plain
            #expect(await reason(server, plain) != nil)
            var nobody = server.address()
            nobody.port = 1
            #expect(await reason(server, nobody) == .unreachable)
        }

        @Test("a server without TLS, or without listings for programs, is refused")
        func old() async throws {
            guard FTPServer.pythonTools != nil else { return }
            let server = try await FTPServers.shared.running(.old)
            #expect(await reason(server, server.address()) == .noMachineListings)
            var encrypted = server.address()
            encrypted.security = .explicit
            #expect(await reason(server, encrypted) == .notEncrypted)
        }

        @Test("a password that was refused is not tried again")
        func oneTry() async throws {
            let server = try await FTPServers.shared.running(.proftpd)
            let user = "eve-\(UUID().uuidString.prefix(8).lowercased())"
            let account = FTPAccount(
                address: server.address(user: user),
                setsTimes: true,
                asksForFacts: false
            )
            let client = FTPClient(account, secret: FixedToken("wrong"), settings: server.settings)
            #expect(
                await kind { () async throws(ProviderError) in _ = try await client.owner() }
                    == .signedOut
            )
            for _ in 0..<6000 where !server.log.contains(user) {
                try await Task.sleep(for: .milliseconds(10))
            }
            let first = server.log.components(separatedBy: user).count
            #expect(first > 1)
            for _ in 0..<3 {
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.listing(of: .root)
                    } == .signedOut
                )
            }
            #expect(server.log.components(separatedBy: user).count == first)
            await client.close()
        }
    }
}
