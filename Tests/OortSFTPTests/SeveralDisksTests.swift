import Foundation
import Logging
import OortModel
import OortPlaces
import OortProcesses
import OortSFTP
import ServerTesting
import Synchronization
import Testing

/// An account that lies on more than one disk of its server: SFTP has one code for all that follows.
@Suite(
    "SFTP at a server with several disks",
    .timeLimit(.minutes(15)),
    .serialized,
    .enabled(if: SecondDisk.canBeMounted, "only root can mount a second disk")
)
struct SeveralDisksTests {
    static let subsystems = SFTPClientTests.subsystems

    private static func path(_ text: String) -> RemotePath {
        RemotePath(text.split(separator: "/").map(String.init))
    }

    /// A server with a disk of its own at `/disk`.
    private func with(
        _ subsystem: String = "internal-sftp",
        options: String = "size=8m",
        _ body: (SSHServer, SFTPClient, SecondDisk) async throws -> Void
    ) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let disk = try SecondDisk(at: server.root + "/disk", options)
            defer { disk.end() }
            try await body(server, client, disk)
        }
    }

    @Test("a file goes to another disk and back, with its time and mode", arguments: subsystems)
    func file(subsystem: String) async throws {
        try await with(subsystem) { server, client, _ in
            let text = String(repeating: "content ", count: 100_000)
            try server.write("/file", text)
            try FileManager.default.setAttributes(
                [
                    .posixPermissions: 0o750,
                    .modificationDate: Date(timeIntervalSince1970: 1_500_000_000),
                ],
                ofItemAtPath: server.root + "/file"
            )
            for (old, new) in [("/file", "/disk/new"), ("/disk/new", "/again")] {
                let moved = try await client.move(.file, from: Self.path(old), to: Self.path(new))
                #expect(moved.size == Int64(text.utf8.count))
                #expect(moved.modifiedTime == Timestamp(seconds: 1_500_000_000))
                #expect(server.bytes(new) == Array(text.utf8))
                #expect(server.bytes(old) == nil)
                let attributes = try FileManager.default.attributesOfItem(atPath: server.root + new)
                #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o750)
            }
            #expect(server.names() == ["again", "disk"])
            #expect(server.names("/disk").isEmpty)
        }
    }

    @Test("what somebody saves while it goes to another disk stays, and is moved by the next try")
    func savedMeanwhile() async throws {
        try await with { server, client, _ in
            let size = 4 << 20
            try server.write("/file", String(repeating: "a", count: size))
            let (old, new) = (Self.path("/file"), Self.path("/disk/file"))
            async let moving = client.move(.file, from: old, to: new)
            // It is saved again and again until the move has ended, one way or the other.
            let isDone = Mutex(false)
            let root = server.root
            let writer = Task {
                var saves = 0
                while !isDone.withLock(\.self) {
                    saves += 1
                    // Each of another size: within one second a server shows no other difference between
                    // files.
                    let bytes = Data(repeating: 0x73, count: saves)
                    try bytes.write(to: URL(filePath: root + "/file"), options: .atomic)
                    await Task.yield()
                }
                return saves
            }
            do { _ = try await moving } catch {}
            isDone.withLock { $0 = true }
            let saves = try await writer.value
            // It is where it was, or it was all that was moved.
            let last = saves == 0 ? size : saves
            let there = [server.bytes("/file")?.count, server.bytes("/disk/file")?.count]
            #expect(there.contains(last), "\(there) after \(saves) saves")
            let leftovers = server.names("/disk") + server.names()
            #expect(leftovers.allSatisfy { !$0.hasSuffix(".part") }, "\(leftovers)")
        }
    }

    @Test("a link goes to another disk as a link")
    func link() async throws {
        try await with { server, client, _ in
            try FileManager.default.createSymbolicLink(
                atPath: server.root + "/link",
                withDestinationPath: "nowhere"
            )
            _ = try await client.move(
                .file,
                from: Self.path("/link.rclonelink"),
                to: Self.path("/disk/other.rclonelink")
            )
            let target = try FileManager.default.destinationOfSymbolicLink(
                atPath: server.root + "/disk/other"
            )
            #expect(target == "nowhere")
            #expect(server.names() == ["disk"])
        }
    }

    @Test("a file for which the other disk has no room stays, and that is said")
    func full() async throws {
        try await with(options: "size=64k") { server, client, _ in
            try server.write("/file", String(repeating: "x", count: 1 << 20))
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.move(
                        .file,
                        from: Self.path("/file"),
                        to: Self.path("/disk/file")
                    )
                } == .quotaExceeded
            )
            #expect(server.bytes("/file")?.count == 1 << 20)
            #expect(server.names("/disk").isEmpty)
        }
    }

    @Test(
        "an upload that the disk has no room for leaves the room to others",
        arguments: subsystems,
        [nil, 6 << 20] as [Int64?]
    )
    func fullForAnUpload(subsystem: String, filledAt: Int64?) async throws {
        try await with(subsystem, options: "size=16m") { server, client, _ in
            // Too large from the beginning, or since somebody else's file came.
            let size = filledAt == nil ? 20 << 20 : 12 << 20
            let source = FillingSource(size: Int64(size), at: filledAt) {
                try? server.write("/disk/theirs", String(repeating: "x", count: 9 << 20))
            }
            let upload = PlaceUpload(
                path: Self.path("/disk/film"),
                before: .nothing,
                size: Int64(size),
                hash: ContentHash(algorithm: .sha256, value: String(repeating: "0", count: 64)),
                modifiedTime: nil,
                mimeType: nil,
                content: source
            )
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.upload(upload, observer: SilentUploadObserver())
                } == .quotaExceeded
            )
            #expect(server.names("/disk") == (filledAt == nil ? [] : ["theirs"]))
            #expect(await source.hasBeenRead == (filledAt != nil))
        }
    }

    @Test("a folder of a disk that is read-only stays, and nothing is begun at its new place")
    func readOnlySource() async throws {
        try await with { server, client, disk in
            try server.write("/disk/folder/file", "kept")
            try disk.remount("ro")
            let kind = await kind { () async throws(ProviderError) in
                _ = try await client.move(
                    .folder,
                    from: Self.path("/disk/folder"),
                    to: Self.path("/folder")
                )
            }
            #expect(kind == .noPermission)
            #expect(server.names() == ["disk"])
        }
    }

    @Test("an upload to a disk that turned read-only says so, and not that it is full")
    func readOnly() async throws {
        try await with { server, client, disk in
            try server.write("/disk/file", "old")
            try disk.remount("ro")
            for path in ["/disk/new", "/disk/folder"] {
                let error = await #expect(throws: ProviderError.self) {
                    if path.hasSuffix("folder") {
                        _ = try await client.createFolder(at: Self.path(path))
                    } else {
                        try await upload("new", to: path, by: client)
                    }
                }
                #expect(error?.kind == .noPermission)
                #expect(error?.detail.contains("read-only") == true, "\(error?.detail ?? "")")
            }
        }
    }

    private func upload(_ text: String, to path: String, by client: SFTPClient) async throws {
        var hasher = client.makeHasher()
        hasher.update(Array(text.utf8)[...])
        _ = try await client.upload(
            PlaceUpload(
                path: Self.path(path),
                before: .nothing,
                size: Int64(text.utf8.count),
                hash: hasher.finalize(),
                modifiedTime: nil,
                mimeType: nil,
                content: BytesSource(Array(text.utf8))
            ),
            observer: SilentUploadObserver()
        )
    }

    // MARK: Folders

    /// A reader of a provider's feed, which stores what it says.
    private final class Feed {
        private let provider: PlaceProvider
        private var cursor: Cursor?
        /// What was reported as gone.
        private(set) var gone: Set<ItemID> = []
        /// The folders by their names.
        private(set) var folders = ["root": ItemReference(id: ItemID("root"), path: .root)]

        init(_ provider: PlaceProvider) { self.provider = provider }

        /// Reads until nothing new comes.
        func read() async throws {
            for _ in 0..<3 {
                var hasMore = true
                while hasMore {
                    let page = try await provider.changes(since: cursor)
                    for case .changed(let item) in page.changes where item.kind == .folder {
                        folders[item.fileName] = ItemReference(id: item.id, path: .root)
                    }
                    for case .removed(let id) in page.changes { gone.insert(id) }
                    (cursor, hasMore) = (page.cursor, page.hasMore)
                }
                guard let cursor else { return }
                provider.hasStored(upTo: cursor)
                _ = try await provider.waitForChanges(since: cursor, atMost: .zero)
            }
        }
    }

    /// As `with`, by a provider of which the feed was read.
    private func withProvider(
        keepsTrash: Bool = true,
        _ body: (SSHServer, PlaceProvider, Feed) async throws -> Void
    ) async throws {
        try await withProviderAndDisk(keepsTrash: keepsTrash) { server, provider, feed, _ in
            try await body(server, provider, feed)
        }
    }

    private func withProviderAndDisk(
        keepsTrash: Bool = true,
        _ body: (SSHServer, PlaceProvider, Feed, SecondDisk) async throws -> Void
    ) async throws {
        try await with { server, _, disk in
            let client = server.client(keepsTrash: keepsTrash)
            try server.write("/disk/there/file", "there")
            try server.write("/disk/there/deep/file", "deep")
            try server.write("/here/file", "here")
            try server.write("/here/deep/file", "deep")
            let map = try PlaceMap(path: server.folder + "/map.sqlite")
            defer { map.close() }
            let provider = PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
            let feed = Feed(provider)
            try await feed.read()
            try await body(server, provider, feed, disk)
            await client.close()
        }
    }

    @Test("a folder goes to another disk with all that it holds")
    func folder() async throws {
        try await withProvider { server, provider, feed in
            let (here, disk) = (
                try #require(feed.folders["here"]), try #require(feed.folders["disk"])
            )
            let root = try #require(feed.folders["root"])
            let modes = [0o700, 0o750]
            for (path, mode) in zip(["/here", "/here/deep"], modes) {
                try FileManager.default.setAttributes(
                    [.posixPermissions: mode],
                    ofItemAtPath: server.root + path
                )
            }
            let moved = try await provider.move(
                Move(item: here, oldParent: root, parent: disk, name: "new", modifiedTime: nil)
            )
            #expect(moved.id == here.id)
            for (path, mode) in zip(["/disk/new", "/disk/new/deep"], modes) {
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: server.root + path
                )
                #expect(attributes[.posixPermissions] as? Int == mode)
            }
            #expect(server.bytes("/disk/new/file") == Array("here".utf8))
            #expect(server.bytes("/disk/new/deep/file") == Array("deep".utf8))
            #expect(server.names() == ["disk"])
        }
    }

    @Test(
        "a move to another disk ends where the old folder holds what is not shown",
        arguments: ["pipe", ".oort-a1.part"],
        ["", "/deep"]
    )
    func keptAtOldPlace(name: String, folder: String) async throws {
        try await withProvider { server, provider, feed in
            let (here, disk, root) = (
                try #require(feed.folders["here"]), try #require(feed.folders["disk"]),
                try #require(feed.folders["root"])
            )
            if name == "pipe" {
                try #require(unsafe mkfifo(server.root + "/here" + folder + "/pipe", 0o600) == 0)
            } else {
                try server.write("/here" + folder + "/" + name, "of another client")
            }
            let moved = try await provider.move(
                Move(item: here, oldParent: root, parent: disk, name: "new", modifiedTime: nil)
            )
            #expect(moved.id == here.id)
            #expect(server.bytes("/disk/new/file") == Array("here".utf8))
            #expect(server.bytes("/disk/new/deep/file") == Array("deep".utf8))
            // What cannot be carried stays where it is, with the folders above it and nothing else.
            #expect(server.names("/here") == [folder.isEmpty ? name : "deep"])
            #expect(server.names("/here" + folder) == [name])
            // The moved folder can be written, and what is left shows as a folder of its own.
            let new = ItemReference(id: moved.id, path: .root)
            _ = try await provider.createFolder(
                NewFolder(parent: new, name: "more", reservedID: nil)
            )
            try await feed.read()
            #expect(try #require(feed.folders["here"]).id != here.id)
            #expect(feed.folders["new"]?.id == here.id)
        }
    }

    @Test("what the trash cannot take is known before anything is deleted")
    func knownBefore() async throws {
        try await withProvider { server, provider, feed in
            for (name, isKept) in [("here", true), ("there", false), ("disk", false)] {
                let folder = try #require(feed.folders[name])
                #expect(provider.keepsDeleted(folder.id) == isKept, "\(name)")
            }
        }
    }

    /// A copy that is not durable would be all that is left of the original.
    @Test("a file that goes to another disk is on that disk before its original is removed")
    func durable() async throws {
        let log = NSTemporaryDirectory() + "oort-sftp-\(UUID().uuidString).log"
        defer { try? FileManager.default.removeItem(atPath: log) }
        let subsystem = "/usr/lib/openssh/sftp-server -e -l VERBOSE 2>>\(log)"
        try await with(subsystem) { server, client, _ in
            try server.write("/file", "content")
            _ = try await client.move(
                .file,
                from: Self.path("/file"),
                to: Self.path("/disk/file")
            )
            let lines = try String(contentsOfFile: log, encoding: .utf8)
                .split(whereSeparator: \.isNewline).map(String.init)
            let written = lines.firstIndex {
                $0.contains("fsync \"\(server.root)/disk/.oort-") && $0.contains(".part\"")
            }
            func renamed(_ old: String, _ new: String) -> Int? {
                lines.lastIndex {
                    $0.contains("rename") && $0.contains(old + "\"") && $0.contains(new + "\"")
                }
            }
            let named = renamed(".part", server.root + "/disk/file")
            let removed = renamed(server.root + "/file", ".part.old")
            let all = lines.joined(separator: "\n")
            #expect(try #require(written, "\(all)") < #require(named, "\(all)"))
            #expect(try #require(named) < #require(removed, "\(all)"))
        }
    }

    @Test("what lies on another disk than the trash is not deleted past it")
    func keptByTrash() async throws {
        try await withProvider { server, provider, feed in
            let there = Deletion(item: try #require(feed.folders["there"]))
            let refusal = await #expect(throws: ProviderError.self) {
                try await provider.delete(there)
            }
            #expect(refusal?.kind == .noPermission)
            let client = server.client()
            let kind = await kind { () async throws(ProviderError) in
                try await client.delete(.file, at: Self.path("/disk/there/file"), revision: nil)
            }
            #expect(kind == .noPermission)
            await client.close()
            #expect(server.names("/disk/there") == ["deep", "file"])
            #expect(server.bytes("/disk/there/deep/file") != nil)
            #expect(server.names("/.oort-trash").isEmpty)
        }
    }

    @Test("a folder with what is not shown is emptied, stays, and is not tried for ever")
    func keptByPipe() async throws {
        try await withProvider(keepsTrash: false) { server, provider, feed in
            let made = unsafe mkfifo(server.root + "/here/deep/pipe", 0o600)
            try #require(made == 0)
            let refusal = await #expect(throws: ProviderError.self) {
                try await provider.delete(Deletion(item: try #require(feed.folders["here"])))
            }
            #expect(refusal?.kind == .noPermission)
            #expect(server.names("/here/deep") == ["pipe"])
        }
    }

    @Test(
        "where nothing is kept a folder goes with what is known of it, and no more",
        arguments: ["/disk/there", "/here"]
    )
    func deleted(place: String) async throws {
        try await withProvider(keepsTrash: false) { server, provider, feed in
            let name = try #require(Self.path(place).name)
            let folder = Deletion(item: try #require(feed.folders[name]))
            try server.write(place + "/deep/new", "nobody here has seen it")
            await #expect(throws: ProviderError.self) { try await provider.delete(folder) }
            #expect(server.bytes(place + "/deep/new") != nil)
            #expect(server.bytes(place + "/file") != nil)
            try FileManager.default.removeItem(atPath: server.root + place + "/deep/new")
            try await feed.read()
            try await provider.delete(folder)
            #expect(!FileManager.default.fileExists(atPath: server.root + place))
        }
    }

    @Test("a disk itself is neither moved nor deleted")
    func diskItself() async throws {
        try await withProvider { server, provider, feed in
            let (disk, root) = (
                try #require(feed.folders["disk"]), try #require(feed.folders["root"])
            )
            let move = Move(item: disk, oldParent: root, parent: root, name: "x", modifiedTime: nil)
            let error = await #expect(throws: ProviderError.self) {
                try await provider.move(move)
            }
            #expect(error?.kind == .noPermission)
            let refusal = await #expect(throws: ProviderError.self) {
                try await provider.delete(Deletion(item: disk))
            }
            #expect(refusal?.kind == .noPermission)
            #expect(server.names("/disk/there") == ["deep", "file"])
            #expect(Set(server.names()).subtracting([".oort-trash"]) == ["disk", "here"])
            // What was made for it there went again.
            #expect(server.names("/.oort-trash").isEmpty)
            let thorough = server.client(keepsTrash: false)
            let kind = await kind { () async throws(ProviderError) in
                try await thorough.delete(.folder, at: Self.path("/disk"), revision: nil)
            }
            #expect(kind == .noPermission)
            #expect(server.names("/disk/there") == ["deep", "file"])
            await thorough.close()
        }
    }
}

