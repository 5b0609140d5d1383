import OortModel

/// The key of a host that `ssh` does not know, as it is shown to a person who decides.
public struct SSHHostKey: Hashable, Sendable {
    /// What `ssh` says of it, a line each, without the question.
    public var lines: [String]
    /// The key's fingerprint; nil where `ssh` shows none.
    public var fingerprint: String?

    /// Takes apart what `ssh` asks.
    init(question: String, fingerprint: String?) {
        lines = question.parts(between: "\n").map { String($0) }
            .filter { !$0.isEmpty && !$0.contains("(yes/no") }
        self.fingerprint = fingerprint
    }
}
