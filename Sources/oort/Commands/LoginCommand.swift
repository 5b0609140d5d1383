import ArgumentParser
import Foundation
import OortModel
import OortSignIn

/// `oort login`.
struct LoginCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "login",
        abstract: "Sign in to a cloud, or sign in again.",
        usage: """
            oort login dropbox|drive|onedrive|box [<options>]
            oort login nextcloud URL [<options>]
            oort login webdav URL [<options>]
            oort login sftp [USER@]HOST[:PORT][/PATH] [<options>]
            oort login ftp [USER@]HOST[:PORT][/PATH] [<options>]
            oort login s3 BUCKET[/PREFIX] [<options>]
            oort login weather [<options>]
            """,
        discussion: """
            The account becomes a folder under the mount point, at once if a mount runs.
            `oort help login cloud` says more of the first four, `oort help login nextcloud` and so on of \
            each of the others.
            """,
        subcommands: [
            LoginCloudCommand.self, LoginNextcloudCommand.self, LoginWebDAVCommand.self,
            LoginSFTPCommand.self, LoginFTPCommand.self, LoginS3Command.self,
            LoginWeatherCommand.self,
        ],
        defaultSubcommand: LoginCloudCommand.self
    )
}

/// `oort login dropbox`, `drive`, `onedrive` and `box`.
struct LoginCloudCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cloud",
        abstract: "Dropbox, Google Drive, OneDrive or Box, in your browser.",
        usage: "oort login dropbox|drive|onedrive|box [<options>]",
        discussion: """
            Opens the service's page in your browser and waits for your answer there. The account \
            becomes a folder under the mount point, at once if a mount runs.

            These services only let in programs that are registered there: without a client id, here \
            or in config.toml, `oort login` leads you through a registration of your own, page by page.
            """
    )

    @Argument(help: "The service.")
    var service: ServiceName

    @Option(help: "Your name for the account, which is its folder (default: the service's).")
    var name: String?

    @Option(
        name: .customLong("client-id"),
        help: ArgumentHelp("The client id of your registration.", valueName: "id")
    )
    var clientID: String?

    @Option(
        help: ArgumentHelp(
            "A file with the registration's secret, if it has one.",
            valueName: "file"
        ),
        completion: .file()
    )
    var clientSecretFile: String?

    @Option(
        help: ArgumentHelp(
            "Take the tokens from this JSON file (- is standard input) in place of a browser.",
            valueName: "file"
        ),
        completion: .file()
    )
    var tokenFile: String?

    @Option(
        help: ArgumentHelp(
            "Begin the account at this folder (Box only; / for all of it).",
            valueName: "folder"
        )
    )
    var root: String?

    @Flag(help: "Open no browser here: show an address for one on any machine.")
    var noBrowser = false

    func run() async throws {
        let path = try beginning()
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        let accounts = try await Accounts(surroundings)
        let (service, access) = (service.service, service.access)
        let settings = surroundings.settings.service(service.name)
        let client = try await client(service, settings, accounts)
        let credentials: Credentials
        if let tokenFile {
            credentials = Credentials(client: client, tokens: try TokenFile.read(tokenFile))
        } else {
            let client = try await registered(client, service, access, accounts, surroundings)
            let signIn = accounts.signIn(service, access, client)
            guard client.secret != nil || !signIn.service.needsClientSecret else {
                throw Self.noSecret(service, client, surroundings)
            }
            let dialog = SignInDialog(service: service, signIn: signIn)
            credentials = try await dialog.run(opensBrowser: !noBrowser)
        }
        try await NewAccount(surroundings, accounts).add(
            credentials,
            beginningAt: path,
            service: service,
            name: name
        )
    }

    /// The names of the folder where the account is to begin, none for the whole account; nil where the
    /// person gave none.
    ///
    /// - Throws: `Failure` where the service's accounts cannot begin at one, before anybody signs in.
    private func beginning() throws(Failure) -> [String]? {
        guard let root else { return nil }
        let path = root.parts(between: "/").map(String.init).filter { !$0.isEmpty }
        guard !path.isEmpty else { return [] }
        guard service.access.beginsAtFolders else {
            throw Failure(
                "An account at \(service.service.title) cannot begin at a folder.",
                advice: "Leave --root out; a folder that you do not want to see can be "
                    + "left out of the mount: leave_out in config.toml."
            )
        }
        return path
    }

    /// The registration: from the flags, the settings, or the last sign-in under this name.
    private func client(
        _ service: CloudService,
        _ settings: Settings.Service,
        _ accounts: Accounts
    ) async throws(Failure) -> OAuthClient? {
        guard let id = clientID ?? settings.clientID else {
            return try await accounts.client(ofAccount: name ?? service.name)
        }
        let file = clientSecretFile ?? settings.clientSecretFile
        return OAuthClient(
            id: id,
            secret: try file.map { path throws(Failure) in try ClientSecretFile.read(path) }
        )
    }

    /// The registration that there is, or that the person makes now.
    private func registered(
        _ client: OAuthClient?,
        _ service: CloudService,
        _ access: OAuthAccess,
        _ accounts: Accounts,
        _ surroundings: Surroundings
    ) async throws(Failure) -> OAuthClient {
        if let client { return client }
        guard let guide = access.registration, RegistrationDialog.isPossible else {
            throw Self.noRegistration(service, surroundings)
        }
        let dialog = RegistrationDialog(service, guide, opensBrowser: !noBrowser) {
            client throws(SignInError) in
            try await accounts.signIn(service, access, client).registrationState()
        }
        let made = try await dialog.run()
        var lines = [
            "The registration is kept with the account. For more accounts of yours at \(service.title),",
            "put it into \(surroundings.folders.settingsFile):",
            "  [\(service.name)]",
            "  client_id = \"\(TerminalText.line(made.id))\"",
        ]
        if made.secret != nil {
            lines.append("  client_secret_file = \"FILE\"   # with the secret alone")
        }
        Console.write(lines.joined(separator: "\n") + "\n")
        return made
    }

    private static func noRegistration(
        _ service: CloudService,
        _ surroundings: Surroundings
    ) -> Failure {
        Failure(
            "\(service.title) only lets in programs that are registered there, and there is no client id.",
            advice: """
                Register once as README.md says, then: oort login \(service.name) --client-id ID
                or put it into \(surroundings.folders.settingsFile):
                  [\(service.name)]
                  client_id = "ID"
                """
        )
    }
}

