import Foundation
import OortProcesses
import SystemPackage

/// Starts this program again in the background, as its own session.
///
/// A fork would not do: a child of a process that already runs tasks never runs any.
enum BackgroundProcess {
    /// The environment variable that names the descriptor of the ready pipe.
    static let readyVariable = "OORT_READY_FD"
    private static let childDescriptor: Int32 = 3

    /// Starts the program and waits for its first word.
    ///
    /// - Parameters:
    ///   - arguments: the arguments, without the program's name.
    ///   - output: the file that gets what the child writes to standard output and error.
    /// - Returns: what the child said when it was ready.
    /// - Throws: `Failure`: the child's own, or that it died without a word.
    static func start(
        arguments: [String],
        output: String
    ) async throws(Failure) -> ReadyMessage {
        let (process, pipe) = try spawn(arguments: arguments, output: output)
        // A thread of its own, since reading blocks until the child is ready.
        let data = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(returning: (try? pipe.readToEnd()) ?? nil)
            }
        }
        if let data, let message = try? ControlCoding.decode(ReadyMessage.self, from: data) {
            if let failure = message.failure {
                Program.reap(process)
                throw failure.failure
            }
            return message
        }
        Program.reap(process)
        throw Failure(
            "The mount ended before it was ready.",
            advice: "The reason is at the end of its log: \(output)"
        )
    }

    private static func spawn(
        arguments: [String],
        output: String
    ) throws(Failure) -> (pid_t, FileHandle) {
        let pipe: ProgramPipe
        do throws(Errno) { pipe = try ProgramPipe() } catch {
            throw Failure("No pipe can be made: \(POSIXText.of(error.rawValue)).")
        }
        defer { try? pipe.writing.close() }
        var program = Program.own(arguments, environment: ProcessInfo.processInfo.environment)
        program.environment[readyVariable] = "\(childDescriptor)"
        program.output = .file(output)
        program.errors = .output
        program.descriptors = [childDescriptor: pipe.writing]
        do throws(Errno) {
            let process = try program.spawn()
            return (
                process, FileHandle(fileDescriptor: pipe.reading.rawValue, closeOnDealloc: true)
            )
        } catch {
            try? pipe.reading.close()
            throw Failure(
                "The mount cannot be started in the background: \(POSIXText.of(error.rawValue)).",
                advice: "Try: oort mount --foreground"
            )
        }
    }
}

/// The daemon's first message to the process that started it.
struct ReadyMessage: Codable, Hashable, Sendable {
    /// Where it is mounted.
    var mountPoint: String
    /// The accounts' names.
    var accounts: [String]
    /// Why it is not mounted; nil when it is.
    var failure: ControlFailure?
}

/// The daemon's end of the ready pipe; says one thing once.
final class ReadyPipe: Sendable {
    private let handle: FileHandle

    /// The pipe that the parent named; nil when no parent waits.
    init?(environment: [String: String] = ProcessInfo.processInfo.environment) {
        guard let descriptor = environment[BackgroundProcess.readyVariable].flatMap(Int32.init)
        else { return nil }
        unsafe unsetenv(BackgroundProcess.readyVariable)
        // Programs that the daemon starts (fusermount3) must not hold the pipe open.
        guard fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0 else { return nil }
        handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false)
    }

    /// Says how it went and lets the parent go.
    func say(_ message: ReadyMessage) {
        if let data = try? ControlCoding.encode(message) { try? handle.write(contentsOf: data) }
        try? handle.close()
    }
}
