import ArgumentParser
import Foundation

/// `oort sync`.
struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Wait until the clouds have everything.",
        discussion: """
            Sends what is pending at once; in a terminal it shows how far it is. Exits with 0 when the clouds have everything, or with 1 \
            and a list of what is missing.
            """
    )

    @Argument(
        help: "A file or folder under the mount point (default: everything).",
        completion: .file()
    )
    var path: String?

    @Option(
        help: ArgumentHelp("Give up after this time, such as 60s.", valueName: "time")
    )
    var timeout: TimeSpan?

    func run() async throws {
        let request = SyncRequest(
            path: path.map { MountPoint($0).path },
            timeoutSeconds: timeout?.seconds
        )
        let shows = isatty(STDERR_FILENO) == 1
        let last: SyncProgress
        do {
            let client = ControlClient(folders: try Folders(holding: path))
            last = try await client.sync(request) { progress in
                guard shows, progress.state == .waiting, progress.pendingCount > 0 else { return }
                Console.replaceErrorLine(
                    TerminalWidth.cut(
                        StatusText.line(progress),
                        to: TerminalWindow.size.columns - 1
                    )
                )
            }
        } catch {
            if shows { Console.replaceErrorLine("") }
            throw error
        }
        if shows { Console.replaceErrorLine("") }
        if last.state == .done, shows { Console.error("The clouds have everything.") }
        guard last.state != .done else { return }
        for change in last.pending { Console.write(StatusText.line(change)) }
        let unseen = last.pendingCount - last.pending.count
        if unseen > 0 { Console.write("... and \(unseen) more") }
        let isOne = last.pendingCount == 1
        let what = StatusText.changes(last.pendingCount)
        switch last.state {
        case .timedOut:
            let time = timeout.map(\.description) ?? "the time"
            guard last.pendingCount > 0 else {
                throw Failure(
                    "It could not be found out within \(time) whether the cloud has everything.",
                    advice: "Give it a longer --timeout; `oort status` shows what is pending."
                )
            }
            throw Failure(
                "\(what) did not reach the cloud within \(time).",
                advice: (isOne ? "It is kept and goes" : "They are kept and go")
                    + " on going out; `oort status` shows how."
            )
        default:
            throw Failure(
                "\(what) cannot reach the cloud now.",
                advice: (isOne ? "It is" : "They are")
                    + " kept; the list above says what each one needs."
            )
        }
    }
}
