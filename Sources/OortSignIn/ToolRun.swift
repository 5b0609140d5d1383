import Foundation
import Synchronization

/// Runs a small program and collects what it says.
package enum ToolRun {
    /// How a program ended.
    package struct Result: Sendable {
        package var status: Int32
        package var output: [UInt8]
        package var errors: String
    }

    /// The program's place by `PATH`; nil when it is not installed.
    package static func path(of name: String, _ environment: [String: String]) -> String? {
        (environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":")
            .map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// What the program said, at most what a pipe holds (64 KiB); nil when it could not be started
    /// or did not end in time: it is then killed.
    package static func run(
        _ path: String,
        _ arguments: [String],
        input: [UInt8],
        environment: [String: String],
        timeLimit: Duration
    ) async -> Result? {
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = environment
        let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = errors
        let ended = Ended()
        process.terminationHandler = { ended.set($0.terminationReason == .exit) }
        guard (try? process.run()) != nil else { return nil }
        try? standardInput.fileHandleForWriting.write(contentsOf: Data(input))
        try? standardInput.fileHandleForWriting.close()
        let identifier = process.processIdentifier
        let alarm = Task {
            if (try? await Task.sleep(for: timeLimit)) != nil { _ = kill(identifier, SIGKILL) }
        }
        let hasExited = await ended.value()
        alarm.cancel()
        guard hasExited else { return nil }
        let said = try? errors.fileHandleForReading.readToEnd()
        return Result(
            status: process.terminationStatus,
            output: (try? output.fileHandleForReading.readToEnd()).map { [UInt8]($0) } ?? [],
            errors: String(decoding: said ?? Data(), as: UTF8.self)
        )
    }

    /// Whether the process exited by itself, once it is over.
    private final class Ended: Sendable {
        private struct State {
            var result: Bool?
            var waiter: CheckedContinuation<Bool, Never>?
        }
        private let state = Mutex(State())

        func set(_ result: Bool) {
            let waiter = state.withLock { state in
                state.result = result
                return state.waiter
            }
            waiter?.resume(returning: result)
        }

        func value() async -> Bool {
            await withCheckedContinuation { continuation in
                let result = state.withLock { state in
                    if state.result == nil { state.waiter = continuation }
                    return state.result
                }
                if let result { continuation.resume(returning: result) }
            }
        }
    }
}
