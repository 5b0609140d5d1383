import ArgumentParser
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
        let person = TerminalPerson(
            passwordFile: account.passwordFile,
            opensBrowser: !noBrowser
        )
        let login = account.login(at: url)
        try await SignInContext.run(named: account.name, for: person) {
            try await login.run($0, isCloud: true)
        }
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
        let person = TerminalPerson(passwordFile: account.passwordFile)
        var login = account.login(at: url)
        login.dialect = dialect?.dialect
        try await SignInContext.run(named: account.name, for: person) {
            try await login.run($0, isCloud: false)
        }
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

    /// The sign-in that is wished for.
    func login(at url: String) -> DAVLogin {
        DAVLogin(url: url, name: name, root: root, space: space, user: user)
    }
}
