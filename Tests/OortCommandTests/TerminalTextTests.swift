import Foundation
import Logging
import Synchronization
import Testing

@testable import oort

@Suite("Text for terminals and logs")
struct TerminalTextTests {
    /// What acts on a terminal, and what is shown in its place.
    private static let acting = [
        ("\u{0}", "\\u{0}"), ("\u{1B}]0;owned\u{7}", "\\u{1b}]0;owned\\u{7}"),
        ("\u{7F}", "\\u{7f}"), ("\u{9B}2J", "\\u{9b}2J"), ("a\r\nb", "a\\r\\nb"), ("a\tb", "a\\tb"),
        ("\u{202E}txt.exe", "\\u{202e}txt.exe"), ("\u{2066}", "\\u{2066}"),
        ("\u{61C}", "\\u{61c}"), ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ("a\u{85}b", "a\\u{85}b"), ("\n\u{301}", "\\n\u{301}"),
    ]

    @Test("what acts on a terminal is shown instead", arguments: acting)
    func names(text: String, shown: String) {
        #expect(TerminalText.line(text) == shown)
    }

    @Test("names of people's own languages stay as they are")
    func plain() {
        for name in ["Büro 文字", "e\u{301}", "👩‍👩‍👧", "شهر\u{200C}ها", "a\\n"] {
            #expect(TerminalText.line(name) == name)
        }
    }

    @Test("words of several lines keep their lines and nothing else")
    func words() {
        #expect(TerminalText.lines("a\n\tb\u{1B}[2J\r\n") == "a\n\tb\\u{1b}[2J\\r\n")
    }

    @Test("a log entry is one line, whatever a name holds", arguments: acting)
    func log(text: String, shown: String) {
        let lines = Mutex<[String]>([])
        let logger = Logger(label: "x") {
            LineLogHandler(label: $0, level: .info) { line in lines.withLock { $0.append(line) } }
        }
        logger.info("moved \(text)", metadata: ["path": "\(text)"])
        #expect(lines.withLock { $0.first?.hasSuffix("moved \(shown) path=\(shown)") } == true)
    }

    @Test("nothing in the status of an account acts on the terminal", arguments: acting)
    func status(text: String, shown: String) {
        let change = PendingChange(path: text, action: "upload", error: text, next: text)
        let report = StatusReport(
            mount: nil,
            accounts: [
                AccountStatus(
                    name: text,
                    service: text,
                    person: text,
                    state: .syncing,
                    trouble: text,
                    pendingCount: 1,
                    waiting: [group(text, isUnderWay: true), group(text, isUnderWay: false)],
                    pending: [change],
                    transfers: [Transfer(path: text, isUpload: true, doneBytes: 1, totalBytes: 2)],
                    conflicts: [text]
                )
            ]
        )
        let whole = StatusText.text(report)
        #expect(whole.unicodeScalars.allSatisfy { $0 == "\n" || !TerminalText.acts($0) })
        let plain = StatusText.text(
            StatusReport(
                mount: nil,
                accounts: report.accounts.map { account in
                    var account = account
                    account.name = "a"
                    (account.service, account.person, account.trouble) = ("a", "a", "a")
                    account.pending = [
                        PendingChange(path: "a", action: "upload", error: "a", next: "a")
                    ]
                    account.waiting = [
                        group("a", isUnderWay: true), group("a", isUnderWay: false),
                    ]
                    account.transfers[0].path = "a"
                    account.conflicts = ["a"]
                    return account
                }
            )
        )
        #expect(whole.utf8.count(where: { $0 == 10 }) == plain.utf8.count(where: { $0 == 10 }))
    }

    private func group(_ text: String, isUnderWay: Bool) -> PendingGroup {
        PendingGroup(
            count: 1,
            bytes: 2,
            isUnderWay: isUnderWay,
            needsPerson: false,
            reason: text,
            next: text,
            examples: [PendingExample(path: text, detail: text)]
        )
    }
}
