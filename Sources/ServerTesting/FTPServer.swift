import Foundation
public import OortFTP
import OortProcesses
import SystemPackage

/// A foreign server of FTP, on a free port of this machine, in a folder of its own.
public struct FTPServer: Sendable {
    /// Which server, and how it is set up.
    public enum Kind: String, CaseIterable, Sendable, CustomStringConvertible {
        /// ProFTPD, encrypted and no other way.
        case proftpd
        /// ProFTPD, encrypted from the first byte.
        case implicit
        /// pyftpdlib, not encrypted.
        case pyftpdlib
        /// pyftpdlib without MLSD.
        case old
        /// vsftpd, encrypted and no other way, which has no MLSD.
        case vsftpd

        public var description: String { rawValue }

        /// Those that are here and list for programs: Debian's always, Python's in the folder of tools
        /// that `scripts/test` names.
        public static var usable: [Kind] {
            [.proftpd, .implicit] + (pythonTools == nil ? [] : [.pyftpdlib])
        }

        /// Whether it is ProFTPD, which always encrypts.
        public var isProFTPD: Bool { self == .proftpd || self == .implicit }

        /// Whether the server takes encrypted connections only.
        public var isEncrypted: Bool { isProFTPD || self == .vsftpd }

        /// Who may sign in: to vsftpd its guest, since only root can name others to it.
        public var user: String { self == .vsftpd ? "ftp" : "ada" }
    }

    /// The folder of Python's servers, where there is one.
    public static var pythonTools: String? {
        guard let folder = ProcessInfo.processInfo.environment["OORT_TEST_TOOLS"],
            FileManager.default.isExecutableFile(atPath: folder + "/python3")
        else { return nil }
        return folder
    }

    /// The program vsftpd, where there is one: Debian's cannot be installed beside ProFTPD.
    public static var vsftpd: String? {
        guard let folder = ProcessInfo.processInfo.environment["OORT_TEST_TOOLS"],
            FileManager.default.isExecutableFile(atPath: folder + "/vsftpd")
        else { return nil }
        return folder + "/vsftpd"
    }

    /// Which server it is.
    public let kind: Kind
    /// The folder that holds everything.
    public let folder: String
    /// Where it listens.
    public let port: Int

    /// What its person signs in with.
    public static let password = "a secret"

    /// The settings with which the server is trusted.
    public var settings: FTPSettings {
        FTPSettings(caFile: kind.isEncrypted ? folder + "/cert.pem" : nil)
    }

