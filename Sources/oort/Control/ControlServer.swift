import FlyingFox
import FlyingSocks
import Foundation
import Logging
import ServiceLifecycle

/// What the control socket can ask of a running mount.
protocol MountControl: Sendable {
    /// How everything is.
    func status() async -> StatusReport
    /// Sends what is pending at once and tells how it goes; the last value is not `.waiting`.
    ///
    /// - Throws: `Failure` when the path is not one of the mount's.
    func sync(_ request: SyncRequest) throws(Failure) -> AsyncStream<SyncProgress>
    /// The accounts that the catalog has, signed in or not.
    func keptAccounts() throws(Failure) -> [KeptAccount]
    /// Takes up an account that was signed in meanwhile.
    ///
    /// - Throws: `Failure` when it is not the account whose files are kept under its name; nothing is
    ///   changed then.
    func addAccount(named name: String) async throws(Failure)
    /// Lets an account go that was signed out; what the cloud does not have stays kept.
    func removeAccount(named name: String) async throws(Failure)
    /// The path where it is mounted.
    var mountPoint: String { get }
    /// Begins an orderly stop and returns at once.
    func stop()
    /// Counters in the Prometheus text form.
    func metrics() async -> String
}

/// Serves a mount's control socket: HTTP with JSON on a Unix domain socket that only the user may
/// open.
struct ControlServer: Service {
    private let path: String
    private let control: any MountControl
    private let logger: Logger

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
        // Left over by a mount that died: the instance lock says that nobody uses it.
        unsafe unlink(path)
        let server = HTTPServer(
            config: .init(address: .unix(path: path), timeout: 60, logger: .disabled)
        )
        for (route, handler) in routes {
            await server.appendRoute(HTTPRoute(route)) { request in
                await answer(request, handler)
            }
        }
        defer { unsafe unlink(path) }
        // The folder has mode 0700, so nobody else gets in before the mode is set.
        let path = path
        try await withGracefulShutdownHandler {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await server.run() }
                group.addTask {
                    try await server.waitUntilListening(timeout: 10)
                    unsafe chmod(path, 0o600)
                }
                do {
                    try await group.waitForAll()
                } catch  where Task.isShuttingDownGracefully {
                    return
                }
            }
        } onGracefulShutdown: {
            Task { await server.stop(timeout: 0.1) }
        }
    }

    private typealias Handler = @Sendable (HTTPRequest) async throws -> HTTPResponse

    private var routes: [(String, Handler)] {
        let control = control
        return [
            ("GET /status", { _ in try Self.json(await control.status()) }),
            (
                "GET /metrics",
                { _ in
                    HTTPResponse(
                        statusCode: .ok,
                        headers: [.contentType: "text/plain; version=0.0.4"],
                        body: Data(await control.metrics().utf8)
                    )
                }
            ),
            (
                "POST /sync",
                { request in
                    let wish = try await Self.read(SyncRequest.self, from: request)
                    return HTTPResponse(
                        statusCode: .ok,
                        headers: [.contentType: "application/x-ndjson"],
                        body: HTTPBodySequence(from: ProgressLines(try control.sync(wish)))
                    )
                }
            ),
            (
                "POST /unmount",
                { request in
                    let wish = try await Self.read(UnmountRequest.self, from: request)
                    if let path = wish.mountPoint, path != control.mountPoint {
                        throw Failure(
                            "Oort is not mounted at \(path), but at \(control.mountPoint).",
                            advice: "Unmount that: oort unmount "
                                + Shell.quoted(control.mountPoint)
                        )
                    }
                    control.stop()
                    return try Self.json(UnmountRequest(mountPoint: control.mountPoint))
                }
            ),
            ("GET /accounts", { _ in try Self.json(try control.keptAccounts()) }),
            (
                "POST /accounts/added",
                { request in
                    let wish = try await Self.read(AccountRequest.self, from: request)
                    try await control.addAccount(named: wish.name)
                    return try Self.json(wish)
                }
            ),
            (
                "POST /accounts/removed",
                { request in
                    let wish = try await Self.read(AccountRequest.self, from: request)
                    try await control.removeAccount(named: wish.name)
                    return try Self.json(wish)
                }
            ),
        ]
    }

    private func answer(_ request: HTTPRequest, _ handler: Handler) async -> HTTPResponse {
        do {
            return try await handler(request)
        } catch let failure as Failure {
            return Self.refusal(.conflict, failure)
        } catch is DecodingError {
            return Self.refusal(.badRequest, Failure("The request's JSON is not understood."))
        } catch {
            logger.error("control request failed", metadata: ["error": "\(error)"])
            return Self.refusal(.internalServerError, Failure("The mount failed: \(error)"))
        }
    }

    private static func read<Value: Decodable>(
        _ type: Value.Type,
        from request: HTTPRequest
    ) async throws -> Value {
        try ControlCoding.decode(type, from: try await request.bodyData)
    }

    private static func json(_ value: some Encodable) throws -> HTTPResponse {
        HTTPResponse(
            statusCode: .ok,
            headers: [.contentType: "application/json"],
            body: try ControlCoding.encode(value)
        )
    }

    private static func refusal(_ status: HTTPStatusCode, _ failure: Failure) -> HTTPResponse {
        let body = ControlFailure(message: failure.message, advice: failure.advice)
        return HTTPResponse(
            statusCode: status,
            headers: [.contentType: "application/json"],
            body: (try? ControlCoding.encode(body)) ?? Data()
        )
    }
}

/// Progress as lines of JSON, each sent when it is there.
private struct ProgressLines: AsyncBufferedSequence {
    typealias Element = UInt8
    private let stream: AsyncStream<SyncProgress>

    init(_ stream: AsyncStream<SyncProgress>) { self.stream = stream }

    func makeAsyncIterator() -> Iterator { Iterator(lines: stream.makeAsyncIterator()) }

    struct Iterator: AsyncBufferedIteratorProtocol {
        var lines: AsyncStream<SyncProgress>.Iterator
        var rest: [UInt8] = []

        mutating func next() async throws -> UInt8? {
            try await nextBuffer(suggested: 1)?.first
        }

        mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? {
            if rest.isEmpty {
                guard let progress = await lines.next(isolation: #isolation) else { return nil }
                rest = Array(try ControlCoding.encode(progress)) + [UInt8(ascii: "\n")]
            }
            let part = Array(rest.prefix(count))
            rest.removeFirst(part.count)
            return part
        }
    }
}
