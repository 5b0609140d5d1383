import ArgumentParser
import Foundation
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
        let person = TerminalPerson(opensBrowser: !noBrowser)
        let login = CloudLogin(
            service: service.service,
            access: service.access,
            name: name,
            root: root,
            clientID: clientID,
            clientSecretFile: clientSecretFile,
            tokenFile: tokenFile
        )
        try await SignInContext.run(named: name, for: person) { context in
            try await login.run(
                context,
                register: { () throws(Failure) in try await register(context) },
                consent: { signIn throws(SignInError) in
                    let dialog = SignInDialog(service: login.service, signIn: signIn)
                    return try await dialog.run(opensBrowser: !noBrowser)
                }
            )
        }
    }

    /// The registration that the person makes now; nil where nobody is there.
    private func register(_ context: SignInContext) async throws(Failure) -> OAuthClient? {
        let (service, access) = (service.service, service.access)
        guard let guide = access.registration, RegistrationDialog.isPossible else { return nil }
        let dialog = RegistrationDialog(service, guide, opensBrowser: !noBrowser) {
            client throws(SignInError) in
            try await context.accounts.signIn(service, access, client).registrationState()
        }
        let made = try await dialog.run()
        var lines = [
            "The registration is kept with the account. For more accounts of yours at \(service.title),",
            "put it into \(context.surroundings.folders.settingsFile):",
            "  [\(service.name)]",
            "  client_id = \"\(TerminalText.line(made.id))\"",
        ]
        if made.secret != nil {
            lines.append("  client_secret_file = \"FILE\"   # with the secret alone")
        }
        Console.write(lines.joined(separator: "\n") + "\n")
        return made
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
