public import OortModel
import Synchronization

/// What went over the wire for an account: bytes of bodies, calls, and what was answered.
///
/// Isolation: any thread.
public final class TrafficMeter: Sendable {
    /// Bytes of requests' bodies.
    public let sent = RateMeter()
    /// Bytes of answers' bodies.
    public let received = RateMeter()
    /// Bytes of these that were contents of files: how fast files go up.
    public let sentContent = RateMeter()
    /// Bytes of these that were contents of files: how fast files come down.
    public let receivedContent = RateMeter()
    private let counts = Mutex<[String: Int64]>([:])

    /// A meter at 0.
    public init() {}

    /// How many calls had each outcome: the class of the answer's status (`2xx`), or the kind of
    /// error for those without an answer (`unreachable`).
    public var calls: [String: Int64] { counts.withLock { $0 } }

    func count(_ outcome: String) {
        counts.withLock { $0[outcome, default: 0] += 1 }
    }
}

/// Counts what passes to and from `next`: each try of a request, with the bytes of both bodies.
public struct MeteringClient: HTTPClient {
    private let next: any HTTPClient
    private let meter: TrafficMeter

    /// Counts by `meter`.
    public init(_ next: any HTTPClient, meter: TrafficMeter) {
        self.next = next
        self.meter = meter
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        var request = request
        let before = ReportedBytes()
        let isContent = request.carriesContent
        let isBulk = request.weight == .bulk
        request.onSent = { [meter, onSent = request.onSent] bytes in
            onSent?(bytes)
            let more = before.grow(to: bytes)
            meter.sent.add(more)
            if isContent { meter.sentContent.add(more) }
        }
        do throws(TransportError) {
            let answer = try await next.stream(request)
            meter.count("\(answer.head.status / 100)xx")
            return HTTPStreamedResponse(
                head: answer.head,
                body: ByteStream { [meter] () async throws(ProviderError) in
                    let part = try await answer.body.next()
                    guard let part else { return nil }
                    meter.received.add(Int64(part.count))
                    if isBulk { meter.receivedContent.add(Int64(part.count)) }
                    return part
                }
            )
        } catch {
            meter.count(error.outcome)
            throw error
        }
    }
}

/// The bytes that a request's progress has reported so far.
private final class ReportedBytes: Sendable {
    private let most = Mutex<Int64>(0)

    /// By how much `bytes` is more than what was reported before; what goes back counts nothing.
    func grow(to bytes: Int64) -> Int64 {
        most.withLock { most in
            defer { most = max(most, bytes) }
            return max(bytes - most, 0)
        }
    }
}

extension HTTPRequest {
    /// Whether its body holds bytes of files.
    fileprivate var carriesContent: Bool {
        switch body {
        case .none: false
        case .bytes: weight == .bulk
        case .content, .framed: true
        }
    }
}

extension TransportError {
    /// The kind of the error, as a label of a count.
    fileprivate var outcome: String {
        switch self {
        case .unreachable: "unreachable"
        case .broken: "broken"
        case .untrusted: "untrusted"
        case .tooLarge: "too_large"
        case .signedOut: "signed_out"
        case .clientRefused: "client_refused"
        case .localContent: "local_content"
        case .cancelled: "cancelled"
        }
    }
}
