import Foundation

/// The status as it is shown again and again in a window: every line fits, and so do all of them.
struct StatusWatch {
    /// The most that was to be done since an account was last at rest.
    private struct Episode {
        var bytes: Int64
        var count: Int
    }

    private var episodes: [String: Episode] = [:]

    /// The lines for a window of so many columns and rows.
    mutating func lines(_ report: StatusReport, columns: Int, rows: Int) -> [String] {
        note(report)
        var head = StatusText.head(of: report)
        var blocks = report.accounts.map { account in
            var lines = StatusText.lines(of: account)
            if let bar = bar(account, columns: columns) { lines.insert(bar, at: 1) }
            return lines
        }
        // The last row stays free for the cursor.
        let room = max(rows - 1, 1)
        if head.count > room { head = Array(head.prefix(room)) }
        var left = room - head.count
        // Empty lines between accounts are the first to go, then what an account has most of.
        let areApart = blocks.reduce(blocks.count) { $0 + $1.count } <= left
        if !areApart {
            while blocks.count > 1, blocks.count > left { blocks.removeLast() }
            while blocks.reduce(0, { $0 + $1.count }) > left,
                let longest = blocks.indices.max(by: { blocks[$0].count < blocks[$1].count }),
                blocks[longest].count > 1
            {
                blocks[longest].removeLast()
            }
        }
        var lines = head
        for block in blocks {
            if areApart { lines.append("") }
            lines += block.prefix(max(left, 0))
            left -= block.count
        }
        let hidden = report.accounts.count - blocks.count
        if hidden > 0, !lines.isEmpty {
            lines[lines.count - 1] = "… and \(hidden + 1) more accounts: make the window larger"
        }
        return lines.map { TerminalWidth.cut(TerminalText.line($0), to: columns) }
    }

    private mutating func note(_ report: StatusReport) {
        for account in report.accounts {
            let count = account.pendingCount - (account.refusedCount ?? 0)
            guard count > 0 else {
                episodes[account.name] = nil
                continue
            }
            let bytes = account.pendingBytes ?? 0
            let before = episodes[account.name]
            episodes[account.name] = Episode(
                bytes: max(before?.bytes ?? 0, bytes),
                count: max(before?.count ?? 0, count)
            )
        }
    }

    /// How much of what was to be done since the account was last at rest is done.
    private func bar(_ account: AccountStatus, columns: Int) -> String? {
        guard let episode = episodes[account.name], columns >= 20 else { return nil }
        let count = account.pendingCount - (account.refusedCount ?? 0)
        let byCount = 1 - Double(count) / Double(max(episode.count, 1))
        let bytes = account.pendingBytes ?? 0
        let byBytes = 1 - Double(bytes) / Double(max(episode.bytes, 1))
        // What takes longest says how far it is.
        let share = max(0, min(1, episode.bytes > 1 << 20 ? byBytes : byCount))
        let width = min(columns - 12, 40)
        let full = Int(share * Double(width))
        return "  [" + String(repeating: "#", count: full)
            + String(repeating: ".", count: width - full) + "] \(Int(share * 100))%"
    }
}
