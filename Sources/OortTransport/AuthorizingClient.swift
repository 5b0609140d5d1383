import Foundation

/// Proves in a request that it comes from the account.
///
/// Each try of a request is signed anew, so that a signature may hold the time.
public protocol RequestSigner: Sendable {
    /// The request with its proof, made with the account's secret: an access token, a password, a key.
    ///
    /// - Throws: `.signedOut` when the secret is not of a form that a proof can be made of.
    func sign(_ request: HTTPRequest, with secret: String) throws(TransportError) -> HTTPRequest
}

/// The proof of OAuth: the access token as it is (RFC 6750).
public struct BearerSigner: RequestSigner {
    /// A signer for any service of OAuth.
    public init() {}

    public func sign(
        _ request: HTTPRequest,
        with secret: String
    ) throws(TransportError) -> HTTPRequest {
        request.authorized("Bearer \(secret)")
    }
}

/// The proof of HTTP's basic authentication: a user's name and a password (RFC 7617), in UTF-8.
public struct BasicSigner: RequestSigner {
    private let user: String

    /// A signer for `user`, whose name holds no colon.
    public init(user: String) { self.user = user }

    public func sign(
        _ request: HTTPRequest,
        with secret: String
    ) throws(TransportError) -> HTTPRequest {
        request.authorized("Basic \(Data("\(user):\(secret)".utf8).base64EncodedString())")
    }
}

/// Signs each authorized request with the account's secret, and once with a newer one when the
/// service rejects it.
public struct AuthorizingClient: HTTPClient {
    private let next: any HTTPClient
    private let tokens: any AccessTokens
    private let signer: any RequestSigner
    private let rules: AnswerRules

    /// Authorizes what goes to `next`.
    public init(
        _ next: any HTTPClient,
        tokens: any AccessTokens,
        signer: any RequestSigner = BearerSigner(),
        rules: AnswerRules = .standard
    ) {
        self.next = next
        self.tokens = tokens
        self.signer = signer
        self.rules = rules
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        guard request.isAuthorized else { return try await next.stream(request) }
        let token = try await tokens.token()
        let (answer, meaning) = try await next.stream(
            signer.sign(request, with: token),
            by: rules
        )
        guard meaning == .tokenRejected else { return answer }
        // A rejected request was certainly not done, so it may always be sent again.
        let newer = try await tokens.refresh(afterRejectionOf: token)
        return try await next.stream(signer.sign(request, with: newer))
    }
}

extension HTTPRequest {
    fileprivate func authorized(_ proof: String) -> HTTPRequest {
        var request = self
        request.headers.append(("Authorization", proof))
        return request
    }
}
