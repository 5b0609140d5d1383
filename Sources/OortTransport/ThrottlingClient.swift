public import OortModel

/// The limits of all transfers of a mount.
public struct Bandwidth: Sendable {
    /// Bytes that go up.
    public let up: TokenBucket
    /// Bytes that come down.
    public let down: TokenBucket

    /// Without limits.
    public init(time: Timekeeper = .continuous) {
        up = TokenBucket(time: time)
        down = TokenBucket(time: time)
    }

    /// A content that is read, and so sent, no faster than the limit.
    public func upward(_ content: any ContentSource) -> any ContentSource {
        ThrottledSource(source: content, bucket: up)
    }

    /// Bytes that are handed on no faster than the limit: what is not read on yet stays with the sender,
    /// since a connection holds little.
    public func downward(_ bytes: ByteStream) -> ByteStream {
        ByteStream(bytes) { [down] count async throws(ProviderError) in
            do throws(TransportError) { try await down.take(Int64(count)) } catch {
                throw ProviderError(.cancelled, detail: "the transfer was cancelled")
            }
        }
    }
}

/// Keeps bodies below the limits: contents wait, piece by piece, as they are read from the disk or handed
/// on; small calls only count, so that no answer without content is delayed.
public struct ThrottlingClient: HTTPClient {
    private let next: any HTTPClient
    private let bandwidth: Bandwidth

    /// Limits what goes to and comes from `next`.
    public init(_ next: any HTTPClient, bandwidth: Bandwidth) {
        self.next = next
        self.bandwidth = bandwidth
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        var request = request
        let isBulk = request.weight == .bulk
        switch request.body {
        case .none: break
        case .bytes(let bytes):
            if isBulk {
                try await bandwidth.up.take(Int64(bytes.count))
            } else {
                bandwidth.up.charge(Int64(bytes.count))
            }
        case .content(let source, let range):
            request.body = .content(bandwidth.upward(source), range)
        case .framed(let prefix, let source, let range, let suffix):
            request.body = .framed(prefix: prefix, bandwidth.upward(source), range, suffix: suffix)
        }
        let answer = try await next.stream(request)
        guard !isBulk else {
            return HTTPStreamedResponse(
                head: answer.head,
                body: bandwidth.downward(answer.body)
            )
        }
        return HTTPStreamedResponse(
            head: answer.head,
            body: ByteStream { [down = bandwidth.down] () async throws(ProviderError) in
                guard let part = try await answer.body.next() else { return nil }
                down.charge(Int64(part.count))
                return part
            }
        )
    }
}

/// A content that is read no faster than a limit allows.
private struct ThrottledSource: ContentSource {
    let source: any ContentSource
    let bucket: TokenBucket

    var size: Int64 { source.size }

    func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        do throws(TransportError) { try await bucket.take(Int64(count)) } catch {
            throw ProviderError(.cancelled, detail: "the transfer was cancelled")
        }
        return try await source.read(at: offset, count: count)
    }
}
