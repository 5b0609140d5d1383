import Foundation
import OortProcesses
import SwiftSFTP
import SystemPackage
import Testing

/// OpenSSH's own server, which speaks the protocol on its standard input and output, in a folder of
/// its own.
final class ServerProcess {
    static let program = "/usr/lib/openssh/sftp-server"

    let session: SFTPSession
    let folder: String
    private let process: RunningProgram

    private init(_ session: SFTPSession, _ process: RunningProgram, _ folder: String) {
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
    ) throws -> (RunningProgram, SFTPTransport) {
        let (toServer, fromServer) = (try ProgramPipe(), try ProgramPipe())
        var program = Program("/bin/sh", ["-c", script])
        program.folder = folder
        program.input = .descriptor(toServer.reading)
        program.output = .descriptor(fromServer.writing)
        let running = try RunningProgram(program)
        try toServer.reading.close()
        try fromServer.writing.close()
        // The session owns its descriptors.
        return (running, SFTPTransport(input: fromServer.reading, output: toServer.writing))
    }

    /// Ends a server.
    static func end(_ process: RunningProgram) { process.send(SIGKILL) }

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
