import FlyingFox
import FlyingSocks
import Foundation
import Synchronization

/// A simulated service on a loopback port: real HTTP/1.1, with weather, faults and a call log.
///
/// Reached by `url(host:)`, which puts the real host name first in the path, or, through a proxy,
/// by the real host names in the `Host` field. `/_oort/` is its control (`SimulatorControl`).
public final class Simulator: Sendable {
    /// The protocol that it speaks.
    public let service: any SimulatedService
    /// The port on 127.0.0.1.
    public let port: UInt16

    private let server: HTTPServer
    /// Runs the server; owned by this object, ended by `stop`.
    private let running: Task<Void, Never>
    private let core: Core

    /// Starts a server for a service on a port that the kernel chooses.
    public static func start(_ service: any SimulatedService) async throws -> Simulator {
        let core = Core(service: service)
        let server = HTTPServer(
            config: HTTPServer.Configuration(
                address: try sockaddr_in.inet(ip4: "127.0.0.1", port: 0),
                timeout: 3600,
                sharedRequestBufferSize: 64 << 10,
                sharedRequestReplaySize: 64 << 10,
                logger: .disabled
            )
        )
        let handler = ClosureHTTPHandler { await core.handle($0) }
        // Without their names the server leaves WebDAV's methods out of "all".
        let methods = HTTPMethod.allMethods.union(
            [
                "PROPFIND", "PROPPATCH", "MKCOL", "MOVE", "COPY", "LOCK", "UNLOCK", "REPORT",
                "SEARCH", "PATCH",
            ]
            .map { HTTPMethod($0) }
        )
        await server.appendRoute("*", for: methods, to: handler)
        let running = Task { _ = try? await server.run() }
        guard (try? await server.waitUntilListening(timeout: 120)) != nil,
            case .ip4(_, let port)? = await server.listeningAddress
        else {
            running.cancel()
            throw SimulatorError.notStarted
        }
        return Simulator(service: service, port: port, server: server, running: running, core: core)
    }

    private init(
        service: any SimulatedService,
        port: UInt16,
        server: HTTPServer,
        running: Task<Void, Never>,
        core: Core
    ) {
        self.service = service
        self.port = port
        self.server = server
        self.running = running
        self.core = core
    }

    /// Closes the port and all connections.
    public func stop() async {
        await server.stop(timeout: 0)
        running.cancel()
        await running.value
    }

    /// The account that the service serves.
    public var account: SimulatedAccount { service.account }

    /// The base URL that stands for `https://HOST`, without a slash at its end.
    public func url(host: String) -> String { "http://127.0.0.1:\(port)/\(host)" }

    /// Network and service as they behave from now on.
    public var weather: Weather {
        get { core.climate.withLock { $0.weather } }
        set { core.climate.withLock { $0.weather = newValue } }
    }

    /// Places a fault; of several that fit a request the first placed counts.
    public func add(_ rule: FaultRule) { core.climate.withLock { $0.add(rule) } }

    /// Takes all faults away.
    public func clearFaults() { core.climate.withLock { $0.clearFaults() } }

    /// Makes faults with a probability repeatable.
    public func seedFaults(_ seed: UInt64) { core.climate.withLock { $0.seed(seed) } }

    /// The requests since the start or `clearCalls`, oldest first, without the control's own.
    public var calls: [SimulatorCall] { core.log.withLock { $0.calls } }

    /// How often each route was called; exact.
    public var counts: [String: SimulatorCount] { core.log.withLock { $0.counts } }

    /// Begins counting anew.
    public func clearCalls() { core.log.withLock { $0.clear() } }
}

/// What happens to each request; shared by all connections.
final class Core: Sendable {
    let service: any SimulatedService
    let climate = Mutex(Climate())
    let log = Mutex(CallLog())

    init(service: any SimulatedService) { self.service = service }

    func handle(_ raw: HTTPRequest) async -> HTTPResponse {
        do {
            return try await respond(to: raw)
        } catch {
            return HTTPResponse(webSocket: ConnectionCutter())
        }
    }

