import Foundation
import OortTransport
import Synchronization

/// A helper program of the tests; ended with the value.
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
    func start() throws -> String {
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        var line: [UInt8] = []
        while let byte = try output.fileHandleForReading.read(upToCount: 1)?.first, byte != 10 {
            line.append(byte)
        }
        return String(decoding: line, as: UTF8.self)
    }

    func startSilently() throws {
        process.standardOutput = FileHandle.nullDevice
        try process.run()
    }

    func stop() {
        guard process.isRunning else { return }
        try? input.fileHandleForWriting.close()
        // A child may have inherited that SIGTERM is blocked.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Runs a program to its end; true when it succeeded.
    static func run(_ path: String, _ arguments: [String], in folder: String) throws -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.currentDirectoryURL = URL(filePath: folder)
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus == 0
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
    let port = try server.start()
    let client = try CurlClient(settings: settings)
    let result: Result<Void, any Error>
    do {
        try await body(port, client)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await client.shutdown()
    server.stop()
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
        let words = ["openssl"] + step.split(separator: " ").map(String.init)
        guard try SupportProcess.run("/usr/bin/env", words, in: folder) else {
            throw TransportError.untrusted("openssl failed: \(step)")
        }
    }
    try await body(folder)
}
