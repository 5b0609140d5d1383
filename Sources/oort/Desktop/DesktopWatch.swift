import Foundation
import Logging

/// Brings to the desktop what a person has to know of a mount, and has the machine wait with its sleep
/// while something is on its way.
///
/// Isolation: an actor; `run` is its life.
actor DesktopWatch {
    /// How long after a change the mount is looked at, so that many changes are one look.
    private static let pause = Duration.seconds(2)
    /// How often it is looked at when nothing changes here: not all troubles come with a change.
    private static let interval = Duration.seconds(30)
    /// How many notices wait for a click at most; older ones stay on the screen, and do nothing.
    private static let mostShown = 8
    /// How long logind is left alone after it refused.
    private static let refusalPause = Duration.seconds(600)

    private let desktop: Desktop
    private let boardFile: String
    private let logger: Logger
    private let canSignIn: @Sendable (_ service: String) -> Bool
    private var board: NoticeBoard
    private var shown: [(notice: Notice, program: DesktopProgram)] = []
    private var lock: DesktopProgram?
    /// When logind may be asked again after it refused.
    private var nextLock = ContinuousClock.now

    /// A watch that stores which notices it showed in the file `boardFile`.
    init(
        _ desktop: Desktop,
        boardFile: String,
        canSignIn: @escaping @Sendable (_ service: String) -> Bool,
        logger: Logger
    ) {
        self.desktop = desktop
        self.boardFile = boardFile
        self.canSignIn = canSignIn
        self.logger = logger
        board = NoticeBoard.read(boardFile, at: Date())
    }

    /// Looks after each of the `changes`, and every now and then, until its task is cancelled.
    func run(changes: AsyncStream<Void>, look: @Sendable () async -> StatusReport) async {
        let (looks, due) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        // It asks for itself how the mount is.
        let tray = desktop.showTray()
        defer { tray?.letGo() }
        await withTaskGroup { group in
            group.addTask { for await _ in changes { due.yield() } }
            group.addTask {
                while (try? await Task.sleep(for: Self.interval)) != nil { due.yield() }
            }
            due.yield()
            for await _ in looks {
                let report = await look()
                tell(report)
                delaySleep(report)
                guard (try? await Task.sleep(for: Self.pause)) != nil else { break }
            }
            group.cancelAll()
        }
        lock?.end()
        let before = board.keys
        noteEnded()
        keep(since: before)
        for (_, program) in shown { program.end() }
        (lock, shown) = (nil, [])
    }

    private func tell(_ report: StatusReport) {
        guard desktop.notifier != nil else { return }
        let before = board.keys
        noteEnded()
        let notices = Notice.all(in: report, canSignIn: canSignIn)
        let news = board.news(in: notices, at: Date())
        for notice in Notice.gathered(news) {
            if let program = desktop.show(notice, clicked: { self.clicked(notice, $0) }) {
                shown.append((notice, program))
            } else {
                board.failed(notice, at: Date())
            }
        }
        while shown.count > Self.mostShown { shown.removeFirst().program.end() }
        keep(since: before)
    }

    /// Does what a click asks for; where that does not succeed, the notice counts as not shown.
    private nonisolated func clicked(_ notice: Notice, _ action: Notice.Action) {
        // Owned by nothing: ends with the program that the person sees.
        Task { [desktop, weak self] in
            if await !desktop.perform(action) { await self?.clickFailed(notice) }
        }
    }

    private func clickFailed(_ notice: Notice) {
        logger.info(
            "what a notice offers did not succeed",
            metadata: ["title": "\(notice.title)"]
        )
        let before = board.keys
        board.failed(notice, at: Date())
        keep(since: before)
    }

    /// Lets go of the programs that ended; a notice that one of them could not show counts as not shown.
    private func noteEnded() {
        for (notice, program) in shown where program.succeeded == false {
            logger.info("a notice was not shown", metadata: ["title": "\(notice.title)"])
            board.failed(notice, at: Date())
        }
        shown.removeAll { $0.program.succeeded != nil }
    }

    private func keep(since before: Set<String>) {
        guard board.keys != before else { return }
        do { try board.write(boardFile) } catch {
            // After a restart it is shown once more.
            logger.warning("which notices were shown is not kept", metadata: ["error": "\(error)"])
        }
    }

    /// Has logind wait while something that was written here is on its way to a cloud.
    private func delaySleep(_ report: StatusReport) {
        let isUnderWay = report.accounts.contains(where: \.isSending)
        guard isUnderWay else {
            lock?.end()
            lock = nil
            return
        }
        let now = ContinuousClock.now
        if let lock, !lock.isRunning {
            // Refused: it ends by itself for no other reason.
            self.lock = nil
            nextLock = now + Self.refusalPause
        }
        guard lock == nil, nextLock <= now else { return }
        lock = desktop.delaySleep(why: "Files are on their way to the cloud")
    }
}

extension AccountStatus {
    /// Whether something goes to the cloud now, or will by itself.
    var isSending: Bool {
        switch state {
        case .syncing, .reading: pendingCount > (refusedCount ?? 0)
        case .notMounted, .upToDate, .paused, .attention, .offline, .trouble: false
        }
    }
}
