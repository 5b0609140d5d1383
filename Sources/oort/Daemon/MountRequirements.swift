import Foundation
import OortProcesses
import SystemPackage

/// What a machine must have for a mount, looked at before anything is begun.
struct MountRequirements {
    /// The kernel's device.
    var device = "/dev/fuse"
    /// What root allows to users who mount.
    var configuration = "/etc/fuse.conf"
    /// Where fusermount3 finds who mounted what.
    var mountTable = "/etc/mtab"
    /// Where programs are looked for.
    var searchPath = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    /// Where libfuse looks for the program that mounts for users before it searches the path.
    var helperFolder = "/usr/bin"
    /// Who mounts.
    var user = getuid()

    /// Checks the machine for a mount at `path`, a folder that is there.
    ///
    /// - Throws: `Failure` naming the first thing that is missing, and how to get it.
    func check(path: String, allowsOtherUsers: Bool) throws(Failure) {
        guard FileManager.default.fileExists(atPath: device) else {
            throw Failure(
                "This machine has no \(device), so nothing can be mounted.",
                advice: "Load the module (modprobe fuse), or start the container with "
                    + "--device /dev/fuse --cap-add SYS_ADMIN."
            )
        }
        guard helper != nil else {
            throw Failure(
                "The program fusermount3 is not installed, so nothing can be mounted.",
                advice: "Install it: apt-get install fuse3"
            )
        }
        guard user != 0 else { return }
        // fusermount3 opens it with the user's own rights.
        guard unsafe access(device, R_OK | W_OK) == 0 else {
            throw Failure(
                "You may not open \(device), so you cannot mount.",
                advice: "Root can allow it: chmod 666 \(device), as it is on most machines."
            )
        }
        guard mayBeWritten(path) else {
            throw Failure(
                "\(path) is not yours to write to, so you cannot mount there.",
                advice: "Name a folder of your own: oort mount FOLDER"
            )
        }
        guard allowsOtherUsers else { return }
        guard letsUsersShare else {
            throw Failure(
                "--allow-other is not allowed to users on this machine.",
                advice: "Root can allow it: add the line user_allow_other to \(configuration)."
            )
        }
    }

    /// Whether a folder can be mounted on by who may write to it, as far as anybody can say before.
    private func mayBeWritten(_ path: String) -> Bool {
        if unsafe access(path, W_OK) == 0 { return true }
        // Under a dead mount it shows when that is taken away.
        if errno == ENOTCONN || errno == ECONNABORTED { return true }
        var status = stat()
        // Its owner gets the permission back with the mount, which left it without.
        return unsafe stat(path, &status) == 0 && status.st_uid == user
    }

    /// The program that mounts for users; nil when it is not installed.
    var helper: String? {
        let folders = [helperFolder] + searchPath.split(separator: ":").map(String.init)
        return folders.map { $0 + "/fusermount3" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// The reason that fusermount3 gives against a mount at `path` that failed: libfuse lets it write to
    /// this process's standard error only, so it is run once more.
    ///
    /// It sends the descriptor of the mount to a socket (since libfuse 3.15 it checks first whether there
    /// is one: `main` in util/fusermount.c) that is never read: a mount that succeeds now is dead as soon
    /// as the socket is closed, and is removed.
    ///
    /// - Returns: its words; nil where it gives no reason, or there is none now.
    func refusal(at path: String, allowsOtherUsers: Bool) -> String? {
        guard let helper else { return nil }
        // Its standard input. The other end stays open until it has ended, so that no signal ends it as it
        // writes.
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return nil }
        let sockets = ends.map { FileDescriptor(rawValue: $0) }
        let options = "fsname=oort,subtype=oort" + (allowsOtherUsers ? ",allow_other" : "")
        var program = Program(helper, ["-o", options, "--", path])
        program.environment["_FUSE_COMMFD"] = "0"
        program.input = .descriptor(sockets[0])
        let said = Self.errors(of: program)
        // Before anybody looks at what it mounted, which would wait for an answer until then.
        for socket in sockets { try? socket.close() }
        guard let (end, words) = said else { return nil }
        _ = try? MountPoint(standardized: path).detachIfDead()
        guard !end.isSuccess else { return nil }
        let lines = String(decoding: words, as: UTF8.self).split(whereSeparator: \.isNewline)
            .filter { line in !Self.wordsOnTheSocket.contains { line.contains($0) } }
            .map { $0.replacing("fusermount3: ", with: "", maxReplacements: 1) }
        guard !lines.isEmpty else { return nil }
        return TerminalText.line(lines.joined(separator: "; "))
    }

    /// How a program ended and what it wrote to standard error; nil where it cannot be started.
    private static func errors(of program: Program) -> (end: ProgramEnd, words: [UInt8])? {
        guard let pipe = try? ProgramPipe() else { return nil }
        defer { try? pipe.reading.close() }
        var program = program
        program.errors = .descriptor(pipe.writing)
        let number = try? program.spawn()
        try? pipe.writing.close()
        guard let number else { return nil }
        let words = pipe.reading.readAll()
        return (Program.reap(number), words)
    }

    /// What fusermount3 says of the socket that it was given, in libfuse 3.14 to 3.18: nothing of the mount.
    private static let wordsOnTheSocket = [
        "sending file descriptor", "comm fd", "is not a socket", "_FUSE_COMMFD",
    ]

    /// Whether users may let other users in.
    var letsUsersShare: Bool { lines.contains("user_allow_other") }

    /// How many FUSE file systems there may be before users may mount no more (`man 5 fuse.conf`,
    /// `mount_max`).
    var mostMounts: Int {
        let limits = lines.compactMap { line -> Int? in
            let words = line.split(separator: "=").map { $0.trimmingCharacters(in: .whitespaces) }
            return words.count == 2 && words[0] == "mount_max" ? Int(words[1]) : nil
        }
        return limits.last ?? 1000
    }

    private var lines: [String] {
        let text = (try? String(contentsOfFile: configuration, encoding: .utf8)) ?? ""
        return text.split(whereSeparator: \.isNewline).map {
            $0.trimmingCharacters(in: .whitespaces)
        }
    }
}
