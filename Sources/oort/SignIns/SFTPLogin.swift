import Foundation
import OortModel
import OortSFTP
import OortSignIn
import OortTransport

/// A sign-in at a server that the person's own `ssh` reaches.
struct SFTPLogin {
    /// The server, as a person writes it.
    var server: String
    /// The account's name; nil finds one.
    var name: String?
    /// The folder where the account begins; nil leaves it to `server`.
    var root: String?
    /// A file with a private key.
    var identity: String?
    /// Options as in `ssh_config`.
    var options: [String] = []

    /// Signs in; the account is then on the list.
    ///
    /// - Throws: `Failure` in words for the person.
    func run(_ context: SignInContext) async throws {
        let person = context.person
        var address = try address(person)
        guard let service = Services.named("sftp") else { return }
        var secret: String?
        if let given = try person.givenSecret() { secret = try checked(given, for: &address) }
        let folders = context.surroundings.folders
        var failure = await tried(address, secret, folders)
        if failure?.reason == .unknownHost {
            let connection = connection(address, nil, folders)
            var isAsked = false
            do throws(SSHFailure) { isAsked = try await person.introduce(connection) } catch {
                failure = error
            }
            await connection.close()
            if isAsked { failure = await tried(address, secret, folders) }
        }
        if failure?.reason == .refused, person.canBeAsked, secret == nil {
            person.warn("No key and no agent let you in.")
            secret = try checked(try person.secret(prompt(address)), for: &address)
            failure = await tried(address, secret, folders)
        }
        if let failure { throw words(failure, address, person) }
        try await context.entry.add(
            secret.map { Credentials(client: nil, tokens: Tokens(accessToken: Secret($0))) },
            at: String(decoding: try JSONEncoder().encode(address), as: UTF8.self),
            service: service,
            name: name
        )
    }

    private func prompt(_ address: SFTPAddress) -> String {
        guard let identity = address.identity else {
            let who = (address.user.map { "\($0) at " } ?? "") + address.host
            return "Password of \(TerminalText.line(who)): "
        }
        return "Passphrase of \(TerminalText.line(identity)): "
    }

    /// The secret, whose kind the address then says.
    private func checked(
        _ secret: String,
        for address: inout SFTPAddress
    ) throws(Failure) -> String {
        guard secret.utf8.count <= SSHAskpass.longestAnswer else {
            throw Failure(
                "The password is longer than ssh takes (\(SSHAskpass.longestAnswer) bytes).",
                advice: "The file holds the password and nothing else."
            )
        }
        address.secret = address.identity == nil ? .password : .passphrase
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
        guard !Task.isCancelled else { return SSHFailure(.cancelled, "the sign-in was cancelled") }
        let connection = connection(address, secret, folders)
        let failure = await withTaskCancellationHandler { () -> SSHFailure? in
            do throws(SSHFailure) {
                try await connection.signIn()
                return nil
            } catch { return error }
        } onCancel: {
            // Ends by itself.
            Task { await connection.close() }
        }
        await connection.close()
        return failure
    }

    /// A sign-in that came to nothing, in words.
    private func words(
        _ failure: SSHFailure,
        _ address: SFTPAddress,
        _ person: any SignInPerson
    ) -> Failure {
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
        case .refused: refusal(address, detail, person)
        case .noSFTP:
            Failure(
                detail,
                advice: "Ask the server's owner for SFTP, or take another service: oort help login"
            )
        case .badOptions:
            Failure(
                detail,
                advice: "Look at \(person.name(.sshOption)), and at your ~/.ssh/config."
            )
        case .noProgram, .local, .cancelled: Failure(detail)
        }
    }

    private func refusal(
        _ address: SFTPAddress,
        _ detail: String,
        _ person: any SignInPerson
    ) -> Failure {
        let isOfKey = address.identity != nil
        let otherwise = "Without \(person.name(.identity)) it is your password at the server."
        switch (address.secret, isOfKey) {
        case (nil, true):
            return Failure(
                "The key does not let you in: \(detail)",
                advice: "If it has a passphrase, give that: \(person.name(.passwordFile)). "
                    + otherwise
            )
        case (nil, false):
            return Failure(
                "No key and no agent let you in: \(detail)",
                advice: "Name a key with \(person.name(.identity)), or give your password: "
                    + "\(person.name(.passwordFile))."
            )
        case (.password, _):
            return Failure(
                "The server does not let you in: \(detail)",
                advice: "Check the user and the password, and sign in again."
            )
        case (.passphrase, _):
            return Failure(
                "The server does not let you in: \(detail)",
                advice: "Check the user, the key and its passphrase, and sign in again. "
                    + otherwise
            )
        }
    }

    private func address(_ person: any SignInPerson) throws(Failure) -> SFTPAddress {
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
        for option in options where !option.contains("=") {
            throw Failure(
                "\"\(TerminalText.line(option))\" is no option of ssh.",
                advice: "Write it as in ssh_config with an equals sign: "
                    + "\(person.name(.sshOption)) ProxyJump=gate"
            )
        }
        for option in options where Self.skipsHostKeys(option) {
            throw Failure(
                "\"\(TerminalText.line(option))\" would have anybody's server taken for yours.",
                advice: "Leave it out. Whether it is your server ssh asks you once, at the sign-in."
            )
        }
        address.options = options
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
