import Foundation
import OortModel
import Testing

@testable import OortCatalog
@testable import oort

@Suite("The status in words")
struct StatusTests {
    private func account(_ name: String = "work", _ state: AccountStatus.State = .syncing)
        -> AccountStatus
    {
        AccountStatus(
            name: name,
            service: "dropbox",
            state: state,
            pendingCount: 0,
            pending: [],
            transfers: [],
            conflicts: []
        )
    }

    @Test("a service that overwrites others' saves is told in one line, and within ten")
    func staleSaves() throws {
        var account = busy
        account.abilities = AccountAbilities(
            refusesStaleSaves: true,
            refusesTakenNames: true,
            copiesFiles: true,
            setsTimes: true,
            keepsDeleted: true,
            keepsVersions: false,
            makesLinks: false,
            tellsNews: false
        )
        #expect(!StatusText.lines(of: account).contains { $0.contains("stale") })
        account.abilities?.refusesStaleSaves = false
        let lines = StatusText.lines(of: account)
        #expect(lines.count { $0.contains("cannot refuse a stale replace") } == 1)
        #expect(lines.count <= 10)
        #expect(account.abilities?.lines.first == "no\trefuses a stale replace")
        let kept = try ControlCoding.encode(account, pretty: false)
        #expect(String(decoding: kept, as: UTF8.self).contains("\"refuses_stale_saves\":false"))
    }

    @Test("what else is to be known of an account is one line, before what always holds")
    func remarks() {
        var account = busy
        account.remarks = ["disk: is away\nfor now", "another"]
        let lines = StatusText.lines(of: account)
        #expect(lines.count { $0.contains("disk: is away") && $0.contains("1 more") } == 1)
        #expect(lines.count <= 10)
    }

    @Test("what failed and is being sent again says why, apart from what goes well")
    func sentAgain() {
        var item = PendingItem(
            inode: Inode(7),
            path: ["a"],
            folders: [],
            kind: .file,
            size: 4,
            isDeleted: false,
            isAtService: false,
            isNews: false,
            isUnderWay: true,
            isForbidden: false,
            attempts: 0,
            nextTry: 0
        )
        let now = Date(timeIntervalSince1970: 100)
        let good = PendingKind(item, obstacle: nil, isHeld: false, now: now)
        item.attempts = 2
        (item.errorKind, item.errorDetail) = (
            "outcomeUnknown(retryAfter: nil)", "500 from the store"
        )
        let bad = PendingKind(item, obstacle: nil, isHeld: false, now: now)
        var survey = PendingSurvey<PendingKind>()
        survey.groups[good] = .init(count: 3, bytes: 12, examples: [])
        survey.groups[bad] = .init(count: 1, bytes: 4, examples: [item])
        let read = PendingKind(item, obstacle: nil, isHeld: false, isCompared: true, now: now)
        survey.groups[read] = .init(count: 2, bytes: 8, examples: [item])
        let groups = SyncWords.groups(survey, below: "/m/w", obstacles: [:], now: now)
        #expect(groups.count { !$0.needsWords && $0.count == 3 } == 1)
        let compared = groups.first { $0.count == 2 }
        #expect(compared?.next.hasPrefix("what arrived is read and compared") == true)
        #expect(compared?.needsWords == true && compared?.needsPerson == false)
        let again = groups.first { $0.needsWords && $0.count == 1 }
        #expect(again?.next == "being sent again" && again?.needsPerson == false)
        #expect(again?.reason != nil)
        #expect(again?.examples.first?.detail == "500 from the store")
    }

    private func group(
        _ count: Int,
        _ reason: String? = nil,
        needsPerson: Bool = false,
        isUnderWay: Bool = false
    ) -> PendingGroup {
        PendingGroup(
            count: count,
            bytes: 10,
            isUnderWay: isUnderWay,
            needsPerson: needsPerson,
            reason: reason,
            next: isUnderWay ? "being sent" : "waits its turn",
            examples: (0..<min(count, 3)).map { PendingExample(path: "/m/work/\($0).txt") }
        )
    }

    private let mount = MountStatus(
        mountPoint: "/m",
        process: 7,
        since: Date(timeIntervalSince1970: 0),
        version: "1",
        cachedBytes: 1,
        cacheLimit: 2
    )

