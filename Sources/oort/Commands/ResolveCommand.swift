import ArgumentParser
import Foundation

/// `oort resolve`.
struct ResolveCommand: AsyncParsableCommand {
    /// What stays.
    enum Choice: String, CaseIterable, Codable, ExpressibleByArgument {
        /// What was written on this machine.
        case mine
        /// Another person's version.
        case theirs
        /// Both files, as they are.
        case both
    }

    static let configuration = CommandConfiguration(
        commandName: "resolve",
        abstract: "End a conflict: keep your version, the cloud's, or both.",
        discussion: """
            mine: your version takes the file's place, which keeps its history and links; theirs: \
            your copy goes to the service's trash; both: both files stay, and the conflict is over. \
            What is given up is sent first, so that the service's trash or versions, where it has \
            them, have all of it; where it cannot be sent, nothing is done.
            """
    )

    @Argument(help: "The file, or its conflict copy.", completion: .file())
    var path: String

    @Option(help: ArgumentHelp("What stays: mine, theirs or both.", valueName: "version"))
    var keep: Choice

    func run() async throws {
        let client = ControlClient(folders: try Folders(holding: path))
        let path = MountPoint(path).path
        let all = try await client.conflicts()
        let found = all.filter { $0.theirs.path == path || $0.mine.path == path }
        guard let conflict = found.first else {
            throw Failure(
                "There is no conflict of \(TerminalText.line(path)).",
                advice: "`oort conflicts` lists those that there are."
            )
        }
        guard found.count == 1 else {
            let copies = found.map { "  " + TerminalText.line($0.mine.path) }
            throw Failure(
                "\(TerminalText.line(path)) has \(found.count) conflict copies.",
                advice: "Name the one that is meant:\n" + copies.joined(separator: "\n")
            )
        }
        Console.write(try await client.resolve(conflict, keeping: keep))
    }
}

extension ResolveCommand.Choice {
    /// Does to the two files what is to be done; the conflict is to be ended then.
    ///
    /// It blocks.
    ///
    /// - Throws: `Failure`; nothing was changed then.
    func apply(to conflict: ConflictReport) throws(Failure) {
        switch self {
        case .mine:
            guard unsafe rename(conflict.mine.path, conflict.theirs.path) == 0 else {
                throw Self.refused("put in place of the other", conflict.mine.path)
            }
        case .theirs:
            guard unsafe unlink(conflict.mine.path) == 0 else {
                throw Self.refused("deleted", conflict.mine.path)
            }
        case .both: break
        }
    }

    private static func refused(_ what: String, _ path: String) -> Failure {
        Failure(
            "\(TerminalText.line(path)) cannot be \(what): \(POSIXText.ofErrno()).",
            advice: "Nothing was changed; `oort status` says how the account is."
        )
    }
}
