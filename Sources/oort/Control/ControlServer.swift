import FlyingSocks
import Foundation
import Logging
import ServiceLifecycle

/// What the control socket can ask of a running mount.
protocol MountControl: TakingBackControl {
    /// How everything is.
    func status() async -> StatusReport
    /// Sends what is pending at once and reports its progress; the last value is not `.waiting`.
    ///
    /// - Throws: `Failure` when the path is not one of the mount's.
    func sync(_ request: SyncRequest) throws(Failure) -> AsyncStream<SyncProgress>
    /// Finds items; what services find inside files comes as it arrives, the end last.
    ///
    /// - Throws: `Failure` for words or a folder of which nothing can be found.
    func search(_ request: SearchRequest) throws(Failure) -> AsyncStream<SearchLine>
    /// Reports each change in the mount from now on, until that ends.
    ///
    /// - Throws: `Failure` when the path is not one of the mount's, or too many watch.
    func watch(_ request: WatchRequest) throws(Failure) -> AsyncStream<WatchEvent>
    /// The accounts that the catalog has, signed in or not.
    func keptAccounts() throws(Failure) -> [KeptAccount]
    /// Takes up an account that was signed in meanwhile.
    ///
    /// - Throws: `Failure` when it is not the account whose files are kept under its name; nothing is
    ///   changed then.
    func addAccount(named name: String) async throws(Failure)
    /// Lets an account go that is being signed out.
    ///
    /// - Throws: `Failure` when its cloud lacks more items than are given up (none is below 0); nothing is
    ///   changed then.
    func removeAccount(named name: String, givingUp most: Int) async throws(Failure)
    /// The paths of inodes, each under its number; those that are nowhere in the tree are left out.
    func paths(of inodes: [UInt64]) throws(Failure) -> [String: String]
    /// The conflicts that are not ended.
    func conflicts(_ wish: ConflictsRequest) async throws(Failure) -> [ConflictReport]
    /// Has the service get all of the file that a choice gives up, or refuses the choice.
    func prepareChoice(_ choice: ConflictChoice) async throws(Failure)
    /// Ends a conflict whose files both stay.
    func endConflict(_ id: UInt64) async throws(Failure)
    /// Keeps something on this machine.
    ///
    /// - Throws: `Failure` when the path is not one of the mount's, or there is no room for it.
    func pin(_ wish: PinRequest) async throws(Failure) -> PinReport
    /// Ends that.
    func unpin(_ wish: UnpinRequest) async throws(Failure)
    /// Everything that is kept on this machine.
    func pins() async throws(Failure) -> [PinReport]
    /// Takes cached contents away.
    func free(_ wish: FreeRequest) async throws(Failure) -> FreeReport
    /// Sends nothing for a time.
    func pause(_ wish: PauseRequest) async throws(Failure) -> PaceReport
    /// Goes on sending.
    func resume(_ wish: ResumeRequest) async throws(Failure) -> PaceReport
    /// Sets or lifts limits.
    func limit(_ wish: LimitRequest) async throws(Failure) -> PaceReport
    /// The path where it is mounted.
    var mountPoint: String { get }
    /// Begins an orderly stop and returns at once.
    func stop()
    /// Counters in the Prometheus text form.
    func metrics() async -> String
}

/// Serves a mount's control socket: HTTP with JSON on a Unix domain socket that only the user may
/// open, one request for each connection.
struct ControlServer: Service {
    private let path: String
    private let control: any MountControl
    private let logger: Logger

    /// How many connections are served at a time; more wait.
    private static let mostConnections = 64
    /// How long a client may take for its request, and for the rest of a refused one.
    private static let patience = Duration.seconds(20)

    init(path: String, control: any MountControl, logger: Logger) {
        self.path = path
        self.control = control
        self.logger = logger
    }

