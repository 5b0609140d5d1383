import Foundation
import Testing

@testable import oort

@Suite("what the desktop is told")
struct NoticeTests {
    private var report: StatusReport {
        StatusReport(
            mount: MountStatus(
                mountPoint: "/m",
                process: 1,
                since: Date(timeIntervalSince1970: 0),
                version: "1",
                cachedBytes: 0,
                cacheLimit: 0
            ),
            accounts: [
                AccountStatus(
                    name: "a",
                    service: "drive",
                    state: .upToDate,
                    pendingCount: 0,
                    pending: [],
                    transfers: [],
                    conflicts: []
                )
            ]
        )
    }

    private func notices(_ report: StatusReport) -> [Notice] {
        Notice.all(in: report) { $0 == "drive" }
    }

    private func group(_ reason: String?, count: Int = 1, needsPerson: Bool = true) -> PendingGroup
    {
        PendingGroup(
            count: count,
            bytes: 0,
            isUnderWay: false,
            needsPerson: needsPerson,
            reason: reason,
            next: "kept here",
            examples: [PendingExample(path: "/m/a/folder/file")]
        )
    }

    @Test("of what goes well, or passes by itself, nothing is said")
    func quiet() {
        #expect(notices(report).isEmpty)
        var waiting = report
        waiting.accounts[0].state = .offline
        waiting.accounts[0].trouble = "The service cannot be reached"
        waiting.accounts[0].waiting = [group("it is locked", needsPerson: false)]
        #expect(notices(waiting).isEmpty)
        var off = report
        off.mount = nil
        off.accounts[0].conflicts = ["/m/a/x"]
        #expect(notices(off).isEmpty)
    }

