import Foundation
import Glibc
import Synchronization
import SystemPackage

/// Answers what `ssh` asks in one login, over a socket that only its owner can open.
///
/// The socket exists as long as the login lasts. It answers only a process that the login's own `ssh`
/// started, which it looks up in the system: no other program of the same person, and no `ssh` to a host on
/// the way.
///
/// Isolation: any thread.
final class SSHAnswerer: Sendable {
    private struct State {
        var answers: SSHAnswers
        /// Whether a thread has the socket, and closes it.
        var isAnswering = false
    }

    private let folder: String
    private let secret: [UInt8]
    private let isKnown: (@Sendable (SSHHostKey) -> Bool)?
    private let listener: Int32
    private let state: Mutex<State>

    /// How long an asking program may take, in seconds.
    private static let patience = 10
    /// The bytes of the longest question that is read.
    private static let longestQuestion = 64 << 10

    /// Listens in a folder that is its owner's alone.
    ///
    /// - Parameters:
    ///   - address: the account's, which the secret belongs to.
    ///   - secret: the answer.
    ///   - folder: where the socket is made, and the name by which `ssh` starts the program.
    ///   - program: the program that asks here (`SSHAskpass`).
    ///   - isKnown: whether a host is the one that is meant; called on the answerer's thread, which waits; nil
    ///     where nobody can be asked.
    /// - Throws: `Errno` of what cannot be made, or of a program that cannot be run.
    init(
        _ address: SFTPAddress,
        secret: String,
        folder: String,
        program: String,
        isKnown: (@Sendable (SSHHostKey) -> Bool)? = nil
    ) throws(Errno) {
        self.folder = folder
        self.isKnown = isKnown
        self.secret = Array(secret.utf8)
        state = Mutex(State(answers: SSHAnswers(address)))
        var found = stat()
        guard unsafe lstat(folder, &found) == 0 else { throw Errno(rawValue: errno) }
        guard found.st_mode & S_IFMT == S_IFDIR, found.st_uid == geteuid(),
            found.st_mode & 0o077 == 0
        else { throw Errno.permissionDenied }
        // Without it ssh would send an empty answer.
        guard unsafe access(program, X_OK) == 0 else { throw Errno(rawValue: errno) }
        Self.clear(folder)
        guard unsafe symlink(program, "\(folder)/\(SSHAskpass.name)") == 0 else {
            throw Errno(rawValue: errno)
        }
        listener = UnixSocket.listen(at: "\(folder)/\(SSHAskpass.socket)")
        guard listener >= 0 else { throw Errno(rawValue: errno) }
    }

    private static func clear(_ folder: String) {
        for name in [SSHAskpass.name, SSHAskpass.socket] { unsafe unlink("\(folder)/\(name)") }
    }

    /// The environment by which `ssh` asks here, whatever its terminal.
    var environment: [String: String] {
        ["SSH_ASKPASS": "\(folder)/\(SSHAskpass.name)", "SSH_ASKPASS_REQUIRE": "force"]
    }

    /// What was asked and answered until now.
    var answers: SSHAnswers { state.withLock { $0.answers } }

    /// Answers a process until `close`; must be called once.
    func answer(_ process: SSHProcess) {
        state.withLock { $0.isAnswering = true }
        // Ends with `close`.
        Thread.detachNewThread { [self] in
            while true {
                let line = accept(listener, nil, nil)
                if line < 0, errno == EINTR || errno == ECONNABORTED { continue }
                guard line >= 0 else { break }
                _ = fcntl(line, F_SETFD, FD_CLOEXEC)
                answer(line, of: process)
                // Also ends it for a program that was started meanwhile and inherited the descriptor.
                shutdown(line, Int32(SHUT_RDWR))
                Glibc.close(line)
            }
            Glibc.close(listener)
        }
    }

    /// Ends the listening, for good; must be called once.
    func close() {
        Self.clear(folder)
        if state.withLock(\.isAnswering) {
            // Wakes the thread.
            shutdown(listener, Int32(SHUT_RDWR))
        } else {
            Glibc.close(listener)
        }
    }

    private func answer(_ line: Int32, of process: SSHProcess) {
        guard let ssh = process.number, let asker = UnixSocket.peer(of: line),
            getpgid(asker) == ssh
        else { return }
        UnixSocket.setPatience(Self.patience, of: line)
        guard let words = UnixSocket.receive(from: line, atMost: Self.longestQuestion) else {
            return
        }
        let text = String(decoding: words, as: UTF8.self)
        let question = SSHQuestion(text)
        if let isKnown, case .hostKey(let fingerprint) = question {
            // Without an answer ssh takes the host for unknown.
            if isKnown(SSHHostKey(question: text, fingerprint: fingerprint)) {
                _ = UnixSocket.send(Array("yes".utf8), to: line)
            }
            return
        }
        let isOnTheWay = Self.parent(of: asker) != ssh
        switch state.withLock({ $0.answers.answer(to: question, isOnTheWay: isOnTheWay) }) {
        case .secret: _ = UnixSocket.send(secret, to: line)
        case .nothing: break
        case .end: process.endAtOnce()
        }
    }

    /// The number of the process that started another one (`man 5 proc`, /proc/PID/stat).
    private static func parent(of process: pid_t) -> pid_t? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        else {
            return nil
        }
        // A program's name may have spaces and brackets.
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        return fields.count > 1 ? pid_t(fields[1]) : nil
    }
}
