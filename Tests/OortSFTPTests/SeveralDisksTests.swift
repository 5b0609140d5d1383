import Foundation
import OortModel
import OortSFTP
import Testing

/// An account that lies on more than one disk of its server: SFTP has one code for all that follows.
@Suite(
    "SFTP at a server with several disks",
    .timeLimit(.minutes(15)),
    .serialized,
    .enabled(if: SecondDisk.canBeMounted, "only root can mount a second disk")
)
struct SeveralDisksTests {
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
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}
