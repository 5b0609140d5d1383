import Foundation
import OortModel
import OortSFTP
import ServerTesting
import Testing

/// Servers that refuse what others take, and what a program notices of it.
@Suite("SFTP at a server that refuses", .timeLimit(.minutes(15)), .serialized)
struct SFTPRefusalsTests {
    /// A server that takes no times, as those before object stores.
    private static let timeless = "/usr/lib/openssh/sftp-server -P setstat,fsetstat,lsetstat"

    private static let linkless = "/usr/lib/openssh/sftp-server -P readlink"

    private func upload(
        _ bytes: [UInt8],
        to name: String,
        _ before: PlaceUpload.Before = .nothing,
        by client: SFTPClient
    ) async throws(ProviderError) -> PlaceEntry {
        var hasher = client.makeHasher()
        hasher.update(bytes[...])
        return try await client.upload(
            PlaceUpload(
                path: RemotePath([name]),
                before: before,
                size: Int64(bytes.count),
                hash: hasher.finalize(),
                modifiedTime: Timestamp(seconds: 1_600_000_000),
                mimeType: nil,
                content: BytesSource(bytes)
            ),
            observer: SilentUploadObserver()
        )
    }

    @Test("one that sets no times takes contents all the same, and its own times count")
    func timeless() async throws {
        try await SSHServer.with(subsystem: Self.timeless) { server, client in
            let small = try await upload(Array("small".utf8), to: "small", by: client)
            #expect(server.bytes("/small") == Array("small".utf8))
            let time = try #require(small.modifiedTime)
            #expect(time.seconds > 1_700_000_000)
            let large = [UInt8](repeating: 7, count: 5 << 20)
            _ = try await upload(large, to: "large", by: client)
            #expect(server.bytes("/large") == large)
            let copied = try await client.copy(
                from: RemotePath(["large"]),
                to: RemotePath(["copy"])
            )
            #expect(copied.size == 5 << 20 && server.bytes("/copy") == large)
            let kept = try await client.setModifiedTime(
                Timestamp(seconds: 1_600_000_000),
                of: RemotePath(["small"]),
                revision: small.revision
            )
            #expect(kept == small)
            _ = try await upload(
                Array("other".utf8),
                to: "small",
                .file(small.revision),
                by: client
            )
            #expect(server.bytes("/small") == Array("other".utf8))
            #expect(server.names() == ["copy", "large", "small"])
        }
    }

    @Test("a link that may not be read is not gone: what is known of it stays")
    func unreadLink() async throws {
        try await SSHServer.with(subsystem: Self.linkless) { server, client in
            try server.write("/file", "text")
            try server.link("/link", to: "file")
            let listing = try await client.listing(of: .root)
            #expect(listing.entries.map(\.name) == ["file"])
            #expect(listing.unknown == [LinkName.file("link")])
        }
    }

    @Test("a refused key is offered once, however many files are asked for")
    func refusedKey() async throws {
        try await SSHServer.with { server, client in
            try server.write("/file", "text")
            _ = try await client.listing(of: .root)
            let key = try String(contentsOfFile: server.folder + "/authorized", encoding: .utf8)
            try server.refuseAll()
            var refusals = 0
            for _ in 0..<12 {
                do throws(ProviderError) {
                    _ = try await client.entry(at: RemotePath(["file"]))
                } catch {
                    if error.kind == .signedOut { refusals += 1 }
                }
            }
            #expect(refusals >= 11)
            // Who signs in again has another client.
            try key.write(toFile: server.folder + "/authorized", atomically: true, encoding: .utf8)
            let other = server.client()
            _ = try await other.entry(at: RemotePath(["file"]))
            await other.close()
            // The server writes its log after its answers.
            func offers() throws -> Int {
                let log = try String(contentsOfFile: server.folder + "/log", encoding: .utf8)
                return log.components(separatedBy: "by authenticating user").count - 1
            }
            while try offers() < 1 { try await Task.sleep(for: .milliseconds(10)) }
            #expect(try offers() == 1)
        }
    }
}
