import OortModel

/// A question that `ssh` asks a person while it logs in, known by its words.
///
/// `ssh` does not translate them (readconf.c, sshconnect.c and sshconnect2.c of OpenSSH).
enum SSHQuestion: Hashable, Sendable {
    /// Whether the server is the one that is meant; `fingerprint` is its key's.
    case hostKey(fingerprint: String?)
    /// The passphrase of the key in a file, of whose path 100 bytes are shown.
    case passphrase(file: String)
    /// The password at the server.
    case password
    /// What the server itself asks, in its own words.
    case server(String)
    /// Anything else.
    case other(String)

    /// Reads the words.
    init(_ words: String) {
        // The login stands in front of a server's words, so that they cannot pass for ssh's own.
        if words.begins(with: "("), let (_, rest) = words.cut(atFirst: ")") {
            self = .server(Self.line(rest))
        } else if words.contains("(yes/no") {
            let key = words.parts(between: " ").lazy.flatMap { $0.parts(between: "\n") }
                .first { $0.begins(with: "SHA256:") }
            self = .hostKey(fingerprint: key.map { String($0.dropping(ending: ".") ?? $0) })
        } else if let file = words.dropping(beginning: "Enter passphrase for key '")?
            .dropping(ending: "': ")
        {
            self = .passphrase(file: String(file))
        } else if words.ends(with: "'s password: ") {
            self = .password
        } else {
            self = .other(Self.line(words[...]))
        }
    }

    /// The last line that says something, and of a long one its beginning.
    private static func line(_ words: Substring) -> String {
        let lines = words.parts(between: "\n")
            .map { line in String(line.unicodeScalars.drop { $0.properties.isWhitespace }) }
        var line = (lines.last { !$0.isEmpty } ?? "").unicodeScalars.prefix(200)
        while let last = line.last, last.properties.isWhitespace { line.removeLast() }
        return String(line)
    }
}

/// What `ssh` is answered in one login: the account's secret, once, where it asks for that, and
/// nothing else.
struct SSHAnswers: Sendable {
    /// What a question gets.
    enum Answer: Hashable, Sendable {
        /// The secret.
        case secret
        /// Nothing: `ssh` leaves out a key, or takes the host for unknown, and goes on.
        case nothing
        /// Nothing, and `ssh` is ended: it would send the server an empty answer, which counts there as
        /// a wrong one.
        case end
    }

    /// Why `ssh` was ended.
    enum Obstacle: Hashable, Sendable {
        /// The server asked once more.
        case askedAgain
        /// The server did not take the key, and asks for a password.
        case asksForPassword
        /// Something was asked to which the secret is no answer.
        case asked(String)
        /// A host on the way to the server asked.
        case onTheWay
    }

    private let address: SFTPAddress
    /// Whether the secret was given.
    private(set) var isGiven = false
    /// Why `ssh` was ended; nil where it was not.
    private(set) var obstacle: Obstacle?
    /// The fingerprint of a key that nobody knows.
    private(set) var unknownKey: String?
    /// Whether that is the key of a host on the way.
    private(set) var isUnknownOnTheWay = false

    /// The answers to what is asked about an account.
    init(_ address: SFTPAddress) { self.address = address }

    /// Decides what a question gets.
    ///
    /// `isOnTheWay` is of another `ssh` that the account's own started, for a host on the way: the secret
    /// is not for that.
    mutating func answer(to question: SSHQuestion, isOnTheWay: Bool) -> Answer {
        switch question {
        case .hostKey(let fingerprint):
            (unknownKey, isUnknownOnTheWay) = (fingerprint, isOnTheWay)
            return .nothing
        case .passphrase(let file):
            guard address.secret == .passphrase, !isOnTheWay, !isGiven, isIdentity(file) else {
                return .nothing
            }
        case .password:
            guard !isOnTheWay else { return end(.onTheWay) }
            guard address.secret == .password else { return end(.asksForPassword) }
            guard !isGiven else { return end(.askedAgain) }
        case .server(let words):
            guard !isOnTheWay else { return end(.onTheWay) }
            guard words.lowercased().contains("password") else { return end(.asked(words)) }
            guard address.secret == .password else { return end(.asksForPassword) }
            guard !isGiven else { return end(.askedAgain) }
        case .other(let words):
            return end(isOnTheWay ? .onTheWay : .asked(words))
        }
        isGiven = true
        return .secret
    }

    private mutating func end(_ obstacle: Obstacle) -> Answer {
        if self.obstacle == nil { self.obstacle = obstacle }
        return .end
    }

    private func isIdentity(_ file: String) -> Bool {
        guard let identity = address.identity else { return false }
        return identity.utf8.prefix(100).elementsEqual(file.utf8.prefix(100))
    }
}
