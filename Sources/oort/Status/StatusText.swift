import Foundation

/// The status in words, of which every name and every text from outside is one line.
enum StatusText {
    /// The whole report.
    static func text(_ report: StatusReport) -> String {
        var lines = head(of: report)
        for account in report.accounts { lines += [""] + self.lines(of: account) }
        return lines.joined(separator: "\n")
    }

    /// What is said of the mount as a whole.
    static func head(of report: StatusReport) -> [String] {
        var lines: [String] = []
        if let mount = report.mount {
            lines.append("Mounted at \(shown(mount.mountPoint)) (process \(mount.process))")
            lines.append(
                "Cache: \(ByteSize(bytes: mount.cachedBytes)) of "
                    + "\(ByteSize(bytes: mount.cacheLimit))"
            )
            if let words = keptAboveLimit(mount) { lines.append("! \(words)") }
            let limits = limits(up: mount.uploadLimit, down: mount.downloadLimit)
            if let limits { lines.append("\(limits) (oort limit --off lifts that)") }
            if let trouble = mount.trouble { lines.append("! \(shown(trouble))") }
            for folder in mount.foldersAside ?? [] {
                lines.append("! What was not uploaded when the catalog was lost: \(shown(folder))")
                lines.append("  Look through it for what you miss, then remove the folder.")
            }
            if let folder = mount.foundBeneath {
                lines.append("! Programs wrote here before it was mounted: \(shown(folder))")
                lines.append("  Copy what you need of it into an account, then remove the folder.")
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
        return lines
    }

    /// That more is pinned than the cache may have; nil where it is not.
    static func keptAboveLimit(_ mount: MountStatus) -> String? {
        mount.keptAboveLimit.map { kept in
            "\(ByteSize(bytes: kept)) of the cache are pinned, more than cache_size "
                + "(\(ByteSize(bytes: mount.cacheLimit))): nothing else stays in it. Raise "
                + "cache_size in the settings and mount again, or unpin something (oort pins)."
        }
    }

    /// What is said of an account: ten lines at most, whatever is pending.
    static func lines(of account: AccountStatus) -> [String] {
        var lines = [head(account)]
        if let trouble = account.trouble { lines.append("  ! \(shown(trouble))") }
        let remark = remark(account)
        if let remark { lines.append(remark) }
        // What holds always makes room for what is now.
        let caution = remark == nil ? account.abilities?.caution : nil
        if let caution { lines.append("  \(caution)") }
        if let up = going(account) { lines.append(up) }
        if let down = coming(account) { lines.append(down) }
        let pinned = keeping(account)
        if let pinned { lines.append(pinned) }
        if let count = account.staysHere { lines.append("  \(staying(count))") }
        let refused = refusedNames(account)
        if let refused { lines.append(refused) }
        let others = [
            pinned != nil, account.staysHere != nil, refused != nil, caution != nil, remark != nil,
        ].count { $0 }
        let mostGroups = mostGroups - others
        let groups = (account.waiting ?? []).filter(\.needsWords)
        let isCut = groups.count > mostGroups
        lines += groups.prefix(isCut ? mostGroups - 1 : mostGroups).map { "  " + line($0) }
        if isCut {
            let rest = groups.dropFirst(mostGroups - 1)
            lines.append(
                "  \(changes(rest.reduce(0) { $0 + $1.count })) more for "
                    + "\(rest.count) other reasons: oort status --json"
            )
        }
        if !account.conflicts.isEmpty {
            let count = account.conflicts.count
            let what = count == 1 ? "1 conflict copy" : "\(number(count)) conflict copies"
            let names = account.conflicts.prefix(mostExamples).map { shown($0) }
            lines.append("  \(what), please look (oort conflicts): \(list(names, of: count))")
        }
        return lines
    }

    /// What the clouds do not have when a mount has ended; nothing when they have everything.
    static func unsent(_ report: StatusReport) -> [String] {
        let accounts = report.accounts.filter { $0.pendingCount > 0 }
        guard !accounts.isEmpty else { return [] }
        let lines = accounts.map { account in
            let bytes = account.pendingBytes ?? 0
            let size = bytes > 0 ? ", \(ByteSize(bytes: bytes))" : ""
            return "  \(shown(account.name)): \(changes(account.pendingCount))\(size)"
        }
        return ["Not in the cloud yet, kept here until the next mount:"] + lines
    }

    /// What of an account a sign-out would give up, and how many items that are; nothing when its cloud
    /// has everything.
    static func onlyHere(_ report: StatusReport, of name: String) -> (count: Int, lines: [String]) {
        guard let account = report.accounts.first(where: { $0.name == name }) else {
            return (0, [])
        }
        let count = account.pendingCount + (account.staysHere ?? 0)
        guard count > 0 else { return (0, []) }
        let shown = account.pending.prefix(mostOnlyHere).map { "  " + self.line($0.bare) }
        let rest = count - shown.count
        let lines =
            ["\(TerminalText.line(name)): only on this machine:"] + shown
            + (rest > 0 ? ["  and \(number(rest)) more"] : [])
        return (count, lines)
    }

    /// One pending change with its error and what happens next.
    static func line(_ change: PendingChange) -> String {
        var text = "\(change.action): \(shown(change.path))"
        if let error = change.error { text += "\n      \(shown(error))" }
        if let next = change.next { text += "\n      \(shown(next))" }
        return text
    }

    /// How far `oort sync` is.
    static func line(_ progress: SyncProgress) -> String {
        self.progress(
            count: progress.pendingCount,
            bytes: progress.pendingBytes,
            bytesPerSecond: progress.uploadBytesPerSecond,
            secondsLeft: progress.secondsLeft
        )
    }

    /// How far something is: `1,548 changes to go, 12 MiB, 3.1 MiB/s, about 40 s`.
    static func progress(
        count: Int,
        bytes: Int64?,
        bytesPerSecond: Int64?,
        secondsLeft: Int64?
    ) -> String {
        var parts = ["\(changes(count)) to go"]
        if let bytes, bytes > 0 { parts.append("\(ByteSize(bytes: bytes))") }
        if let bytesPerSecond { parts.append("\(ByteSize(bytes: bytesPerSecond))/s") }
        if let secondsLeft { parts.append(time(secondsLeft)) }
        return parts.joined(separator: ", ")
    }

    /// `Limits: up 1 MiB/s, down 5 MiB/s`; nil without limits.
    static func limits(up: Int64?, down: Int64?) -> String? {
        let parts = [("up", up), ("down", down)].compactMap { word, limit in
            limit.map { "\(word) \(ByteSize(bytes: $0))/s" }
        }
        return parts.isEmpty ? nil : "Limits: " + parts.joined(separator: ", ")
    }

    /// A moment by the clock on the wall.
    static func moment(_ date: Date) -> String {
        date.formatted(
            Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: .current)
                .year().month().day().time(includingFractionalSeconds: false)
        )
    }

    /// `1 item stays here by your rules or the service's`.
    static func staying(_ count: Int) -> String {
        count == 1
            ? "1 item stays here by your rules or the service's"
            : "\(number(count)) items stay here by your rules or the service's"
    }

    /// `1 change`, `1,548 changes`.
    static func changes(_ count: Int) -> String {
        count == 1 ? "1 change" : "\(number(count)) changes"
    }

    /// A number with commas between thousands.
    static func number(_ number: Int) -> String {
        let digits = String(number.magnitude)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return number < 0 ? "-" + text : text
    }

    /// A time that was reckoned and not measured, without more figures than it bears.
    static func time(_ seconds: Int64) -> String {
        switch seconds {
        case ..<10: "some seconds"
        case ..<90: "about \((seconds + 4) / 10 * 10) s"
        case ..<5400: "about \((seconds + 30) / 60) min"
        case ..<172_800: "about \((seconds + 1800) / 3600) h"
        default: "about \((seconds + 43_200) / 86_400) days"
        }
    }

    /// The most reasons, and the most conflicts, that are listed for each account.
    private static let mostGroups = 5
    private static let mostExamples = 3
    /// The most changes that are listed before they are given up.
    private static let mostOnlyHere = 20

    private static func shown(_ text: String) -> String { TerminalText.line(text) }

    /// How much room is taken at a service.
    static func room(used: Int64, total: Int64?) -> String {
        let room = total.map { " of \(ByteSize(bytes: $0))" } ?? ""
        return "\(ByteSize(bytes: used))\(room) in use"
    }

    private static func head(_ account: AccountStatus) -> String {
        var parts = [shown(account.service)]
        if let person = account.person { parts.append(shown(person)) }
        if let used = account.usedBytes {
            parts.append(room(used: used, total: account.totalBytes))
        }
        if account.isReadOnly == true { parts.append("read-only") }
        if let count = account.knownItems {
            parts.append(count == 1 ? "1 item so far" : "\(number(Int(count))) items so far")
        }
        let details = parts.joined(separator: ", ")
        var state = account.state.rawValue
        if account.state == .paused {
            state += account.pausedUntil.map { " until \(moment($0))" } ?? " until oort resume"
        }
        return "\(shown(account.name)): \(state) (\(details))"
    }

    /// What goes out by itself.
    private static func going(_ account: AccountStatus) -> String? {
        let count = account.pendingCount - (account.refusedCount ?? 0)
        let transfers = account.transfers.filter(\.isUpload)
        guard account.state != .notMounted, count > 0 || !transfers.isEmpty else { return nil }
        let text =
            "  up: "
            + progress(
                count: count,
                bytes: account.pendingBytes,
                bytesPerSecond: account.uploadBytesPerSecond,
                secondsLeft: account.secondsLeft
            )
        let underWay = (account.waiting ?? []).first { !$0.needsWords }
        var names = transfers.prefix(mostExamples).map(share)
        for example in underWay?.examples ?? [] where names.count < mostExamples {
            guard !transfers.contains(where: { $0.path == example.path }) else { continue }
            names.append(shown(example.path))
        }
        guard !names.isEmpty else { return text }
        let all = max(underWay?.count ?? 0, transfers.count, names.count)
        return "\(text); being sent: \(list(names, of: all))"
    }

    /// What else a person should know of an account now.
    private static func remark(_ account: AccountStatus) -> String? {
        guard let all = account.remarks, let first = all.first else { return nil }
        let rest = all.count > 1 ? " (\(number(all.count - 1)) more: oort status --json)" : ""
        return "  ! \(shown(first))\(rest)"
    }

    /// What is to be kept here, while some of it is missing.
    private static func keeping(_ account: AccountStatus) -> String? {
        guard let progress = account.keeping, !progress.isComplete else { return nil }
        return "  pinned: \(PinText.progress(progress)) (oort pins)"
    }

    /// Names that programs wanted in vain.
    private static func refusedNames(_ account: AccountStatus) -> String? {
        guard let all = account.refusedNames, !all.isEmpty else { return nil }
        let names = all.prefix(mostExamples).map { "\(shown($0.path)) (\(shown($0.reason)))" }
        return "  name not taken: \(list(names, of: all.count))"
    }

    /// What programs read.
    private static func coming(_ account: AccountStatus) -> String? {
        let transfers = account.transfers.filter { !$0.isUpload }
        guard !transfers.isEmpty else { return nil }
        let left = transfers.reduce(0) { $0 + max($1.totalBytes - $1.doneBytes, 0) }
        var parts = ["  down: \(ByteSize(bytes: left)) to come"]
        if let rate = account.downloadBytesPerSecond {
            parts.append("\(ByteSize(bytes: rate))/s")
            if rate > 0 { parts.append(time(left / rate)) }
        }
        let names = transfers.prefix(mostExamples).map(share)
        return parts.joined(separator: ", ") + ": " + list(names, of: transfers.count)
    }

    private static func share(_ transfer: Transfer) -> String {
        let percent =
            transfer.totalBytes > 0 ? transfer.doneBytes * 100 / transfer.totalBytes : 100
        return "\(shown(transfer.path)) \(percent)% of \(ByteSize(bytes: transfer.totalBytes))"
    }

    /// A group as one line: how many, why, what happens next, and examples.
    private static func line(_ group: PendingGroup) -> String {
        var text = "\(group.needsPerson ? "! " : "")\(changes(group.count))"
        if group.bytes > 0 { text += " (\(ByteSize(bytes: group.bytes)))" }
        text += ": "
        if let reason = group.reason { text += "\(shown(reason)); " }
        text += shown(group.next)
        let names = group.examples.prefix(mostExamples).map { example in
            shown(example.path) + (example.detail.map { " (\(shown($0)))" } ?? "")
        }
        return names.isEmpty ? text : "\(text): \(list(names, of: group.count))"
    }

    private static func list(_ names: [String], of count: Int) -> String {
        let rest = count - names.count
        return names.joined(separator: ", ") + (rest > 0 ? " and \(number(rest)) more" : "")
    }
}
