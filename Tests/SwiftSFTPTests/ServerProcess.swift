import Foundation
import SwiftSFTP
import SystemPackage
import Testing

/// OpenSSH's own server, which speaks the protocol on its standard input and output, in a folder of
/// its own.
final class ServerProcess {
    static let program = "/usr/lib/openssh/sftp-server"

    let session: SFTPSession
    let folder: String
    private let process: Process

    private init(_ session: SFTPSession, _ process: Process, _ folder: String) {
        self.session = session
        self.process = process
        self.folder = folder
    }

    /// A server and a session with it; `shell` runs before the server, as a login's script does.
    static func with(
        _ arguments: String = "",
        shell: String = "",
        _ body: (ServerProcess) async throws -> Void
    ) async throws {
        let folder = NSTemporaryDirectory() + "sftp-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let script = "\(shell)\nexec \(program) -e \(arguments)"
        let (process, transport) = try start(script, in: folder)
        defer { end(process) }
        let server = ServerProcess(try await .open(over: transport), process, folder)
        try await body(server)
        server.session.close()
    }

    /// A shell script that is reached over two pipes.
    static func start(
        _ script: String,
        in folder: String = NSTemporaryDirectory()
    ) throws -> (Process, SFTPTransport) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", script]
        process.currentDirectoryURL = URL(fileURLWithPath: folder)
        let toServer = Pipe()
        let fromServer = Pipe()
        process.standardInput = toServer
        process.standardOutput = fromServer
        process.standardError = FileHandle.nullDevice
        try process.run()
        try toServer.fileHandleForReading.close()
        try fromServer.fileHandleForWriting.close()
        // The session owns its descriptors; those of the pipes end with the pipes.
        return (
            process,
            SFTPTransport(
                input: try duplicate(fromServer.fileHandleForReading),
                output: try duplicate(toServer.fileHandleForWriting)
            )
        )
    }

    /// A descriptor that no other server inherits.
    private static func duplicate(_ handle: FileHandle) throws -> FileDescriptor {
        let copy = fcntl(handle.fileDescriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw Errno(rawValue: errno) }
        return FileDescriptor(rawValue: copy)
    }

    /// Ends a server, which may block the signal that asks it to end.
    static func end(_ process: Process) {
        if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
    }

    func kill() { Self.end(process) }

    func path(_ name: String) throws -> SFTPPath { try SFTPPath(folder + "/" + name) }

    func bytes(of name: String) -> [UInt8]? {
        FileManager.default.contents(atPath: folder + "/" + name).map { Array($0) }
    }

    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: folder + "/" + name))
    }
}

/// The kind of the error that `body` ends with; nil for none.
func failure(_ body: () async throws -> Void) async -> SFTPError.Kind? {
    do {
        try await body()
        return nil
    } catch let error as SFTPError {
        return error.kind
    } catch {
        Issue.record(error)
        return nil
    }
}
