import Foundation

/// The status as it is shown again and again in a window: every line fits, and so do all of them.
struct StatusWatch {
    /// The most that was to be done since an account was last at rest.
    private struct Episode {
        var bytes: Int64
        var count: Int
    }

    /// How many items of an account were known at a moment.
    private struct Sample {
        var moment: ContinuousClock.Instant
        var items: Int64
    }

    private var episodes: [String: Episode] = [:]
    /// What the last seconds of an account's first enumeration brought.
    private var samples: [String: [Sample]] = [:]

    /// The lines for a window of so many columns and rows.
    mutating func lines(
        _ report: StatusReport,
        columns: Int,
        rows: Int,
        at now: ContinuousClock.Instant = .now
    ) -> [String] {
        note(report, at: now)
        var head = StatusText.head(of: report)
        var blocks = report.accounts.map { account in
            var lines = StatusText.lines(of: account)
            for (start, share) in [
                ("  pinned: ", Self.keptShare(account)), ("  down: ", Self.arrivedShare(account)),
            ] {
                guard let share, let bar = Self.bar(share, columns: columns),
                    let index = lines.dropFirst().firstIndex(where: { $0.hasPrefix(start) })
                else { continue }
                lines.insert(bar, at: index)
            }
            let bar = sentShare(account).flatMap { Self.bar($0, columns: columns) }
            if let bar { lines.insert(bar, at: 1) }
            if let rate = itemsPerSecond(account) {
                lines.insert("  items: \(StatusText.number(rate)) a second", at: 1)
            }
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

    private mutating func note(_ report: StatusReport, at now: ContinuousClock.Instant) {
        for account in report.accounts {
            samples[account.name] = account.knownItems.map { items in
                let before = (samples[account.name] ?? []).filter { sample in
                    sample.moment >= now - Self.sampled && sample.items <= items
                }
                return before + [Sample(moment: now, items: items)]
            }
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

    /// Over how long the rate of an enumeration is measured.
    private static let sampled = Duration.seconds(10)

    /// How many items the enumeration named in a second; nil until that was measured for a second.
    ///
    /// How many there are no service says before the end, so there is no bar and no time left.
    private func itemsPerSecond(_ account: AccountStatus) -> Int? {
        guard let first = samples[account.name]?.first, let last = samples[account.name]?.last
        else { return nil }
        let time = last.moment - first.moment
        guard time >= .seconds(1) else { return nil }
        return Int((Double(last.items - first.items) / (time / .seconds(1))).rounded())
    }

    /// How much is sent of what had to be sent since the account last had nothing pending.
    private func sentShare(_ account: AccountStatus) -> Double? {
        guard let episode = episodes[account.name] else { return nil }
        let count = account.pendingCount - (account.refusedCount ?? 0)
        let byCount = 1 - Double(count) / Double(max(episode.count, 1))
        let bytes = account.pendingBytes ?? 0
        let byBytes = 1 - Double(bytes) / Double(max(episode.bytes, 1))
        // What takes longest says how far it is.
        return episode.bytes > 1 << 20 ? byBytes : byCount
    }

    /// How much of what programs read now is here.
    private static func arrivedShare(_ account: AccountStatus) -> Double? {
        let transfers = account.transfers.filter { !$0.isUpload }
        let total = transfers.reduce(0.0) { $0 + Double($1.totalBytes) }
        guard total > 0 else { return nil }
        return transfers.reduce(0.0) { $0 + Double($1.doneBytes) } / total
    }

    /// How much of what is to be kept here is here.
    private static func keptShare(_ account: AccountStatus) -> Double? {
        guard let kept = account.keeping, !kept.isComplete else { return nil }
        guard kept.bytes > 0 else { return Double(kept.filesHere) / Double(max(kept.files, 1)) }
        return Double(kept.bytesHere) / Double(kept.bytes)
    }

    private static func bar(_ share: Double, columns: Int) -> String? {
        guard columns >= 20 else { return nil }
        let share = max(0, min(1, share))
        let width = min(columns - 12, 40)
        let full = Int(share * Double(width))
        return "  [" + String(repeating: "#", count: full)
            + String(repeating: ".", count: width - full) + "] \(Int(share * 100))%"
    }
}
