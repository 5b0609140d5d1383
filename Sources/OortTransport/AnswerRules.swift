import OortModel

/// What a service's error answers mean to the decorators; a service adds its own on top.
public struct AnswerRules: Sendable {
    /// What follows from an answer.
    public enum Meaning: Hashable, Sendable {
        /// The provider reads it, whatever it is.
        case final
        /// The service asks for patience; the request was certainly not done.
        case notDone(retryAfter: Duration?)
        /// A fault of the service's; whether the request was done is unknown.
        case unknown(retryAfter: Duration?)
        /// The access token is not taken (any more).
        case tokenRejected
    }

    /// What an answer with a status of 400 or more means.
    ///
    /// Its body is whole, up to 1 MiB.
    public var meaning: @Sendable (HTTPResponse) -> Meaning

    /// Rules of a service; `meaning` falls back to `AnswerRules.standard.meaning`.
    public init(meaning: @escaping @Sendable (HTTPResponse) -> Meaning) {
        self.meaning = meaning
    }

    /// RFC 9110 and RFC 6585: 401, 429, 503 with Retry-After, and the passing faults of 5xx.
    public static let standard = AnswerRules { answer in
        let retryAfter = answer.head.retryAfter
        switch answer.head.status {
        case 401: return .tokenRejected
        case 429: return .notDone(retryAfter: retryAfter)
        case 503 where retryAfter != nil: return .notDone(retryAfter: retryAfter)
        case 408, 500, 502, 503, 504, 509: return .unknown(retryAfter: retryAfter)
        default: return .final
        }
    }
}

extension HTTPClient {
    /// Sends a request and says what its answer means.
    ///
    /// An error answer's body is read to know it, and handed on.
    func stream(
        _ request: HTTPRequest,
        by rules: AnswerRules
    ) async throws(TransportError) -> (HTTPStreamedResponse, AnswerRules.Meaning) {
        let response = try await stream(request)
        guard response.head.status >= 400 else { return (response, .final) }
        var body: [UInt8] = []
        do throws(ProviderError) {
            while body.count < 1 << 20, let part = try await response.body.next() { body += part }
        } catch {
            // The status says enough; a body cut short adds no other error.
            guard error.kind != .cancelled else { throw .cancelled }
        }
        let whole = HTTPResponse(head: response.head, body: body)
        return (HTTPStreamedResponse(whole), rules.meaning(whole))
    }
}

extension HTTPStreamedResponse {
    /// An answer whose body is there already.
    public init(_ response: HTTPResponse) {
        let parts = OnePart(response.body)
        self.init(
            head: response.head,
            body: ByteStream { () async throws(ProviderError) in parts.take() }
        )
    }
}
