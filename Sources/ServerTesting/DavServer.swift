import Foundation
import Logging
import MountTesting
import OortProcesses
public import OortTransport
public import OortWebDAV
import Synchronization

/// A foreign server of WebDAV, in a folder and on a port of its own.
public final class DavServer: Sendable {
    /// Which program it is.
    public enum Kind: String, CaseIterable, Sendable, CustomStringConvertible {
        case apache, nginx, lighttpd, sabre, rclone, wsgidav

        public var description: String { rawValue }

        /// Those that are here: Debian's always, those of Python's registry in the folder of tools that
        /// `scripts/test` names.
        public static var here: [Kind] {
            [.apache, .nginx, .lighttpd, .sabre]
                + [.rclone, .wsgidav].filter { tool($0.rawValue) != nil }
        }

        static func tool(_ name: String) -> String? {
            guard let folder = ProcessInfo.processInfo.environment["OORT_TEST_TOOLS"],
                FileManager.default.isExecutableFile(atPath: folder + "/" + name)
            else { return nil }
            return folder + "/" + name
        }
    }

    /// The server does not start.
    public struct NotStarted: Error { var log: String }

    /// Which program it is.
    public let kind: Kind
    /// The folder that holds everything.
    public let folder: String
    /// Where it listens.
    public var port: UInt16 { place.number }
    private let place: HeldPort
    private let process: Mutex<RunningProgram?>

    /// Who may sign in.
    public static let user = "alice"
    /// With what.
    public static let password = "secret"

    /// A folder into which Apache does not let `user`, and one in which that person may only read.
    public static let closedFolder = "closed"
    public static let readingFolder = "reading"

    /// What a person would paste.
    public var url: String { "http://127.0.0.1:\(port)/dav" }
    /// Where the server keeps the files.
    public var files: String { folder + "/root/dav" }

    /// Runs `body` with a server that ends with it.
    public static func with(_ kind: Kind, _ body: (DavServer) async throws -> Void) async throws {
        var last: (any Error)?
        for _ in 0..<3 {
            let server: DavServer
            do {
                server = try await DavServer(kind)
            } catch {
                last = error
                continue
            }
            let result: Result<Void, any Error>
            do {
                try await body(server)
                result = .success(())
            } catch {
                result = .failure(error)
            }
            await server.stop()
            return try result.get()
        }
        throw last ?? NotStarted(log: "")
    }

