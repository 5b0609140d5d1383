import ArgumentParser
import Foundation

/// `oort pin`.
struct PinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keep a file, or a folder with all that comes into it, on this machine.",
        discussion: """
            What is missing is fetched in the background, new versions too, and never taken away for \
            room. What does not fit into cache_size or onto the disk is refused. When the time is \
            over the copy may go; the file stays. A second pin of the same item changes the end.
            """
    )

    @Argument(help: "The file or folder under the mount point.", completion: .file())
    var path: String

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long, such as 48h (default: until oort unpin).", valueName: "time")
    )
    var length: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "The last day, such as 2027-01-31, or a moment, such as 2027-01-31T18:00.",
            valueName: "date"
        )
    )
    var until: DateArgument?

    func validate() throws {
        if length != nil, until != nil {
            throw ValidationError("--for and --until do not go together.")
        }
        if length?.duration == .zero { throw ValidationError("--for must be above 0.") }
    }

    func run() async throws {
        let end = length.map { Date(timeIntervalSinceNow: $0.seconds) } ?? until?.last
        if let end, end <= Date() {
            throw Failure(
                "\(StatusText.moment(end)) is over already.",
                advice: "--until takes a moment in the future."
            )
        }
        let report = try await ControlClient(folders: try Folders(holding: path))
            .pin(PinRequest(path: MountPoint(path).path, until: end))
        Console.write(PinText.line(report))
    }
}

/// `oort unpin`.
struct UnpinCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unpin",
        abstract: "End a pin: the copy may go when its room is needed, the file stays."
    )

    @Argument(help: "What was pinned.", completion: .file())
    var path: String

    func run() async throws {
        let path = MountPoint(path).path
        try await ControlClient(folders: try Folders(holding: path)).unpin(path)
        Console.write("\(TerminalText.line(path)) is no longer pinned.")
    }
}

/// `oort pins`.
struct PinsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pins",
        abstract: "List what is kept on this machine, and how much of it is here."
    )

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        let folders = try Folders()
        let client = ControlClient(folders: folders)
        let pins =
            client.isMountRunning
            ? try await client.pins() : try await RestingState(folders: folders).pins()
        if json {
            Console.write(json: try ControlCoding.encode(pins, pretty: true))
        } else {
            Console.write(PinText.text(pins))
        }
    }
}

/// `oort free`.
struct FreeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "free",
        abstract: "Give the room of copies back that can be fetched again.",
        discussion: """
            What is pinned, what a program has open, what the cloud does not have yet, and all of an \
            account that is not signed in stays. The files stay where they are, and are fetched when \
            they are read.
            """
    )

    @Argument(help: "A file, or a folder with all below it.", completion: .file())
    var path: String?

    @Flag(help: "The copies of all accounts.")
    var all = false

    @Option(
        help: ArgumentHelp(
            "Only copies that were not read for so long, such as 30d.",
            valueName: "time"
        )
    )
    var older: TimeSpan?

    func validate() throws {
        if (path == nil) == !all { throw ValidationError("Name a path, or give --all.") }
    }

    func run() async throws {
        let report = try await ControlClient(folders: try Folders(holding: path)).free(
            FreeRequest(
                path: path.map { MountPoint($0).path },
                all: all ? true : nil,
                unusedSeconds: older?.seconds
            )
        )
        Console.write(PinText.text(report))
    }
}

/// Pins in words.
enum PinText {
    /// The most files that do not come which are named for each pin.
    private static let mostRefused = 5

    /// All of them.
    static func text(_ pins: [PinReport]) -> String {
        pins.isEmpty
            ? "Nothing is pinned; `oort pin PATH` keeps a file or folder here."
            : pins.map { line($0) }.joined(separator: "\n")
    }

    /// One of them, with what does not come.
    static func line(_ pin: PinReport) -> String {
        let end = pin.until.map { "until \(StatusText.moment($0))" } ?? "until oort unpin"
        var lines = ["\(TerminalText.line(pin.path))  (\(end); \(progress(pin.progress)))"]
        let refused = pin.progress.refused
        for file in refused.prefix(mostRefused) {
            let reason = file.detail.map { " (\(TerminalText.line($0)))" } ?? ""
            lines.append("  ! does not come: \(TerminalText.line(file.path))\(reason)")
        }
        if refused.count > mostRefused {
            lines.append("  ! and \(refused.count - mostRefused) more")
        }
        return lines.joined(separator: "\n")
    }

    /// `all of 300 files are here, 1.2 GiB`, or how much is missing and why.
    static func progress(_ progress: PinProgress) -> String {
        let files = files(progress.files)
        guard !progress.isComplete else {
            let size = ByteSize(bytes: progress.bytes)
            return progress.files == 0 ? "no file yet" : "\(files) here, \(size)"
        }
        var text =
            "\(StatusText.number(progress.filesHere)) of \(files) here, "
            + "\(ByteSize(bytes: progress.bytesHere)) of \(ByteSize(bytes: progress.bytes))"
        if let count = progress.filesWithoutRoom, let bytes = progress.bytesWithoutRoom {
            text += "; no room for \(Self.files(count)), \(ByteSize(bytes: bytes))"
        }
        if !progress.refused.isEmpty {
            text += "; \(Self.files(progress.refused.count)) cannot be fetched"
        }
        return text + (progress.waits.map { "; \($0)" } ?? "")
    }

    /// What was freed and what stays.
    static func text(_ report: FreeReport) -> String {
        var lines = ["Freed \(ByteSize(bytes: report.freed.bytes)): \(copies(report.freed))."]
        let stays: [(FreeReport.Sum, String)] = [
            (report.pinned, "pinned: oort unpin"), (report.open, "open in a program"),
            (report.unsent, "needed by what is not uploaded yet: oort sync"),
        ]
        for (sum, reason) in stays where sum.count > 0 {
            let stay = sum.count == 1 ? "stays" : "stay"
            lines.append("\(copies(sum)) \(stay), \(ByteSize(bytes: sum.bytes)) (\(reason)).")
        }
        for name in report.unreachable ?? [] {
            lines.append(
                "The copies of \(TerminalText.line(name)) stay: it is not signed in, and they could not be "
                    + "fetched again (`oort status` says more)."
            )
        }
        return lines.joined(separator: "\n")
    }

    private static func copies(_ sum: FreeReport.Sum) -> String {
        sum.count == 1 ? "1 copy" : "\(StatusText.number(sum.count)) copies"
    }

    private static func files(_ count: Int) -> String {
        count == 1 ? "1 file" : "\(StatusText.number(count)) files"
    }
}
