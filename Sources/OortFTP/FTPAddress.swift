import OortModel

/// Where an account lies: a server that speaks FTP, and a folder there.
public struct FTPAddress: Codable, Hashable, Sendable {
    /// What protects the connection.
    public enum Security: String, Codable, Sendable {
        /// TLS, asked for on the usual port (`AUTH TLS`) before anything else is sent.
        case explicit
        /// TLS from the first byte, on a port of its own.
        case implicit
        /// Nothing: password and contents can be read on the way.
        case plain
    }

    /// The host's name or address.
    public var host: String
    /// Who logs in.
    public var user: String?
    /// The port; nil is the usual one.
    public var port: Int?
    /// The folder where the account begins, from the server's root or, without a slash in front, from
    /// where the login begins; nil is where the login begins.
    public var folder: String?
    /// What protects the connection.
    public var security = Security.explicit

    /// Reads `[USER@]HOST[:PORT][/PATH]`, `ftp://` or `ftpes://` in front of it or, for TLS from the first
    /// byte, `ftps://`.
    ///
    /// An IPv6 address stands in brackets. `/PATH` begins at the server's root, `/~/PATH` where the login
    /// begins. Nil where there is no host, or a password is in it.
    public init?(_ text: String) {
        host = ""
        var text = text[...]
        if let rest = text.dropping(beginning: "ftps://") {
            security = .implicit
            text = rest
        } else {
            text =
                text.dropping(beginning: "ftp://") ?? text.dropping(beginning: "ftpes://") ?? text
        }
        if let (server, path) = text.cut(atFirst: "/") {
            // Of another protocol.
            guard !server.ends(with: ":") || !path.begins(with: "/") else { return nil }
            if path.isSameText(as: "~") || path.isSameText(as: "~/") {
                folder = nil
            } else {
                folder = path.dropping(beginning: "~/").map(String.init) ?? "/\(path)"
            }
            text = server
        }
        if let (user, server) = text.cut(atLast: "@") {
            guard Self.isPlain(user), !user.has(":") else { return nil }
            self.user = String(user)
            text = server
        }
        if text.begins(with: "["), let (address, port) = text.dropFirst().cut(atFirst: "]") {
            guard port.isEmpty || port.begins(with: ":"), setPort(port.dropFirst()),
                address.utf8.allSatisfy({
                    Self.isHexDigit($0) || $0 == UInt8(ascii: ":") || $0 == 0x2E
                })
            else { return nil }
            host = "[\(address)]"
            return
        }
        if let (name, port) = text.cut(atLast: ":") {
            guard setPort(port) else { return nil }
            text = name
        }
        guard !text.isEmpty, text.utf8.allSatisfy(Self.isOfHost), !text.begins(with: "-") else {
            return nil
        }
        host = String(text)
    }

    private mutating func setPort(_ text: Substring) -> Bool {
        guard !text.isEmpty else { return true }
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text),
            (1...65_535).contains(number)
        else { return false }
        port = number
        return true
    }

    /// Whether a text can go over a line of the protocol.
    private static func isPlain(_ text: Substring) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
    }

    /// Letters and digits, also those of other scripts, dots and dashes.
    private static func isOfHost(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
            || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
            || byte >= 0x80
    }

    /// The address without a path, as libcurl takes it.
    var base: String {
        "\(security == .implicit ? "ftps" : "ftp")://\(host):\(portNumber)/"
    }

    private var portNumber: Int { port ?? (security == .implicit ? 990 : 21) }

    /// The person and the server, for people; it is part of the account's key, so it never changes.
    var server: String {
        (user.map { "\($0)@" } ?? "") + host + (port.map { ":\($0)" } ?? "")
    }
}

/// An account at an FTP server, with what was found out of the server at the sign-in.
public struct FTPAccount: Codable, Hashable, Sendable {
    /// Where it lies.
    public var address: FTPAddress
    /// Whether the server sets modified times (`MFMT`).
    public var setsTimes: Bool
    /// Whether the facts that are needed have to be asked for each time (`OPTS MLST`): the server leaves
    /// one of them out by itself.
    public var asksForFacts: Bool

    /// An account with what is known of its server.
    public init(address: FTPAddress, setsTimes: Bool, asksForFacts: Bool) {
        self.address = address
        self.setsTimes = setsTimes
        self.asksForFacts = asksForFacts
    }
}
