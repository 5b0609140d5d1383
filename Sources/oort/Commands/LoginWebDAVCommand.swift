import ArgumentParser
import Foundation
import OortModel
import OortSignIn
import OortTransport
import OortWebDAV

/// `oort login nextcloud`.
struct LoginNextcloudCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "nextcloud",
        abstract: "A Nextcloud, ownCloud or OpenCloud, in your browser or with an app password.",
        discussion: """
            Opens the server's page in your browser, where you log in and grant access; Oort never \
            sees your password. Without a browser on this machine, open the address that is shown \
            on any other.

            With --user and --password-file no browser is needed: make an app password in the \
            server's settings, under Security. An OpenCloud or ownCloud Infinite Scale always wants an \
            app token: you are asked for it.
            """
    )

    @Argument(help: ArgumentHelp("The server: whatever you see in your browser.", valueName: "url"))
    var url: String

    @OptionGroup var account: DAVOptions

    @Flag(help: "Open no browser here: show the address only.")
    var noBrowser = false

    func run() async throws {
        let signIn = try await DAVSignIn(account, service: "nextcloud")
        var server = try await signIn.server(at: url, dialect: nil)
        guard server.dialect != .plain else {
            throw Failure(
                "What answers at \(TerminalText.line(url)) is no Nextcloud"
                    + (server.product.map { ", but \(TerminalText.line($0))." } ?? "."),
                advice: "For any other server: oort login webdav URL"
            )
        }
        let password: String
        let isGranted =
            server.dialect != .infinitescale && account.user == nil && account.passwordFile == nil
        if isGranted {
            let granted = try await grant(at: server, signIn)
            server.address.user = granted.user
            password = granted.appPassword
        } else {
            password = try signIn.choose(&server)
        }
        try await signIn.end(server, password: password, isGranted: isGranted)
    }

    private func grant(
        at server: WebDAVDiscovery.Server,
        _ signIn: DAVSignIn
    ) async throws(Failure) -> NextcloudLoginFlow.Credentials {
        do throws(WebDAVSignInError) {
            let host = ProcessInfo.processInfo.hostName
            let flow = try await NextcloudLoginFlow.start(
                at: server,
                name: "Oort (\(host))",
                http: signIn.http
            )
            Console.write("In a browser, here or on any device, go to\n\n  \(flow.loginURL)\n")
            Console.write("log in, and grant access to \"Oort (\(TerminalText.line(host)))\".")
            if !noBrowser { Browser.open(flow.loginURL) }
            let end = ContinuousClock.now + NextcloudLoginFlow.lifetime
            while ContinuousClock.now < end {
                if let granted = try await flow.poll() { return granted }
                guard (try? await Task.sleep(for: NextcloudLoginFlow.pollPause)) != nil else {
                    break
                }
            }
        } catch {
            throw Failure(error.description)
        }
        throw Failure(
            "Nobody granted access within 20 minutes.",
            advice: "Try again: oort login nextcloud \(Shell.quoted(url))"
        )
    }
}

/// `oort login webdav`.
struct LoginWebDAVCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "webdav",
        abstract: "A server that speaks WebDAV.",
        discussion: """
            What the server can do is tried once, with a few small files in a folder of its own that \
            goes again. The password comes from --password-file, or is asked for here. At an OpenCloud or \
            ownCloud Infinite Scale it is an app token, which you make on the server's page; --space \
            names another space than your own.
            """
    )

    @Argument(help: ArgumentHelp("The address of your files.", valueName: "url"))
    var url: String

    @OptionGroup var account: DAVOptions

    @Option(help: "The kind of server, where it is not recognised by itself.")
    var dialect: DialectName?

    func run() async throws {
        let signIn = try await DAVSignIn(account, service: "webdav")
        var server = try await signIn.server(at: url, dialect: dialect?.dialect)
        let password = try signIn.choose(&server)
        try await signIn.end(server, password: password)
    }
}

