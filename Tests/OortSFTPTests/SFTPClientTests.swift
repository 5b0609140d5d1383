import Foundation
import OortModel
import OortProcesses
import OortSFTP
import ServerTesting
import Testing

/// What a program may rely on, against OpenSSH's own server.
@Suite("SFTP at a real server", .timeLimit(.minutes(15)), .serialized)
struct SFTPClientTests {
    /// The server as it is today, and one that has none of OpenSSH's newer extensions.
    static let subsystems = [
        "internal-sftp",
        "/usr/lib/openssh/sftp-server -P posix-rename,limits,copy-data,fsync,lsetstat",
    ]

    private static func path(_ text: String) -> RemotePath {
        RemotePath(text.split(separator: "/").map(String.init))
    }

    private func upload(
        _ bytes: [UInt8],
        to path: String,
        _ before: PlaceUpload.Before = .nothing,
        time: Int64 = 1_600_000_000,
        mode: UInt16? = nil,
        by client: SFTPClient
    ) async throws(ProviderError) -> PlaceEntry {
        var hasher = client.makeHasher()
        hasher.update(bytes[...])
        return try await client.upload(
            PlaceUpload(
                path: Self.path(path),
                before: before,
                size: Int64(bytes.count),
                hash: hasher.finalize(),
                modifiedTime: Timestamp(seconds: time),
                mimeType: nil,
                mode: mode,
                content: BytesSource(bytes)
            ),
            observer: SilentUploadObserver()
        )
    }

