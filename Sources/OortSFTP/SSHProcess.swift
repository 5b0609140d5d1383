import Foundation
import OortProcesses
import SwiftSFTP
import Synchronization
import SystemPackage

/// One run of the person's `ssh`, with pipes to it.
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
    init(_ path: String, _ arguments: [String], environment: [String: String]) throws {
        var pipes: [ProgramPipe] = []
        do {
            for _ in 0..<3 { pipes.append(try ProgramPipe()) }
            // A group of its own: Ctrl-C in this process's terminal is not for `ssh`.
            var program = Program(path, arguments, environment: environment)
            program.input = .descriptor(pipes[0].reading)
            program.output = .descriptor(pipes[1].writing)
            program.errors = .descriptor(pipes[2].writing)
            state = Mutex(State(identifier: try program.spawn()))
        } catch {
            for pipe in pipes { pipe.close() }
            throw error
        }
        for end in [pipes[0].reading, pipes[1].writing, pipes[2].writing] { try? end.close() }
        transport = SFTPTransport(input: pipes[1].reading, output: pipes[0].writing)
        let errors = pipes[2].reading
        // Ends with the process and all that it started.
        Thread.detachNewThread { [self] in watch(errors) }
    }

    /// Runs `ssh` on this terminal, where it can ask a person, until it ends.
    ///
    /// - Throws: `Errno` of what cannot be had.
    static func runOnTerminal(
        _ path: String,
        _ arguments: [String],
        environment: [String: String]
    ) async throws {
        var program = Program(path, arguments, environment: environment, grouping: .shared)
        program.input = .descriptor(.standardInput)
        let running = try RunningProgram(program)
        await running.wait()
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
            Program.reap(identifier)
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

    /// Waits until the process has ended.
    func wait() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.identifier != nil { state.waiting.append(continuation) }
                return state.identifier == nil
            }
            if isOver { continuation.resume() }
        }
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
        await wait()
        alarm.cancel()
        return state.withLock { String(decoding: $0.words, as: UTF8.self) }
    }
}
