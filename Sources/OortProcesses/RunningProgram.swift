import CLinux
import Foundation
import Synchronization
public import SystemPackage

/// A program that runs, and for whose end a thread of its own waits.
///
/// Isolation: any thread.
public final class RunningProgram: Sendable {
    private struct State {
        /// The number of the process, until it is given back.
        var number: Int32?
        var end: ProgramEnd?
        var waiting: [@Sendable (ProgramEnd) -> Void] = []
    }

    private let state: Mutex<State>

    /// Starts a program.
    ///
    /// - Throws: as `Program.spawn`.
    public init(_ program: Program) throws(Errno) {
        let number = try program.spawn()
        state = Mutex(State(number: number))
        // Ends with the program.
        Thread.detachNewThread { [self] in waitForEnd(number) }
    }

    private func waitForEnd(_ number: Int32) {
        // The number stays the program's own until it is reaped, which happens while no signal is being
        // sent.
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(number), &information, WEXITED | WNOWAIT) != 0,
            errno == EINTR
        {}
        let (end, waiting) = state.withLock { state in
            let end = Program.reap(number)
            (state.number, state.end) = (nil, end)
            defer { state.waiting = [] }
            return (end, state.waiting)
        }
        for body in waiting { body(end) }
    }

    /// Its number, while it has one.
    public var number: Int32? { state.withLock(\.number) }

    /// Whether it runs.
    public var isRunning: Bool { state.withLock { $0.end == nil } }

    /// How it ended; nil while it runs.
    public var end: ProgramEnd? { state.withLock(\.end) }

    /// Sends it a signal, if it runs; where it has a group or a session of its own, `toGroup` sends it to all
    /// that it started, too.
    public func send(_ signal: Int32, toGroup: Bool = false) {
        state.withLock { state in
            guard let number = state.number else { return }
            // Itself first: it might wait for one of its group and go on.
            _ = kill(number, signal)
            if toGroup { _ = kill(-number, signal) }
        }
    }

    /// Calls `body` with its end, once, on any thread; at once where it has ended.
    public func whenEnded(_ body: @escaping @Sendable (ProgramEnd) -> Void) {
        let end = state.withLock { state in
            if state.end == nil { state.waiting.append(body) }
            return state.end
        }
        if let end { body(end) }
    }

    /// Waits for its end.
    @discardableResult
    public func wait() async -> ProgramEnd {
        await withCheckedContinuation { continuation in
            whenEnded { continuation.resume(returning: $0) }
        }
    }
}

/// A pipe, neither end of which a program gets that is not given it.
public struct ProgramPipe: Sendable {
    /// Where bytes come out.
    public let reading: FileDescriptor
    /// Where bytes go in.
    public let writing: FileDescriptor

    /// A new pipe; who makes it closes its ends.
    ///
    /// - Throws: the system's reason: too many open files.
    public init() throws(Errno) {
        var ends: [Int32] = [-1, -1]
        guard unsafe oort_pipe(&ends, O_CLOEXEC) == 0 else { throw Errno(rawValue: errno) }
        reading = FileDescriptor(rawValue: ends[0])
        writing = FileDescriptor(rawValue: ends[1])
    }

    /// Closes both ends.
    public func close() {
        try? reading.close()
        try? writing.close()
    }
}

extension FileDescriptor {
    /// What comes before the next line feed, or the end.
    ///
    /// Blocks the thread.
    public func readLine() -> String {
        var line: [UInt8] = []
        while let byte = readAll(atMost: 1).first, byte != 10 { line.append(byte) }
        return String(decoding: line, as: UTF8.self)
    }

    /// Everything until the end, or as much as there was before an error.
    ///
    /// Blocks the thread.
    public func readAll(atMost limit: Int = .max) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: min(limit, 1 << 16))
        while bytes.count < limit {
            let wanted = limit - bytes.count
            let count = try? unsafe buffer.withUnsafeMutableBytes { bytes in
                let part = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes.prefix(wanted))
                return try unsafe read(into: part)
            }
            guard let count, count > 0 else { break }
            bytes += buffer.prefix(count)
        }
        return bytes
    }
}
