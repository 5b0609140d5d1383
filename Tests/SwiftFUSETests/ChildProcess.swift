import Foundation

/// Programs that use the mount: never this process itself, whose threads the mount needs.
struct ChildProcess: Sendable {
    struct Outcome: Sendable {
        /// The exit status, or the signal's number negated.
        let status: Int32
        let output: String
    }

    /// Runs a shell script to its end; `$1` and so on are `arguments`.
    static func run(_ script: String, _ arguments: String...) async throws -> Outcome {
        try await start(script, arguments).outcome()
    }

    static func start(_ script: String, _ arguments: [String]) throws -> ChildProcess {
        try ChildProcess("/bin/sh", ["-c", script, "sh"] + arguments)
    }

    private let process: Process
    private let output: FileHandle

    init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment
            .merging(["LC_ALL": "C.UTF-8"]) { $1 }.merging(environment) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        output = pipe.fileHandleForReading
        try process.run()
    }

    var id: Int32 { process.processIdentifier }

    /// Reads the output's first line, which the program writes while it goes on.
    func firstLine() async -> String {
        let output = output
        return await onThread {
            var line: [UInt8] = []
            while let byte = output.readData(ofLength: 1).first, byte != UInt8(ascii: "\n") {
                line.append(byte)
            }
            return String(decoding: line, as: UTF8.self)
        }
    }

    func send(signal: Int32) { kill(id, signal) }

    func outcome() async -> Outcome {
        let process = process
        let output = output
        return await onThread {
            let data = output.readDataToEndOfFile()
            process.waitUntilExit()
            let status = process.terminationStatus
            return Outcome(
                status: process.terminationReason == .exit ? status : -status,
                output: String(decoding: data, as: UTF8.self)
            )
        }
    }
}

/// Runs what blocks on a thread of its own.
func onThread<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
    await withCheckedContinuation { continuation in
        Thread { continuation.resume(returning: body()) }.start()
    }
}
