import Foundation
import MountTesting
public import OortModel
import OortProcesses
public import OortSFTP

/// OpenSSH's server on a free port of this machine, with keys of its own, in a folder of its own.
public final class SSHServer: Sendable {
    /// The folder that holds everything.
    public let folder: String
    /// The server's port.
    public var port: Int { Int(place.number) }
    private let place: HeldPort
    private let identifier: String

    /// The folder where the account begins.
    public var root: String { folder + "/root" }

    private init(_ folder: String, _ place: HeldPort, _ identifier: String) {
        self.folder = folder
        self.place = place
        self.identifier = identifier
    }

    /// Runs a test with a server and a client, which both end with it.
    ///
    /// `settings` are further lines for the server, in which `ROOT` is the folder where the account begins.
    public static func with(
        subsystem: String = "internal-sftp",
        settings: String = "",
        _ body: (SSHServer, SFTPClient) async throws -> Void
    ) async throws {
        let server = try await start(subsystem, settings)
        let client = server.client()
        let outcome: Result<Void, any Error>
        do {
            try await body(server, client)
            outcome = .success(())
        } catch { outcome = .failure(error) }
        await client.close()
        server.end()
        try outcome.get()
    }

    private static func start(
        _ subsystem: String,
        _ settings: String
    ) async throws -> SSHServer {
        let folder = "/tmp/oort-ssh-\(UUID().uuidString.prefix(8))"
        let files = FileManager.default
        try files.createDirectory(atPath: folder + "/root", withIntermediateDirectories: true)
        // Root's sshd separates its privileges there.
        try? files.createDirectory(atPath: "/run/sshd", withIntermediateDirectories: true)
        for name in ["host", "user"] {
            try run(
                "/usr/bin/ssh-keygen",
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-f",
                "\(folder)/\(name)"
            )
        }
        try files.copyItem(atPath: folder + "/user.pub", toPath: folder + "/authorized")
        let place = try HeldPort()
        try """
        Port \(place.number)
        ListenAddress 127.0.0.1
        HostKey \(folder)/host
        PidFile \(folder)/pid
        AuthorizedKeysFile \(folder)/authorized
        PasswordAuthentication no
        KbdInteractiveAuthentication no
        UsePAM no
        StrictModes no
        PermitRootLogin prohibit-password
        \(Self.ownHome(folder))
        Subsystem sftp \(subsystem)
        \(settings.replacingOccurrences(of: "ROOT", with: folder + "/root"))

        """.write(toFile: folder + "/config", atomically: true, encoding: .utf8)
        let host = try String(contentsOfFile: folder + "/host.pub", encoding: .utf8)
        try "[127.0.0.1]:\(place.number) \(host)"
            .write(toFile: folder + "/known", atomically: true, encoding: .utf8)
        // It goes on in the background, and writes its number once it listens.
        try run("/usr/sbin/sshd", "-f", folder + "/config", "-E", folder + "/log")
        for _ in 0..<12_000 {
            let pid = (try? String(contentsOfFile: folder + "/pid", encoding: .utf8)) ?? ""
            if pid.hasSuffix("\n") { return SSHServer(folder, place, String(pid.dropLast())) }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw ProviderError(.offline, detail: "sshd does not start: see \(folder)/log")
    }

    /// The setting that has each session's shell read no start files of the user who runs the tests.
    ///
    /// They may do anything: `pyenv init` in a `.bashrc` locks out all further logins for a minute
    /// when its session is cut.
    private static func ownHome(_ folder: String) -> String { "SetEnv HOME=\(folder)" }

    /// A client that signs in with the key.
    public func client(
        keepsTrash: Bool = true,
        key: String = "user",
        folder: String? = nil,
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) -> SFTPClient {
        SFTPClient(connection(key: key, folder: folder), keepsTrash: keepsTrash, now: now)
    }

    /// A connection of its own, signed in with a key.
    public func connection(key: String = "user", folder: String? = nil) -> SSHConnection {
        let text = "\(NSUserName())@127.0.0.1:\(port)\(folder ?? root)"
        guard var address = SFTPAddress(text) else { preconditionFailure("\(text) is an address") }
        address.identity = self.folder + "/" + key
        address.options = [
            "UserKnownHostsFile=\(self.folder)/known", "IdentitiesOnly=yes", "IdentityAgent=none",
            "StrictHostKeyChecking=yes",
        ]
        return SSHConnection(
            address,
            folder: self.folder + "/s\(UInt16.random(in: .min ... .max))",
            environment: ["PATH": "/usr/bin:/bin", "HOME": self.folder]
        )
    }

    /// Ends every session, as a network that goes does.
    public func cutSessions() { cutter() }

    /// Ends every session, from any thread; none is left when it returns.
    public var cutter: @Sendable () -> Void {
        let parent = identifier
        return {
            for _ in 0..<1000 {
                // 1 says that there is no such process.
                if (try? Self.run("/usr/bin/pkill", "-KILL", "-P", parent)) == 1 { return }
                usleep(1000)
            }
        }
    }

    /// Refuses every login from now on, and ends those that there are.
    public func refuseAll() throws {
        try FileManager.default.removeItem(atPath: folder + "/authorized")
        cutSessions()
    }

    /// Ends it, with all that it served.
    public func end() {
        cutSessions()
        _ = try? Self.run("/bin/kill", identifier)
        // It takes its own file away, and a folder in which something vanishes is left half removed.
        let number = Int32(identifier) ?? 0
        for _ in 0..<10_000 where kill(number, 0) == 0 { usleep(1000) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// Runs a program to its end; its status, or the signal's number negated.
    @discardableResult
    public static func run(_ program: String, _ arguments: String...) throws -> Int32 {
        switch Program.reap(try Program(program, arguments).spawn()) {
        case .status(let status): status
        case .signal(let signal): -signal
        }
    }

    // MARK: Another user, past the protocol

    /// Writes a file, and the folders that miss above it.
    public func write(_ path: String, _ text: String) throws {
        let file = root + path
        try FileManager.default.createDirectory(
            atPath: (file as NSString).deletingLastPathComponent,
            withIntermediateDirectories: true
        )
        try Data(text.utf8).write(to: URL(filePath: file))
    }

    /// Makes a symbolic link.
    public func link(_ path: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(
            atPath: root + path,
            withDestinationPath: target
        )
    }

    /// The bytes of a file; nil where there is none.
    public func bytes(_ path: String) -> [UInt8]? {
        FileManager.default.contents(atPath: root + path).map { Array($0) }
    }

    /// The names in a folder.
    public func names(_ path: String = "") -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: root + path)) ?? []).sorted()
    }
}
