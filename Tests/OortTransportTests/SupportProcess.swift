import Foundation
import MountTesting
import OortTransport
import Synchronization

/// A helper program of the tests, ended by `stop`.
///
/// Whatever waits for the program does so on a thread of its own: the suites' tests share the few
/// threads of Swift's pool, and what blocks one of them may wait for a test that needs one.
final class SupportProcess: Sendable {
    private let process = Process()
    private let input = Pipe()

    /// Where `Tests/Support` is, from this file's own place.
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Support").path()

    init(_ path: String, _ arguments: [String]) throws {
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.standardInput = input
        process.standardError = FileHandle.nullDevice
    }

    /// Starts the program and returns the first line that it prints.
    func start() async throws -> String {
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let reader = output.fileHandleForReading
        return try await onThread {
            Result {
                var line: [UInt8] = []
                while let byte = try reader.read(upToCount: 1)?.first, byte != 10 {
                    line.append(byte)
                }
                return String(decoding: line, as: UTF8.self)
            }
        }.get()
    }

    func startSilently() throws {
        process.standardOutput = FileHandle.nullDevice
        try process.run()
    }

    func stop() async {
        guard process.isRunning else { return }
        try? input.fileHandleForWriting.close()
        // A child may have inherited that SIGTERM is blocked.
        kill(process.processIdentifier, SIGKILL)
        await onThread { [process] in process.waitUntilExit() }
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