    /// An account of which all is bad at once.
    private var busy: AccountStatus {
        var account = account()
        account.trouble = "something"
        account.pendingCount = 50_000
        account.refusedCount = 12
        account.pendingBytes = 5 << 20
        account.uploadBytesPerSecond = 1 << 20
        account.secondsLeft = 37
        account.waiting =
            (0..<9).map { group(1000 + $0, "reason \($0)", needsPerson: $0 == 0) }
            + [group(40_000, isUnderWay: true)]
        account.transfers = (0..<40).map {
            Transfer(path: "/m/work/\($0)", isUpload: $0 % 2 == 0, doneBytes: 1, totalBytes: 4)
        }
        account.conflicts = (0..<30).map { "/m/work/conflict \($0)" }
        return account
    }

    @Test("an account has ten lines at most, whatever is pending")
    func tenLines() {
        let lines = StatusText.lines(of: busy)
        #expect(lines.count == 10)
        #expect(
            lines.contains {
                $0.hasPrefix(
                    "  up: 49,988 changes to go, 5 MiB, 1 MiB/s, about 40 s; being sent: /m/work/0 25% of 4 B"
                )
            }
        )
        #expect(lines.contains { $0.hasPrefix("  down: ") && $0.contains("and 17 more") })
        #expect(lines.contains("  5,030 changes more for 5 other reasons: oort status --json"))
        #expect(
            lines.last?.hasPrefix("  30 conflict copies, please look (oort conflicts): ") == true
        )
        #expect(StatusText.lines(of: account("a", .upToDate)) == ["a: up to date (dropbox)"])
    }

    @Test("a window is never too small", arguments: [1, 2, 3, 5, 8, 12, 24, 60], [1, 10, 40, 200])
    func window(rows: Int, columns: Int) {
        var watch = StatusWatch()
        let accounts = (0..<4).map { index in
            var account = busy
            account.name = "日本語 \(index)"
            return account
        }
        let report = StatusReport(mount: mount, accounts: accounts)
        for _ in 0..<2 {
            let lines = watch.lines(report, columns: columns, rows: rows)
            #expect(lines.count <= max(rows - 1, 1))
            #expect(lines.allSatisfy { TerminalWidth.of($0) <= columns })
        }
        let all = watch.lines(report, columns: 200, rows: 100)
        #expect(
            accounts.allSatisfy { account in all.contains { $0.hasPrefix(account.name + ":") } }
        )
    }

    @Test("a bar says how much is done since the account was at rest")
    func bar() {
        var watch = StatusWatch()
        var account = account()
        func shown() -> String? {
            watch.lines(StatusReport(mount: mount, accounts: [account]), columns: 52, rows: 24)
                .first { $0.hasPrefix("  [") }
        }
        account.pendingCount = 400
        #expect(shown()?.hasSuffix("] 0%") == true)
        account.pendingCount = 100
        #expect(
            shown() == "  [" + String(repeating: "#", count: 30) + String(repeating: ".", count: 10)
                + "] 75%"
        )
        account.pendingCount = 0
        #expect(shown() == nil)
        account.pendingCount = 10
        #expect(shown()?.hasSuffix("] 0%") == true)
    }

    @Test("what comes and what is pinned have bars, each above its line")
    func barsOfWhatComes() throws {
        var watch = StatusWatch()
        var account = account()
        account.transfers = [
            Transfer(path: "/m/work/a", isUpload: false, doneBytes: 10, totalBytes: 100),
            Transfer(path: "/m/work/b", isUpload: false, doneBytes: 65, totalBytes: 200),
            Transfer(path: "/m/work/c", isUpload: true, doneBytes: 1, totalBytes: 1000),
        ]
        account.keeping = PinProgress(
            files: 4,
            bytes: 1000,
            filesHere: 1,
            bytesHere: 500,
            refused: []
        )
        let lines = watch.lines(
            StatusReport(mount: mount, accounts: [account]),
            columns: 200,
            rows: 24
        )
        func above(_ start: String) throws -> String {
            let index = try #require(lines.firstIndex { $0.hasPrefix(start) })
            return lines[index - 1]
        }
        let quarter =
            "  [" + String(repeating: "#", count: 10) + String(repeating: ".", count: 30) + "] 25%"
        #expect(try above("  down: ") == quarter)
        #expect(try above("  pinned: ").hasSuffix("] 50%"))
        #expect(lines.count { $0.hasPrefix("  [") } == 2)
    }

    @Test("an enumeration shows how many items it names in a second, as measured")
    func enumerationRate() {
        var watch = StatusWatch()
        var account = account()
        let start = ContinuousClock.now
        func shown(_ items: Int64?, after seconds: Int) -> String? {
            account.knownItems = items
            return watch.lines(
                StatusReport(mount: mount, accounts: [account]),
                columns: 80,
                rows: 24,
                at: start + .seconds(seconds)
            ).first { $0.hasPrefix("  items: ") }
        }
        #expect(shown(1000, after: 0) == nil)
        #expect(shown(3000, after: 1) == "  items: 2,000 a second")
        #expect(shown(3000, after: 2) == "  items: 1,000 a second")
        // What is longer ago than ten seconds counts no more.
        #expect(shown(3000, after: 30) == nil)
        #expect(shown(4000, after: 40) == "  items: 100 a second")
        #expect(shown(nil, after: 41) == nil)
        // Another enumeration begins.
        #expect(shown(10, after: 42) == nil)
    }

    @Test("the exit code says what a person must know")
    func outcome() {
        func code(_ change: (inout AccountStatus) -> Void) -> StatusOutcome {
            var account = account("a", .upToDate)
            change(&account)
            return StatusOutcome(StatusReport(mount: mount, accounts: [account]))
        }
        #expect(code { _ in } == .complete)
        #expect(code { $0.state = .offline } == .complete)
        #expect(code { $0.state = .reading } == .pending)
        #expect(code { ($0.state, $0.pendingCount) = (.syncing, 1) } == .pending)
        #expect(code { ($0.state, $0.trouble) = (.offline, "unreachable") } == .complete)
        #expect(code { $0.state = .trouble } == .needsPerson)
        #expect(code { $0.conflicts = ["x"] } == .needsPerson)
        #expect(
            code { ($0.state, $0.pendingCount, $0.refusedCount) = (.syncing, 2, 1) } == .needsPerson
        )
        #expect(code { $0.trouble = "damaged bytes" } == .needsPerson)
        #expect(StatusOutcome(StatusReport(mount: nil, accounts: [])) == .notMounted)
        var full = mount
        full.trouble = "no room"
        #expect(StatusOutcome(StatusReport(mount: full, accounts: [])) == .needsPerson)
    }

    @Test("a time left is of what was measured, the slower of bytes and items")
    func secondsLeft() {
        func left(_ bytes: Int64, _ count: Int, _ rate: Double?, _ items: Double?) -> Double? {
            SyncWords.secondsLeft(
                bytes: bytes,
                count: count,
                bytesPerSecond: rate,
                itemsPerSecond: items
            )
        }
        #expect(left(100, 1, nil, nil) == nil)
        #expect(left(100, 10, nil, 5) == 2)
        #expect(left(1 << 20, 1, nil, 5) == nil)
        #expect(left(100, 1, 10, nil) == 10)
        #expect(left(100, 100, 50, 5) == 20)
        #expect(left(0, 100, nil, 5) == 20)
        #expect(left(0, 0, 5, 5) == nil)
    }

    @Test("columns are counted as a terminal counts them")
    func width() {
        #expect(TerminalWidth.of("abc") == 3)
        #expect(TerminalWidth.of("日本") == 4)
        #expect(TerminalWidth.of("e\u{301}") == 1)
        #expect(TerminalWidth.of("📁") == 2)
        #expect(TerminalWidth.cut("日本語", to: 5) == "日本…")
        #expect(TerminalWidth.cut("日本語", to: 4) == "日…")
        #expect(TerminalWidth.cut("abc", to: 3) == "abc")
        #expect(TerminalWidth.cut("abc", to: 0) == "")
    }

    @Test("numbers and times as people read them")
    func numbers() {
        #expect(
            [0, 999, 1000, 1_234_567, -1000].map(StatusText.number) == [
                "0", "999", "1,000", "1,234,567", "-1,000",
            ]
        )
        #expect(
            [3, 12, 70, 600, 7200, 200_000].map { StatusText.time($0) }
                == [
                    "some seconds", "about 10 s", "about 70 s", "about 10 min", "about 2 h",
                    "about 2 days",
                ]
        )
    }

    @Test("figures are in the Prometheus text form")
    func metrics() {
        var text = MetricsText()
        text.add("oort_a_total", .counter, "What.", 1, ["account": "a\"\\\n"])
        text.add("oort_b", .gauge, "Else.", 2)
        text.add("oort_a_total", .counter, "What.", 3, ["account": "b"])
        #expect(
            text.description == """
                # HELP oort_a_total What.
                # TYPE oort_a_total counter
                oort_a_total{account="a\\"\\\\\\n"} 1
                oort_a_total{account="b"} 3
                # HELP oort_b Else.
                # TYPE oort_b gauge
                oort_b 2

                """
        )
    }
}

