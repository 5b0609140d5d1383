import ArgumentParser
import Foundation

/// `oort share`.
struct ShareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "share",
        abstract: "Make a link to a file or folder, or list the links that there are.",
        usage: """
            oort share PATH [--edit] [--expires TIME|DATE] [--password-file FILE|-] [--json]
            oort share --list [PATH] [--json]
            """,
        discussion: """
            The link is one of the service's own: whoever has it reaches the file or folder, without \
            an account. A link that is there already is shown again. What a service's links cannot \
            have is said before anything is made.
            """
    )

    @Argument(help: "The file or folder.", completion: .file())
    var path: String?

    @Flag(help: "List the links, of all accounts without a path.")
    var list = false

    @Flag(help: "Let people change it.")
    var edit = false

    @Option(
        help: ArgumentHelp(
            "When the link ends: a time from now such as 7d, or a date such as 2027-01-31.",
            valueName: "time|date"
        )
    )
    var expires: LinkEnd?

    @Option(
        help: ArgumentHelp(
            "A file whose first line is the link's password; - for standard input.",
            valueName: "file"
        ),
        completion: .file()
    )
    var passwordFile: String?

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if list, edit || expires != nil || passwordFile != nil {
            throw ValidationError("--list goes with PATH and --json only.")
        }
        if !list, path == nil { throw ValidationError("Name what is to be shared.") }
        if let expires, expires.date <= Date() {
            throw ValidationError("--expires must lie in the future.")
        }
    }

    func run() async throws {
        let client = ControlClient(folders: try Folders(holding: path))
        let path = path.map { MountPoint($0).path }
        guard !list, let path else {
            let report = try await client.links(LinksRequest(path: path))
            return try show(report)
        }
        let link = try await client.share(
            ShareRequest(
                path: path,
                edit: edit ? true : nil,
                expires: expires?.date,
                password: try passwordFile.map { try LinkPassword.read($0) }
            )
        )
        if json {
            Console.write(json: try ControlCoding.encode(link, pretty: true))
        } else {
            // The address alone, for a pipe; what it is, for the person.
            Console.write(link.url)
            Console.error(LinkText.words(link))
        }
    }

    private func show(_ report: LinksReport) throws {
        if json {
            Console.write(json: try ControlCoding.encode(report, pretty: true))
        } else {
            Console.write(LinkText.text(report))
        }
        if report.links.isEmpty, report.listed == nil, !report.notes.isEmpty {
            throw ExitCode.failure
        }
    }
}

/// `oort unshare`.
struct UnshareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "unshare",
        abstract: "Take links back: they open nothing any more.",
        discussion: "With a path, all links of that file or folder; with a link, that one."
    )

    @Argument(help: "The file or folder, or a link.", completion: .file())
    var target: String

    func run() async throws {
        let isLink =
            target.lowercased().hasPrefix("https://")
            || target.lowercased().hasPrefix("http://")
        let report = try await ControlClient(folders: try Folders(holding: target)).unshare(
            UnshareRequest(
                link: isLink ? target : nil,
                path: isLink ? nil : MountPoint(target).path
            )
        )
        for link in report.links {
            Console.write("Taken back: \(TerminalText.line(link.url))")
        }
    }
}

/// When a link ends, as people write it.
struct LinkEnd: ExpressibleByArgument, Hashable, Sendable {
    /// The moment.
    let date: Date

    /// Reads a time from now (`7d`), a date (`2027-01-31`, which is its last second here), or a whole RFC
    /// 3339 time.
    init?(argument: String) {
        if let span = TimeSpan(argument) {
            guard span.seconds > 0 else { return nil }
            date = Date(timeIntervalSinceNow: span.seconds)
        } else if let moment = DateArgument(argument: argument) {
            date = moment.last
        } else {
            return nil
        }
    }
}

/// Reads a link's password.
enum LinkPassword {
    /// The first line of a file, or of standard input for `-`.
    ///
    /// - Throws: `Failure` where there is none.
    static func read(_ path: String) throws(Failure) -> String {
        let bytes = try SecretInput.bytes(of: path)
        guard let text = String(validating: bytes, as: UTF8.self),
            let line = text.split(whereSeparator: \.isNewline).first, !line.isEmpty
        else {
            throw Failure(
                "\(path == "-" ? "Standard input" : path) has no password.",
                advice: "Its first line is the password."
            )
        }
        return String(line)
    }
}

/// Links in words.
enum LinkText {
    static func text(_ report: LinksReport) -> String {
        var lines = report.links.flatMap { link in
            [
                "\(TerminalText.line(link.path ?? link.account))  \(words(link))",
                "    \(TerminalText.line(link.url))",
            ]
        }
        if report.links.isEmpty, report.listed != nil || report.notes.isEmpty {
            lines.append("Nothing is shared by link.")
        }
        lines += (report.notes + (report.hints ?? [])).map { TerminalText.line($0) }
        return lines.joined(separator: "\n")
    }

    /// What a link allows, and for how long.
    static func words(_ link: LinkReport) -> String {
        var rights = link.mayEdit ? "read and change it" : "read it"
        if link.mayComment == true, !link.mayEdit { rights = "read it and comment on it" }
        if link.hasOtherRights == true {
            rights = "do what was set at the service (such as to upload, or to see only)"
        }
        return "Whoever has the link may " + rights
            + (link.hasPassword ? ", with the password" : "")
            + (link.expires.map { ", until \(StatusText.moment($0))" } ?? "")
            + (link.existed == true ? "; it was there before." : ".")
    }
}
