import Foundation
public import Logging
import OortModel
import Synchronization

/// Logs one line for each request: method, host, path, status, bytes and time; never header fields,
/// queries or, where the URL itself is the permission, paths.
public struct LoggingClient: HTTPClient {
    private let next: any HTTPClient
    private let logger: Logger
    private let time: Timekeeper

    /// Logs what goes to `next`, at the level `debug`.
    public init(_ next: any HTTPClient, logger: Logger, time: Timekeeper = .continuous) {
        self.next = next
        self.logger = logger
        self.time = time
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let exchange = Exchange(request, logger: logger, time: time)
        do throws(TransportError) {
            let response = try await next.stream(request)
            exchange.began(response.head)
            return HTTPStreamedResponse(
                head: response.head,
                body: ByteStream { () async throws(ProviderError) in
                    do throws(ProviderError) {
                        let part = try await response.body.next()
                        exchange.received(part)
                        return part
                    } catch {
                        exchange.ended("\(error)")
                        throw error
                    }
                }
            )
        } catch {
            exchange.ended("\(error)")
            throw error
        }
    }
}

/// What is known of one request; writes its line when it ends, or is let go.
private final class Exchange: Sendable {
    private struct State {
        var head: HTTPResponseHead?
        var bytes: Int64 = 0
        var isOver = false
    }

    private let what: String
    private let logger: Logger
    private let time: Timekeeper
    private let start: Duration
    private let state = Mutex(State())

    init(_ request: HTTPRequest, logger: Logger, time: Timekeeper) {
        let place = URLParts(request.url)
        let path = request.isAuthorized ? place.path : "/…"
        what = "\(request.method) \(place.host)\(path)"
        self.logger = logger
        self.time = time
        start = time.now
    }

    deinit { ended("let go") }

    func began(_ head: HTTPResponseHead) { state.withLock { $0.head = head } }

    func received(_ part: [UInt8]?) {
        guard let part else { return ended(nil) }
        state.withLock { $0.bytes += Int64(part.count) }
    }

    func ended(_ failure: String?) {
        let state = state.withLock { state -> State? in
            guard !state.isOver else { return nil }
            state.isOver = true
            return state
        }
        guard let state else { return }
        let status = state.head.map { "\($0.status) HTTP/\($0.httpVersion)" } ?? "no answer"
        let milliseconds = Int((time.now - start) / .milliseconds(1))
        let words = failure.map { ": \($0)" } ?? ""
        logger.debug("\(what): \(status), \(state.bytes) bytes, \(milliseconds) ms\(words)")
    }
}

/// The parts of a URL that may be logged.
struct URLParts {
    let host: String
    let path: String

    init(_ url: String) {
        var rest = url[...]
        if let scheme = url.range(of: "://") { rest = url[scheme.upperBound...] }
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        host = String(authority.split(separator: "@").last ?? "")
        path = String(rest.dropFirst(authority.count).prefix { $0 != "?" && $0 != "#" })
    }
}
