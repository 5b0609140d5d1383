import Foundation
import OortFTP
import OortModel
import OortSignIn

/// A sign-in at a server that speaks FTP.
struct FTPLogin {
    /// The server, as a person writes it.
    var server: String
    /// The account's name; nil finds one.
    var name: String?
    /// The folder where the account begins; nil leaves it to `server`.
    var root: String?
    /// Whether nothing is encrypted.
    var isPlain = false

    /// Signs in; the account is then on the list.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ context: SignInContext) async throws {
        let person = context.person
        let address = try address(person)
        guard let service = Services.named("ftp") else { return }
        let user = address.user ?? ""
        if isPlain {
            person.warn(
                "The connection to \(TerminalText.line(address.host)) is not encrypted: everybody "
                    + "on the way can read your password and your files."
            )
        }
        let password = try person.secret("Password of \(TerminalText.line(user)): ")
        let settings = FTPSettings(caFile: context.surroundings.settings.caFile)
        let account: FTPAccount
        do throws(FTPSignIn.Failure) {
            account = try await FTPSignIn.account(
                at: address,
                password: password,
                settings: settings
            )
        } catch { throw failure(error, address, person) }
        try await context.entry.add(
            Credentials(client: nil, tokens: Tokens(accessToken: Secret(password))),
            at: String(decoding: try JSONEncoder().encode(account), as: UTF8.self),
            service: service,
            name: name
        )
    }

    private func address(_ person: any SignInPerson) throws(Failure) -> FTPAddress {
        guard var address = FTPAddress(server) else {
            throw Failure(
                "\(TerminalText.withoutSecret(server)) is no server.",
                advice: "Write it as [USER@]HOST[:PORT][/PATH], for example "
                    + "ada@ftp.example.org/photos; a password is no part of it."
            )
        }
        if isPlain {
            guard address.security == .explicit else {
                throw Failure(
                    "ftps:// is encrypted, and \(person.name(.plain)) is not.",
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
    private func failure(
        _ failure: FTPSignIn.Failure,
        _ address: FTPAddress,
        _ person: any SignInPerson
    ) -> Failure {
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
                    Ask for FTPS or SFTP there. With \(person.name(.plain)) everybody on the way can read your \
                    password and your files.
                    """
            )
        case .refused where isPlain && (detail.contains("TLS") || detail.contains("SSL")):
            Failure(
                "\(host) takes no connection that is not encrypted: \(detail)",
                advice: "Leave out \(person.name(.plain))."
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
