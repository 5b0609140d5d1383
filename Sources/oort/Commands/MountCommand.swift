import ArgumentParser
import Foundation
import OortTransport

/// `oort mount`.
struct MountCommand: AsyncParsableCommand, StopsOrderly {
    static let configuration = CommandConfiguration(
        commandName: "mount",
        abstract: "Mount all accounts, one folder each.",
        discussion: """
            The mount runs in the background until `oort unmount`; its log is oort.log in \
            $XDG_STATE_HOME/oort (usually ~/.local/state/oort). It comes up without a network, \
            too, and goes on with whatever was not uploaded yet. `oort service install` mounts at \
            each login.
            """
    )

    @Argument(
        help: ArgumentHelp(
            "The folder to mount on; made if it is missing (default: ~/clouds).",
            valueName: "mountpoint"
        ),
        completion: .directory
    )
    var mountPoint: String?

    @Flag(help: "Stay in the foreground and log to standard error, too, for systemd and the like.")
    var foreground = false

    @OptionGroup(title: "How to mount")
    var flags: MountFlags

    func run() async throws {
        guard let pipe = ReadyPipe() else {
            if foreground { try await mountInForeground() } else { try await mountInBackground() }
            return
        }
        do {
            let options = flags.options(try Surroundings(), mountPoint: mountPoint)
            try options.folders.make()
            let file = try LogFile(path: options.folders.logFile)
            try await mount(log: { file.write($0) }, ready: { pipe.say($0) })
        } catch {
            let failure = error as? Failure ?? Failure("The mount failed: \(error)")
            pipe.say(
                ReadyMessage(
                    mountPoint: "",
                    accounts: [],
                    failure: ControlFailure(message: failure.message, advice: failure.advice)
                )
            )
            throw failure
        }
    }

    /// Says on standard error, too, what the log has.
    private func mountInForeground() async throws {
        let manager = ServiceManager()
        let folders = try Folders()
        try folders.make()
        let file = try LogFile(path: folders.logFile)
        try await mount(
            manager: manager,
            log: {
                file.write($0)
                Console.error($0)
            },
            ready: { Console.error("Mounted at \($0.mountPoint).") }
        )
    }

    private func mount(
        manager: ServiceManager? = nil,
        log: @escaping @Sendable (String) -> Void,
        ready: @escaping @Sendable (ReadyMessage) -> Void
    ) async throws {
        // It holds tokens. For a debugger there is a way around.
        if ProcessInfo.processInfo.environment["OORT_DEBUGGABLE"] == nil { PrivateMemory.begin() }
        let options = flags.options(try Surroundings(), mountPoint: mountPoint)
        try await Daemon(options: options, manager: manager, log: log).run(
            make: CloudMount.make,
            ready: ready
        )
    }

    private func mountInBackground() async throws {
        // Read here first, so that a mistake in the settings is reported at once and plainly.
        let surroundings = try Surroundings()
        try surroundings.folders.make()
        var arguments = Array(CommandLine.arguments.dropFirst())
        arguments.append("--foreground")
        let message = try await BackgroundProcess.start(
            arguments: arguments,
            output: surroundings.folders.logFile
        )
        if message.accounts.isEmpty {
            Console.write("Mounted at \(message.mountPoint).")
            Console.write("No account is signed in; `oort login SERVICE` adds one at once.")
        } else {
            let names = message.accounts.joined(separator: ", ")
            Console.write("Mounted at \(message.mountPoint): \(names)")
        }
    }
}
