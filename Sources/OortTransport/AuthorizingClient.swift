/// Gives each authorized request the account's access token, and once a newer one when the
/// service rejects it.
public struct AuthorizingClient: HTTPClient {
    private let next: any HTTPClient
    private let tokens: any AccessTokens
    private let rules: AnswerRules

    /// Authorizes what goes to `next`.
    public init(
        _ next: any HTTPClient,
        tokens: any AccessTokens,
        rules: AnswerRules = .standard
    ) {
        self.next = next
        self.tokens = tokens
        self.rules = rules
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        guard request.isAuthorized else { return try await next.stream(request) }
        let token = try await tokens.token()
        let (answer, meaning) = try await next.stream(request.authorized(by: token), by: rules)
        guard meaning == .tokenRejected else { return answer }
        // A rejected request was certainly not done, so it may always be sent again.
        let newer = try await tokens.refresh(afterRejectionOf: token)
        return try await next.stream(request.authorized(by: newer))
    }
}

extension HTTPRequest {
    fileprivate func authorized(by token: String) -> HTTPRequest {
        var request = self
        request.headers.append(("Authorization", "Bearer \(token)"))
        return request
    }
}
