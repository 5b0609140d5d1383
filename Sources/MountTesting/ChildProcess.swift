import Foundation
import OortProcesses
import SystemPackage

/// A program that uses a mount: never the test's own process, whose threads the mount needs.
public struct ChildProcess: Sendable {
    /// How a program ended.
    public struct Outcome: Sendable {
        /// The exit status, or the signal's number negated.
        public let status: Int32
        /// What it wrote to standard output and standard error.
        public let output: String
    }

    /// Runs a shell script to its end; `$1` and so on are `arguments`.
    public static func run(_ script: String, _ arguments: String...) async throws -> Outcome {
        try await start(script, arguments).outcome()
    }

    /// Starts a shell script; `$1` and so on are `arguments`.
    public static func start(_ script: String, _ arguments: [String]) throws -> ChildProcess {
        try ChildProcess("/bin/sh", ["-c", script, "sh"] + arguments)
    }

    private let running: RunningProgram
    private let output: FileDescriptor

    /// Starts a program in a group of its own.
    public init(
        _ program: String,
        _ arguments: [String],
        environment: [String: String] = [:]
    ) throws {
        let pipe = try ProgramPipe()
        defer { try? pipe.writing.close() }
        var plan = Program(program, arguments)
        plan.environment["LC_ALL"] = "C.UTF-8"
        plan.environment.merge(environment) { $1 }
        plan.output = .descriptor(pipe.writing)
        plan.errors = .output
        output = pipe.reading
        do { running = try RunningProgram(plan) } catch {
            try? pipe.reading.close()
            throw error
        }
    }

    /// The process's id; nil once it has ended.
    public var id: Int32? { running.number }

    /// Sends it a signal.
    public func send(signal: Int32) { running.send(signal) }

    /// Waits for its end; once.
    public func outcome() async -> Outcome {
        let output = output
        let said = await onThread {
            defer { try? output.close() }
            return output.readAll()
        }
        let status: Int32 =
            switch await running.wait() {
            case .status(let status): status
            case .signal(let signal): -signal
            }
        return Outcome(status: status, output: String(decoding: said, as: UTF8.self))
    }
}

/// Runs what blocks on a thread of its own.
public func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        Thread { continuation.resume(returning: body()) }.start()
    }
}

/// A new, empty folder.
public struct TemporaryFolder: Sendable {
    /// Where it is.
    public let path: String

    /// Makes a folder with an unused name.
    public init() throws {
        path = NSTemporaryDirectory() + "oort-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// Takes the folder away, with all in it; but leaves it if something is still mounted there.
    public func remove() {
        guard unsafe rmdir(path) != 0, errno == ENOTEMPTY else { return }
        try? FileManager.default.removeItem(atPath: path)
    }
}

/// Whether this process can mount: by itself, or by the helper for plain users.
public let canMount =
    unsafe access("/dev/fuse", R_OK | W_OK) == 0 || access("/usr/bin/fusermount3", X_OK) == 0
