import Foundation
import OortModel
import SwiftSFTP

/// The connection to one account's server: one `ssh` that carries all sessions, of which one is for
/// what a person waits for, and up to three are for bytes, so that a look never waits behind content.
///
/// A connection that broke is made anew by whoever needs it next; all who need it share that.
public actor SSHConnection {
    /// Where the server is.
    public nonisolated let address: SFTPAddress
    /// Where ssh is.
    public static let program = "/usr/bin/ssh"
    private let program: String
    private let folder: String
    private let environment: [String: String]

    private struct Line {
        let session: SFTPSession
        let process: SSHProcess
        var uses = 0

        func end() {
            session.close()
            process.end()
        }
    }

    private var main: Line?
    private var lines: [Line] = []
    /// The sessions beside the first that are being opened.
    private var openings = 0
    private var opening: Task<Result<SFTPSession, ProviderError>, Never>?
    /// Counts the connections, so that who found an old one broken does not end a new one.
    private var generation = 0
    private var isClosed = false

    /// The sessions beside the first; OpenSSH's servers take ten in all.
    private static let mostLines = 3

    /// A connection that is made when it is first needed.
    ///
    /// - Parameters:
    ///   - address: where the server is.
    ///   - program: the path of `ssh`.
    ///   - folder: a private folder for the socket over which the sessions share one connection.
    ///   - environment: the environment of `ssh`; it holds no secret.
    public init(
        _ address: SFTPAddress,
        program: String = SSHConnection.program,
        folder: String,
        environment: [String: String]
    ) {
        self.address = address
        self.program = program
        self.folder = folder
        self.environment = environment
    }

    /// The session for what is small.
    ///
    /// - Throws: `.offline`, `.signedOut` where the server refuses the login or is not the one that is
    ///   known, `.clientRefused` where it has no SFTP.
    func session() async throws(ProviderError) -> SFTPSession {
        if let main { return main.session }
        if let opening { return try await opening.value.get() }
        let task = Task { () -> Result<SFTPSession, ProviderError> in
            do throws(ProviderError) { return .success(try await self.openMain()) } catch {
                return .failure(error)
            }
        }
        opening = task
        defer { opening = nil }
        return try await task.value.get()
    }

    private func openMain() async throws(ProviderError) -> SFTPSession {
        guard !isClosed else { throw ProviderError(.cancelled, detail: "the connection is closed") }
        do {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw ProviderError(.localContent, detail: "\(folder) cannot be made: \(error)")
        }
        try? FileManager.default.removeItem(atPath: socket)
        let line = try await open(["-M", "-S", socket])
        guard !isClosed else {
            line.end()
            throw ProviderError(.cancelled, detail: "the connection is closed")
        }
        main = line
        generation += 1
        return line.session
    }

    private var socket: String { folder + "/m" }

    /// A session for content: the least used of those that there are, or a new one.
    func contentSession() async throws(ProviderError) -> SFTPSession {
        let first = try await session()
        let idle = lines.indices.min { lines[$0].uses < lines[$1].uses }
        let isFull = lines.count + openings >= Self.mostLines
        if let idle, lines[idle].uses == 0 || isFull {
            lines[idle].uses += 1
            return lines[idle].session
        }
        // While others open theirs, the first has to do.
        if isFull { return first }
        openings += 1
        defer { openings -= 1 }
        let before = generation
        do throws(ProviderError) {
            var line = try await open(["-S", socket, "-oControlMaster=no"])
            guard before == generation, main != nil else {
                line.end()
                throw ProviderError(.offline, detail: "the connection broke")
            }
            line.uses = 1
            lines.append(line)
            return line.session
        } catch {
            // A server that takes no more sessions has the first for all.
            guard before == generation, main != nil else { throw error }
            return first
        }
    }

    /// Says that a session for content is needed no longer.
    func release(_ session: SFTPSession) {
        guard let index = lines.firstIndex(where: { $0.session === session }) else { return }
        lines[index].uses = max(0, lines[index].uses - 1)
    }

    /// Ends the connection if the session that broke is one of it.
    func broke(_ session: SFTPSession) {
        guard main?.session === session || lines.contains(where: { $0.session === session }) else {
            return
        }
        end()
    }

    /// Ends all sessions, for good.
    public func close() {
        isClosed = true
        end()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func end() {
        for line in lines + [main].compactMap(\.self) { line.end() }
        lines = []
        main = nil
        generation += 1
    }

    private func open(_ sharing: [String]) async throws(ProviderError) -> Line {
        let arguments =
            sharing + address.arguments(mayAsk: false) + ["-s", "--", address.host, "sftp"]
        let process: SSHProcess
        do { process = try SSHProcess(program, arguments, environment: environment) } catch {
            throw ProviderError(
                .clientRefused,
                detail: "\(program) cannot be started: \(error); install openssh-client"
            )
        }
        do throws(SFTPError) {
            return Line(session: try await .open(over: process.transport), process: process)
        } catch {
            let words = await process.lastWords()
            process.end()
            if error.kind == .cancelled {
                throw ProviderError(.cancelled, detail: "opening a session was cancelled")
            }
            throw SSHWords.failure(words, of: address, error)
        }
    }
}

/// What `ssh` says on its standard error when there is no connection; it is not translated.
enum SSHWords {
    static func failure(
        _ words: String,
        of address: SFTPAddress,
        _ error: SFTPError
    ) -> ProviderError {
        let lines = words.split(whereSeparator: \.isNewline).map(String.init)
        let last = lines.last { !$0.allSatisfy(\.isWhitespace) } ?? error.detail
        let has = { (text: String) in words.contains(text) }
        if has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            let key = lines.first { $0.contains("SHA256:") } ?? ""
            return ProviderError(
                .signedOut,
                detail: """
                    the key of \(address.host) is not the one that is known (\(key)): somebody may stand \
                    in between, or the server was set up anew; `ssh \(address.host)` says more
                    """
            )
        }
        if has("Host key verification failed") {
            return ProviderError(
                .signedOut,
                detail:
                    "the key of \(address.host) is not known yet: run `ssh \(address.host)` once"
            )
        }
        if has("Permission denied") || has("Too many authentication failures") {
            return ProviderError(.signedOut, detail: "\(address.host): \(last)")
        }
        if has("subsystem request failed") {
            return ProviderError(.clientRefused, detail: "\(address.host) has no SFTP: \(last)")
        }
        return ProviderError(.offline, detail: "\(address.host): \(last)")
    }
}
