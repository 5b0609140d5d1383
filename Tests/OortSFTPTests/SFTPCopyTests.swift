import Foundation
import OortModel
import OortSFTP
import ServerTesting
import Testing

/// Copies inside the account, where the protocol has them and where a shell beside it makes them.
@Suite("SFTP: copies at a real server", .timeLimit(.minutes(15)), .serialized)
struct SFTPCopyTests {
    /// OpenSSH's server without its own copies, as it was before 9.0.
    private static let old = SFTPClientTests.subsystems[1]

    /// Names that a shell would take for something else.
    private static let names = [
        "plain", "it's \"odd\"", "-rf", "a\nline", "$(touch made) `touch made`", "*", "ü #",
        "back\\slash", "~", "; touch made",
    ]

    @Test("a copy has the content, the time and the mode", arguments: SFTPClientTests.subsystems)
    func copies(subsystem: String) async throws {
        try await SSHServer.with(subsystem: subsystem) { server, client in
            let files = FileManager.default
            let time = Timestamp(seconds: 1_234_567_890)
            try server.write("/to/keeps", "")
            for name in Self.names {
                let content = String(repeating: name, count: 10_000)
                try server.write("/\(name)", content)
                try files.setAttributes(
                    [
                        .posixPermissions: 0o750,
                        .modificationDate: Date(timeIntervalSince1970: 1_234_567_890),
                    ],
                    ofItemAtPath: "\(server.root)/\(name)"
                )
                let copied = try await client.copy(
                    from: RemotePath([name]),
                    to: RemotePath(["to", name])
                )
                #expect(copied.modifiedTime == time, "\(name)")
                #expect(copied.size == Int64(content.utf8.count), "\(name)")
                #expect(server.bytes("/to/\(name)") == Array(content.utf8), "\(name)")
                let made = try files.attributesOfItem(atPath: "\(server.root)/to/\(name)")
                #expect(made[.posixPermissions] as? Int == 0o750, "\(name)")
            }
            #expect(server.names() == (Self.names + ["to"]).sorted())
            #expect(server.names("/to") == (Self.names + ["keeps"]).sorted())
            // A taken name stays what it is.
            #expect(
                await kind { () async throws(ProviderError) in
                    _ = try await client.copy(
                        from: RemotePath(["plain"]),
                        to: RemotePath(["to", "keeps"])
                    )
                } == .nameTaken
            )
            #expect(server.bytes("/to/keeps") == [])
        }
    }

    /// What a login may run in place of a shell: SFTP alone, answered as OpenSSH does; nothing at all; a
    /// shell that greets and runs nothing; and one that sees other folders.
    static let forced = [
        "/usr/lib/openssh/sftp-server -P copy-data",
        Self.unlessSFTP("echo This service allows sftp connections only."),
        Self.unlessSFTP("exit 1"),
        Self.unlessSFTP("cat; echo OORTDID"),
        Self.unlessSFTP(
            "exec unshare -m sh -c \\\"mount -t tmpfs none ROOT && exec /bin/sh -s\\\""
        ),
    ]

    /// A command for all that a login asks for but SFTP.
    private static func unlessSFTP(_ other: String) -> String {
        "case $SSH_ORIGINAL_COMMAND in *sftp*) exec \(old);; *) \(other);; esac"
    }

    @Test(
        "without a shell of the same folders nothing is copied, and nothing left",
        arguments: forced
    )
    func noShell(command: String) async throws {
        let settings = "ForceCommand \(command)"
        try await SSHServer.with(subsystem: Self.old, settings: settings) { server, client in
            try server.write("/a", "content")
            for _ in 0..<2 {
                #expect(
                    await kind { () async throws(ProviderError) in
                        _ = try await client.copy(from: RemotePath(["a"]), to: RemotePath(["b"]))
                    } == .unsupported
                )
                #expect(server.names() == ["a"])
            }
        }
    }

    @Test("what the shell cannot copy is named in its words, and nothing is left")
    func failure() async throws {
        // Files of at most one block of 512 bytes; SFTP's own process has no such limit.
        let limited = Self.unlessSFTP("ulimit -f 1; exec /bin/sh -s")
        let settings = "ForceCommand \(limited)"
        try await SSHServer.with(subsystem: Self.old, settings: settings) { server, client in
            try server.write("/a", String(repeating: "content", count: 1000))
            let error = await #expect(throws: ProviderError.self) {
                _ = try await client.copy(from: RemotePath(["a"]), to: RemotePath(["b"]))
            }
            #expect(error?.kind == .limitExceeded)
            #expect(error?.detail.contains("not copied") == true, "\(error?.detail ?? "")")
            #expect(server.names() == ["a"])
        }
    }
}

/// The kind of the error that `body` ends with; nil for none.
func kind(
    _ body: () async throws(ProviderError) -> Void
) async -> ProviderError.Kind? {
    do throws(ProviderError) {
        try await body()
        return nil
    } catch { return error.kind }
}
