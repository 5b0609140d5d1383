import Foundation
import SwiftSFTP
import Synchronization
import SystemPackage

/// One run of the person's `ssh`, with pipes to it.
///
/// Not Foundation's `Process`: that takes the closing of an inherited descriptor for the end of a
/// program, `ssh` closes all of them when it begins, and the one thread that waits for the ends of
/// programs would wait for this one alone.
///
/// Isolation: any thread.
final class SSHProcess: Sendable {
    private struct State {
        /// The process's number while it has one.
        var identifier: pid_t?
        /// What it wrote to its standard error, the last of it.
        var words: [UInt8] = []
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>
    /// The session's bytes.
    let transport: SFTPTransport

    /// Starts `ssh` with these arguments.
    ///
    /// - Throws: `Errno` of what cannot be had: pipes, a process, the program.
    init(_ program: String, _ arguments: [String], environment: [String: String]) throws {
        let (input, output, errors) = (try Pipe(), try Pipe(), try Pipe())
        do {
            let identifier = try Self.spawn(
                program,
                arguments,
                environment,
                [input.read, output.write, errors.write]
            )
            state = Mutex(State(identifier: identifier))
        } catch {
            for pipe in [input, output, errors] { pipe.close() }
            throw error
        }
        for end in [input.read, output.write, errors.write] { try? end.close() }
        transport = SFTPTransport(input: output.read, output: input.write)
        // Ends with the process and all that it started.
        Thread.detachNewThread { [self] in watch(errors.read) }
    }

    private struct Pipe {
        let read: FileDescriptor
        let write: FileDescriptor

        init() throws {
            var ends: [Int32] = [-1, -1]
            guard unsafe pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            read = FileDescriptor(rawValue: ends[0])
            write = FileDescriptor(rawValue: ends[1])
        }

        func close() {
            try? read.close()
            try? write.close()
        }
    }

    private static func spawn(
        _ program: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ descriptors: [FileDescriptor],
        inOwnGroup: Bool = true
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            unsafe posix_spawn_file_actions_adddup2(&actions, descriptor.rawValue, Int32(number))
        }
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        // Signals that this process blocks or ignores, and Ctrl-C in its terminal, are not `ssh`'s.
        var none = sigset_t()
        unsafe sigemptyset(&none)
        var all = sigset_t()
        unsafe sigfillset(&all)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setsigdefault(&attributes, &all)
        let flags =
            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
            | (inOwnGroup ? POSIX_SPAWN_SETPGROUP : 0)
        unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
        var words = unsafe ([program] + arguments).map { unsafe strdup($0) } + [nil]
        var variables = unsafe environment.map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer {
            unsafe words.forEach { unsafe free($0) }
            unsafe variables.forEach { unsafe free($0) }
        }
        var identifier: pid_t = 0
        let error = unsafe posix_spawn(
            &identifier,
            program,
            &actions,
            &attributes,
            &words,
            &variables
        )
        guard error == 0 else { throw Errno(rawValue: error) }
        return identifier
    }

    /// Runs `ssh` on this terminal, where it can ask a person, until it ends.
    ///
    /// - Throws: `Errno` of what cannot be had.
    static func runOnTerminal(
        _ program: String,
        _ arguments: [String],
        environment: [String: String]
    ) async throws {
        let nothing = try FileDescriptor.open(FilePath("/dev/null"), .readWrite)
        defer { try? nothing.close() }
        let identifier = try spawn(
            program,
            arguments,
            environment,
            [.standardInput, nothing, nothing],
            inOwnGroup: false
        )
        await withCheckedContinuation { continuation in
            // Ends with the process.
            Thread.detachNewThread {
                var status: Int32 = 0
                while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
                continuation.resume()
            }
        }
    }

    /// Reads what the process says to its end, and waits for that.
    private func watch(_ errors: FileDescriptor) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while let count = try? unsafe buffer.withUnsafeMutableBytes({
            try unsafe errors.read(into: $0)
        }), count > 0 {
            state.withLock { state in
                state.words += buffer[..<count]
                if state.words.count > 8192 { state.words.removeFirst(state.words.count - 8192) }
            }
        }
        try? errors.close()
        guard let identifier = state.withLock(\.identifier) else { return }
        // The number stays the process's own until it is waited for.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0,
            errno == EINTR
        {}
        let waiting = state.withLock { state in
            var status: Int32 = 0
            unsafe waitpid(identifier, &status, 0)
            state.identifier = nil
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Ends the process, if it has not ended.
    func end() {
        // Its group has what it started, a ProxyCommand among that.
        state.withLock { if let identifier = $0.identifier { kill(-identifier, SIGTERM) } }
    }

    /// The process's number while it has one.
    var number: pid_t? { state.withLock(\.identifier) }

    /// Ends the process before it can do anything more.
    func endAtOnce() {
        state.withLock { state in
            guard let identifier = state.identifier else { return }
            // Itself before what it waits for.
            kill(identifier, SIGKILL)
            kill(-identifier, SIGKILL)
        }
    }

    /// Ends what does not end when it is asked to, and lets go who waits for that.
    private func giveUp() {
        let waiting = state.withLock { state in
            if let identifier = state.identifier { kill(-identifier, SIGKILL) }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Ends the process, and returns its last words once it is over.
    func lastWords() async -> String {
        // Who has no session has nothing to wait for; what was said is in the pipe already.
        let alarm = Task {
            guard (try? await Task.sleep(for: .milliseconds(500))) != nil else { return }
            end()
            guard (try? await Task.sleep(for: .seconds(2))) != nil else { return }
            giveUp()
        }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.identifier != nil { state.waiting.append(continuation) }
                return state.identifier == nil
            }
            if isOver { continuation.resume() }
        }
        alarm.cancel()
        return state.withLock { String(decoding: $0.words, as: UTF8.self) }
    }
}
