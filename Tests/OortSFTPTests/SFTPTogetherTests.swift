import Foundation
import OortModel
import OortProcesses
import OortSFTP
import ServerTesting
import Testing

/// Many folders in one listing of the shell's: the same as SFTP lists them one by one.
@Suite("SFTP: folders listed together", .timeLimit(.minutes(15)), .serialized)
struct SFTPTogetherTests {
    /// Folders with what is hard to list.
    private static let tree = """
        mkdir plain 'it'"'"'s "odd"' -- -rf 'a
        line' '$(touch made) `touch made`' empty links kinds times open closed deep deep/er deep/er/still
        for folder in plain it* ./-rf a* '$'* deep deep/er deep/er/still open closed; do
            for name in plain "it's \\"odd\\"" -rf 'a
        line' '$(touch made)' '*' 'ü #' 'back\\slash' ' ' '42 '; do
                printf 'content of %s' "$name" > "$folder/$name"
            done
        done
        printf x > "plain/$(printf 'latin\\351')"
        printf x > plain/.oort-left.0123456789ab.part
        ln -s ../plain 'links/to a folder'; ln -s 'no
        where' links/broken; ln -s plain links/both; printf x > links/both.rclonelink
        mkfifo kinds/pipe; printf x > kinds/file; truncate -s 5G kinds/large
        touch -d @0 times/first; touch -d '2100-01-01' times/late; touch -d '2200-01-01' times/later
        touch -d '1960-01-01' times/earlier; touch -d @1700000000.999999999 times/fraction
        chmod 711 open
        """

    private static func make(_ server: SSHServer) throws {
        var shell = Program("/bin/sh", ["-ec", tree])
        shell.folder = server.root
        #expect(Program.reap(try shell.spawn()).isSuccess)
    }

    private static func folders(_ client: SFTPClient) async throws -> [RemotePath] {
        var found = [RemotePath.root]
        var next = 0
        while next < found.count {
            for entry in try await client.listing(of: found[next]).entries
            where entry.kind == .folder {
                found.append(found[next].appending(entry.name))
            }
            next += 1
        }
        return found
    }

    @Test("each is as it is by itself, whatever its names, kinds and times are")
    func same() async throws {
        try await SSHServer.with { server, client in
            try Self.make(server)
            let folders = try await Self.folders(client)
            #expect(folders.count == 15)
            let together = await client.listings(of: folders)
            #expect(together.count == folders.count)
            for (folder, listing) in zip(folders, together) {
                let alone = try await client.listing(of: folder)
                // An empty one, and one whose times SFTP cannot carry, are listed by themselves.
                guard let listing else {
                    #expect(["empty", "times"].contains(folder.name))
                    continue
                }
                #expect(Set(listing.entries) == Set(alone.entries), "\(folder)")
                #expect(listing.entries.count == alone.entries.count, "\(folder)")
                #expect(listing.stamp == alone.stamp && listing.disk == alone.disk, "\(folder)")
            }
            #expect(together.count { $0 == nil } == 2)
            #expect(!FileManager.default.fileExists(atPath: server.root + "/made"))
        }
    }

    @Test("one that cannot be read, or is gone, is no listing, nor are the others of its request")
    func unreadable() async throws {
        try await SSHServer.with { server, client in
            try Self.make(server)
            let gone = [RemotePath(["plain"]), RemotePath(["gone"])]
            #expect(await client.listings(of: gone).allSatisfy { $0 == nil })
            #expect(await client.listings(of: [RemotePath(["kinds", "file"])])[0] == nil)
            #expect(await client.listings(of: [RemotePath(["links", "to a folder"])])[0] == nil)
            #expect(await client.listings(of: [RemotePath(["plain"])])[0] != nil)
        }
    }

    @Test(
        "without a shell of the same folders none is listed so",
        arguments: SFTPCopyTests.forced
    )
    func withoutShell(command: String) async throws {
        let settings = "ForceCommand \(command)"
        try await SSHServer.with(
            subsystem: SFTPClientTests.subsystems[1],
            settings: settings
        ) { server, client in
            try Self.make(server)
            let folders = [RemotePath.root, RemotePath(["plain"])]
            for _ in 0..<2 {
                #expect(await client.listings(of: folders).allSatisfy { $0 == nil })
            }
            #expect(try await client.listing(of: folders[1]).entries.count == 11)
        }
    }
}
