import Foundation
import OortFTP
import OortModel
import OortTransport
import ServerTesting
import Testing

/// A folder of its own at a server, and a client of it.
struct FTPWorld: Sendable {
    let server: FTPServer
    let client: FTPClient
    /// Where the account's files lie on the disk.
    let root: String
    let account: FTPAccount

    /// Runs a test in a folder of its own, with a client that ends with it.
    static func with(
        _ kind: FTPServer.Kind,
        _ body: (FTPWorld) async throws -> Void
    ) async throws {
        let server = try await FTPServers.shared.running(kind)
        let name = "t-\(UUID().uuidString.prefix(8))"
        let root = "\(server.folder)/root/\(name)"
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        let account = server.account(name)
        let world = FTPWorld(
            server: server,
            client: FTPClient(
                account,
                secret: FixedToken(FTPServer.password),
                settings: server.settings
            ),
            root: root,
            account: account
        )
        let outcome: Result<Void, any Error>
        do {
            try await body(world)
            outcome = .success(())
        } catch { outcome = .failure(error) }
        await world.client.close()
        try outcome.get()
    }

    /// Another client of the account, for a test to close.
    func another(
        keepsTrash: Bool = true,
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) -> FTPClient {
        FTPClient(
            account,
            secret: FixedToken(FTPServer.password),
            settings: server.settings,
            keepsTrash: keepsTrash,
            now: now
        )
    }

    // MARK: Somebody else, past the protocol

    func write(_ path: String, _ text: String) throws {
        let file = root + path
        try FileManager.default.createDirectory(
            atPath: (file as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: URL(filePath: file))
    }

    func bytes(_ path: String) -> [UInt8]? {
        FileManager.default.contents(atPath: root + path).map { Array($0) }
    }

    /// The permission bits of what lies at a path.
    func mode(_ path: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: root + path)
        return attributes?[.posixPermissions] as? Int
    }

    func setMode(_ mode: Int, of path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: root + path)
    }

    func names(_ path: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: root + path)) ?? []).sorted()
    }

    // MARK: Shorthand

    static func path(_ text: String) -> RemotePath {
        RemotePath(text.parts(between: "/").filter { !$0.isEmpty }.map(String.init))
    }

    func upload(
        _ bytes: [UInt8],
        to path: String,
        _ before: PlaceUpload.Before = .nothing,
        time: Int64 = 1_600_000_000,
        mode: UInt16? = nil,
        content: (any ContentSource)? = nil
    ) async throws(ProviderError) -> PlaceEntry {
        var hasher = client.makeHasher()
        hasher.update(bytes[...])
        return try await client.upload(
            PlaceUpload(
                path: Self.path(path),
                before: before,
                size: content?.size ?? Int64(bytes.count),
                hash: hasher.finalize(),
                modifiedTime: Timestamp(seconds: time),
                mimeType: nil,
                mode: mode,
                content: content ?? BytesSource(bytes)
            ),
            observer: SilentUploadObserver()
        )
    }

    func read(
        _ path: String,
        revision: Revision? = nil,
        range: Range<Int64> = 0..<1 << 40
    ) async throws(ProviderError) -> [UInt8] {
        let stream = try await client.read(Self.path(path), revision: revision, range: range)
        return try await stream.collect(atMost: 1 << 30)
    }
}

/// The kind of error that `body` ends with; nil for none.
func kind(_ body: () async throws(ProviderError) -> Void) async -> ProviderError.Kind? {
    do throws(ProviderError) {
        try await body()
        return nil
    } catch { return error.kind }
}
