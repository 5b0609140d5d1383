import Dispatch
import Foundation
import OortModel
import OortProcesses
public import OortTransport
import SwiftSFTP
import Synchronization
import SystemPackage

/// The connection to one account's server: one `ssh` that carries all sessions, of which one is for
/// requests that a person waits for, and up to three are for bytes, so that a look never waits behind
/// content.
///
/// The next caller reconnects a connection that broke; all that need it share the attempt.
public actor SSHConnection {
    /// Where the server is.
    public nonisolated let address: SFTPAddress
    /// Where ssh is.
    public static let program = "/usr/bin/ssh"
    private let program: String
    private let folder: String
    private let environment: [String: String]
    private let secret: any AccessTokens
    private let askpass: String

    private struct Line {
        let session: SFTPSession
        let process: SSHProcess

        func end() {
            session.close()
            process.end()
        }
    }

    private var main: Line?
    private var lines: [Line] = []
    /// How many transfers each of them has.
    private nonisolated let uses = Mutex<[ObjectIdentifier: Int]>([:])
    /// How many further sessions are being opened.
    private var openings = 0
    /// How many further sessions there may be: fewer where the server refused more.
    private var mostLines = SSHConnection.mostLines
    private var opening: Task<Result<SFTPSession, SSHFailure>, Never>?
    /// Counts the connections, so that a caller that finds an old one broken does not end a new one.
    private var generation = 0
    private var isClosed = false
    /// Whether the login turned out to have no shell that is of use, since the connection was made.
    private(set) var hasNoShell = false
    /// Whether it turned out to have none that lists folders, since the connection was made.
    private var hasNoFind = false
    /// How many listings in a row by the shell could not read all.
    private var failedListings = 0
    /// A secret that was refused: it is not tried again, since some servers lock out whoever does.
    private var refused: (secret: String, failure: SSHFailure)?
    /// A login without a secret that was refused: whoever needs a session gets the same answer for a while,
    /// since programs that read many files would try as often.
    private var refusedKey: (failure: SSHFailure, at: ContinuousClock.Instant)?
    private let refusalRest: Duration

    /// The number of further sessions; OpenSSH's servers allow ten in all.
    private static let mostLines = 3

    /// A connection that is made when it is first needed.
    ///
    /// - Parameters:
    ///   - address: where the server is.
    ///   - program: the path of `ssh`.
    ///   - folder: a private folder for the socket over which the sessions share one connection.
    ///   - environment: the environment of `ssh`; it holds no secret.
    ///   - secret: what `address.secret` says; asked for only where that says something.
    ///   - askpass: a program that becomes `SSHAskpass` when it is started under that name.
    ///   - refusalRest: after how long a refused login without a secret is tried again, by whoever needs it.
    public init(
        _ address: SFTPAddress,
        program: String = SSHConnection.program,
        folder: String,
        environment: [String: String],
        secret: any AccessTokens = FixedToken(""),
        askpass: String = SSHAskpass.program,
        refusalRest: Duration = .seconds(600)
    ) {
        self.address = address
        self.program = program
        self.folder = folder
        self.environment = environment
        self.secret = secret
        self.askpass = askpass
        self.refusalRest = refusalRest
    }

    /// Has `ssh` ask on this terminal whether the server is the right one, without a login.
    ///
    /// - Throws: `.noProgram` where `ssh` cannot be started.
    public func introduce() async throws(SSHFailure) {
        do {
            try await SSHProcess.runOnTerminal(
                program,
                address.introductionArguments,
                environment: environment
            )
        } catch { throw cannotStart(error) }
    }

    /// Has `ssh` ask whether the server is the right one, without a login and without a terminal.
    ///
    /// `isMeant` is asked of the server's key and of those of hosts on the way to it, one after another, and
    /// may take as long as a person does. `ssh` notes what is meant among the known hosts; it is ended when the
    /// task is cancelled.
    ///
    /// - Throws: `.noProgram` where `ssh` cannot be started, `.local` where it could not ask.
    public func introduce(
        asking isMeant: @escaping @Sendable (SSHHostKey) async -> Bool
    ) async throws(SSHFailure) {
        try makeFolder()
        let answerer = try answerer("") { key in
            // The answerer's own thread waits, no task's.
            let answer = Mutex(false)
            let isAnswered = DispatchSemaphore(value: 0)
            Task {
                let isRight = await isMeant(key)
                answer.withLock { $0 = isRight }
                isAnswered.signal()
            }
            isAnswered.wait()
            return answer.withLock(\.self)
        }
        defer { answerer.close() }
        let process: SSHProcess
        do {
            process = try SSHProcess(
                program,
                address.introductionArguments,
                environment: environment.merging(answerer.environment) { _, own in own }
            )
        } catch { throw cannotStart(error) }
        answerer.answer(process)
        await withTaskCancellationHandler {
            await process.wait()
        } onCancel: {
            process.endAtOnce()
        }
        // No session owns them.
        for pipe in [process.transport.input, process.transport.output] { try? pipe.close() }
    }

    private func cannotStart(_ error: any Error) -> SSHFailure {
        SSHFailure(.noProgram, "\(program) cannot be started: \(error); install openssh-client")
    }

    /// Makes the connection, where there is none.
    public func signIn() async throws(SSHFailure) { _ = try await connected() }

    /// The session for small requests.
    ///
    /// - Throws: `.offline`, `.signedOut` where the server refuses the login, `.clientRefused` where it
    ///   is not the one that is known, or has no SFTP.
    func session() async throws(ProviderError) -> SFTPSession {
        do throws(SSHFailure) { return try await connected() } catch { throw ProviderError(error) }
    }

    private func connected() async throws(SSHFailure) -> SFTPSession {
        if let main { return main.session }
        if let opening { return try await opening.value.get() }
        let task = Task { () -> Result<SFTPSession, SSHFailure> in
            do throws(SSHFailure) { return .success(try await self.openMain()) } catch {
                return .failure(error)
            }
        }
        opening = task
        defer { opening = nil }
        return try await task.value.get()
    }

    private func openMain() async throws(SSHFailure) -> SFTPSession {
        guard !isClosed else { throw Self.closed }
        try makeFolder()
        try? FileManager.default.removeItem(atPath: socket)
        let sharing = ["-M", "-S", socket]
        let line = try await address.secret == nil ? openSilently(sharing) : openAnswering(sharing)
        guard !isClosed else {
            line.end()
            throw Self.closed
        }
        main = line
        generation += 1
        return line.session
    }

    private func makeFolder() throws(SSHFailure) {
        do {
            try FileManager.default.createDirectory(
                atPath: folder,
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch {
            throw SSHFailure(.local, "\(folder) cannot be made: \(error)")
        }
    }

    private func answerer(
        _ text: String,
        isKnown: (@Sendable (SSHHostKey) -> Bool)? = nil
    ) throws(SSHFailure) -> SSHAnswerer {
        do throws(Errno) {
            return try SSHAnswerer(
                address,
                secret: text,
                folder: folder,
                program: askpass,
                isKnown: isKnown
            )
        } catch {
            throw SSHFailure(
                .local,
                "ssh cannot ask for the secret (by \(askpass), in \(folder)): \(error)"
            )
        }
    }

    private static let closed = SSHFailure(.cancelled, "the connection is closed")

    /// Opens a session by what lets the person in without being told anything.
    private func openSilently(_ sharing: [String]) async throws(SSHFailure) -> Line {
        if let refusedKey, .now - refusedKey.at < refusalRest { throw refusedKey.failure }
        do throws(SSHFailure) {
            let line = try await open(sharing)
            refusedKey = nil
            return line
        } catch {
            if error.reason == .refused { refusedKey = (error, .now) }
            throw error
        }
    }

    /// Opens a session whose `ssh` may ask for the account's secret.
    private func openAnswering(_ sharing: [String]) async throws(SSHFailure) -> Line {
        let text = try await secretToTry()
        let answerer = try answerer(text)
        defer { answerer.close() }
        do throws(SSHFailure) { return try await open(sharing, answerer) } catch {
            if error.reason == .refused { refused = (text, error) }
            throw error
        }
    }

    /// The secret, if it was not refused before.
    private func secretToTry() async throws(SSHFailure) -> String {
        do throws(TransportError) {
            guard let refused else { return try await secret.token() }
            let other: String
            do throws(TransportError) {
                other = try await secret.refresh(afterRejectionOf: refused.secret)
            } catch {
                if case .signedOut = error {
                    throw TransportError.signedOut(refused.failure.detail)
                }
                throw error
            }
            self.refused = nil
            return other
        } catch {
            let known = ProviderError(error)
            switch known.kind {
            case .signedOut: throw SSHFailure(.refused, known.detail)
            case .cancelled: throw SSHFailure(.cancelled, known.detail)
            default: throw SSHFailure(.local, known.detail)
            }
        }
    }

    private var socket: String { folder + "/m" }

    /// The arguments of what shares the connection.
    ///
    /// Where it cannot, it would begin its own login: without the secret, or with one more touch of a hardware
    /// key.
    private var sharing: [String] { ["-S", socket, "-oControlMaster=no", "-oProxyCommand=false"] }

    // MARK: The shell

    /// Copies the content of a file at the server into one that was made there just now, by the login's
    /// shell.
    ///
    /// - Parameters:
    ///   - source: the file that is copied.
    ///   - target: the file that was made, under a random name.
    ///   - timeLimit: after this long the copy counts as failed.
    /// - Returns: what became of the copy.
    /// - Throws: `.cancelled`, `.offline` and others where there is no connection.
    func copyByShell(
        _ source: SFTPPath,
        over target: SFTPPath,
        timeLimit: Duration
    ) async throws(ProviderError) -> SSHShell.Copy {
        // A server with versions stands still where two of a connection send at once.
        guard try await session().server.offersVersions == false, !hasNoShell else {
            return .noShell
        }
        let before = generation
        let arguments =
            sharing + address.arguments(mayAsk: false) + ["--", address.host, SSHShell.command]
        let outcome = await Program(program, arguments, environment: environment)
            .outcome(sending: SSHShell.copyScript(source, over: target), timeLimit: timeLimit)
        let copy = SSHShell.copied(outcome)
        if copy == .noShell, before == generation { hasNoShell = true }
        return copy
    }

    /// How many listings in a row may fail before the shell is no longer asked: it may not have these
    /// folders at all.
    private static let mostFailedListings = 3

    /// Notes that the shell lists other folders than SFTP.
    func distrustListings() { hasNoFind = true }

    /// Lists folders by the login's shell.
    ///
    /// - Returns: what lies in each, in the same order; nil where there is no such shell, or not all of it
    ///   could be read.
    func listByShell(_ folders: [SFTPPath]) async -> [ListedFolder]? {
        guard let first = try? await session(), !first.server.offersVersions, !hasNoFind else {
            return nil
        }
        let before = generation
        let mark = "OORT\(String(UInt64.random(in: .min ... .max), radix: 36).uppercased())E"
        let output = await output(
            of: SSHShell.listingScript(folders, mark: mark),
            timeLimit: .seconds(30)
        )
        let listing = output.map { SSHShell.listed($0, mark: mark, count: folders.count) }
        guard before == generation, !Task.isCancelled else { return nil }
        switch listing {
        case .done(let found):
            failedListings = 0
            return found
        case .failed:
            failedListings += 1
            if failedListings >= Self.mostFailedListings { hasNoFind = true }
        // A shell that does not answer would be waited for each time.
        case .noShell, nil: hasNoFind = true
        }
        return nil
    }

    /// Runs a script at the server, and returns what it prints; nil where it does not end in time.
    private func output(of script: [UInt8], timeLimit: Duration) async -> [UInt8]? {
        // A pipe holds little.
        guard let input = Self.namelessFile(in: folder) else { return nil }
        defer { try? input.close() }
        guard let output = Self.namelessFile(in: folder) else { return nil }
        defer { try? output.close() }
        guard (try? input.writeAll(script)) != nil,
            (try? input.seek(offset: 0, from: .start)) != nil
        else { return nil }
        let arguments =
            sharing + address.arguments(mayAsk: false) + ["--", address.host, SSHShell.command]
        var program = Program(program, arguments, environment: environment)
        program.input = .descriptor(input)
        program.output = .descriptor(output)
        guard let running = try? RunningProgram(program) else { return nil }
        let alarm = Task {
            if (try? await Task.sleep(for: timeLimit)) != nil { running.send(SIGKILL) }
        }
        defer { alarm.cancel() }
        let end = await withTaskCancellationHandler {
            await running.wait()
        } onCancel: {
            running.send(SIGKILL)
        }
        guard case .status = end else { return nil }
        guard (try? output.seek(offset: 0, from: .start)) != nil else { return nil }
        return output.readAll(atMost: SSHShell.mostOutput + (1 << 20))
    }

    /// A file without a name.
    private static func namelessFile(in folder: String) -> FileDescriptor? {
        let path = "\(folder)/\(UUID().uuidString)"
        let file = try? FileDescriptor.open(
            FilePath(path),
            .readWrite,
            options: [.create, .exclusiveCreate, .closeOnExec],
            permissions: .ownerReadWrite
        )
        try? FileManager.default.removeItem(atPath: path)
        return file
    }

    /// A session for content: the least used one, or a new one.
    func contentSession() async throws(ProviderError) -> SFTPSession {
        let first = try await session()
        let idle = leastUsed
        // ProFTPD's mod_sftp stands still for ever when sessions that share a connection send at once
        // (1.3.8; so it does with OpenSSH's own sftp over one control socket).
        let most = first.server.offersVersions ? 0 : mostLines
        let isFull = lines.count + openings >= most
        if let idle, isFull || uses(of: idle) == 0 {
            use(idle.session)
            return idle.session
        }
        // While others are being opened, the first session has to do.
        if isFull { return first }
        openings += 1
        defer { openings -= 1 }
        let before = generation
        do throws(SSHFailure) {
            let line = try await open(sharing)
            guard before == generation, main != nil else {
                line.end()
                throw SSHFailure(.unreachable, "the connection broke")
            }
            use(line.session)
            lines.append(line)
            return line.session
        } catch {
            guard before == generation, main != nil else { throw ProviderError(error) }
            // A server that refuses more sessions is not asked again over this connection; the present ones
            // serve all transfers.
            if ![.cancelled, .local, .noProgram].contains(error.reason) { mostLines = lines.count }
            guard let line = leastUsed else { return first }
            use(line.session)
            return line.session
        }
    }

    /// Whether a session is still one of the connection, and over one for content nothing is on its way
    /// beside `transfers` of the caller's own; such a one is then in use once more until `release`.
    func use(_ session: SFTPSession, beside transfers: Int) -> Bool {
        guard lines.contains(where: { $0.session === session }) else {
            return main?.session === session
        }
        guard uses.withLock({ $0[ObjectIdentifier(session), default: 0] }) <= transfers else {
            return false
        }
        use(session)
        return true
    }

    private var leastUsed: Line? { lines.min { uses(of: $0) < uses(of: $1) } }

    private func uses(of line: Line) -> Int {
        uses.withLock { $0[ObjectIdentifier(line.session), default: 0] }
    }

    private func use(_ session: SFTPSession) {
        uses.withLock { $0[ObjectIdentifier(session), default: 0] += 1 }
    }

    /// Releases a session for content.
    nonisolated func release(_ session: SFTPSession) {
        uses.withLock { uses in
            guard let count = uses[ObjectIdentifier(session)] else { return }
            uses[ObjectIdentifier(session)] = count > 1 ? count - 1 : nil
        }
    }

    /// Ends the connection if the broken session belongs to it.
    func broke(_ session: SFTPSession) {
        guard main?.session === session || lines.contains(where: { $0.session === session }) else {
            return
        }
        end()
    }

    /// Ends all sessions, for good.
    public func close() {
        isClosed = true
        // Nothing more is sent, a secret least of all.
        opening?.cancel()
        end()
        try? FileManager.default.removeItem(atPath: folder)
    }

    private func end() {
        for line in lines + [main].compactMap(\.self) { line.end() }
        uses.withLock { $0 = [:] }
        lines = []
        mostLines = Self.mostLines
        (hasNoShell, hasNoFind, failedListings) = (false, false, 0)
        main = nil
        generation += 1
    }

    private func open(
        _ sharing: [String],
        _ answerer: SSHAnswerer? = nil
    ) async throws(SSHFailure) -> Line {
        let arguments =
            sharing + address.arguments(mayAsk: answerer != nil)
            + ["-s", "--", address.host, "sftp"]
        let process: SSHProcess
        do {
            process = try SSHProcess(
                program,
                arguments,
                environment: environment.merging(answerer?.environment ?? [:]) { _, own in own }
            )
        } catch { throw cannotStart(error) }
        answerer?.answer(process)
        let opened = await withTaskCancellationHandler { () -> Result<SFTPSession, SFTPError> in
            do throws(SFTPError) { return .success(try await .open(over: process.transport)) } catch
            {
                return .failure(error)
            }
        } onCancel: {
            process.endAtOnce()
        }
        do throws(SFTPError) {
            return Line(session: try opened.get(), process: process)
        } catch {
            let words = await process.lastWords()
            process.end()
            if error.kind == .cancelled || Task.isCancelled {
                throw SSHFailure(.cancelled, "opening a session was cancelled")
            }
            throw SSHWords.failure(words, of: address, error, answerer?.answers)
        }
    }
}
