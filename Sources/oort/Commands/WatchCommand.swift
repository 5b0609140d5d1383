import ArgumentParser
import Foundation
import Synchronization

/// `oort watch`.
struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Tell every change in the mount, whoever makes it.",
        discussion: """
            One line a change, until Ctrl-C, the end of whoever reads, or the mount's end: created, \
            changed, moved (with both paths), deleted, sent (the cloud has what was written here), \
            and the states of accounts. When changes come faster than they are read, some are lost, \
            and an overflow says so: look at the folder anew.

            With --json each line is an object with "event" and "time", and where they apply "path", \
            "from", "kind" (file, folder, link, other), "content" (whether bytes changed, or \
            attributes only), "origin" (here, cloud), "account", "state". The first event is "ready".

            Exit codes: 0 nobody reads any longer, 1 the mount ended, or none runs, 2 wrong usage.
            """
    )

    @Argument(help: "Only what lies here, or below (default: everything).", completion: .file())
    var path: String?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    func run() async throws {
        let client = ControlClient(folders: try Folders(holding: path))
        let request = WatchRequest(path: path.map { MountPoint($0).path })
        let output = WatchOutput(json: json)
        do {
            try await withThrowingTaskGroup { group in
                group.addTask { try await client.watch(request) { output.show($0) } }
                group.addTask { try await output.lookAfter() }
                defer { group.cancelAll() }
                try await group.next()
            }
        } catch let failure as Failure {
            guard output.hasBegun, failure != WatchOutput.silence else { throw failure }
        }
        throw Failure("The mount ended.", advice: "Mount again: oort mount")
    }
}

/// Where events are written as they come.
private final class WatchOutput: Sendable {
    private struct State {
        var hasBegun = false
        var isWriting = false
        var heard = ContinuousClock.now
    }

    static let silence = Failure(
        "The running mount does not answer.",
        advice: "See its log (oort.log in the state folder), or start it anew: "
            + "oort unmount, then oort mount"
    )
    /// How long the mount may say nothing; it says every 20 seconds that it is alive.
    private static let patience = Duration.seconds(120)

    private let json: Bool
    private let state = Mutex(State())

    init(json: Bool) { self.json = json }

    /// Whether the mount has announced that it will report.
    var hasBegun: Bool { state.withLock { $0.hasBegun } }

    /// Writes an event; ends the program when its output is no longer read.
    func show(_ event: WatchEvent) {
        state.withLock { state in
            state.isWriting = true
            if event.event == .ready { state.hasBegun = true }
        }
        defer {
            state.withLock { state in
                state.isWriting = false
                state.heard = .now
            }
        }
        let text: Data
        if json {
            guard ![.alive, .end].contains(event.event),
                let data = try? ControlCoding.encode(event)
            else { return }
            text = data
        } else {
            guard let line = event.line else { return }
            text = Data(line.utf8)
        }
        do {
            try FileHandle.standardOutput.write(contentsOf: text + [UInt8(ascii: "\n")])
        } catch {
            Outcome.end(with: .success)
        }
    }

    /// Ends the program when its output is no longer read.
    ///
    /// - Throws: `silence` when the mount hangs.
    func lookAfter() async throws {
        while true {
            try await Task.sleep(for: .seconds(1))
            var output = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
            let ends = Int32(POLLERR | POLLHUP | POLLNVAL)
            if unsafe poll(&output, 1, 0) > 0, Int32(output.revents) & ends != 0 {
                Outcome.end(with: .success)
            }
            let (isWriting, heard) = state.withLock { ($0.isWriting, $0.heard) }
            if !isWriting, heard.duration(to: .now) > Self.patience { throw Self.silence }
        }
    }
}
