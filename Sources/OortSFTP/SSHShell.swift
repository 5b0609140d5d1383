import OortModel
import OortProcesses
import SwiftSFTP

/// The shell that a login has beside SFTP, where there is one: it copies where the protocol cannot, and lists
/// many folders at once.
///
/// A script goes to the standard input of `/bin/sh`, so that it does not matter which shell the login has.
/// What was done is judged by what the script prints, since a server that allows SFTP alone may answer any
/// command, with the status of a success, too.
enum SSHShell {
    /// What became of a copy.
    enum Copy: Hashable, Sendable {
        case done
        /// No command runs there, or it sees other folders than SFTP does.
        case noShell
        /// In the server's words.
        case failed(String)
    }

    /// What a script runs as.
    static let command = "/bin/sh -s"

    /// Copies the content of one file into another that is there.
    ///
    /// The second one's name is a random one that was made by SFTP just now: a shell that finds it sees the
    /// same folders.
    static func copyScript(_ source: SFTPPath, over target: SFTPPath) -> [UInt8] {
        let (from, to) = (quoted(source), quoted(target))
        let words = from + [0x20] + to
        var script = Array("LC_ALL=C; export LC_ALL\nif [ -f ".utf8) + to
        script += Array(" ] && [ -f ".utf8) + from + Array(" ] && [ ! -L ".utf8) + from
        script += Array(" ]\nthen echo OORTSEES$((6*7))\n".utf8)
        // Older programs cannot make copies that share their blocks with the original.
        script += Array("{ cp --reflink=auto -- ".utf8) + words + Array(" 2>/dev/null".utf8)
        script += Array(" || cp -- ".utf8) + words + Array("; } && echo OORTDID$((6*7))\nfi\n".utf8)
        return script
    }

    /// What a script of `copyScript` did; nil is a program that did not run to its end.
    static func copied(_ outcome: ProgramOutcome?) -> Copy {
        guard let outcome else { return .failed("the copy at the server did not end") }
        let said = String(decoding: outcome.output, as: UTF8.self)
        if said.contains("OORTDID42") { return .done }
        return said.contains("OORTSEES42") ? .failed(outcome.errors.trimmed) : .noShell
    }

    /// A path as one word of a shell.
    static func quoted(_ path: SFTPPath) -> [UInt8] {
        let quote = UInt8(ascii: "'")
        return [quote] + path.bytes.flatMap { $0 == quote ? Array(#"'\''"#.utf8) : [$0] } + [quote]
    }
}
