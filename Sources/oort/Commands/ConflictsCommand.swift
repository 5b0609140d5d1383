import ArgumentParser
import Foundation

/// `oort conflicts`.
struct ConflictsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conflicts",
        abstract: "List files that were changed on both sides, with both versions.",
        discussion: """
            Where a file was changed here and in the cloud, the cloud's version keeps the name and \
            yours lies beside it as "NAME (conflicted copy DATE MACHINE)". A conflict is over when \
            you choose with `oort resolve`, or when you rename, move or delete either file.
            """
    )

    @Argument(help: "Only what lies here, or below (default: everything).", completion: .file())
    var path: String?

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let folders = try Folders(holding: path)
        let client = ControlClient(folders: folders)
        let isMounted = client.isMountRunning
        var conflicts: [ConflictReport]
        if isMounted {
            let wish = ConflictsRequest(path: path.map { MountPoint($0).path })
            conflicts = try await client.conflicts(wish)
            for index in conflicts.indices {
                conflicts[index].diff = TextDifference.of(
                    conflicts[index].theirs,
                    and: conflicts[index].mine
                )
            }
        } else {
            conflicts = try await RestingState(folders: folders).conflicts(
                below: path,
                usuallyAt: try Surroundings(folders: folders).usualMountPoint
            )
        }
        if json {
            Console.write(json: try ControlCoding.encode(conflicts, pretty: true))
        } else {
            Console.write(ConflictText.text(conflicts, isMounted: isMounted))
        }
    }
}

/// Conflicts in words.
enum ConflictText {
    /// The most lines of a difference that are shown.
    private static let mostLines = 12

    /// All of them.
    static func text(_ conflicts: [ConflictReport], isMounted: Bool) -> String {
        guard !conflicts.isEmpty else { return "There is no conflict." }
        return conflicts.map { lines(of: $0, isMounted: isMounted).joined(separator: "\n") }
            .joined(separator: "\n\n")
    }

    private static func lines(of conflict: ConflictReport, isMounted: Bool) -> [String] {
        var lines = [
            line("theirs", conflict.theirs),
            line("mine  ", conflict.mine),
        ]
        if let diff = conflict.diff {
            let all = diff.split(separator: "\n", omittingEmptySubsequences: false)
            lines += all.prefix(mostLines).map { "    " + TerminalText.line(String($0)) }
            if all.count > mostLines {
                lines.append("    ... and \(all.count - mostLines) more lines")
            }
        }
        let path = TerminalText.line(Shell.quoted(conflict.theirs.path))
        lines.append(
            isMounted
                ? "  oort resolve \(path) --keep mine|theirs|both"
                : "  To choose, mount first: oort mount"
        )
        return lines
    }

    private static func line(_ word: String, _ version: ConflictReport.Version) -> String {
        let time = version.modified.formatted(
            Date.ISO8601FormatStyle(dateTimeSeparator: .space, timeZone: .current)
                .year().month().day().time(includingFractionalSeconds: false)
        )
        let author = version.author.map { ", \(TerminalText.line($0))" } ?? ""
        return "\(word)  \(TerminalText.line(version.path))  (\(time), "
            + "\(ByteSize(bytes: version.size))\(author))"
    }
}

/// How a small text differs from another.
enum TextDifference {
    /// Bytes of the largest text that is compared.
    private static let largest = 64 << 10
    /// Lines of the longest text that is compared.
    private static let longest = 2000

    /// The lines that only one of two files has, `- ` before those of the first and `+ ` before those of
    /// the second; nil for what is large, no text, or cannot be read now.
    static func of(_ old: ConflictReport.Version, and new: ConflictReport.Version) -> String? {
        guard let old = text(of: old), let new = text(of: new) else { return nil }
        return between(old, new)
    }

    /// The same of texts.
    static func between(_ oldText: String, _ newText: String) -> String {
        let (old, new) = TextLines.compared(oldText, newText)
        let changes = new.difference(from: old)
        var removed: [Int: String] = [:]
        var inserted: [Int: String] = [:]
        for change in changes {
            switch change {
            case .remove(let offset, let line, _): removed[offset] = line
            case .insert(let offset, let line, _): inserted[offset] = line
            }
        }
        var result: [String] = []
        var (left, right) = (0, 0)
        while left < old.count || right < new.count {
            if let line = removed[left] {
                result.append("- \(line)")
                left += 1
            } else if let line = inserted[right] {
                result.append("+ \(line)")
                right += 1
            } else {
                left += 1
                right += 1
            }
        }
        return result.joined(separator: "\n")
    }

    private static func text(of version: ConflictReport.Version) -> String? {
        guard version.size <= largest, let file = FileHandle(forReadingAtPath: version.path),
            let data = try? file.read(upToCount: largest + 1) ?? Data(), data.count <= largest,
            !data.contains(0), let text = String(data: data, encoding: .utf8),
            TextLines.count(text) <= longest
        else { return nil }
        return text
    }
}