    private func respond(to raw: HTTPRequest) async throws -> HTTPResponse {
        let target = Target(raw, hosts: service.hosts)
        let weather = climate.withLock { $0.weather }
        if target.isControl {
            let (request, _) = await request(raw, target, weather: Weather(), cutAfter: nil)
            return response(await control(request), weather: Weather(), cutAfter: nil)
        }

        // The route is wanted before the body, since a fault may cut the body.
        let head = target.request(raw, bytes: [])
        if raw.headers[HTTPHeader("Upgrade")] != nil, let texts = service.webSocket(head) {
            log.withLock { $0.add(head, route: "webSocket", status: 101, bytesOut: 0) }
            let handler = MessageFrameWSHandler(handler: WebSocketTexts(answers: texts))
            return try await WebSocketHTTPHandler(handler: handler).handleRequest(raw)
        }
        let route = service.route(of: head)
        let fault = climate.withLock { $0.fault(at: route) }
        if weather.latency > .zero { try await Task.sleep(for: weather.latency) }
        var cutUpload: Int?
        if case .cutUpload(let count) = fault { cutUpload = count }
        let (request, isWhole) = await self.request(
            raw,
            target,
            weather: weather,
            cutAfter: cutUpload
        )
        guard isWhole else {
            service.arriving(request)
            log.withLock { $0.add(request, route: route, status: 0, bytesOut: 0) }
            throw SimulatorError.cut
        }

        let answer: SimulatorAnswer
        var cutDownload: Int?
        if let limit = climate.withLock({ $0.limit(at: .now) }) {
            answer = service.answer(
                to: request,
                for: .rateLimited(
                    status: limit.status,
                    retryAfterSeconds: limit.retryAfterSeconds
                )
            )
        } else {
            do {
                (answer, cutDownload) = try await self.answer(request, fault)
            } catch {
                log.withLock { $0.add(request, route: route, status: 0, bytesOut: 0) }
                throw error
            }
        }
        let out = response(answer, weather: weather, cutAfter: cutDownload)
        log.withLock { log in
            log.add(
                request,
                route: route,
                status: answer.status,
                bytesOut: min(answer.length, Int64(cutDownload ?? .max))
            )
        }
        return out
    }

    private func answer(
        _ request: SimulatorRequest,
        _ fault: Fault?
    ) async throws -> (SimulatorAnswer, cutAfter: Int?) {
        switch fault {
        case nil: return (await service.answer(request), nil)
        case .status(let status, let after):
            let trouble: SimulatedTrouble =
                status == 429
                ? .rateLimited(status: status, retryAfterSeconds: after)
                : .serverError(status: status, retryAfterSeconds: after)
            return (service.answer(to: request, for: trouble), nil)
        case .doneButStatus(let status):
            _ = await service.answer(request)
            return (
                service.answer(
                    to: request,
                    for: .serverError(status: status, retryAfterSeconds: nil)
                ), nil
            )
        case .doneButNoAnswer:
            _ = await service.answer(request)
            throw SimulatorError.cut
        case .noAnswer, .cutUpload: throw SimulatorError.cut
        case .cutDownload(let count): return (await service.answer(request), count)
        case .truncatedAnswer(let count):
            var answer = await service.answer(request)
            answer.truncate(to: count)
            return (answer, nil)
        case .brokenText:
            var answer = await service.answer(request)
            answer.breakText()
            return (answer, nil)
        case .stall(let seconds):
            try await Task.sleep(for: .seconds(seconds))
            throw SimulatorError.cut
        case .html(let status):
            let page = "<html><head><title>\(status)</title></head><body>Error</body></html>"
            return (
                SimulatorAnswer(
                    status: status,
                    headers: [("Content-Type", "text/html; charset=utf-8")],
                    body: .bytes(Array(page.utf8))
                ), nil
            )
        case .expiredToken: return (service.answer(to: request, for: .expiredToken), nil)
        }
    }

    /// How often the service hears of a body that is on its way, in bytes.
    private static let notedBytes = 10 << 20

    /// The request with as much of its body as came, and whether that is all of it.
    private func request(
        _ raw: HTTPRequest,
        _ target: Target,
        weather: Weather,
        cutAfter: Int?
    ) async -> (SimulatorRequest, isWhole: Bool) {
        var bytes: [UInt8] = []
        let announced = raw.headers[.contentLength].flatMap { Int($0) } ?? 0
        bytes.reserveCapacity(min(max(0, announced), 256 << 20))
        let began = ContinuousClock.now
        var noted = 0
        do {
            for try await part in raw.bodySequence {
                bytes += part
                if let cutAfter, bytes.count >= cutAfter { break }
                if bytes.count - noted >= Self.notedBytes {
                    noted = bytes.count
                    service.arriving(target.request(raw, bytes: bytes))
                }
                if let rate = weather.uploadBytesPerSecond {
                    try await Task.sleep(
                        until: began + .seconds(Double(bytes.count) / Double(max(1, rate)))
                    )
                }
            }
        } catch {
            return (target.request(raw, bytes: bytes), false)
        }
        let isWhole = cutAfter == nil && bytes.count >= announced
        return (target.request(raw, bytes: bytes), isWhole)
    }

