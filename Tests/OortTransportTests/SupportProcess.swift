import Foundation
import MountTesting
import OortProcesses
import OortTransport
import Synchronization
import SystemPackage

/// A helper program of the tests, ended by `stop`.
///
/// Whatever waits for the program does so on a thread of its own: the suites' tests share the few
/// threads of Swift's pool, and what blocks one of them may wait for a test that needs one.
final class SupportProcess: Sendable {
    private let program: Program
    private let running = Mutex<(program: RunningProgram, input: FileDescriptor)?>(nil)

    /// Where `Tests/Support` is, from this file's own place.
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Support").path()

    init(_ path: String, _ arguments: [String]) throws {
        program = Program(path, arguments)
    }

    /// Starts the program and returns the first line that it prints.
    func start() async throws -> String {
        let output = try ProgramPipe()
        defer { try? output.writing.close() }
        try start(.descriptor(output.writing))
        // What it says later goes into the pipe, which is open until the tests end.
        return await onThread { output.reading.readLine() }
    }

    func startSilently() throws { try start(.nothing) }

    private func start(_ output: Program.Stream) throws {
        let input = try ProgramPipe()
        defer { try? input.reading.close() }
        var program = program
        program.input = .descriptor(input.reading)
        program.output = output
        let started = try RunningProgram(program)
        running.withLock { $0 = (started, input.writing) }
    }

    func stop() async {
        guard let (program, input) = running.withLock({ $0.take() }) else { return }
        try? input.close()
        program.send(SIGKILL)
        await program.wait()
    }

    /// Runs a program to its end; true when it succeeded.
    static func run(_ program: String, _ arguments: [String], in folder: String) async throws
        -> Bool
    {
        let script = "cd \"$1\" && shift && exec \"$@\""
        return try await ChildProcess.start(script, [folder, program] + arguments).outcome()
            .status == 0
    }

    /// The first of these programs that is installed.
    static func find(_ paths: String...) -> String? {
        paths.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}

/// The server of `Tests/Support/wire.py`, and a client with settings made for it.
func withWire(
    arguments: [String] = [],
    settings: CurlClient.Settings = .init(),
    _ body: (_ port: String, _ client: CurlClient) async throws -> Void
) async throws {
    let server = try SupportProcess(
        "/usr/bin/env",
        ["python3", SupportProcess.folder + "/wire.py"] + arguments
    )
    let port = try await server.start()
    let client = try CurlClient(settings: settings)
    let result: Result<Void, any Error>
    do {
        try await body(port, client)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await client.shutdown()
    await server.stop()
    try result.get()
}

/// A folder with a certificate authority `ca.pem` and a certificate for 127.0.0.1, localhost and
/// cloud.test, made by openssl.
func withCertificates(_ body: (_ folder: String) async throws -> Void) async throws {
    let folder = NSTemporaryDirectory() + "oort-ca-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:cloud.test"
        .write(toFile: folder + "/names", atomically: true, encoding: .utf8)
    let steps = [
        "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=Test",
        "req -newkey rsa:2048 -nodes -keyout key.pem -out request.pem -subj /CN=localhost",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem"
            + " -days 2 -extfile names",
    ]
    for step in steps {
        let words = step.split(separator: " ").map(String.init)
        guard try await SupportProcess.run("openssl", words, in: folder) else {
            throw TransportError.untrusted("openssl failed: \(step)")
        }
    }
    try await body(folder)
}
