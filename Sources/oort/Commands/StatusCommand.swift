import ArgumentParser
import Foundation

/// `oort status`.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show accounts, room, transfers, pending changes, conflicts and errors."
    )

    @Flag(help: "Print JSON, with --watch one object a line.")
    var json = false

    @Flag(help: "Show it again every second until Ctrl-C.")
    var watch = false

    func run() async throws {
        let folders = try Folders()
        guard watch else {
            show(try await report(folders), clearing: false)
            return
        }
        while true {
            show(try await report(folders), clearing: Console.isTerminal && !json)
            try await Task.sleep(for: .seconds(1))
        }
    }

    private func report(_ folders: Folders) async throws -> StatusReport {
        let client = ControlClient(folders: folders)
        if client.isMountRunning { return try await client.status() }
        return try await RestingState(folders: folders).report()
    }

    private func show(_ report: StatusReport, clearing: Bool) {
        if json {
            if let data = try? ControlCoding.encode(report, pretty: !watch) {
                Console.write(json: data)
            }
        } else {
            Console.write(StatusText.text(report), clearing: clearing)
        }
    }
}

/// The status in words, of which every name and every text from outside is one line.
enum StatusText {
    /// The whole report.
    static func text(_ report: StatusReport) -> String {
        var lines: [String] = []
        if let mount = report.mount {
            lines.append("Mounted at \(shown(mount.mountPoint)) (process \(mount.process))")
            lines.append(
                "Cache: \(ByteSize(bytes: mount.cachedBytes)) of "
                    + "\(ByteSize(bytes: mount.cacheLimit))"
            )
            if let trouble = mount.trouble { lines.append("! \(shown(trouble))") }
            for folder in mount.foldersAside ?? [] {
                lines.append("! What was not uploaded when the catalog was lost: \(shown(folder))")
                lines.append("  Look through it for what you miss, then remove the folder.")
            }
        } else {
            lines.append("Not mounted; `oort mount` mounts the accounts.")
            if let died = report.died {
                lines.append(
                    "! The last mount (process \(died.process), at \(shown(died.mountPoint))) did not "
                        + "end orderly: it crashed, was killed, or the machine went down."
                )
                lines.append(
                    "  What was not uploaded is kept and goes on with the next mount; the log is "
                        + shown(died.log)
                )
            }
        }
        if report.accounts.isEmpty {
            lines.append("No account is signed in; `oort login SERVICE` adds one.")
        }
        for account in report.accounts { lines += ["", head(account)] + details(account) }
        return lines.joined(separator: "\n")
    }

    /// One pending change with its error and what happens next.
    static func line(_ change: PendingChange) -> String {
        var text = "\(change.action): \(shown(change.path))"
        if let error = change.error { text += "\n      \(shown(error))" }
        if let next = change.next { text += "\n      \(shown(next))" }
        return text
    }

    private static func shown(_ text: String) -> String { TerminalText.line(text) }

    private static func head(_ account: AccountStatus) -> String {
        var parts = [shown(account.service)]
        if let person = account.person { parts.append(shown(person)) }
        if let used = account.usedBytes {
            let room = account.totalBytes.map { " of \(ByteSize(bytes: $0))" } ?? ""
            parts.append("\(ByteSize(bytes: used))\(room) in use")
        }
        if let count = account.knownItems { parts.append("\(count) items so far") }
        let details = parts.joined(separator: ", ")
        return "\(shown(account.name)): \(account.state.rawValue) (\(details))"
    }

    private static func details(_ account: AccountStatus) -> [String] {
        var lines: [String] = []
        if let trouble = account.trouble { lines.append("  ! \(shown(trouble))") }
        for transfer in account.transfers {
            let percent =
                transfer.totalBytes > 0 ? transfer.doneBytes * 100 / transfer.totalBytes : 100
            lines.append(
                "  \(transfer.isUpload ? "up  " : "down") \(percent)% of "
                    + "\(ByteSize(bytes: transfer.totalBytes)): \(shown(transfer.path))"
            )
        }
        if account.pendingCount > 0 {
            lines.append("  \(account.pendingCount) pending:")
            let shown = account.pending.prefix(mostLines)
            lines += shown.map { "    " + line($0) }
            lines += more(account.pendingCount - shown.count)
        }
        if !account.conflicts.isEmpty {
            lines.append("  \(account.conflicts.count) conflict copies, please look:")
            lines += account.conflicts.prefix(mostLines).map { "    \(shown($0))" }
            lines += more(account.conflicts.count - mostLines)
        }
        return lines
    }

    /// The most pending changes, and the most conflicts, that are listed for each account.
    private static let mostLines = 10

    private static func more(_ count: Int) -> [String] {
        count > 0 ? ["    ... and \(count) more"] : []
    }
}
