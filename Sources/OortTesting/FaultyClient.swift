import OortModel
public import OortSimulators
public import OortTransport
import Synchronization

/// A network before a real server: counts what passes, and does to requests what simulators do.
public final class FaultyClient: HTTPClient {
    private struct State {
        var traffic = Traffic(calls: 0, bytesIn: 0, bytesOut: 0)
        var faults: [(fault: Fault, left: Int?)] = []
    }

    private let next: any HTTPClient
    private let state = Mutex(State())

    /// A network without faults around a client.
    public init(_ next: any HTTPClient) { self.next = next }

    /// What has passed so far.
    public var traffic: Traffic { state.withLock(\.traffic) }

    /// Places a fault at the next requests, without end where `times` is nil.
    public func add(_ fault: Fault, times: Int?) {
        state.withLock { $0.faults.append((fault, times)) }
    }

    /// Takes all faults away.
    public func clearFaults() { state.withLock { $0.faults = [] } }

    public func stream(
        _ request: OortTransport.HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let fault = state.withLock { state -> Fault? in
            state.traffic.calls += 1
            guard let first = state.faults.first else { return nil }
            let left = first.left.map { $0 - 1 }
            if left == 0 { state.faults.removeFirst() } else { state.faults[0].left = left }
            return first.fault
        }
        let request = counted(request)
        switch fault {
        case nil: return counted(try await next.stream(request))
        case .status(let status, let seconds):
            return Self.answer(
                status,
                headers: seconds.map { [("Retry-After", "\($0)")] } ?? []
            )
        case .doneButStatus(let status):
            _ = try await next.send(request)
            return Self.answer(status)
        case .doneButNoAnswer:
            _ = try await next.send(request)
            throw .broken("the answer is lost")
        case .cutDownload(let count):
            let answer = try await next.stream(request)
            return HTTPStreamedResponse(
                head: answer.head,
                body: Self.cut(answer.body, after: count)
            )
        case .truncatedAnswer(let count):
            let answer = try await next.send(request)
            return HTTPStreamedResponse(
                head: answer.head,
                body: Self.bytes(Array(answer.body.prefix(count)))
            )
        case .html(let status):
            return Self.answer(
                status,
                headers: [("Content-Type", "text/html; charset=utf-8")],
                body: "<html><head><title>\(status)</title></head><body>Error</body></html>"
            )
        case .noAnswer, .cutUpload, .stall, .brokenText, .expiredToken:
            throw .broken("no answer")
        }
    }

    /// A request whose body is counted as it goes out.
    private func counted(_ request: OortTransport.HTTPRequest) -> OortTransport.HTTPRequest {
        var request = request
        let next = request.onSent
        let last = Mutex<Int64>(0)
        request.onSent = { [self] sent in
            let more = last.withLock { last in
                defer { last = sent }
                return max(0, sent - last)
            }
            state.withLock { $0.traffic.bytesIn += more }
            next?(sent)
        }
        return request
    }

    private func counted(_ answer: HTTPStreamedResponse) -> HTTPStreamedResponse {
        HTTPStreamedResponse(
            head: answer.head,
            body: ByteStream { [self] () async throws(ProviderError) -> [UInt8]? in
                let part = try await answer.body.next()
                state.withLock { $0.traffic.bytesOut += Int64(part?.count ?? 0) }
                return part
            }
        )
    }

    private static func answer(
        _ status: Int,
        headers: [(name: String, value: String)] = [],
        body: String = ""
    ) -> HTTPStreamedResponse {
        HTTPStreamedResponse(
            head: HTTPResponseHead(status: status, headers: headers, httpVersion: "HTTP/1.1"),
            body: bytes(Array(body.utf8))
        )
    }

    private static func bytes(_ bytes: [UInt8]) -> ByteStream {
        let rest = Mutex<[UInt8]?>(bytes.isEmpty ? nil : bytes)
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in
            rest.withLock { $0.take() }
        }
    }

    private static func cut(_ stream: ByteStream, after count: Int) -> ByteStream {
        let left = Mutex(count)
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in
            guard let part = try await stream.next() else { return nil }
            let given = left.withLock { left in
                let given = min(left, part.count)
                left -= given
                return given
            }
            guard given > 0 else {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "cut on purpose")
            }
            return Array(part.prefix(given))
        }
    }
}
