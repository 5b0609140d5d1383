import ArgumentParser
import Foundation
import OortFTP
import OortModel
import OortSignIn
import OortTransport

/// `oort login ftp`.
struct LoginFTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ftp",
        abstract: "A server that speaks FTP, encrypted (FTPS).",
        discussion: """
            The connection is encrypted, by TLS asked for on the usual port; ftps://HOST is for \
            servers that encrypt from the first byte, on a port of their own. --plain is for those \
            that cannot: everybody on the way can then read your password and your files.

            The server must list folders for programs (MLSD), as ProFTPD, Pure-FTPd and FileZilla \
            do; vsftpd does not. The password comes from --password-file, or is asked for here.

            What you delete goes to the folder .oort-trash of the account.
            """
    )

    @Argument(help: ArgumentHelp("The server.", valueName: "[user@]host[:port][/path]"))
    var server: String

    @Option(help: "Your name for the account, which is its folder (default: ftp).")
    var name: String?

    @Option(
        help: ArgumentHelp(
            "The folder where the account begins; without a slash in front, from where you log in.",
            valueName: "folder"
        )
    )
    var root: String?

    @Option(
        help: ArgumentHelp(
            "A file with the password and nothing else (- is standard input).",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Flag(help: "Do not encrypt: all on the way can read your password and your files.")
    var plain = false

    func run() async throws {
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        let address = try address()
        guard let service = Services.named("ftp") else { return }
        let user = address.user ?? ""
        if plain {
            Console.error(
                "The connection to \(TerminalText.line(address.host)) is not encrypted: everybody "
                    + "on the way can read your password and your files."
            )
        }
        let password = try SecretInput.read(
            passwordFile,
            prompt: "Password of \(TerminalText.line(user)): "
        )
        let settings = FTPSettings(caFile: surroundings.settings.caFile)
        let account: FTPAccount
        do throws(FTPSignIn.Failure) {
            account = try await FTPSignIn.account(
                at: address,
                password: password,
                settings: settings
            )
        } catch { throw failure(error, address) }
        let accounts = try await Accounts(surroundings)
        try await NewAccount(surroundings, accounts).add(
            Credentials(client: nil, tokens: Tokens(accessToken: Secret(password))),
            at: String(decoding: try JSONEncoder().encode(account), as: UTF8.self),
            service: service,
            name: name
        )
        await accounts.shutdown()
    }

    private func address() throws(Failure) -> FTPAddress {
        guard var address = FTPAddress(server) else {
            throw Failure(
                "\(TerminalText.withoutSecret(server)) is no server.",
                advice: "Write it as [USER@]HOST[:PORT][/PATH], for example "
                    + "ada@ftp.example.org/photos; a password is no part of it."
            )
        }
        if plain {
            guard address.security == .explicit else {
                throw Failure(
                    "ftps:// is encrypted, and --plain is not.",
                    advice: "Leave out one of them."
                )
            }
            address.security = .plain
        }
        if let root {
            let isHome = root.isSameText(as: "~") || root.isSameText(as: "~/") || root.isEmpty
            address.folder = isHome ? nil : root.dropping(beginning: "~/").map(String.init) ?? root
        }
        if address.user == nil { address.user = NSUserName() }
        return address
    }

    /// A sign-in that came to nothing, in words.
    private func failure(_ failure: FTPSignIn.Failure, _ address: FTPAddress) -> Failure {
        let host = TerminalText.line(address.host)
        let detail = TerminalText.line(failure.detail)
        return switch failure.reason {
        case .unreachable:
            Failure(
                "\(host) cannot be reached: \(detail)",
                advice: "Check the name, the port and the network, and try again."
                    + (address.security == .implicit
                        ? " ftps:// is for servers that encrypt from the first byte; others are HOST alone."
                        : "")
            )
        case .untrusted:
            Failure(
                "The certificate of \(host) is refused: \(detail)",
                advice: """
                    Somebody may stand in between. If the server has a certificate of its own making, \
                    save that as a PEM file and name it as ca_file in the settings, together with the \
                    authorities of your other accounts.
                    """
            )
        case .notEncrypted:
            Failure(
                "\(host) takes no encrypted connection: \(detail)",
                advice: """
                    Ask for FTPS or SFTP there. With --plain everybody on the way can read your \
                    password and your files.
                    """
            )
        case .refused where plain && (detail.contains("TLS") || detail.contains("SSL")):
            Failure(
                "\(host) takes no connection that is not encrypted: \(detail)",
                advice: "Leave out --plain."
            )
        case .refused:
            Failure(
                "\(host) refuses \(TerminalText.line(address.user ?? "")): \(detail)",
                advice: "Check the user and the password; it was tried once only."
            )
        case .noMachineListings:
            Failure(
                "\(host) lists folders for people only (LIST), not for programs (MLSD).",
                advice: """
                    Such listings have no seconds and no time zone, so changes would be missed: Oort \
                    does not use them. ProFTPD, Pure-FTPd and FileZilla's server have MLSD; many \
                    servers have SFTP, too: oort login sftp
                    """
            )
        case .noFolder:
            Failure(
                "The account cannot begin there: \(detail)",
                advice:
                    "Name a folder that is there: HOST/PATH, or HOST/~/PATH from where you log in."
            )
        case .other:
            Failure("\(host) did not answer as a server of FTP does: \(detail)")
        }
    }
}