@Suite("Conflicts in words")
struct ConflictTextTests {
    @Test(
        "a difference has the lines that only one of two texts has, in order",
        arguments: [
            ("a b c ", "a x c ", "- b|+ x"), ("a ", "a ", ""), ("a b ", "b ", "- a"),
            ("b", "a b c", "+ a|+ c"), ("", "a", "+ a"), ("a b c d", "d c b a", nil),
            ("a b  c", "a b c", "- "),
        ] as [(String, String, String?)],
        ["\n", "\r\n"]
    )
    func difference(texts: (old: String, new: String, shown: String?), end: String) {
        let old = texts.old.replacing(" ", with: end)
        let new = texts.new.replacing(" ", with: end)
        let found = TextDifference.between(old, new)
        if let shown = texts.shown { #expect(found.replacing("\n", with: "|") == shown) }
        // What is left out and put in makes the one of the other.
        let parts = found.split(separator: "\n", omittingEmptySubsequences: false)
        let removed = parts.count { $0.hasPrefix("- ") }
        let inserted = parts.count { $0.hasPrefix("+ ") }
        #expect(TextLines.count(old) - removed + inserted == TextLines.count(new))
    }

    @Test(
        "where the lines are the same, their ends are shown",
        arguments: [
            ("a\nb\n", "a\r\nb\r\n", "- a\\n|- b\\n|+ a\\r\\n|+ b\\r\\n"),
            ("a\nb", "a\nb\n", "- b|+ b\\n"),
            ("", "", ""),
        ]
    )
    func ends(old: String, new: String, shown: String) {
        #expect(TextDifference.between(old, new).replacing("\n", with: "|") == shown)
    }

    @Test("nothing in a conflict acts on the terminal")
    func terminal() {
        let version = ConflictReport.Version(
            path: "/m/a\u{1B}[2J\nb",
            size: 3,
            modified: Date(timeIntervalSince1970: 0),
            author: "x\u{7}"
        )
        let conflict = ConflictReport(
            id: 1,
            account: "a",
            made: Date(timeIntervalSince1970: 0),
            mine: version,
            theirs: version,
            diff: (0..<50).map { "- \($0)\u{1B}]0;x" }.joined(separator: "\n")
        )
        let text = ConflictText.text([conflict], isMounted: true)
        #expect(text.unicodeScalars.allSatisfy { $0 == "\n" || !TerminalText.acts($0) })
        #expect(text.split(separator: "\n").count == 16)
        #expect(text.contains("... and 38 more lines"))
    }
}

@Suite("The log for people")
struct LogTests {
    @Test("the end of a log is followed over its renewal, by whole lines")
    func tail() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/oort.log"
        var tail = LogTail(path: path)
        #expect(tail.last(5) == nil)
        try Data("1\n2\n3\nhal".utf8).write(to: URL(fileURLWithPath: path))
        #expect(tail.last(2) == ["2", "3"])
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data("f\n4\n".utf8))
        #expect(tail.next() == ["half", "4"])
        #expect(tail.next() == [])
        try file.write(contentsOf: Data("5\n".utf8))
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        try Data("6\n".utf8).write(to: URL(fileURLWithPath: path))
        #expect(tail.next() == ["5", "6"])
        var other = LogTail(path: path)
        #expect(other.last(3) == ["4", "5", "6"])
        #expect(other.next() == [])
    }

    @Test("without a mount and a catalog the lines stay as they are")
    func unnamed() async throws {
        let folder = try TemporaryFolder()
        let names = LogNames(folders: try folder.folders())
        #expect(await names.named(["x inode=12 y"]) == ["x inode=12 y"])
    }
}