    private func response(
        _ answer: SimulatorAnswer,
        weather: Weather,
        cutAfter: Int?
    ) -> HTTPResponse {
        var headers = HTTPHeaders()
        for (name, value) in answer.headers { headers.addValue(value, for: HTTPHeader(name)) }
        let bytes = AnswerBytes(
            answer.body,
            bytesPerSecond: weather.downloadBytesPerSecond,
            cutAfter: cutAfter
        )
        let body: HTTPBodySequence
        if case .chunked = answer.body {
            body = HTTPBodySequence(from: bytes, suggestedBufferSize: AnswerBytes.partSize)
        } else {
            body = HTTPBodySequence(
                from: bytes,
                count: Int(bytes.size),
                suggestedBufferSize: AnswerBytes.partSize
            )
        }
        return HTTPResponse(
            statusCode: HTTPStatusCode(answer.status, phrase: "Status"),
            headers: headers,
            body: body
        )
    }
}

/// A service's texts over a WebSocket.
private struct WebSocketTexts: WSMessageHandler {
    let answers: @Sendable (AsyncStream<String>) -> AsyncStream<String>

    func makeMessages(
        for client: AsyncStream<WSMessage>
    ) async throws -> AsyncStream<WSMessage> {
        let (heard, hearing) = AsyncStream<String>.makeStream()
        let (said, saying) = AsyncStream<WSMessage>.makeStream()
        // Both end with the connection, which ends the client's messages and is not interested in others.
        let hears = Task {
            for await message in client {
                if case .text(let text) = message { hearing.yield(text) }
            }
            hearing.finish()
            saying.finish()
        }
        let says = Task {
            for await text in answers(heard) { saying.yield(.text(text)) }
            saying.finish()
        }
        saying.onTermination = { _ in
            hears.cancel()
            says.cancel()
        }
        return said
    }
}

/// Where a request goes: by its Host field, or by the first part of its path.
private struct Target {
    var host: String
    var path: String
    var origin: String
    var isControl: Bool

    init(_ raw: HTTPRequest, hosts: [String]) {
        let field = raw.headers[.host] ?? ""
        let named = String(field.split(separator: ":").first ?? "").lowercased()
        let full = raw.target.path()
        isControl = full.hasPrefix("/_oort/")
        if hosts.contains(named) || isControl {
            (host, path, origin) = (named, full, "")
        } else {
            let rest = full.dropFirst()
            let end = rest.firstIndex(of: "/") ?? rest.endIndex
            host = String(rest[..<end]).lowercased()
            path = String(rest[end...])
            origin = "http://" + field
        }
    }

    func request(_ raw: HTTPRequest, bytes: [UInt8]) -> SimulatorRequest {
        var headers: [String: String] = [:]
        for (name, value) in raw.headers { headers[name.rawValue.lowercased()] = value }
        let rawQuery = raw.target.query()
        let query = rawQuery.split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.replacing("+", with: " ").removingPercentEncoding ?? String($0) }
            return (name: sides.first ?? "", value: sides.count > 1 ? sides[1] : "")
        }
        return SimulatorRequest(
            method: raw.method.rawValue,
            host: host,
            rawPath: path,
            query: query,
            rawQuery: rawQuery,
            headers: headers,
            origin: origin,
            bytes: bytes
        )
    }
}

extension SimulatorAnswer {
    /// Bytes of the body.
    var length: Int64 {
        switch body {
        case .bytes(let bytes), .chunked(let bytes): Int64(bytes.count)
        case .content(_, let range): Int64(range.count)
        }
    }

    /// Puts bytes that are no UTF-8 into the middle of the body, unless it is a file's content.
    mutating func breakText() {
        func broken(_ bytes: [UInt8]) -> [UInt8] {
            let half = bytes.count / 2
            return bytes[..<half] + [0xFF, 0xC0, 0x80] + bytes[half...]
        }
        switch body {
        case .bytes(let bytes): body = .bytes(broken(bytes))
        case .chunked(let bytes): body = .chunked(broken(bytes))
        case .content: break
        }
    }

    /// Lets the body end early.
    mutating func truncate(to count: Int) {
        switch body {
        case .bytes(let bytes): body = .bytes(Array(bytes.prefix(count)))
        case .chunked(let bytes): body = .chunked(Array(bytes.prefix(count)))
        case .content(let content, let range):
            body = .content(
                content,
                range.lowerBound..<min(range.upperBound, range.lowerBound + Int64(count))
            )
        }
    }
}
