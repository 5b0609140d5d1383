import Foundation

/// The OAuth 2 endpoints, as far as services agree on them (RFC 6749, 7636, 8628); their paths,
/// further fields and the form of their errors are each service's own.
public enum SimulatedOAuth {
    /// Why a token request is refused, in the words of RFC 6749 and 8628.
    public enum Refusal: String, Sendable, Hashable {
        /// A field is missing or not understood.
        case invalidRequest = "invalid_request"
        /// The code, refresh token or verifier is not (or no longer) good.
        case invalidGrant = "invalid_grant"
        /// The grant type is unknown.
        case unsupportedGrantType = "unsupported_grant_type"
        /// The client is unknown, or its secret is not the right one.
        case invalidClient = "invalid_client"
        /// The client may not do this.
        case unauthorizedClient = "unauthorized_client"
        /// The person has not typed the short code yet.
        case authorizationPending = "authorization_pending"
        /// The device code is unknown or too old.
        case expiredToken = "expired_token"
    }

    /// The authorization page, where the person agrees at once: sends the browser back with a code.
    ///
    /// Without `redirect_uri` the code is shown as plain text.
    public static func authorize(
        _ request: SimulatorRequest,
        tokens: SimulatedTokens,
        isOffline: Bool
    ) -> SimulatorAnswer {
        guard request.query("response_type") == "code", let client = request.query("client_id")
        else { return .text("response_type=code and client_id are needed", status: 400) }
        let redirect = request.query("redirect_uri")
        let code = tokens.makeCode(
            for: SimulatedTokens.Grant(
                clientID: client,
                redirectURI: redirect,
                challenge: request.query("code_challenge"),
                isOffline: isOffline,
                scope: request.query("scope")
            )
        )
        guard let redirect else { return .text(code, status: 200) }
        var location = redirect + (redirect.contains("?") ? "&" : "?") + "code=" + code
        if let state = request.rawQuery.split(separator: "&").first(where: {
            $0.hasPrefix("state=")
        }) {
            location += "&" + state
        }
        return SimulatorAnswer(status: 302, headers: [("Location", location)])
    }

    /// The token endpoint: code, refresh token or device code into tokens.
    public static func token(
        _ request: SimulatorRequest,
        tokens: SimulatedTokens
    ) -> Result<SimulatedTokens.Issued, OAuthRefused> {
        let form = request.form
        if let refusal = tokens.clientRefusal { return .failure(OAuthRefused(refusal)) }
        switch form["grant_type"] {
        case "authorization_code":
            guard let code = form["code"], let client = form["client_id"] ?? basicUser(request)
            else { return .failure(OAuthRefused(.invalidRequest)) }
            let issued = tokens.exchange(
                code: code,
                clientID: client,
                redirectURI: form["redirect_uri"],
                verifier: form["code_verifier"]
            )
            return issued.map { .success($0) } ?? .failure(OAuthRefused(.invalidGrant))
        case "refresh_token":
            guard let token = form["refresh_token"] else {
                return .failure(OAuthRefused(.invalidRequest))
            }
            return tokens.refresh(token).map { .success($0) }
                ?? .failure(OAuthRefused(.invalidGrant))
        case "urn:ietf:params:oauth:grant-type:device_code", "device_code":
            guard let code = form["device_code"],
                let (isPending, issued) = tokens.exchange(deviceCode: code)
            else { return .failure(OAuthRefused(.expiredToken)) }
            guard let issued, !isPending else {
                return .failure(OAuthRefused(.authorizationPending))
            }
            return .success(issued)
        default: return .failure(OAuthRefused(.unsupportedGrantType))
        }
    }

    /// A device code with where to type its short form.
    public static func deviceCode(
        _ request: SimulatorRequest,
        tokens: SimulatedTokens,
        verificationURI: String
    ) -> JSON? {
        let form = request.form
        guard let client = form["client_id"] else { return nil }
        let (device, user) = tokens.makeDeviceCode(
            for: SimulatedTokens.Grant(
                clientID: client,
                redirectURI: nil,
                challenge: nil,
                isOffline: true,
                scope: form["scope"]
            )
        )
        return [
            "device_code": .string(device), "user_code": .string(user), "expires_in": 900,
            "interval": 1, "verification_uri": .string(verificationURI),
            "verification_url": .string(verificationURI),
            "message": .string("Open \(verificationURI) and type \(user)"),
        ]
    }

    /// Clients with a secret may send their id by HTTP Basic.
    private static func basicUser(_ request: SimulatorRequest) -> String? {
        guard let field = request.header("Authorization"), field.hasPrefix("Basic "),
            let data = Base64.decode(String(field.dropFirst(6)))
        else { return nil }
        return String(decoding: data, as: UTF8.self).split(separator: ":").first
            .map { $0.removingPercentEncoding ?? String($0) }
    }
}

/// A refused token request.
public struct OAuthRefused: Error, Hashable, Sendable {
    /// Why.
    public var reason: SimulatedOAuth.Refusal

    init(_ reason: SimulatedOAuth.Refusal) { self.reason = reason }

    /// The body that RFC 6749 gives it.
    public func json(description: String) -> JSON {
        ["error": .string(reason.rawValue), "error_description": .string(description)]
    }
}