extension LoginCloudCommand {
    fileprivate static func noSecret(
        _ service: CloudService,
        _ client: OAuthClient,
        _ surroundings: Surroundings
    ) -> Failure {
        Failure(
            "\(service.title) allows no sign-in under a registration without its secret.",
            advice: """
                Put the client secret, which \(service.title) shows beside the client id, into a file \
                that only you can read, then: oort login \(service.name) \
                --client-id \(TerminalText.line(client.id)) --client-secret-file FILE
                or put it into \(surroundings.folders.settingsFile):
                  [\(service.name)]
                  client_id = "ID"
                  client_secret_file = "FILE"
                """
        )
    }
}

/// The end of every sign-in: the account is put on the list, and a running mount has it at once.
struct NewAccount {
    private let surroundings: Surroundings
    private let accounts: Accounts

    init(_ surroundings: Surroundings, _ accounts: Accounts) {
        self.surroundings = surroundings
        self.accounts = accounts
    }

    /// Asks the service whose account it is, and says so on the terminal.
    ///
    /// - Throws: as `Accounts.add`.
    func add(
        _ credentials: Credentials?,
        at address: String? = nil,
        beginningAt path: [String]? = nil,
        service: CloudService,
        name: String?
    ) async throws {
        let account = try await enter(
            credentials,
            at: address,
            beginningAt: path,
            service: service,
            name: name
        )
        try await announce(account, at: service, isSecret: credentials != nil)
    }

    /// Asks the service whose account it is, and puts it on the list.
    ///
    /// - Throws: as `Accounts.add`; the account is then not on the list.
    func enter(
        _ credentials: Credentials?,
        at address: String? = nil,
        beginningAt path: [String]? = nil,
        service: CloudService,
        name: String?
    ) async throws -> RegisteredAccount {
        let control = ControlClient(folders: surroundings.folders)
        // Read only now: a person takes minutes to sign in.
        let kept =
            control.isMountRunning
            ? try await control.keptAccounts()
            : try RestingState(folders: surroundings.folders).keptAccounts()
        return try await accounts.add(
            credentials,
            at: address,
            beginningAt: path,
            service: service,
            name: name,
            kept: kept
        )
    }

    /// Says that an account is on the list, and notifies a running mount; `isSecret` is whether the account
    /// signs in with something that the token store holds.
    func announce(
        _ account: RegisteredAccount,
        at service: CloudService,
        isSecret: Bool
    ) async throws {
        let control = ControlClient(folders: surroundings.folders)
        let person = [account.displayName, account.email].compactMap(\.self)
            .joined(separator: ", ")
        Console.write(
            "Signed in to \(service.title) as \(TerminalText.line(person)); the account is \"\(account.name)\"."
        )
        if isSecret {
            Console.write("What it signs in with lies in \(accounts.store.place).")
        }
        if control.isMountRunning {
            try await control.accountAdded(account.name)
            Console.write("It is mounted now.")
        } else {
            Console.write("Mount it: oort mount")
        }
    }
}

/// A file with the secret of a registration.
enum ClientSecretFile {
    /// The secret in a file that holds nothing else.
    ///
    /// - Throws: `Failure` naming the file when it cannot be read.
    static func read(_ path: String) throws(Failure) -> Secret {
        let path = MountPoint(path).path
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw Failure(
                "The client secret's file \(path) cannot be read.",
                advice: "Name a text file that holds the secret and nothing else."
            )
        }
        return Secret(text.trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// The name of a service with OAuth as an argument.
struct ServiceName: ExpressibleByArgument, Sendable {
    /// The service.
    let service: CloudService
    /// How one signs in to it.
    let access: OAuthAccess

    init?(argument: String) {
        guard let service = Services.named(argument.lowercased()), let access = service.oauth else {
            return nil
        }
        self.service = service
        self.access = access
    }

    static var allValueStrings: [String] { Services.withOAuth.map(\.name) }
}
