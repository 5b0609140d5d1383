import ArgumentParser
import CLinux
import Dispatch
import OortSFTP

/// The way in: reads the arguments, runs the command and ends with its exit code.
@main
enum Main {
    static func main() {
        if SSHAskpass.isAsked { SSHAskpass.run() }
        limitMemory()
        Signals.begin()
        if KernelEventsHelper.isAsked { KernelEventsHelper.run() }
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let failure = OortCommand.emptyArgument(in: arguments) {
            Console.error("oort: \(failure)")
            Outcome.end(with: ExitCode(2))
        }
        do {
            // Every later thread inherits this mask, so it must be set before the first one exists.
            if try OortCommand.parseAsRoot() is any StopsOrderly { Signals.blockStopSignals() }
        } catch {
            Outcome.end(with: error)
        }
        // The main thread only waits: a task bound to it would hang inside a callback of libfuse's.
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            do {
                try await run()
            } catch {
                Outcome.end(with: error)
            }
            Outcome.end(with: .success)
        }
        done.wait()
    }

    /// Has all threads share two heaps (M_ARENA_MAX, mallopt(3)): with one for each, what a thread let go
    /// stays with it, and a mount takes a third more memory.
    private static func limitMemory() { _ = mallopt(-8, 2) }

    @concurrent
    private static func run() async throws {
        var command = try OortCommand.parseAsRoot()
        if var command = command as? any AsyncParsableCommand {
            try await command.run()
        } else {
            try command.run()
        }
    }
}

/// A command that ends by TERM, INT or HUP, and does so orderly.
protocol StopsOrderly {}

/// The whole command line.
struct OortCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "oort",
        abstract:
            "Your clouds as one folder: Dropbox, Drive, OneDrive, Box, Nextcloud, SFTP, S3 ... at ~/clouds.",
        discussion: """
            First steps:
              oort demo              try it with simulated clouds, no account needed
              oort login dropbox     sign in (also: drive, onedrive, box, nextcloud, webdav, sftp, ftp, s3, weather)
              oort mount             mount all accounts at ~/clouds
              oort sync              wait until the clouds have everything

            Settings are in $XDG_CONFIG_HOME/oort/config.toml (usually ~/.config/oort).
            Exit codes: 0 done, 1 failed, 2 wrong usage.
            """,
        version: OortVersion.current,
        subcommands: [
            LoginCommand.self, LogoutCommand.self, AccountsCommand.self, MountCommand.self,
            UnmountCommand.self, StatusCommand.self, SyncCommand.self, SearchCommand.self,
            ConflictsCommand.self, ResolveCommand.self, WatchCommand.self, TrashCommand.self,
            RestoreCommand.self,
            VersionsCommand.self, ShareCommand.self, UnshareCommand.self, OpenCommand.self,
            PinCommand.self,
            UnpinCommand.self, PinsCommand.self, FreeCommand.self, PauseCommand.self,
            ResumeCommand.self, LimitCommand.self, LogCommand.self, WebCommand.self,
            ServiceCommand.self, DoctorCommand.self, DemoCommand.self,
        ]
    )
}

extension OortCommand {
    /// What to say of an argument, or of an option's value, that is empty; nil where there is none.
    ///
    /// As a path it would be the current folder, which a script with a variable that is not set would share,
    /// say. A shell that completes a word (`---completion`) may ask with an empty one.
    static func emptyArgument(in arguments: [String]) -> Failure? {
        guard arguments.first?.hasPrefix("---") != true else { return nil }
        for argument in arguments {
            let isEmptyValue =
                argument.hasPrefix("--") && argument.firstIndex(of: "=") == argument.indices.last
            guard argument.isEmpty || isEmptyValue else { continue }
            return Failure(
                argument.isEmpty
                    ? "One of the arguments is empty." : "\(argument) has nothing behind it.",
                advice:
                    "In a script, look whether a variable in it is set. The current folder is: ."
            )
        }
        return nil
    }

    /// What to say of a first word that is no command; nil when it is one, or a flag.
    static func unknownCommand(in arguments: [String]) -> Failure? {
        let names = configuration.subcommands.compactMap { $0.configuration.commandName }
        guard let word = arguments.first, !word.hasPrefix("-"), word != "help",
            !names.contains(word)
        else { return nil }
        let meant = word == "version" ? "--version" : NearName.of(word, among: names)
        let near = meant.map { "Did you mean: oort \($0)\n" } ?? ""
        return Failure(
            "There is no command \"\(word)\".",
            advice: near + "The commands are: \(names.joined(separator: ", "))."
        )
    }
}

/// The version of this build.
enum OortVersion {
    static let current = "0.1.0"
    /// How requests greet; without its end Google does not compress.
    static let userAgent = "oort/\(current) (gzip)"
}
