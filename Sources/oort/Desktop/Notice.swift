import Foundation
import OortModel

/// A notice to a person on the desktop, since nothing else would bring it up.
struct Notice: Hashable, Sendable {
    /// What a click does.
    enum Action: Hashable, Sendable {
        /// Shows a folder in the file manager.
        case show(String)
        /// Begins to sign in anew, in the browser.
        case signIn(account: String, service: String)
    }

    /// What it is about: the same for as long as its cause is there, and over restarts.
    var key: String
    /// One line, for people.
    var title: String
    /// A sentence or two: what happened, and what to do.
    var body: String
    /// Whether it stays on the screen until a person looks.
    var isUrgent = false
    /// Whether it is about one conflict.
    var isConflict = false
    /// What a click does; nil where nothing helps but the words.
    var action: Action?
    /// How long after its cause was last seen it counts as the same one.
    var memory = Duration.seconds(60)
    /// The keys of other notices that are shown as part of this one.
    var others: [String] = []
}

extension Notice {
    /// How many files of one account are named one by one; more are one notice.
    private static let mostConflicts = 3

    /// Everything that a person has to know of a mount, most urgent first.
    ///
    /// `canSignIn` says whether a service's sign-in needs nothing but a browser.
    static func all(
        in report: StatusReport,
        canSignIn: (_ service: String) -> Bool
    ) -> [Notice] {
        let services = report.accounts.map { ($0.name, $0.service) }
        return Need.all(in: report).map { need in
            let service = need.account.flatMap { name in services.first { $0.0 == name }?.1 }
            var action = need.folder.map(Action.show)
            if need.isSignIn, let account = need.account, let service, canSignIn(service) {
                action = .signIn(account: account, service: service)
            }
            return Notice(
                key: need.key,
                title: need.title,
                body: need.words + (need.path.map { "\n\(TerminalText.line($0))" } ?? ""),
                isUrgent: need.isUrgent,
                isConflict: need.isConflict,
                action: action,
                memory: .seconds(need.memory)
            )
        }
    }

    /// The same with many conflicts in one notice.
    static func gathered(_ notices: [Notice]) -> [Notice] {
        let conflicts = notices.filter(\.isConflict)
        guard conflicts.count > mostConflicts, let first = conflicts.first else { return notices }
        return notices.filter { !$0.isConflict } + [
            Notice(
                key: first.key,
                title: "\(conflicts.count) files have two versions",
                body: "They were changed here and in the cloud; yours are kept beside the "
                    + "cloud's. oort conflicts lists them.",
                action: first.action,
                others: conflicts.dropFirst().map(\.key)
            )
        ]
    }
}

/// The notices that were shown, kept over restarts: each is shown once while its cause lasts.
struct NoticeBoard: Codable, Hashable, Sendable {
    /// When the cause of each notice was last seen, and until when it counts as the same.
    private var told: [String: Date] = [:]
    /// The notices that could not be shown, in this process's life.
    private var failures: [String: Failure] = [:]

    /// A notice that the desktop did not show.
    private struct Failure: Hashable {
        var count = 0
        /// When it is tried again.
        var next: Date
    }

    private enum CodingKeys: CodingKey { case told }

    /// The notices that were not shown yet; from now on they count as shown, unless `failed` says
    /// otherwise.
    mutating func news(in notices: [Notice], at now: Date) -> [Notice] {
        told = told.filter { $0.value > now }
        // A cause that is gone for so long is another one when it comes back.
        let present = Set(notices.map(\.key))
        failures = failures.filter {
            present.contains($0.key) || $0.value.next.addingTimeInterval(3600) > now
        }
        let new = notices.filter { notice in
            guard told[notice.key] == nil else { return false }
            guard let failure = failures[notice.key] else { return true }
            return failure.next <= now
        }
        let isNew = Set(new.map(\.key))
        for notice in notices where told[notice.key] != nil || isNew.contains(notice.key) {
            told[notice.key] = now.addingTimeInterval(Double(notice.memory.components.seconds))
        }
        return new
    }

    /// The desktop did not show it: it is news again after a while, at first some seconds, then up to
    /// ten minutes.
    mutating func failed(_ notice: Notice, at now: Date) {
        for key in [notice.key] + notice.others {
            told[key] = nil
            let count = (failures[key]?.count ?? 0) + 1
            let pause = min(5 * Double(1 << min(count - 1, 10)), 600)
            failures[key] = Failure(count: count, next: now.addingTimeInterval(pause))
        }
    }

    /// The keys of the notices that were shown.
    var keys: Set<String> { Set(told.keys) }

    /// Reads the stored state; an empty one where there is none, or it cannot be read.
    ///
    /// The causes were not observed since then: all of them count as just seen.
    static func read(_ path: String, at now: Date) -> NoticeBoard {
        guard let data = FileManager.default.contents(atPath: path),
            var board = try? ControlCoding.decode(NoticeBoard.self, from: data)
        else { return NoticeBoard() }
        board.told = board.told.mapValues { max($0, now.addingTimeInterval(600)) }
        return board
    }

    /// Keeps it.
    ///
    /// - Throws: an error of Foundation's when the disk refuses.
    func write(_ path: String) throws {
        try ControlCoding.encode(self, pretty: true)
            .write(to: URL(fileURLWithPath: path), options: .atomic)
    }
}
