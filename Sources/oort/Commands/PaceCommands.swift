import ArgumentParser
import Foundation

/// `oort pause`.
struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Send nothing for a time; programs still read and write.",
        discussion: """
            What programs write is kept and goes out after `oort resume`, or when the time is over; \
            what they read is fetched, and news from the cloud show. What is pinned and not here yet \
            waits, too. A pause outlives restarts.
            """
    )

    @Argument(help: "The account's name (default: all).")
    var account: String?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long, such as 2h (default: until oort resume).", valueName: "time")
    )
    var length: TimeSpan?

    func validate() throws {
        if length?.duration == .zero { throw ValidationError("--for must be above 0.") }
    }

    func run() async throws {
        let report = try await ControlClient(folders: try Folders())
            .pause(PauseRequest(account: account, seconds: length?.seconds))
        Console.write(PaceText.text(report))
    }
}

/// `oort resume`.
struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "End a pause: what waited goes out."
    )

    @Argument(help: "The account's name (default: all).")
    var account: String?

    func run() async throws {
        let report = try await ControlClient(folders: try Folders())
            .resume(ResumeRequest(account: account))
        Console.write(PaceText.text(report))
    }
}

/// `oort limit`.
struct LimitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract: "Limit how many bytes go up and come down in a second.",
        discussion: """
            The limits hold for all accounts together, for what programs read as well as for what \
            goes out, and outlive restarts. Without an option it shows them.
            """
    )

    @Option(help: ArgumentHelp("Bytes that may go up in a second, such as 1M.", valueName: "size"))
    var up: ByteSize?

    @Option(
        help: ArgumentHelp("Bytes that may come down in a second, such as 5M.", valueName: "size")
    )
    var down: ByteSize?

    @Flag(help: "Lift both limits.")
    var off = false

    func validate() throws {
        if off, up != nil || down != nil {
            throw ValidationError("--off goes with no other option.")
        }
    }

    func run() async throws {
        let wish = LimitRequest(up: up?.bytes, down: down?.bytes, off: off ? true : nil)
        try wish.check()
        let report = try await ControlClient(folders: try Folders()).limit(wish)
        Console.write(
            StatusText.limits(up: report.uploadLimit, down: report.downloadLimit) ?? "No limits."
        )
    }
}

/// Pauses in words.
enum PaceText {
    /// What is paused.
    static func text(_ report: PaceReport) -> String {
        guard !report.paused.isEmpty else { return "Nothing is paused." }
        return report.paused.map { paused in
            let end = paused.until.map { "until \(StatusText.moment($0))" } ?? "until oort resume"
            return "Paused \(end): \(TerminalText.line(paused.account))"
        }.joined(separator: "\n")
    }
}
