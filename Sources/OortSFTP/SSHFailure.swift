public import OortModel
import SwiftSFTP

/// Why there is no connection to an account's server.
public struct SSHFailure: Error, Hashable, Sendable {
    /// The closed list of reasons.
    public enum Reason: Hashable, Sendable {
        /// The server could not be reached, or went away.
        case unreachable
        /// No person has confirmed the server's key yet.
        case unknownHost
        /// The server has another key than the one that is known.
        case changedHost
        /// The server refuses the login.
        case refused
        /// The server has no SFTP.
        case noSFTP
        /// `ssh` cannot be started.
        case noProgram
        /// `ssh` does not take its options or its configuration.
        case badOptions
        /// What is kept on this machine cannot be read or made.
        case local
        /// The caller no longer waits.
        case cancelled
    }

    /// Why.
    public var reason: Reason
    /// What happened at which host, for people.
    public var detail: String

    /// A failure with both of its parts.
    public init(_ reason: Reason, _ detail: String) {
        (self.reason, self.detail) = (reason, detail)
    }
}

extension ProviderError {
    /// The failure in canonical terms; a refused login is not tried again by itself.
    public init(_ failure: SSHFailure) {
        let kind: Kind =
            switch failure.reason {
            case .unreachable, .badOptions: .offline
            case .refused: .signedOut
            // No login was tried: another look, later or when the person asks for it, does no harm.
            case .unknownHost, .changedHost, .noSFTP, .noProgram: .clientRefused
            case .local: .localContent
            case .cancelled: .cancelled
            }
        self.init(kind, detail: failure.detail)
    }
}

/// The meaning of a failed login, by what `ssh` wrote to its standard error, which is not translated, and
/// by what it asked.
enum SSHWords {
    static func failure(
        _ words: String,
        of address: SFTPAddress,
        _ error: SFTPError,
        _ answers: SSHAnswers? = nil
    ) -> SSHFailure {
        let lines = words.split(whereSeparator: \.isNewline).map(String.init)
        let last = lines.last { !$0.allSatisfy(\.isWhitespace) } ?? error.detail
        let has = { (text: String) in words.contains(text) }
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            let key = lines.first { $0.contains("SHA256:") } ?? ""
            return SSHFailure(
                .changedHost,
                """
                the key of \(address.host) is not the one that is known (\(key)): somebody may stand in \
                between, or the server was set up anew; `\(address.command)` says more
                """
            )
        }
        if let obstacle = answers?.obstacle {
            return SSHFailure(.refused, self.words(obstacle, address))
        }
        if has("Host key verification failed") {
            let host =
                (answers?.isUnknownOnTheWay == true ? "a host on the way to " : "")
                + address.host
            let key = answers?.unknownKey.map { " (\($0))" } ?? ""
            return SSHFailure(
                .unknownHost,
                "the key of \(host) is not known yet\(key): run `\(address.command)` once"
            )
        }
        // With the methods that are left in brackets; without them, it is the network's or this machine's own word.
        if has("Permission denied (") || has("Too many authentication failures") {
            let key = unusableKey(lines, address)
            return SSHFailure(.refused, key ?? refusal(last, address, answers))
        }
        if let line = lines.last(where: { line in
            line.hasPrefix("command-line")
                || ["terminating, ", "Bad owner or permissions on "].contains { line.contains($0) }
        }) {
            return SSHFailure(.badOptions, "ssh does not take its options: \(line)")
        }
        if has("subsystem request failed") {
            return SSHFailure(.noSFTP, "\(address.host) has no SFTP: \(last)")
        }
        return SSHFailure(.unreachable, "\(address.host): \(last)")
    }

    private static func words(_ obstacle: SSHAnswers.Obstacle, _ address: SFTPAddress) -> String {
        switch obstacle {
        case .askedAgain: "\(address.host) refuses the password; it was tried once"
        case .asksForPassword:
            """
            \(address.host) asks for a password: it does not take the key \
            \(address.identity ?? ""), or the passphrase is not the key's
            """
        case .asked(let question):
            """
            \(address.host) asks "\(question)", to which only you can answer: sign in with a key, or \
            with an agent
            """
        case .onTheWay:
            """
            a host on the way to \(address.host) asks for something, and what is kept is for \
            \(address.host) alone: sign in there with a key, or with an agent
            """
        }
    }

    /// Why `ssh` did not even offer the given key; nil where it does not say.
    private static func unusableKey(_ lines: [String], _ address: SFTPAddress) -> String? {
        guard let identity = address.identity else { return nil }
        if lines.contains(where: { $0.contains("bad permissions") }) {
            return "ssh does not use the key \(identity), which others can read: chmod 600 it"
        }
        if let line = lines.first(where: { $0.hasPrefix("Load key ") }) {
            return "\(identity) is no private key that ssh can read (\(line))"
        }
        return nil
    }

    private static func refusal(
        _ last: String,
        _ address: SFTPAddress,
        _ answers: SSHAnswers?
    ) -> String {
        switch (address.secret, answers?.isGiven) {
        case (.password, true?):
            "\(address.host) refuses the password; it was tried once (\(last))"
        case (.password, false?):
            if last.contains("Too many authentication failures") {
                """
                \(address.host) ends before it asks for the password, since ssh offers it too many keys: \
                sign in with --ssh-option PubkeyAuthentication=no
                """
            } else {
                "\(address.host) asks for no password: \(last)"
            }
        case (.passphrase, true?):
            """
            \(address.host) does not take the key \(address.identity ?? ""), or the passphrase is not \
            the key's (\(last))
            """
        case (_, _): "\(address.host): \(last)"
        }
    }
}
