import ArgumentParser
import Foundation
import OortModel
import OortSFTP
import OortSignIn
import OortTransport

/// `oort login sftp`.
struct LoginSFTPCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sftp",
        abstract: "A server that your own ssh reaches.",
        discussion: """
            Oort starts your ssh, so that your ~/.ssh/config, keys, agent and known hosts count. If \
            the server is not known yet, ssh asks you about its key here. If no key and no agent \
            let you in, your password comes from --password-file, or is asked for; with --identity \
            it is the passphrase of that key, which no server gets. It is kept with the desktop's \
            keyring, or in a file that only you can read, and tried once only.

            What you delete goes to the folder .oort-trash of the account and stays there for 30 \
            days.
            """
    )

    @Argument(help: ArgumentHelp("The server.", valueName: "[user@]host[:port][/path]"))
    var server: String

    @Option(help: "Your name for the account, which is its folder (default: sftp).")
    var name: String?

    @Option(
        help: ArgumentHelp(
            "The folder where the account begins; without a slash in front, from where you log in.",
            valueName: "folder"
        )
    )
    var root: String?

    @Option(
        help: ArgumentHelp("A file with your private key.", valueName: "file"),
        completion: .file()
    )
    var identity: String?

    @Option(
        help: ArgumentHelp(
            "An option as in ssh_config; may be given often.",
            valueName: "key=value"
        )
    )
    var sshOption: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file with your password and nothing else, or with --identity the key's passphrase (- is "
                + "standard input).",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    func run() async throws {
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        if let name { try AccountName.check(name) }
        var address = try address()
        guard let service = Services.named("sftp") else { return }
        var secret: String?
        if let passwordFile { secret = try takeSecret(passwordFile, for: &address) }
        let folders = surroundings.folders
        var failure = await tried(address, secret, folders)
        let hasPerson = isatty(STDIN_FILENO) == 1
        if failure?.reason == .unknownHost, hasPerson {
            Console.error("The server is not known yet; ssh asks you about its key:")
            let connection = connection(address, nil, folders)
            do throws(SSHFailure) { try await connection.introduce() } catch { failure = error }
            await connection.close()
            failure = await tried(address, secret, folders)
        }
        if failure?.reason == .refused, hasPerson, secret == nil {
            Console.error("No key and no agent let you in.")
            secret = try takeSecret(nil, for: &address)
            failure = await tried(address, secret, folders)
        }
        if let failure { throw words(failure, address) }
        let accounts = try await Accounts(surroundings)
        try await NewAccount(surroundings, accounts).add(
            secret.map { Credentials(client: nil, tokens: Tokens(accessToken: Secret($0))) },
            at: String(decoding: try JSONEncoder().encode(address), as: UTF8.self),
            service: service,
            name: name
        )
        await accounts.shutdown()
    }

    /// The secret in a file or typed here, of the kind that the address then says.
    private func takeSecret(
        _ file: String?,
        for address: inout SFTPAddress
    ) throws(Failure) -> String {
        let kind: SFTPAddress.SecretKind = address.identity == nil ? .password : .passphrase
        let person = (address.user.map { "\($0) at " } ?? "") + address.host
        let secret = try SecretInput.read(
            file,
            prompt: kind == .password
                ? "Password of \(TerminalText.line(person)): "
                : "Passphrase of \(TerminalText.line(address.identity ?? "")): "
        )
        guard secret.utf8.count <= SSHAskpass.longestAnswer else {
            throw Failure(
                "The password is longer than ssh takes (\(SSHAskpass.longestAnswer) bytes).",
                advice: "The file holds the password and nothing else."
            )
        }
        address.secret = kind
        return secret
    }

    private func connection(
        _ address: SFTPAddress,
        _ secret: String?,
        _ folders: Folders
    ) -> SSHConnection {
        SSHConnection(
            address,
            folder: folders.socketFolder(),
            environment: ProcessInfo.processInfo.environment,
            secret: FixedToken(secret ?? "")
        )
    }

    /// Logs in once; why that came to nothing, nil where it did not.
    private func tried(
        _ address: SFTPAddress,
        _ secret: String?,
        _ folders: Folders
    ) async -> SSHFailure? {
        let connection = connection(address, secret, folders)
        var failure: SSHFailure?
        do throws(SSHFailure) { try await connection.signIn() } catch { failure = error }
        await connection.close()
        return failure
    }

    /// A sign-in that came to nothing, in words.
    private func words(_ failure: SSHFailure, _ address: SFTPAddress) -> Failure {
        let host = TerminalText.line(address.host)
        let detail = TerminalText.line(failure.detail)
        return switch failure.reason {
        case .unreachable:
            Failure(
                "\(host) cannot be reached: \(detail)",
                advice: "Check the name, the port and the network, and try again."
            )
        case .unknownHost:
            Failure(
                "It is not known whether the server is the one that you mean: \(detail)",
                advice: "Compare the key with what the server's owner says before you agree."
            )
        case .changedHost:
            Failure(
                "The server is not taken for the one that you mean: \(detail)",
                advice: "Ask the server's owner for its key; only then forget the old one: "
                    + "ssh-keygen -R \(Shell.quoted(address.knownHost))"
            )
        case .refused where address.secret == nil && address.identity != nil:
            Failure(
                "The key does not let you in: \(detail)",
                advice: "If it has a passphrase, give that: --password-file FILE, or - for "
                    + "standard input. Without --identity the file holds your password at the server."
            )
        case .refused where address.secret == nil:
            Failure(
                "No key and no agent let you in: \(detail)",
                advice: "Name a key with --identity FILE, or give your password: --password-file "
                    + "FILE, or - for standard input."
            )
        case .refused:
            Failure(
                "The server does not let you in: \(detail)",
                advice: address.secret == .password
                    ? "Check the user and the password, and sign in again."
                    : "Check the user, the key and its passphrase, and sign in again. Without "
                        + "--identity the file holds your password at the server."
            )
        case .noSFTP:
            Failure(
                detail,
                advice: "Ask the server's owner for SFTP, or take another service: oort help login"
            )
        case .badOptions:
            Failure(detail, advice: "Look at --ssh-option, and at your ~/.ssh/config.")
        case .noProgram, .local, .cancelled: Failure(detail)
        }
    }

    private func address() throws(Failure) -> SFTPAddress {
        guard var address = SFTPAddress(server) else {
            throw Failure(
                "\(TerminalText.withoutSecret(server)) is no server.",
                advice: "Write it as [USER@]HOST[:PORT][/PATH], for example ada@nas:2222/home/ada; "
                    + "a password is no part of it."
            )
        }
        if let root { address.folder = root }
        if let identity {
            let path = MountPoint(identity).path
            var isFolder: ObjCBool = false
            let isThere = unsafe FileManager.default.fileExists(
                atPath: path,
                isDirectory: &isFolder
            )
            guard isThere, !isFolder.boolValue, FileManager.default.isReadableFile(atPath: path)
            else {
                throw Failure(
                    "The key \(path) cannot be read.",
                    advice: "Name the file with your private key, or leave it to ssh and its agent."
                )
            }
            address.identity = path
        }
        for option in sshOption where !option.contains("=") {
            throw Failure(
                "\"\(TerminalText.line(option))\" is no option of ssh.",
                advice: "Write it as in ssh_config with an equals sign: --ssh-option ProxyJump=gate"
            )
        }
        for option in sshOption where Self.skipsHostKeys(option) {
            throw Failure(
                "\"\(TerminalText.line(option))\" would have anybody's server taken for yours.",
                advice: "Leave it out. Whether it is your server ssh asks you once, at the sign-in."
            )
        }
        address.options = sshOption
        return address
    }

    /// Whether an option of ssh's leaves it unchecked which server answers.
    private static func skipsHostKeys(_ option: String) -> Bool {
        let words = option.lowercased().split { $0 == "=" || $0 == " " || $0 == "\t" || $0 == "\"" }
        guard words.count > 1 else { return false }
        return switch words[0] {
        case "stricthostkeychecking": !["yes", "true", "ask"].contains(words[1])
        case "nohostauthenticationforlocalhost": !["no", "false"].contains(words[1])
        default: false
        }
    }
}