    /// The server's log.
    public var log: String { (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? "" }

    /// The address of a folder below the server's root.
    public func address(_ path: String = "", user: String? = nil) -> FTPAddress {
        let root = kind.isEncrypted ? folder + "/root" : ""
        let user = user ?? kind.user
        guard var address = FTPAddress("\(user)@127.0.0.1:\(port)\(root)/\(path)") else {
            preconditionFailure("\(path) is a path")
        }
        address.security =
            switch kind {
            case .proftpd, .vsftpd: .explicit
            case .implicit: .implicit
            case .pyftpdlib, .old: .plain
            }
        return address
    }

    /// A folder below the server's root, as an account.
    public func account(_ path: String) -> FTPAccount {
        FTPAccount(address: address(path), setsTimes: true, asksForFacts: false)
    }

    /// Ends every connection at once, as a network that goes does; ProFTPD has a process for each.
    public func cutSessions() async {
        let pid = (try? String(contentsOfFile: folder + "/pid", encoding: .utf8)) ?? ""
        let number = pid.filter(\.isNumber)
        let children = "/proc/\(number)/task/\(number)/children"
        let all = (try? String(contentsOfFile: children, encoding: .utf8)) ?? ""
        let sessions = all.split(separator: " ").compactMap { Int32($0) }
        for session in sessions { kill(session, SIGKILL) }
        // Until they are gone their ends of the connections are open.
        for _ in 0..<6000 where sessions.contains(where: { kill($0, 0) == 0 }) {
            try? await Task.sleep(for: .milliseconds(10))
        }
    }
}

/// Starts each server once, for all tests; they end with the tests' process.
public actor FTPServers {
    /// The servers of this process.
    public static let shared = FTPServers()

    /// The server does not start.
    public struct NotStarted: Error { var log: String }

    private var starting: [FTPServer.Kind: Task<FTPServer, any Error>] = [:]
    private var inputs: [FileDescriptor] = []

    /// The running server of a kind.
    public func running(_ kind: FTPServer.Kind) async throws -> FTPServer {
        if let task = starting[kind] { return try await task.value }
        let task = Task { try await self.start(kind) }
        starting[kind] = task
        return try await task.value
    }

    private func start(_ kind: FTPServer.Kind) async throws -> FTPServer {
        var last = ""
        // A port that was free may be another program's by the time it is asked for.
        for _ in 0..<5 {
            let folder = NSTemporaryDirectory() + "oort-ftp-\(UUID().uuidString.prefix(8))"
            try FileManager.default.createDirectory(
                atPath: folder + "/root",
                withIntermediateDirectories: true
            )
            let server = FTPServer(
                kind: kind,
                folder: folder,
                port: Int.random(in: 20_000..<32_000)
            )
            try begin(server)
            for _ in 0..<1200 {
                if FileManager.default.fileExists(atPath: folder + "/ended") { break }
                if FileManager.default.fileExists(atPath: folder + "/ready"),
                    await answers(server)
                {
                    return server
                }
                try await Task.sleep(for: .milliseconds(50))
            }
            last = server.log
        }
        throw NotStarted(log: "\(kind): \(last)")
    }

    /// Whether the server at the port is this one: it lets this one's person in.
    private func answers(_ server: FTPServer) async -> Bool {
        do throws(FTPSignIn.Failure) {
            _ = try await FTPSignIn.account(
                at: server.address(),
                password: FTPServer.password,
                settings: server.settings
            )
            return true
        } catch { return error.reason == .noMachineListings }
    }

    private func begin(_ server: FTPServer) throws {
        let script =
            switch server.kind {
            case .proftpd, .implicit: Self.certificate + Self.proftpd
            case .vsftpd: Self.certificate + Self.vsftpd
            case .pyftpdlib, .old: Self.pyftpdlib
            }
        let arguments = [
            "-c",
            "cd \"$0\" || exit; { \(script) ; touch ended; } >>log 2>&1 </dev/null & "
                + "cat >/dev/null; cd /; rm -rf \"$0\"; kill -9 0",
            server.folder, "\(server.port)", FTPServer.password, server.kind.rawValue,
        ]
        let path = "\(FTPServer.pythonTools ?? "/nonexistent"):/usr/sbin:/usr/bin:/sbin:/bin"
        let program = Program("/bin/sh", arguments, environment: ["PATH": path])
        inputs.append(try program.startWhileOpen())
    }

    private static let certificate = #"""
        openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 3650 \
            -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 &&
        chmod 600 key.pem &&

        """#

    /// The guest's password is believed only where it is in a list, and each command is in the log.
    private static let vsftpd = #"""
        mkdir empty && echo "$2" >passwords && cat >conf <<END &&
        listen=YES
        listen_address=127.0.0.1
        listen_port=$1
        background=NO
        run_as_launching_user=YES
        anonymous_enable=YES
        local_enable=NO
        ftp_username=$(id -un)
        anon_root=$0/root
        secure_chroot_dir=$0/empty
        secure_email_list_enable=YES
        email_password_file=$0/passwords
        ssl_enable=YES
        allow_anon_ssl=YES
        force_anon_logins_ssl=YES
        force_anon_data_ssl=YES
        require_ssl_reuse=YES
        ssl_ciphers=HIGH
        rsa_cert_file=$0/cert.pem
        rsa_private_key_file=$0/key.pem
        xferlog_enable=YES
        log_ftp_protocol=YES
        vsftpd_log_file=$0/log
        END
        touch ready && vsftpd "$0/conf"
        """#

    private static let proftpd = #"""
        echo "ada:$(openssl passwd -5 "$2"):$(id -u):$(id -g)::$0/root:/bin/sh" >users &&
        chmod 600 users && cat >conf <<END &&
        LoadModule mod_tls.c
        ServerType standalone
        Port $1
        DefaultAddress 127.0.0.1
        SocketBindTight on
        UseReverseDNS off
        DelayEngine off
        User $(id -un)
        Group $(id -gn)
        RootLogin on
        RequireValidShell off
        AuthUserFile $0/users
        AuthOrder mod_auth_file.c
        AuthPAM off
        WtmpLog off
        TransferLog none
        PidFile $0/pid
        ScoreboardFile $0/scoreboard
        SystemLog $0/log
        AllowOverwrite on
        Umask 022
        TLSEngine on
        TLSRequired on
        TLSRSACertificateFile $0/cert.pem
        TLSRSACertificateKeyFile $0/key.pem
        TLSLog $0/tlslog
        TLSOptions $(if [ "$3" = implicit ]; then echo UseImplicitSSL; else echo StdEnvVars; fi)
        END
        touch ready && proftpd -n -q -c "$0/conf"
        """#

    private static let pyftpdlib = #"""
        cat >server.py <<END &&
        import sys
        from pyftpdlib.authorizers import DummyAuthorizer
        from pyftpdlib.handlers import FTPHandler
        from pyftpdlib.servers import FTPServer
        authorizer = DummyAuthorizer()
        authorizer.add_user("ada", sys.argv[2], "root", perm="elradfmwMT")
        if sys.argv[3] == "old":
            FTPHandler.proto_cmds = {name: value for name, value in FTPHandler.proto_cmds.items()
                                     if name not in ("MLST", "MLSD")}
        FTPHandler.authorizer = authorizer
        FTPHandler.auth_failed_timeout = 0.1
        server = FTPServer(("127.0.0.1", int(sys.argv[1])), FTPHandler)
        open("ready", "w").close()
        server.serve_forever()
        END
        python3 server.py "$1" "$2" "$3"
        """#
}
