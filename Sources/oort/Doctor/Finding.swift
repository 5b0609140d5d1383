import Foundation

/// What a look at one thing found.
struct Finding: Codable, Hashable, Sendable {
    /// How it is.
    enum State: String, Codable, Hashable, Sendable {
        /// As it should be.
        case ok
        /// Could not be looked at; something else may say why.
        case unknown
        /// A person must act.
        case trouble
    }

    /// What was looked at: fuse, network, disk and so on.
    var check: String
    /// How it is.
    var state: State
    /// The same in words; no secret is in them.
    var message: String
    /// What to do; nil where nothing is to be done.
    var advice: String?

    static func ok(_ check: String, _ message: String) -> Finding {
        Finding(check: check, state: .ok, message: message)
    }

    static func unknown(_ check: String, _ message: String) -> Finding {
        Finding(check: check, state: .unknown, message: message)
    }

    static func trouble(_ check: String, _ message: String, advice: String?) -> Finding {
        Finding(check: check, state: .trouble, message: message, advice: advice)
    }

    static func trouble(_ check: String, _ failure: Failure) -> Finding {
        trouble(check, failure.message, advice: failure.advice)
    }
}

/// All that `oort doctor` found.
struct DoctorReport: Codable, Hashable, Sendable {
    /// Whether no person must act.
    var isWell: Bool
    /// The version of the program that looked.
    var version: String
    /// What was found, in the order of the checks.
    var findings: [Finding]

    init(_ findings: [Finding]) {
        isWell = !findings.contains { $0.state == .trouble }
        version = OortVersion.current
        self.findings = findings
    }

    /// The report for people.
    var text: String {
        let width = findings.map(\.check.count).max() ?? 0
        var lines = findings.flatMap { finding in
            let mark =
                switch finding.state {
                case .ok: "ok"
                case .unknown: "?"
                case .trouble: "!!"
                }
            let head = mark.padded(to: 3) + finding.check.padded(to: width) + "  "
            let indent = String(repeating: " ", count: 5 + width)
            // Words of others' may be in the message; advice is our own.
            let rows =
                [TerminalText.line(finding.message)]
                + (finding.advice ?? "").split(separator: "\n").map(String.init)
            return rows.enumerated().map { ($0.offset == 0 ? head : indent) + $0.element }
        }
        let count = findings.count { $0.state == .trouble }
        lines.append("")
        lines.append(
            count == 0
                ? "All is well." : count == 1 ? "One thing needs you." : "\(count) things need you."
        )
        return lines.joined(separator: "\n")
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String {
        self + String(repeating: " ", count: max(width - count, 0))
    }
}
