import OortModel

/// Where an account lies: a host that the person's own `ssh` reaches, and a folder there.
public struct SFTPAddress: Codable, Hashable, Sendable {
    /// The host's name, address or alias in `ssh_config`.
    public var host: String
    /// The user to sign in as; nil leaves it to `ssh_config`.
    public var user: String?
    /// The port; nil leaves it to `ssh_config`.
    public var port: Int?
    /// The folder where the account begins, from the server's root or, without a slash in front, from
    /// where the login begins; nil is where the login begins.
    public var folder: String?
    /// A file with a private key; nil leaves it to `ssh_config` and the agent.
    public var identity: String?
    /// What the token store has for the account; nil where `ssh` signs in without a secret.
    public var secret: SecretKind?
    /// Options as in `ssh_config`, `KEY=VALUE` each, which count before the person's own.
    public var options: [String] = []

    /// What `ssh` asks for.
    public enum SecretKind: String, Codable, Sendable {
        /// The password at the server.
        case password
        /// The passphrase of the key in `identity`, which no server ever gets.
        case passphrase
    }

    /// Reads `[USER@]HOST[:PORT][/PATH]`.
    ///
    /// An IPv6 address stands in brackets. `/PATH` begins at the server's root, `/~/PATH` where the login begins.
    ///
    /// Nil where there is no host, where `ssh` would take it for an option, or where it has a password in
    /// it.
    public init?(_ text: String) {
        host = ""
        var text = text[...]
        if text.hasPrefix("sftp://") { text = text.dropFirst("sftp://".count) }
        if let (server, path) = text.cut(atFirst: "/") {
            folder = path.dropping(beginning: "~/").map(String.init) ?? "/\(path)"
            if folder?.isEmpty == true { folder = nil }
            text = server
        }
        if let (user, server) = text.cut(atLast: "@") {
            // A password must not be in it: it would be an argument of `ssh`, which every process can read.
            guard Self.isPlain(user), !user.has(":") else { return nil }
            self.user = String(user)
            text = server
        }
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            let port = text[text.index(after: end)...]
            guard port.isEmpty || port.hasPrefix(":"), setPort(port.dropFirst()) else { return nil }
            text = text[text.index(after: text.startIndex)..<end]
        } else if text.filter({ $0 == ":" }).count == 1, let colon = text.firstIndex(of: ":") {
            guard setPort(text[text.index(after: colon)...]) else { return nil }
            text = text[..<colon]
        }
        guard Self.isPlain(text) else { return nil }
        host = String(text)
    }

    private mutating func setPort(_ text: Substring) -> Bool {
        guard !text.isEmpty else { return true }
        guard let number = Int(text), (1...65_535).contains(number) else { return false }
        port = number
        return true
    }

    /// Whether a text can be an argument of `ssh` that is no option.
    private static func isPlain(_ text: Substring) -> Bool {
        !text.isEmpty && !text.begins(with: "-")
            && text.unicodeScalars.allSatisfy { $0.value > 0x20 && $0.value != 0x7F }
    }

    /// The arguments of an `ssh` that asks a person about the server's key and tries no login.
    var introductionArguments: [String] {
        ["-oPreferredAuthentications=none"] + arguments(mayAsk: true) + ["--", host, "exit"]
    }

    /// What a person types to log in at the server by hand.
    public var command: String {
        "ssh " + (port.map { "-p \($0) " } ?? "") + (user.map { "\($0)@" } ?? "") + host
    }

    /// The name of the server in a file of known hosts.
    public var knownHost: String { port.map { $0 == 22 ? host : "[\(host)]:\($0)" } ?? host }

    /// The arguments of `ssh` up to and without the host.
    ///
    /// They come first, and so override the person's configuration: no terminal, no forwarding, no command
    /// from the configuration; a peer that is gone is noticed.
    func arguments(mayAsk: Bool) -> [String] {
        var arguments = ["-x", "-a", "-T"]
        var settings = [
            "ClearAllForwardings=yes", "PermitLocalCommand=no", "ControlPersist=no",
            "RemoteCommand=none", "ServerAliveInterval=15",
            "ServerAliveCountMax=3", "ConnectTimeout=15", "NumberOfPasswordPrompts=1",
            "BatchMode=\(mayAsk ? "no" : "yes")",
        ]
        settings.insert(contentsOf: options, at: 0)
        for setting in settings { arguments.append("-o\(setting)") }
        if let port { arguments += ["-p", "\(port)"] }
        if let user { arguments += ["-l", user] }
        if let identity { arguments += ["-i", identity] }
        return arguments
    }
}
