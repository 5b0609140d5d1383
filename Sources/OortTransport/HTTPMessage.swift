public import OortModel

/// A request, complete but for what decorators add (the Authorization header, the user agent).
public struct HTTPRequest: Sendable {
    /// Where a request's body comes from.
    public enum Body: Sendable {
        /// No body, and no Content-Length but for methods that need one.
        case none
        /// A body at hand.
        case bytes([UInt8])
        /// A part of a content, read as the connection takes it.
        case content(any ContentSource, Range<Int64>)
        /// Bytes, a part of a content, and bytes again: a multipart body.
        case framed(prefix: [UInt8], any ContentSource, Range<Int64>, suffix: [UInt8])
    }

    /// What may be done when no good answer came.
    public enum Repetition: Sendable, Hashable {
        /// Sending it twice does what sending it once does: transient failures are retried.
        case harmless
        /// Only what was certainly not done is retried (429, 503 with Retry-After and the like,
        /// a connection that was never made); else the caller must look first.
        case onlyIfNotDone
    }

    /// How the transfer behaves on the wire.
    public enum Weight: Sendable, Hashable {
        /// Small in both directions: shares a multiplexed HTTP/2 connection where there is one.
        case small
        /// Content: a connection of its own over HTTP/1.1.
        case bulk
    }

    /// GET, POST, PUT, PATCH, DELETE.
    public var method: String
    /// The absolute URL, percent-encoded; sent as it is.
    public var url: String
    /// Header fields in order; names are compared without case.
    public var headers: [(name: String, value: String)]
    /// The body.
    public var body: Body
    /// What may be done when no good answer came.
    public var repetition: Repetition
    /// How the transfer behaves on the wire.
    public var weight: Weight
    /// Whether the account's token goes with it (never to pre-signed URLs).
    public var isAuthorized: Bool
    /// The longest time until the answer's head is there; long polls give more.
    ///
    /// Bodies have no total limit: a transfer that stalls is ended by the low-speed limit.
    public var answerTimeout: Duration
    /// Whether the service answers only when it has news: such a request waits without taking one
    /// of the account's places in flight.
    public var isLongPoll = false
    /// Called with the number of body bytes sent so far; must be quick.
    ///
    /// Nil for no observer.
    public var onSent: (@Sendable (Int64) -> Void)?

    /// A request with cautious defaults: no body, not repeatable, small, authorized, 60 seconds.
    public init(
        method: String,
        url: String,
        headers: [(name: String, value: String)] = [],
        body: Body = .none,
        repetition: Repetition = .onlyIfNotDone,
        weight: Weight = .small,
        isAuthorized: Bool = true,
        answerTimeout: Duration = .seconds(60)
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.repetition = repetition
        self.weight = weight
        self.isAuthorized = isAuthorized
        self.answerTimeout = answerTimeout
    }
}

/// The head of an answer.
public struct HTTPResponseHead: Sendable {
    /// The status, 100...599.
    public var status: Int
    /// Header fields in order, as received.
    public var headers: [(name: String, value: String)]
    /// The protocol that carried it: `1.1` or `2`.
    public var httpVersion: String

    /// A head with all of its parts.
    public init(status: Int, headers: [(name: String, value: String)], httpVersion: String) {
        self.status = status
        self.headers = headers
        self.httpVersion = httpVersion
    }

    /// The first value of a header field, its name compared without case.
    public func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }

    /// `Retry-After` in either of its forms (seconds, or an HTTP date counted from now), at most
    /// one hour.
    public var retryAfter: Duration? {
        header("Retry-After").flatMap { RetryAfter.parse($0) }
    }

    /// `Date`: when the answer was made, by the server's clock; nil where it does not say.
    public var date: Timestamp? { header("Date").flatMap { HTTPDate.parse($0) } }

    /// `Expires`: until when the answer may be kept, by the server's clock; nil where it does not say.
    public var expires: Timestamp? { header("Expires").flatMap { HTTPDate.parse($0) } }
}

/// An answer with its whole body.
public struct HTTPResponse: Sendable {
    /// Status and header fields.
    public var head: HTTPResponseHead
    /// The body, decoded from any content encoding.
    public var body: [UInt8]

    /// An answer with all of its parts.
    public init(head: HTTPResponseHead, body: [UInt8]) {
        self.head = head
        self.body = body
    }
}

/// An answer whose body is still arriving.
public struct HTTPStreamedResponse: Sendable {
    /// Status and header fields.
    public var head: HTTPResponseHead
    /// The body; its errors are `.offline` or `.outcomeUnknown`, a body cut short among them.
    public var body: ByteStream

    /// An answer with all of its parts.
    public init(head: HTTPResponseHead, body: ByteStream) {
        self.head = head
        self.body = body
    }
}

/// Why there is no answer at all.
///
/// An answer of any status is no error here.
public enum TransportError: Error, Hashable, Sendable {
    /// The request certainly did not reach the service (name resolution, connect, TLS).
    case unreachable(String)
    /// The connection broke or timed out after the request had begun to go out.
    case broken(String)
    /// The server's certificate was refused; `detail` says why.
    case untrusted(String)
    /// A buffered body was larger than allowed.
    case tooLarge(limit: Int)
    /// The account's token cannot be refreshed: sign in again.
    case signedOut(String)
    /// The service refuses the program's registration, so that no token can be had.
    case clientRefused(String)
    /// The body's content could not be read from the local disk.
    case localContent(String)
    /// The task was cancelled.
    case cancelled
}

extension TransportError: CustomStringConvertible {
    /// What happened, in words for the person; no sentence of its own.
    public var description: String {
        switch self {
        case .unreachable(let detail): detail
        case .broken(let detail): "the connection broke off: \(detail)"
        case .untrusted(let detail):
            "the server's certificate was refused, see ca_file in the settings: \(detail)"
        case .tooLarge(let limit): "an answer of more than \(limit) bytes"
        case .signedOut(let detail): "signed out: \(detail)"
        case .clientRefused(let detail): "the registration is refused: \(detail)"
        case .localContent(let detail): "the content cannot be read here: \(detail)"
        case .cancelled: "cancelled"
        }
    }
}

/// Whatever sends requests: libcurl, or a decorator around another client.
///
/// Isolation: may be called from any task, many at once; never blocks a thread.
public protocol HTTPClient: Sendable {
    /// Sends a request and returns when the answer's head is there.
    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse
}

extension HTTPClient {
    /// Sends a request and collects its answer, at most `limit` bytes of body.
    public func send(
        _ request: HTTPRequest,
        limit: Int = 64 << 20
    ) async throws(TransportError) -> HTTPResponse {
        let response = try await stream(request)
        var body: [UInt8] = []
        while true {
            let part: [UInt8]?
            do throws(ProviderError) {
                part = try await response.body.next()
            } catch {
                throw TransportError(bodyFailure: error)
            }
            guard let part else { break }
            guard body.count + part.count <= limit else { throw .tooLarge(limit: limit) }
            body += part
        }
        return HTTPResponse(head: response.head, body: body)
    }
}