/// A dialect's name as an argument.
struct DialectName: ExpressibleByArgument, Sendable {
    /// The dialect.
    let dialect: WebDAVDialect

    init?(argument: String) {
        guard let dialect = WebDAVDialect(rawValue: argument.lowercased()) else { return nil }
        self.dialect = dialect
    }

    static var allValueStrings: [String] { WebDAVDialect.allCases.map(\.rawValue) }
}

/// What every sign-in at a WebDAV server takes.
struct DAVOptions: ParsableArguments {
    @Option(help: "Your name for the account, which is its folder (default: the service's).")
    var name: String?

    @Option(help: ArgumentHelp("The folder where the account begins.", valueName: "folder"))
    var root: String?

    @Option(
        help: ArgumentHelp(
            "The space that is the account, at an OpenCloud or Infinite Scale (default: your own).",
            valueName: "name"
        )
    )
    var space: String?

    @Option(help: "The name with which you log in.")
    var user: String?

    @Option(
        help: ArgumentHelp(
            "A file with the password and nothing else (- is standard input).",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?
}

/// The steps of a sign-in at a WebDAV server.
struct DAVSignIn {
    private let options: DAVOptions
    private let service: CloudService
    private let surroundings: Surroundings
    private let accounts: Accounts

    init(_ options: DAVOptions, service name: String) async throws {
        self.options = options
        guard let service = Services.named(name) else { throw ExitCode.failure }
        self.service = service
        surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name = options.name { try AccountName.check(name) }
        accounts = try await Accounts(surroundings)
    }

    /// The way to the server, without a password.
    var http: any HTTPClient { accounts.http }

    /// What the address leads to, with the space and the folder that are wished for there.
    func server(
        at url: String,
        dialect: WebDAVDialect?
    ) async throws(Failure) -> WebDAVDiscovery.Server {
        do throws(WebDAVSignInError) {
            var server = try await WebDAVDiscovery.server(at: url, dialect: dialect, http: http)
            try server.choose(
                space: options.space,
                folder: options.root.map { root in
                    root.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
                }
            )
            return server
        } catch { throw Failure(error.description) }
    }

    /// Puts the user into the address, and returns the password.
    func choose(_ server: inout WebDAVDiscovery.Server) throws(Failure) -> String {
        if let user = options.user { server.address.user = user }
        if server.dialect == .infinitescale { askForToken(of: &server) }
        guard let user = server.address.user, !user.isEmpty, !user.contains(":") else {
            throw Failure(
                "Who logs in is not known.",
                advice: "Name the user, without a colon: --user NAME"
            )
        }
        let what = server.dialect == .infinitescale ? "App token" : "Password"
        return try SecretInput.read(
            options.passwordFile,
            prompt: "\(what) of \(TerminalText.line(user)): "
        )
    }

    /// Says where an app token is made, and asks for the user name that goes with it, if a person is at the
    /// terminal.
    private func askForToken(of server: inout WebDAVDiscovery.Server) {
        guard options.passwordFile == nil, isatty(STDIN_FILENO) == 1 else { return }
        let address = server.address
        let page = (address.base + ["account"]).joined(separator: "/")
        Console.write(
            "The server wants an app token, which you make on its page, under App Tokens:\n\n"
                + "  \(TerminalText.line("\(address.origin)/\(page)"))\n"
        )
        guard address.user == nil else { return }
        Console.write("The name with which you log in there:")
        server.address.user = readLine()?.trimmingCharacters(in: .whitespaces)
    }

    /// Signs in, finds out what the server can do, and adds the account.
    ///
    /// An app password that was made for this sign-in (`isGranted`, or in place of the password) is
    /// withdrawn if the account does not come on the list: no person knows it.
    func end(
        _ server: WebDAVDiscovery.Server,
        password: String,
        isGranted: Bool = false
    ) async throws {
        // The person's own password opens more than files, and is kept nowhere.
        var kept = password
        let entry = NewAccount(surroundings, accounts)
        let entered: RegisteredAccount
        do {
            let signed = Self.client(of: server, Secret(password), http: http)
            let account: WebDAVDiscovery.Account
            do throws(WebDAVSignInError) {
                account = try await WebDAVDiscovery.account(at: server, http: signed)
                kept = try await WebDAVDiscovery.appPassword(for: account, http: signed) ?? password
            } catch { throw Failure(error.description) }
            entered = try await entry.enter(
                Credentials(client: nil, tokens: Tokens(accessToken: Secret(kept))),
                at: String(decoding: try JSONEncoder().encode(account), as: UTF8.self),
                service: service,
                name: options.name
            )
        } catch {
            if isGranted || kept != password { await takeBack(Secret(kept), at: server) }
            throw error
        }
        try await entry.announce(entered, at: service, isSecret: true)
        await accounts.shutdown()
    }

    /// Has a server forget an app password; if that fails, tells the person that it exists.
    private func takeBack(_ password: Secret, at server: WebDAVDiscovery.Server) async {
        do throws(WebDAVSignInError) {
            let signed = Self.client(of: server, password, http: http)
            try await WebDAVDiscovery.removeAppPassword(at: server, http: signed)
        } catch {
            Console.error(
                "\(error.description) Nobody knows it: remove it in the server's settings, under "
                    + "Security."
            )
        }
    }

    /// The way to a server for who knows a password there.
    static func client(
        of server: WebDAVDiscovery.Server,
        _ password: Secret,
        http: any HTTPClient
    ) -> any HTTPClient {
        AccountClient.make(
            wire: http,
            tokens: FixedToken(password.revealed()),
            signer: BasicSigner(user: server.address.user ?? ""),
            rules: .webDAV,
            requests: RequestLimit(.webDAV),
            policy: Accounts.patience,
            logger: SilentLog.logger
        )
    }
}

/// A secret that a person gives on the way in: never an argument, which every process can read.
enum SecretInput {
    /// The secret in a file, on standard input (`-`), or typed at the prompt where no file is named.
    ///
    /// Line ends at the end are not part of it, of whichever system.
    ///
    /// - Throws: `Failure` where nothing can be read, or no person is there to be asked.
    static func read(_ file: String?, prompt: String) throws(Failure) -> String {
        let text: String
        if let file {
            text = try String(decoding: bytes(of: file), as: UTF8.self)
        } else {
            guard let typed = Console.readHiddenLine(prompt: prompt) else {
                throw Failure(
                    "The password is not given.",
                    advice: "Put it into a file that only you can read: --password-file FILE, or - "
                        + "for standard input."
                )
            }
            text = typed
        }
        // Scalars, since to Swift a carriage return and a line feed are one character.
        var password = text.unicodeScalars
        while let last = password.last, last == "\n" || last == "\r" { password.removeLast() }
        guard !password.isEmpty, !password.contains(where: { "\n\r\0".unicodeScalars.contains($0) })
        else {
            throw Failure(
                "The password is empty, or more than one line.",
                advice: "The file holds the password and nothing else."
            )
        }
        return String(password)
    }

    /// What a file holds, or standard input (`-`): at most 64 KiB.
    static func bytes(of file: String) throws(Failure) -> [UInt8] {
        let path = file == "-" ? "/dev/stdin" : MountPoint(file).path
        do {
            let handle = try FileHandle(forReadingFrom: URL(filePath: path))
            defer { try? handle.close() }
            var bytes: [UInt8] = []
            while bytes.count <= 65_536, let more = try handle.read(upToCount: 65_536),
                !more.isEmpty
            {
                bytes += more
            }
            guard bytes.count <= 65_536 else {
                throw Failure("\(path) is too long.", advice: "Name a file with the secret alone.")
            }
            return bytes
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(
                "\(path) cannot be read: \(error.reason)",
                advice: "Name a file that you can read."
            )
        }
    }
}
