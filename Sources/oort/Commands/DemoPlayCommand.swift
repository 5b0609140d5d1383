import ArgumentParser
import Foundation
import Synchronization

/// `oort demo play`.
struct DemoPlayCommand: AsyncParsableCommand, StopsOrderly {
    static let configuration = CommandConfiguration(
        commandName: "play",
        abstract: "Let something happen in the demo that runs in another terminal.",
        discussion: """
            edit      somebody else changes a file and adds a folder
            offline   the network goes; programs read and write on
            full      the account has no room for what is written
            conflict  two people change one file at the same moment
            slow      a line of 200 kB/s with 0.8 s a call

            A scene puts the clouds back as they were, also after Ctrl-C; the files that it wrote stay. \
            The server of sftp is a real one, where there are edit and conflict only.
            """
    )

    @Argument(help: "edit, offline, full, conflict or slow.")
    var scene: DemoScene

    @Option(
        help: ArgumentHelp("In which account (default: drive).", valueName: "name"),
        completion: .list(["dropbox", "drive", "onedrive", "nextcloud", "s3"])
    )
    var account = "drive"

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp(
            "How long a scene lasts that has an end: offline, full, slow (default: 30s).",
            valueName: "time"
        )
    )
    var length = TimeSpan(.seconds(30))

    func run() async throws {
        let demo = try RunningDemo()
        let (stops, stop) = AsyncStream.makeStream(of: Void.self)
        let areCloudsBack = Mutex(false)
        Signals.onStop {
            // The first time ends the scene; the second time there is no waiting for the cloud, either.
            if case .terminated = stop.yield(()), areCloudsBack.withLock({ $0 }) {
                Outcome.end(with: ExitCode(130))
            }
            stop.finish()
        }
        let length = length.duration
        let play = DemoPlay(
            demo: demo,
            account: account,
            cloudsAreBack: { areCloudsBack.withLock { $0 = true } }
        ) {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await Task.sleep(for: length) }
                group.addTask { for await _ in stops { return } }
                await group.next()
                group.cancelAll()
            }
        }
        do {
            try await play.play(scene)
        } catch {
            await demo.close()
            throw error
        }
        await demo.close()
    }
}