/// A file system in memory, mounted in a folder.
struct SecondDisk {
    private let folder: String

    /// Whether this process may mount one.
    static var canBeMounted: Bool {
        let place = NSTemporaryDirectory() + "oort-disk-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: place) }
        guard let disk = try? SecondDisk(at: place, "size=64k") else { return false }
        disk.end()
        return true
    }

    init(at folder: String, _ options: String) throws {
        self.folder = folder
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        try Self.run("/bin/mount", "-t", "tmpfs", "-o", options, "none", folder)
    }

    func remount(_ options: String) throws {
        try Self.run("/bin/mount", "-o", "remount,\(options)", folder)
    }

    func end() { _ = try? Self.run("/bin/umount", "-l", folder) }

    private static func run(_ program: String, _ arguments: String...) throws {
        let end = Program.reap(try Program(program, arguments).spawn())
        guard end.isSuccess else { throw CocoaError(.fileWriteUnknown) }
    }
}

/// Zeros; somebody fills the disk when they are read at a place.
private actor FillingSource: ContentSource {
    nonisolated let size: Int64
    private let place: Int64?
    private let fill: @Sendable () -> Void
    private var isFilled = false
    private(set) var hasBeenRead = false

    init(size: Int64, at place: Int64?, fill: @escaping @Sendable () -> Void) {
        self.size = size
        self.place = place
        self.fill = fill
    }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        hasBeenRead = true
        if let place, offset >= place, !isFilled {
            isFilled = true
            fill()
        }
        return [UInt8](repeating: 0, count: count)
    }
}
