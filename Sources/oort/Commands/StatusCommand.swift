import ArgumentParser
import Foundation

/// `oort status`.
struct StatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show accounts, room, transfers, pending changes, conflicts and errors.",
        discussion: """
            Ten lines an account at most, whatever is pending: what goes out and comes in, how fast \
            and how long it will take at the rate that was measured, and what waits for which reason.

            Exit codes: 0 the clouds have everything, 3 changes are on their way, 4 something waits \
            for you (signed out, refused, a conflict, a disk that fails), 5 not mounted; 1 and 2 as \
            everywhere. With --watch 0 after Ctrl-C.
            """
    )

    @Flag(help: "Print JSON with all that is known, with --watch one object a line.")
    var json = false

    @Flag(
        help: """
            Show it again every second until Ctrl-C: in a terminal in place, cut to the window; else \
            one after the other, each after an empty line.
            """
    )
    var watch = false

    func run() async throws {
        let folders = try Folders()
        guard watch else {
            let report = try await report(folders)
            show(report)
            let outcome = StatusOutcome(report)
            guard outcome == .complete else { throw outcome.code }
            return
        }
        // What a script asks for until it is interrupted has not failed.
        signal(SIGINT) { _ in _exit(0) }
        if json || !Console.isTerminal {
            while true {
                show(try await report(folders))
                if !json { Console.write("") }
                try await Task.sleep(for: .seconds(1))
            }
        }
        var window = StatusWatch()
        for await _ in TerminalWindow.moments() {
            let report = try await report(folders)
            let size = TerminalWindow.size
            Console.redraw(window.lines(report, columns: size.columns, rows: size.rows))
        }
    }

    private func report(_ folders: Folders) async throws -> StatusReport {
        let client = ControlClient(folders: folders)
        if client.isMountRunning { return try await client.status() }
        return try await RestingState(folders: folders).report()
    }

    private func show(_ report: StatusReport) {
        if json {
            if let data = try? ControlCoding.encode(report, pretty: !watch) {
                Console.write(json: data)
            }
        } else {
            Console.write(StatusText.text(report))
        }
    }
}