    private init(_ kind: Kind) async throws {
        self.kind = kind
        folder = NSTemporaryDirectory() + "dav-\(UUID().uuidString.prefix(8))"
        place = try HeldPort()
        process = Mutex(nil)
        let manager = FileManager.default
        for part in ["root/dav", "lock", "tmp"] {
            try manager.createDirectory(
                atPath: folder + "/" + part,
                withIntermediateDirectories: true
            )
        }
        // Started by root, Apache serves as another user.
        for part in ["", "/root", "/root/dav", "/lock", "/tmp"] {
            try manager.setAttributes([.posixPermissions: 0o777], ofItemAtPath: folder + part)
        }
        let plain = kind == .lighttpd || kind == .sabre
        // Base64 of the SHA-1 of the password.
        let users =
            "\(Self.user):\(plain ? Self.password : "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=")\n"
        try Data(users.utf8).write(to: URL(fileURLWithPath: folder + "/users"))
        if kind == .sabre { try writeSabre() }
        let configuration = folder + "/conf.yaml"
        try Data(text.utf8).write(to: URL(fileURLWithPath: configuration))
        let arguments =
            switch kind {
            case .apache, .sabre: ["-d", folder, "-f", configuration, "-X"]
            case .nginx: ["-p", folder, "-c", configuration]
            case .lighttpd: ["-D", "-f", configuration]
            case .rclone:
                [
                    "serve", "webdav", files, "--config", "/dev/null", "--addr",
                    "127.0.0.1:\(port)", "--baseurl", "/dav", "--user", Self.user, "--pass",
                    Self.password, "--dir-cache-time", "1ms", "--log-file", folder + "/error.log",
                ]
            case .wsgidav: ["-c", configuration]
            }
        let running = try RunningProgram(Program(program, arguments))
        process.withLock { $0 = running }
        for _ in 0..<600 {
            if Self.answers(port) { return }
            guard running.isRunning else { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        await stop(keepsFolder: true)
        let log = (try? String(contentsOfFile: folder + "/error.log", encoding: .utf8)) ?? ""
        try? manager.removeItem(atPath: folder)
        throw NotStarted(log: "\(kind): \(log)")
    }

    /// Ends it.
    public func stop(keepsFolder: Bool = false) async {
        let running = process.withLock { $0.take() }
        if let running {
            running.send(SIGKILL)
            await running.wait()
        }
        if !keepsFolder { try? FileManager.default.removeItem(atPath: folder) }
    }

    private var program: String {
        switch kind {
        case .apache, .sabre: "/usr/sbin/apache2"
        case .nginx: "/usr/sbin/nginx"
        case .lighttpd: "/usr/sbin/lighttpd"
        case .rclone, .wsgidav: Kind.tool(kind.rawValue) ?? "/usr/bin/" + kind.rawValue
        }
    }

    /// Connections stay open while a busy machine makes a test wait: what goes out on one that is just
    /// being closed has an unknown outcome.
    private var text: String {
        switch kind {
        case .apache:
            """
            \(apache([
                "authn_core", "authn_file", "authz_core", "authz_user", "auth_basic", "dav", "dav_fs",
                "dav_lock", "dir", "mime",
            ]))
            TypesConfig /dev/null
            DirectoryIndex disabled
            LimitXMLRequestBody 0
            DavLockDB \(folder)/lock/db
            DocumentRoot \(folder)/root
            <Directory \(folder)/root/dav>
                Dav On
                AuthType Basic
                AuthName dav
                AuthUserFile \(folder)/users
                Require valid-user
            </Directory>
            <Directory \(folder)/root/dav/\(Self.closedFolder)>
                Require user bob
            </Directory>
            <Directory \(folder)/root/dav/\(Self.readingFolder)>
                <LimitExcept GET HEAD OPTIONS PROPFIND>
                    Require user bob
                </LimitExcept>
            </Directory>

            """
        case .nginx:
            """
            load_module /usr/lib/nginx/modules/ngx_http_dav_ext_module.so;
            daemon off;
            master_process off;
            pid \(folder)/pid;
            error_log \(folder)/error.log;
            events { worker_connections 64; }
            http {
                access_log off;
                client_max_body_size 0;
                client_body_temp_path \(folder)/tmp/body;
                proxy_temp_path \(folder)/tmp/proxy;
                fastcgi_temp_path \(folder)/tmp/fastcgi;
                uwsgi_temp_path \(folder)/tmp/uwsgi;
                scgi_temp_path \(folder)/tmp/scgi;
                dav_ext_lock_zone zone=locks:1m;
                server {
                    listen 127.0.0.1:\(port);
                    root \(folder)/root;
                    location /dav {
                        dav_methods PUT DELETE MKCOL COPY MOVE;
                        dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK;
                        dav_ext_lock zone=locks;
                        create_full_put_path off;
                        auth_basic dav;
                        auth_basic_user_file \(folder)/users;
                    }
                }
            }

            """
        case .lighttpd:
            """
            server.modules = ("mod_auth", "mod_authn_file", "mod_webdav")
            server.document-root = "\(folder)/root"
            server.bind = "127.0.0.1"
            server.port = \(port)
            server.pid-file = "\(folder)/pid"
            server.max-keep-alive-idle = 60
            server.errorlog = "\(folder)/error.log"
            server.upload-dirs = ("\(folder)/tmp")
            mimetype.assign = ("" => "application/octet-stream")
            webdav.sqlite-db-name = "\(folder)/lock/db"
            auth.backend = "plain"
            auth.backend.plain.userfile = "\(folder)/users"
            $HTTP["url"] =~ "^/dav($|/)" {
                webdav.activate = "enable"
                auth.require = ("" => ("method" => "basic", "realm" => "dav",
                    "require" => "valid-user"))
            }

            """
        case .sabre:
            """
            \(apache(["authz_core", "env", "alias", "cgi"]))
            ScriptAlias /dav \(folder)/dav.php
            SetEnv REDIRECT_STATUS 200
            SetEnv PHP_INI_SCAN_DIR \(folder)/php
            <Directory \(folder)>
                CGIPassAuth On
                Require all granted
            </Directory>

            """
        case .rclone: ""
        case .wsgidav:
            """
            server: cheroot
            host: 127.0.0.1
            port: \(port)
            provider_mapping: {"/dav": "\(files)"}
            simple_dc: {user_mapping: {"*": {"\(Self.user)": {"password": "\(Self.password)"}}}}
            http_authenticator:
                accept_basic: true
                accept_digest: false
                default_to_digest: false
            server_args:
                timeout: 60
            verbose: 1

            """
        }
    }

    /// The part of the configuration that every Apache here gets.
    private func apache(_ modules: [String]) -> String {
        """
        ServerName localhost
        Listen 127.0.0.1:\(port)
        PidFile \(folder)/pid
        ErrorLog \(folder)/error.log
        Mutex file:\(folder)/lock default
        KeepAliveTimeout 60
        \(geteuid() == 0 ? "User nobody\nGroup nogroup" : "")
        \((["mpm_event"] + modules)
            .map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }
            .joined(separator: "\n"))
        """
    }

    /// Writes the program that a hoster runs for each request: files and folders as sabre/dav's own guide
    /// sets them up, with its locks and its page for browsers.
    private func writeSabre() throws {
        // No more extensions than it needs: they are loaded for each request.
        try FileManager.default.createDirectory(
            atPath: folder + "/php",
            withIntermediateDirectories: true
        )
        try Data("extension=ctype\nextension=dom\nextension=mbstring\n".utf8)
            .write(to: URL(fileURLWithPath: folder + "/php/extensions.ini"))
        let program = #"""
            #!/usr/bin/php-cgi
            <?php
            error_reporting(E_ALL & ~E_DEPRECATED);
            require 'Sabre/autoload.php';
            class People extends Sabre\DAV\Auth\Backend\AbstractBasic {
                protected function validateUserPass($user, $password) {
                    $people = file(__DIR__ . '/users', FILE_IGNORE_NEW_LINES);
                    return in_array("$user:$password", $people, true);
                }
            }
            $server = new Sabre\DAV\Server(new Sabre\DAV\FS\Directory(__DIR__ . '/root/dav'));
            $server->setBaseUri('/dav/');
            $server->addPlugin(new Sabre\DAV\Auth\Plugin(new People(), 'dav'));
            $locks = new Sabre\DAV\Locks\Backend\File(__DIR__ . '/lock/locks');
            $server->addPlugin(new Sabre\DAV\Locks\Plugin($locks));
            $server->addPlugin(new Sabre\DAV\Browser\Plugin());
            $server->exec();

            """#
        try Data(program.utf8).write(to: URL(fileURLWithPath: folder + "/dav.php"))
        try FileManager.default.setAttributes(
            [.posixPermissions: 0o755],
            ofItemAtPath: folder + "/dav.php"
        )
    }

    // MARK: Ports

    private static func answers(_ port: UInt16) -> Bool {
        (try? withSocket { descriptor in
            var address = loopback(port: port)
            return unsafe withUnsafeMutablePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                    unsafe connect(
                        descriptor,
                        generic,
                        socklen_t(MemoryLayout<sockaddr_in>.size)
                    ) == 0
                }
            }
        }) ?? false
    }

    private static func withSocket<Value>(_ body: (Int32) throws -> Value) throws -> Value {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw NotStarted(log: "no socket") }
        defer { close(descriptor) }
        return try body(descriptor)
    }

    private static func loopback(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    // MARK: Clients

    private static let wire = Mutex<CurlClient?>(nil)

    /// The transport as the program builds it; `onTheWire` may put something between it and the network.
    public static func http(
        user: String = user,
        password: String = password,
        policy: RetryPolicy = RetryPolicy(),
        onTheWire: (any HTTPClient) -> any HTTPClient = { $0 }
    ) throws -> any HTTPClient {
        let curl = try wire.withLock { wire in
            if let curl = wire { return curl }
            let curl = try CurlClient()
            wire = curl
            return curl
        }
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        return AccountClient.make(
            wire: onTheWire(curl),
            tokens: FixedToken(password),
            signer: BasicSigner(user: user),
            rules: .webDAV,
            requests: RequestLimit(.webDAV),
            policy: policy,
            logger: logger
        )
    }

    private static let known = Mutex<[Kind: WebDAVAbilities]>([:])

    /// Signs in as `oort login` does, to the files or a folder in them.
    public func signIn(
        at place: String = "",
        user: String = user,
        password: String = password,
        through: (any HTTPClient) -> any HTTPClient = { $0 }
    ) async throws -> WebDAVDiscovery.Account {
        let http = through(try Self.http(user: user, password: password))
        var server = try await WebDAVDiscovery.server(at: url + place, http: http)
        server.address.user = user
        return try await WebDAVDiscovery.account(at: server, http: http)
    }

    /// A client of the server; its abilities are probed once for each kind of server.
    ///
    /// With `through`, its requests go through another client; with `onTheWire`, each of their tries.
    public func client(
        policy: RetryPolicy = RetryPolicy(),
        secondLook: Duration = .seconds(60),
        through: (any HTTPClient) -> any HTTPClient = { $0 },
        onTheWire: (any HTTPClient) -> any HTTPClient = { $0 }
    ) async throws -> WebDAVClient {
        let http = through(try Self.http(policy: policy, onTheWire: onTheWire))
        var abilities = Self.known.withLock { $0[kind] }
        if abilities == nil {
            let found = try await signIn().abilities
            Self.known.withLock { $0[kind] = found }
            abilities = found
        }
        return WebDAVClient(
            http: http,
            address: WebDAVAddress(
                origin: "http://127.0.0.1:\(port)",
                files: ["dav"],
                user: Self.user
            ),
            dialect: .plain,
            abilities: abilities ?? WebDAVAbilities(),
            secondLook: secondLook
        )
    }

    /// Refuses every login from now on.
    public func refuseAll() throws {
        try Data().write(to: URL(fileURLWithPath: folder + "/users"))
    }

    /// The bytes of a file as the server keeps it; nil where there is none.
    public func bytes(_ name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: files + "/" + name).map { Array($0) }
    }

    /// Writes a file behind the server's back.
    public func write(_ text: String, to name: String) throws {
        let path = files + "/" + name
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
    }

    /// Makes a folder behind the server's back.
    public func makeFolder(_ name: String) throws {
        let path = files + "/" + name
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: path)
    }

    /// Makes something behind the server's back whose name is bytes of Latin-1, and no UTF-8.
    public func makeUnnamed(in name: String, isFolder: Bool) throws {
        let path = Array((files + "/" + name + "/caf").utf8) + [0xE9, 0]
        let made = unsafe path.withUnsafeBytes { bytes -> Int32 in
            guard let text = unsafe bytes.bindMemory(to: CChar.self).baseAddress else { return -1 }
            if isFolder { return unsafe mkdir(text, 0o777) }
            let file = unsafe open(text, O_CREAT | O_WRONLY, 0o666)
            return file < 0 ? file : close(file)
        }
        guard made == 0 else { throw NotStarted(log: "errno \(errno)") }
    }

    /// The names in the account's root, as the disk has them.
    public var names: Set<String> {
        Set((try? FileManager.default.contentsOfDirectory(atPath: files)) ?? [])
    }
}