    func run() async throws {
        guard path.utf8.count < 108 else {
            throw Failure(
                "The control socket's path is too long for Linux: \(path)",
                advice: "Set XDG_RUNTIME_DIR to a shorter path."
            )
        }
        // Left over by a mount that died: the instance lock shows that it is not in use.
        unsafe unlink(path)
        let pool: some AsyncSocketPool = .ePoll()
        try await pool.prepare()
        let listener = try listen(in: pool)
        defer {
            try? listener.close()
            unsafe unlink(path)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pool.run() }
            group.addTask { await Self.accept(from: listener) { await serve($0) } }
            group.addTask {
                try await gracefulShutdown()
                // Time for the answer to the client that asked for the end.
                try await Task.sleep(for: .milliseconds(100))
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    private func listen(in pool: some AsyncSocketPool) throws -> AsyncSocket {
        let socket = try Socket(domain: AF_UNIX)
        Self.keepFromChildren(socket)
        do {
            try socket.bind(to: .unix(path: path))
            // Before anybody can connect.
            unsafe chmod(path, 0o600)
            try socket.listen()
            return try AsyncSocket(socket: socket, pool: pool)
        } catch {
            try? socket.close()
            throw error
        }
    }

    /// Serves connections, `mostConnections` at a time, until the task is cancelled.
    static func accept(
        from listener: AsyncSocket,
        serve: @escaping @Sendable (AsyncSocket) async -> Void
    ) async {
        let (turns, turn) = AsyncStream<Void>.makeStream()
        for _ in 0..<mostConnections { turn.yield() }
        await withDiscardingTaskGroup { group in
            for await _ in turns {
                var accepted: AsyncSocket?
                while accepted == nil, !Task.isCancelled {
                    do {
                        accepted = try await listener.accept()
                    } catch {
                        // Out of descriptors, say: those who wait are served when there are some.
                        try? await Task.sleep(for: .milliseconds(100))
                    }
                }
                guard let socket = accepted else { return }
                keepFromChildren(socket.socket)
                group.addTask {
                    await serve(socket)
                    try? socket.close()
                    turn.yield()
                }
            }
        }
    }

    /// Programs that the daemon starts must not hold connections open.
    static func keepFromChildren(_ socket: Socket) {
        _ = fcntl(socket.file.rawValue, F_SETFD, FD_CLOEXEC)
    }

    private func serve(_ socket: AsyncSocket) async {
        do {
            let message = try await Self.within(Self.patience) {
                try await ControlMessage.read(from: socket)
            }
            let result =
                message.endsWithClient
                ? try await Self.asLong(asClientOf: socket) { try await answer(message) }
                : try await answer(message)
            try await result.send(to: socket)
        } catch let refusal as ControlRefusal {
            try? await ControlAnswer.refusal(refusal).send(to: socket)
            await Self.drain(socket)
        } catch {
            // The client went away, or said nothing for too long.
        }
    }

    /// Ends an exchange that was refused: what is closed before all is read resets the connection, and
    /// the answer is lost.
    static func drain(_ socket: AsyncSocket, for time: Duration = Self.patience) async {
        _ = shutdown(socket.socket.file.rawValue, Int32(SHUT_WR))
        try? await within(time) {
            for _ in 0..<4096 { _ = try await socket.read(atMost: 4096) }
        }
    }

    /// Runs an exchange with a client that may hang.
    static func within<Result: Sendable>(
        _ limit: Duration,
        _ exchange: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup { group in
            group.addTask { try await exchange() }
            group.addTask {
                try await Task.sleep(for: limit)
                throw CancellationError()
            }
            defer { group.cancelAll() }
            guard let result = try await group.next() else { throw CancellationError() }
            return result
        }
    }

    /// Does something for a client as long as that is there.
    private static func asLong<Result: Sendable>(
        asClientOf socket: AsyncSocket,
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        try await withThrowingTaskGroup { group in
            group.addTask { try await work() }
            group.addTask {
                while !hasHungUp(socket.socket) { try await Task.sleep(for: .milliseconds(250)) }
                throw CancellationError()
            }
            defer { group.cancelAll() }
            guard let result = try await group.next() else { throw CancellationError() }
            return result
        }
    }

    /// Whether the other side is closed altogether; one that only sends no more still waits.
    private static func hasHungUp(_ socket: Socket) -> Bool {
        var state = pollfd(fd: socket.file.rawValue, events: 0, revents: 0)
        return unsafe poll(&state, 1, 0) > 0 && Int32(state.revents) & Int32(POLLHUP) != 0
    }

    private func answer(_ message: ControlMessage) async throws -> ControlAnswer {
        do {
            return try await carryOut(message)
        } catch let failure as Failure {
            throw ControlRefusal(409, failure)
        } catch is DecodingError {
            throw ControlRefusal(400, "The request's JSON is not understood.")
        } catch let refusal as ControlRefusal {
            throw refusal
        } catch {
            logger.error("control request failed", metadata: ["error": "\(error)"])
            throw ControlRefusal(500, "The mount failed: \(error)")
        }
    }

    private func carryOut(_ message: ControlMessage) async throws -> ControlAnswer {
        switch (message.method, message.path) {
        case ("GET", "/status"): return try .json(await control.status())
        case ("GET", "/metrics"):
            return ControlAnswer(
                status: 200,
                type: "text/plain; version=0.0.4",
                body: .whole(Data(await control.metrics().utf8))
            )
        case ("POST", "/sync"):
            let wish = try ControlCoding.decodeRequest(SyncRequest.self, from: message.body)
            try wish.check()
            return .lines(try control.sync(wish))
        case ("POST", "/search"):
            let wish = try ControlCoding.decodeRequest(SearchRequest.self, from: message.body)
            return .lines(try control.search(wish))
        case ("POST", "/watch"):
            let wish = try ControlCoding.decodeRequest(WatchRequest.self, from: message.body)
            return .lines(try control.watch(wish))
        case ("POST", "/unmount"):
            let wish = try ControlCoding.decodeRequest(UnmountRequest.self, from: message.body)
            if let path = wish.mountPoint, path != control.mountPoint {
                throw Failure(
                    "Oort is not mounted at \(path), but at \(control.mountPoint).",
                    advice: "Unmount that: oort unmount " + Shell.quoted(control.mountPoint)
                )
            }
            control.stop()
            return try .json(UnmountRequest(mountPoint: control.mountPoint))
        case ("POST", "/paths"):
            let wish = try ControlCoding.decodeRequest(PathsRequest.self, from: message.body)
            return try .json(PathsAnswer(paths: try control.paths(of: wish.inodes)))
        case ("POST", "/pause"):
            let wish = try ControlCoding.decodeRequest(PauseRequest.self, from: message.body)
            try wish.check()
            return try .json(try await control.pause(wish))
        case ("POST", "/resume"):
            let wish = try ControlCoding.decodeRequest(ResumeRequest.self, from: message.body)
            return try .json(try await control.resume(wish))
        case ("POST", "/limit"):
            let wish = try ControlCoding.decodeRequest(LimitRequest.self, from: message.body)
            try wish.check()
            return try .json(try await control.limit(wish))
        case ("POST", "/pin"):
            let wish = try ControlCoding.decodeRequest(PinRequest.self, from: message.body)
            return try .json(try await control.pin(wish))
        case ("POST", "/unpin"):
            let wish = try ControlCoding.decodeRequest(UnpinRequest.self, from: message.body)
            try await control.unpin(wish)
            return try .json(wish)
        case ("GET", "/pins"): return try .json(try await control.pins())
        case ("POST", "/free"):
            let wish = try ControlCoding.decodeRequest(FreeRequest.self, from: message.body)
            try wish.check()
            return try .json(try await control.free(wish))
        case ("GET", "/conflicts"):
            return try .json(try await control.conflicts(ConflictsRequest()))
        case ("POST", "/conflicts"):
            let wish = try ControlCoding.decodeRequest(ConflictsRequest.self, from: message.body)
            return try .json(try await control.conflicts(wish))
        case ("POST", "/conflicts/choice"):
            let wish = try ControlCoding.decodeRequest(ConflictChoice.self, from: message.body)
            try await control.prepareChoice(wish)
            return try .json(wish)
        case ("POST", "/conflicts/end"):
            let wish = try ControlCoding.decodeRequest(EndConflictRequest.self, from: message.body)
            try await control.endConflict(wish.id)
            return try .json(wish)
        case ("GET", "/accounts"): return try .json(try control.keptAccounts())
        case ("POST", "/accounts/added"):
            let wish = try ControlCoding.decodeRequest(AccountRequest.self, from: message.body)
            try await control.addAccount(named: wish.name)
            return try .json(wish)
        case ("POST", "/accounts/removed"):
            let wish = try ControlCoding.decodeRequest(
                AccountRemovalRequest.self,
                from: message.body
            )
            try await control.removeAccount(named: wish.name, givingUp: max(0, wish.givenUp ?? 0))
            return try .json(wish)
        default:
            if let answer = try await control.answer(message) { return answer }
            throw ControlRefusal(404, "The mount has no \(message.method) \(message.path).")
        }
    }
}