    @Test("what is new gets its mode, what is replaced keeps its own", arguments: subsystems)
    func modes(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let files = FileManager.default
            func mode(_ path: String) throws -> Int? {
                try files.attributesOfItem(atPath: server.root + path)[.posixPermissions] as? Int
            }
            // The server's umask is 022.
            for (wanted, made) in [0o600: 0o600, 0o640: 0o640, 0o755: 0o755, 0o664: 0o644] {
                let path = "/file\(wanted)"
                _ = try await upload([1], to: path, mode: UInt16(wanted), by: client)
                #expect(try mode(path) == made, "\(wanted)")
                let folder = "/folder\(wanted)"
                _ = try await client.createFolder(
                    at: Self.path(folder),
                    mode: UInt16(wanted | 0o700)
                )
                #expect(try mode(folder) == made | 0o700, "\(wanted)")
            }
            for kept in [0o600, 0o664, 0o777] {
                let path = "/kept\(kept)"
                let old = try await upload([1], to: path, mode: 0o644, by: client)
                try files.setAttributes([.posixPermissions: kept], ofItemAtPath: server.root + path)
                _ = try await upload(
                    [2],
                    to: path,
                    .file(old.revision),
                    time: 1_600_000_001,
                    mode: 0o644,
                    by: client
                )
                #expect(try mode(path) == kept)
            }
        }
    }

    @Test("a file is made, read, replaced and removed", arguments: subsystems)
    func file(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 * 7) }
            let made = try await upload(bytes, to: "/a b%#?.bin", by: client)
            #expect(server.bytes("/a b%#?.bin") == bytes)
            #expect(made.size == 300_000)
            #expect(made.modifiedTime == Timestamp(seconds: 1_600_000_000))
            #expect(server.names() == ["a b%#?.bin"])
            let path = Self.path("a b%#?.bin")
            let some = try await client.read(path, revision: made.revision, range: 100..<2100)
            #expect(try await some.collect(atMost: 1 << 20) == Array(bytes[100..<2100]))
            let whole = try await client.read(path, revision: nil, range: 0..<1 << 40)
            #expect(try await whole.collect(atMost: 1 << 20) == bytes)
            let beyond = try await client.read(path, revision: nil, range: 400_000..<400_010)
            #expect(try await beyond.collect(atMost: 10).isEmpty)
            let new = try await upload(
                [1, 2],
                to: "/a b%#?.bin",
                .file(made.revision),
                time: 1_600_000_001,
                by: client
            )
            #expect(server.bytes("/a b%#?.bin") == [1, 2])
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.read(path, revision: made.revision, range: 0..<2)
                } == .preconditionFailed
            )
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await upload([3], to: "/a b%#?.bin", .file(made.revision), by: client)
                } == .preconditionFailed
            )
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await upload([3], to: "/a b%#?.bin", by: client)
                } == .nameTaken
            )
            #expect(
                await kind { () async throws(ProviderError) in
                    try await client.delete(.file, at: path, revision: made.revision)
                } == .preconditionFailed
            )
            #expect(server.names() == ["a b%#?.bin"])
            try await client.delete(.file, at: path, revision: new.revision)
            #expect(server.names() == [".oort-trash"])
            let kept = server.names("/.oort-trash").flatMap { server.names("/.oort-trash/\($0)") }
            #expect(kept == ["a b%#?.bin"])
            #expect(try await client.listing(of: .root).entries.isEmpty)
            // What is gone already is gone.
            try await client.delete(.file, at: path, revision: nil)
        }
    }

    @Test(
        "who reads at several places of a file opens it once, and reads the revision that is meant"
    )
    func places() async throws {
        let log = FileManager.default.temporaryDirectory.path + "/sftp-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: log) }
        let program = "/usr/lib/openssh/sftp-server -e -l VERBOSE 2>>\(log)"
        try await SSHServer.with(subsystem: program) { server, client in
            let (file, path) = ("/film", Self.path("/film"))
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            let first = try await upload(bytes, to: file, time: 1_600_000_000, by: client).revision
            func opened() -> Int {
                let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
                let line = "open \"\(server.root)\(file)\" flags READ"
                return text.components(separatedBy: line).count - 1
            }
            func part(_ start: Int, _ revision: Revision?) async throws -> [UInt8] {
                let range = Int64(start)..<Int64(start) + 4096
                let stream = try await client.read(path, revision: revision, range: range)
                return try await stream.collect(atMost: 1 << 20)
            }
            for start in [10_000, 200_000, 0, 299_000] {
                #expect(try await part(start, first) == Array(bytes[start...].prefix(4096)))
            }
            #expect(opened() == 1)
            // Who has what was wanted of one part asks for the next while that one's stream has not ended.
            let ranges = [100..<104, 150_000..<200_000, 7..<9].map {
                Int64($0.lowerBound)..<Int64($0.upperBound)
            }
            var streams: [ByteStream] = []
            for range in ranges {
                let stream = try await client.read(path, revision: first, range: range)
                _ = try await stream.next()
                streams.append(stream)
            }
            #expect(opened() == 1)
            streams = []

            // Somebody writes it in place: what is open is another revision by now.
            let handle = try #require(FileHandle(forWritingAtPath: server.root + file))
            try handle.write(contentsOf: Data("other".utf8))
            try handle.close()
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.read(path, revision: first, range: 0..<10)
                } == .preconditionFailed
            )
            #expect(opened() == 2)

            // This program replaces it and moves it: nothing is kept open at either place.
            let seen = try await client.entry(at: path).revision
            let second = try await upload(
                bytes,
                to: file,
                .file(seen),
                time: 1_600_000_001,
                by: client
            )
            #expect(try await part(5_000, second.revision) == Array(bytes[5_000..<9_096]))
            let moved = Self.path("/moved")
            _ = try await client.move(.file, from: path, to: moved)
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.read(path, revision: second.revision, range: 0..<10)
                } == .notFound
            )
            let there = try await client.read(moved, revision: second.revision, range: 7..<9)
            #expect(try await there.collect(atMost: 10) == [1, 1])

            // What is being read while another file takes its place is not taken for that one, though size
            // and time are the same.
            let others = bytes.map { $0 &+ 1 }
            let third = try await upload(others, to: "/other", time: 1_600_000_001, by: client)
            #expect(third.revision == second.revision)
            let slow = try await client.read(moved, revision: second.revision, range: 0..<4096)
            _ = try await client.move(.file, from: moved, to: path)
            _ = try await client.move(.file, from: Self.path("/other"), to: moved)
            #expect(try await slow.collect(atMost: 1 << 20) == Array(bytes[..<4096]))
            let replaced = try await client.read(moved, revision: third.revision, range: 7..<9)
            #expect(try await replaced.collect(atMost: 10) == [2, 2])

            // After a broken connection it is opened anew.
            server.cutSessions()
            for tries in 0..<3 {
                do throws(ProviderError) {
                    let again = try await client.read(
                        moved,
                        revision: second.revision,
                        range: 14..<15
                    )
                    #expect(try await again.collect(atMost: 10) == [3])
                    break
                } catch {
                    #expect(error.isTransient)
                    try #require(tries < 2)
                }
            }
        }
    }

    @Test("no name leads out of its folder", arguments: ["..", ".", "", "a/b", "../../a"])
    func namesThatLeadElsewhere(_ name: String) async throws {
        try await SSHServer.with(subsystem: Self.subsystems[0]) { server, client in
            try server.write("/folder/a/b", "theirs")
            for parts in [["folder", name], ["folder", name, "new"]] {
                let path = RemotePath(parts)
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.createFolder(at: path)
                    } == .nameRefused
                )
                #expect(
                    await kind { () async throws(ProviderError) in
                        try await client.delete(.folder, at: path, revision: nil)
                    } == .nameRefused
                )
            }
            #expect(server.names() == ["folder"])
            #expect(server.names("/folder") == ["a"])
            #expect(server.bytes("/folder/a/b") == Array("theirs".utf8))
        }
    }

    @Test("what is in the trash goes after 30 days, whosever clock is wrong", arguments: [0, 3650])
    func oldDeletions(daysAhead: Int64) async throws {
        try await SSHServer.with(subsystem: Self.subsystems[0]) { server, _ in
            let day: Int64 = 86_400
            let now = Timestamp.now.seconds
            // The day that the deleting machine wrote, and the day at the server.
            for (name, written, told) in [("old", 40, 40), ("new", 1, 1), ("reset", 1, 20_000)] {
                let folder = "/.oort-trash/\(now - Int64(written) * day)-\(name)"
                try server.write(folder + "/file", name)
                try FileManager.default.setAttributes(
                    [
                        .modificationDate: Date(
                            timeIntervalSince1970: Double(now - Int64(told) * day)
                        )
                    ],
                    ofItemAtPath: server.root + folder
                )
            }
            try server.write("/.oort-trash/\(Int64.max)-x/file", "a stranger's")
            try server.write("/file", "deleted today")
            let ahead = server.client(now: { Timestamp(seconds: now + daysAhead * day) })
            try await ahead.delete(.file, at: Self.path("/file"), revision: nil)
            func kept() -> Set<String> {
                Set(
                    server.names("/.oort-trash").compactMap {
                        $0.split(separator: "-").last.map(String.init)
                    }
                )
            }
            while kept().contains("old") { try await Task.sleep(for: .milliseconds(5)) }
            // What goes too goes right after.
            for _ in 0..<20 { _ = try await ahead.listing(of: .root) }
            #expect(kept().isSuperset(of: daysAhead == 0 ? ["new", "reset", "x"] : ["new", "x"]))
            await ahead.close()
        }
    }

    @Test("a link goes to the trash as what it is, and comes back", arguments: subsystems)
    func trashedLink(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            try server.write("/target", "content")
            try server.link("/link", to: "target")
            let place = Self.path("/link.rclonelink")
            let link = try await client.entry(at: place)
            try await client.delete(.file, at: place, revision: link.revision)
            #expect(server.names() == [".oort-trash", "target"])
            let trash = try #require(client.trash)
            let root = ItemReference(id: ItemID(""), path: .root)
            let all = try await trash.entries(below: root, page: nil).entries
            #expect(all.map(\.path) == [place])
            let back = Placement(folder: root, name: "back.rclonelink")
            for entry in all { try await trash.restore(entry, to: back) }
            #expect(
                try await client.entry(at: Self.path("/back.rclonelink")).revision == link.revision
            )
            #expect(server.bytes("/back") == Array("content".utf8))
            #expect(server.names("/.oort-trash").isEmpty)
        }
    }

    @Test("what was deleted is listed with its place and comes back", arguments: subsystems)
    func trash(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let trash = try #require(client.trash)
            let root = ItemReference(id: ItemID(""), path: .root)
            #expect(try await trash.entries(below: root, page: nil).entries.isEmpty)
            let long = String(repeating: "long ", count: 45)
            for path in ["/100% @ ü/a%2Fb/note.txt", "/top", "/\(long)/\(long)/deep"] {
                try server.write(path, path)
                try await client.delete(.file, at: Self.path(path), revision: nil)
            }
            let all = try await trash.entries(below: root, page: nil).entries
            #expect(Set(all.map(\.name)) == ["note.txt", "top", "deep"])
            let note = try #require(all.first { $0.name == "note.txt" })
            #expect(note.path == Self.path("/100% @ ü/a%2Fb/note.txt"))
            #expect(note.size == Int64("/100% @ ü/a%2Fb/note.txt".utf8.count))
            #expect(note.kind == .file)
            #expect(note.deletedTime != nil)
            #expect(all.first { $0.name == "top" }?.path == Self.path("/top"))
            // A place too long for one name.
            let deep = try #require(all.first { $0.name == "deep" })
            #expect(deep.path == Self.path("/\(long)/\(long)/deep"))
            let folder = ItemReference(id: ItemID(""), path: Self.path("/100% @ ü/a%2Fb"))
            try server.write("/100% @ ü/a%2Fb/note.txt", "theirs")
            #expect(
                await kind { () async throws(ProviderError) in
                    try await trash.restore(note, to: Placement(folder: folder, name: "note.txt"))
                } == .nameTaken
            )
            #expect(server.bytes("/100% @ ü/a%2Fb/note.txt") == Array("theirs".utf8))
            try await trash.restore(note, to: Placement(folder: root, name: "back"))
            #expect(server.bytes("/back") == Array("/100% @ ü/a%2Fb/note.txt".utf8))
            try await trash.restore(deep, to: Placement(folder: root, name: "deep"))
            #expect(try await trash.entries(below: root, page: nil).entries.count == 1)
            #expect(server.names("/.oort-trash").count == 1)
            var forged = note
            forged.id = "../back"
            #expect(
                await kind { () async throws(ProviderError) in
                    try await trash.restore(forged, to: Placement(folder: root, name: "moved"))
                } != nil
            )
            #expect(server.bytes("/back") != nil)
        }
    }

    @Test("folders are made, listed, moved and removed with all they hold", arguments: subsystems)
    func folders(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let folder = try await client.createFolder(at: Self.path("/one"))
            #expect(folder.kind == .folder)
            #expect(folder.stamp != nil)
            for number in 0..<250 { try server.write("/one/file \(number)", "\(number)") }
            try server.write("/one/ü/deep", "deep")
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
            _ = try await client.move(.folder, from: Self.path("/one"), to: Self.path("/two/three"))
            #expect(server.bytes("/two/three/ü/deep") == Array("deep".utf8))
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
            try await client.delete(.folder, at: Self.path("/two"), revision: nil)
            #expect(server.names() == [".oort-trash"])
            let thorough = server.client(keepsTrash: false)
            try server.write("/x/y/z", "z")
            try FileManager.default.createSymbolicLink(
                atPath: server.root + "/x/link",
                withDestinationPath: server.folder
            )
            // The server is not asked to remove entries that were never seen here.
            let refusal = await kind { () async throws(ProviderError) in
                try await thorough.delete(.folder, at: Self.path("/x"), revision: nil)
            }
            #expect(refusal == .unsupported)
            #expect(server.names("/x") == ["link", "y"])
            for path in ["/x/link.rclonelink", "/x/y/z"] {
                try await thorough.delete(.file, at: Self.path(path), revision: nil)
            }
            for path in ["/x/y", "/x"] {
                try await thorough.removeEmptyFolder(at: Self.path(path))
            }
            #expect(server.names() == [".oort-trash"])
            #expect(FileManager.default.fileExists(atPath: server.folder + "/host"))
            await thorough.close()
        }
    }

    @Test("stamps are new when an entry comes, and come for many folders at once")
    func stamps() async throws {
        try await SSHServer.with { server, client in
            try server.write("/a/x", "x")
            try server.write("/b/x", "x")
            let folders = ["/a", "/b", "/none"].map(Self.path)
            let before = await client.stamps(of: folders)
            let listed = try await client.listing(of: folders[0])
            #expect(try before[0].get() == listed.stamp)
            #expect(throws: ProviderError.self) { try before[2].get() }
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_500_000_000)],
                ofItemAtPath: server.root + "/b"
            )
            let after = await client.stamps(of: folders)
            #expect(try after[0].get() == before[0].get())
            #expect(try after[1].get() != before[1].get())
        }
    }

    @Test("links are files that hold their target, in both directions", arguments: subsystems)
    func links(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let files = FileManager.default
            try files.createSymbolicLink(
                atPath: server.root + "/theirs",
                withDestinationPath: "../no where"
            )
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.map(\.name) == ["theirs.rclonelink"])
            let path = Self.path("/theirs.rclonelink")
            let stream = try await client.read(
                path,
                revision: listing.entries.first?.revision,
                range: 0..<1000
            )
            #expect(try await stream.collect(atMost: 1000) == Array("../no where".utf8))
            _ = try await upload(Array("a/b".utf8), to: "/ours.rclonelink", by: client)
            #expect(try files.destinationOfSymbolicLink(atPath: server.root + "/ours") == "a/b")
            _ = try await client.move(.file, from: path, to: Self.path("/moved.rclonelink"))
            #expect(
                try files.destinationOfSymbolicLink(atPath: server.root + "/moved")
                    == "../no where"
            )
            try await client.delete(.file, at: Self.path("/moved.rclonelink"), revision: nil)
            #expect(server.names() == [".oort-trash", "ours"])
        }
    }

    @Test("names that are no UTF-8 show, are read, and are renamed")
    func names() async throws {
        try await SSHServer.with { server, client in
            let script = "printf x > \"$(printf 'latin\\351\\342\\200\\233')\""
            var shell = Program("/bin/sh", ["-c", script])
            shell.folder = server.root
            #expect(Program.reap(try shell.spawn()).isSuccess)
            let entries = try await client.listing(of: .root).entries
            #expect(entries.map(\.name) == ["latin\u{201B}E9\u{201B}\u{201B}"])
            let name = try #require(entries.first?.name)
            let stream = try await client.read(RemotePath([name]), revision: nil, range: 0..<10)
            #expect(try await stream.collect(atMost: 10) == Array("x".utf8))
            _ = try await client.move(.file, from: RemotePath([name]), to: RemotePath(["ü"]))
            #expect(server.names() == ["ü"])
        }
    }

    @Test("an upload that is cut goes on where it stood; nobody sees a part of it")
    func resumed() async throws {
        try await SSHServer.with { server, client in
            let bytes = (0..<(24 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 13) }
            var hasher = client.makeHasher()
            hasher.update(bytes[...])
            var upload = PlaceUpload(
                path: RemotePath(["big"]),
                before: .nothing,
                size: Int64(bytes.count),
                hash: hasher.finalize(),
                modifiedTime: nil,
                mimeType: nil,
                content: CuttingSource(bytes, at: 20 << 20, cut: server.cutter)
            )
            let keeper = SessionKeeper()
            await #expect(throws: ProviderError.self) {
                _ = try await client.upload(upload, observer: keeper)
            }
            let session = try #require(await keeper.session)
            #expect(session.confirmedBytes > 0)
            #expect(server.names().allSatisfy { $0.hasSuffix(".part") })
            #expect(try await client.listing(of: .root).entries.isEmpty)
            let rest = CuttingSource(bytes, at: .max, cut: {})
            upload.content = rest
            upload.session = session
            _ = try await client.upload(upload, observer: keeper)
            #expect(server.bytes("/big") == bytes)
            #expect(server.names() == ["big"])
            #expect(await rest.bytesRead == Int64(bytes.count) - session.confirmedBytes)
            #expect(await keeper.session == nil)
        }
    }

    @Test("a connection that broke is made anew")
    func reconnects() async throws {
        try await SSHServer.with { server, client in
            try server.write("/a", "a")
            #expect(try await client.entry(at: RemotePath(["a"])).size == 1)
            server.cutSessions()
            var tries = 0
            while true {
                do throws(ProviderError) {
                    #expect(try await client.entry(at: RemotePath(["a"])).size == 1)
                    break
                } catch {
                    tries += 1
                    #expect(error.isTransient)
                    try #require(tries < 3)
                }
            }
        }
    }

    @Test("who may not sign in, and a server that is another one, are said so at once")
    func refused() async throws {
        try await SSHServer.with { server, _ in
            try SSHServer.run(
                "/usr/bin/ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-f",
                server.folder + "/stranger"
            )
            let stranger = server.client(key: "stranger")
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await stranger.owner()
                } == .signedOut
            )
            await stranger.close()
            let lost = server.client(folder: server.root + "/not there")
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await lost.owner()
                } == .notFound
            )
            await lost.close()
            let known = server.folder + "/known"
            let other = try String(contentsOfFile: server.folder + "/stranger.pub", encoding: .utf8)
            try "[127.0.0.1]:\(server.port) \(other)"
                .write(toFile: known, atomically: true, encoding: .utf8)
            let careful = server.client()
            do throws(ProviderError) {
                _ = try await careful.owner()
                Issue.record("a server with another key was believed")
            } catch {
                #expect(error.kind == .clientRefused)
                #expect(error.detail.contains("not the one that is known"))
            }
            await careful.close()
        }
    }

    @Test("where nothing may be written, a new content is refused for that")
    func readOnly() async throws {
        try await SSHServer.with(subsystem: "internal-sftp -R") { server, client in
            try "old".write(toFile: server.root + "/file", atomically: true, encoding: .utf8)
            let there = try await client.entry(at: Self.path("file"))
            for before in [PlaceUpload.Before.file(there.revision), .file(nil)] {
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await upload([1, 2], to: "/file", before, by: client)
                    } == .noPermission
                )
            }
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await upload([1, 2], to: "/new", by: client)
                } == .noPermission
            )
            #expect(server.bytes("/file") == Array("old".utf8))
            #expect(server.names() == ["file"])
        }
    }

    @Test("a copy at the server, the room, and the time of a file")
    func others() async throws {
        try await SSHServer.with { server, client in
            try server.write("/a", "content")
            let time = Timestamp(seconds: 1_234_567_890)
            let path = RemotePath(["a"])
            let before = try await client.entry(at: path).revision
            let touched = try await client.setModifiedTime(time, of: path, revision: before)
            #expect(touched.modifiedTime == time)
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.setModifiedTime(
                        Timestamp(seconds: 5),
                        of: path,
                        revision: before
                    )
                } == .preconditionFailed
            )
            let copied = try await client.copy(from: RemotePath(["a"]), to: RemotePath(["b"]))
            #expect(copied.modifiedTime == time)
            #expect(server.bytes("/b") == Array("content".utf8))
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.copy(from: RemotePath(["a"]), to: RemotePath(["b"]))
                } == .nameTaken
            )
            #expect(server.names() == ["a", "b"])
            let quota = try await client.quota()
            #expect(quota.used > 0)
            #expect((quota.total ?? 0) > quota.used)
        }
    }
}

/// A content in the midst of which something happens.
private actor CuttingSource: ContentSource {
    private let bytes: [UInt8]
    private let place: Int64
    private let cut: @Sendable () -> Void
    private var isCut = false
    private(set) var bytesRead: Int64 = 0
    nonisolated let size: Int64

    init(_ bytes: [UInt8], at place: Int64, cut: @escaping @Sendable () -> Void) {
        self.bytes = bytes
        self.place = place
        self.cut = cut
        size = Int64(bytes.count)
    }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        if offset >= place, !isCut {
            isCut = true
            cut()
        }
        bytesRead += Int64(count)
        return Array(bytes[Int(offset)..<Int(offset) + count])
    }
}

/// Remembers the session of an upload.
private actor SessionKeeper: UploadObserver {
    private(set) var session: UploadSession?

    func sessionChanged(_ session: UploadSession?) async { self.session = session }

    nonisolated func sent(_ bytes: Int64) {}
}