    @Test("each trouble has its words and what a click does")
    func troubles() {
        var report = report
        report.mount?.trouble = "no room"
        report.accounts[0].trouble = "Signed out"
        report.accounts[0].state = .trouble
        report.accounts[0].signIn = "oort login drive --name a"
        #expect(
            notices(report).map(\.action) == [
                .show("/m"), .signIn(account: "a", service: "drive"),
            ]
        )
        report.accounts[0].service = "sftp"
        #expect(notices(report).last?.action == .show("/m/a"))
        report.accounts[0].signIn = nil
        report.accounts[0].trouble = nil
        report.accounts[0].state = .attention
        report.accounts[0].waiting = [group("the name is too long", count: 12)]
        let refused = notices(report).last
        #expect(refused?.action == .show("/m/a/folder"))
        #expect(refused?.body.hasPrefix("12 changes are only on this machine: the name") == true)
    }

    @Test("whatever makes the status call a person by its exit code has a notice and a line")
    func complete() throws {
        func changed(_ change: (inout StatusReport) -> Void) -> StatusReport {
            var report = report
            change(&report)
            return report
        }
        #expect(Need.all(in: report).isEmpty && StatusOutcome(report) == .complete)
        let reports = [
            changed { $0.mount?.trouble = "no room" },
            changed { $0.mount?.foldersAside = ["/s/staged.1"] },
            changed { $0.mount?.foundBeneath = "/m.found" },
            changed { $0.mount?.keptAboveLimit = 5 },
            // The list of accounts was lost, with changes that wait.
            changed {
                $0.accounts[0].state = .trouble
                $0.accounts[0].trouble = "Not signed in"
                $0.accounts[0].pendingCount = 2
            },
            changed { $0.accounts[0].trouble = "The disk has damaged a file" },
            changed { $0.accounts[0].state = .trouble },
            changed { $0.accounts[0].state = .attention },
            changed { $0.accounts[0].refusedCount = 1 },
            changed { $0.accounts[0].waiting = [group(nil)] },
            changed { $0.accounts[0].conflicts = ["/m/a/x"] },
        ]
        for report in reports {
            let needs = Need.all(in: report)
            #expect(StatusOutcome(report) == .needsPerson)
            #expect(needs.count == 1 && needs.first?.line.isEmpty == false)
            #expect(notices(report).map(\.key) == needs.map(\.key))
        }
        let lost = try #require(notices(reports[4]).first)
        #expect(lost.title == "a needs you" && lost.isUrgent)
        #expect(lost.body == "Not signed in Only on this machine: 2 changes.")
        #expect(notices(reports[1]).first?.action == .show("/s/staged.1"))
    }

    @Test("many conflicts at once are one notice")
    func gathered() {
        var report = report
        report.accounts[0].conflicts = (0..<3).map { "/m/a/\($0)" }
        #expect(Notice.gathered(notices(report)).count == 3)
        report.accounts[0].conflicts = (0..<400).map { "/m/a/\($0)" }
        let all = Notice.gathered(notices(report))
        #expect(all.map(\.title) == ["400 files have two versions"])
    }

    @Test("each is told once for as long as its cause is there, also after a restart")
    func once() throws {
        var report = report
        report.accounts[0].conflicts = ["/m/a/x"]
        report.accounts[0].waiting = [group("the name is too long")]
        let both = notices(report)
        var board = NoticeBoard()
        var now = Date(timeIntervalSince1970: 1_000_000)
        #expect(board.news(in: both, at: now) == both)
        now += 5
        #expect(board.news(in: both, at: now).isEmpty)
        // A refusal is not seen while it is tried again.
        now += 600
        let conflict = both.filter(\.isConflict)
        #expect(board.news(in: conflict, at: now) == conflict)
        now += 30
        #expect(board.news(in: both, at: now).isEmpty)

        let file = NSTemporaryDirectory() + "oort-board-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: file) }
        try board.write(file)
        now += 86_400
        var later = NoticeBoard.read(file, at: now)
        #expect(later.news(in: both, at: now).isEmpty)
        // Once the cause is gone for long, it is another one.
        #expect(later.news(in: [], at: now + 601).isEmpty)
        #expect(later.news(in: both, at: now + 4000) == both)
        // A file that cannot be read is as if no notice had been shown.
        try Data("{".utf8).write(to: URL(fileURLWithPath: file))
        #expect(NoticeBoard.read(file, at: now).keys.isEmpty)
    }

    @Test("what the desktop did not show is tried again, later and later, for as long as it lasts")
    func failed() throws {
        var report = report
        report.accounts[0].conflicts = (0..<4).map { "/m/a/\($0)" }
        let all = notices(report)
        var board = NoticeBoard()
        var now = Date(timeIntervalSince1970: 1_000_000)
        var tries = 0
        var moments: [Double] = []
        let end = now + 86_400
        while now < end {
            let news = board.news(in: all, at: now)
            for notice in Notice.gathered(news) {
                #expect(notice.title == "4 files have two versions")
                tries += 1
                moments.append(now.timeIntervalSince1970)
                board.failed(notice, at: now)
                #expect(board.keys.isEmpty)
                #expect(board.news(in: all, at: now).isEmpty)
            }
            now += 30
        }
        let pauses = zip(moments, moments.dropFirst()).map { $1 - $0 }
        #expect(pauses == pauses.sorted() && pauses.last == 600)
        #expect(tries > 86_400 / 600)

        // The last notices are not shown again.
        board = NoticeBoard()
        #expect(board.news(in: all, at: now).count == 4)
        board.failed(Notice.gathered(all)[0], at: now)
        #expect(board.news(in: all, at: now + 5).count == 4)
        #expect(board.news(in: all, at: now + 10).isEmpty)
        #expect(board.keys.count == 4)
    }

    @Test("what a name holds is text on the screen")
    func markup() {
        #expect(Desktop.markup("a<b>&\u{1B}[2J\nc") == "a&lt;b&gt;&amp;\\\\u{1b}[2J\nc")
        // Letters that a mark joins, and what `notify-send` would make letters of.
        #expect(Desktop.markup("<\u{200D}b>\u{301}") == "&lt;\u{200D}b&gt;\u{301}")
        #expect(Desktop.markup("\\74b\\76 \\377") == "\\\\74b\\\\76 \\\\377")
    }

    @Test("a name is one line, whatever it holds")
    func oneLine() {
        var report = report
        report.accounts[0].conflicts = ["/m/a/x\nEverything is well"]
        report.accounts[0].waiting = [group("the name is too long")]
        report.accounts[0].waiting?[0].examples[0].path = "/m/a/x\nEverything is well"
        let bodies = notices(report).map(\.body)
        #expect(bodies.count == 2)
        for body in bodies { #expect(body.hasSuffix("\n/m/a/x\\nEverything is well")) }
    }

    @Test("what systemd knows of the session is read as it is meant")
    func variables() {
        let said = "DISPLAY=:7\nXAUTHORITY=$'/home/o\\'neil/a b\\\\c'\nEMPTY=\nA=b=c\nodd\n"
        #expect(
            Desktop.variables(said) == [
                "DISPLAY": ":7", "XAUTHORITY": "/home/o'neil/a b\\c", "EMPTY": "", "A": "b=c",
            ]
        )
    }
}
