import Foundation
import OortModel
import Synchronization

extension BoxSimulator {
    /// Seconds that a code may be exchanged.
    private static let codeSeconds: Int64 = 30

    /// The sign-in page: knows nothing of PKCE, and sends to any port of this machine at the path that
    /// is registered.
    func authorize(_ request: SimulatorRequest) -> SimulatorAnswer {
        guard let redirect = request.query("redirect_uri").flatMap({ URLComponents(string: $0) }),
            redirect.scheme == "http", redirect.path == "/callback",
            ["127.0.0.1", "localhost"].contains(redirect.host ?? "")
        else { return .text("error=redirect_uri_mismatch", status: 400) }
        let answer = SimulatedOAuth.authorize(
            request,
            tokens: account.tokens,
            isOffline: true
        )
        let location = answer.headers.first { $0.name == "Location" }?.value
        let code = location.flatMap { URLComponents(string: $0) }?.queryItems?
            .first { $0.name == "code" }?.value
        if let code { state.withLock { $0.codes[code] = .now } }
        return answer
    }

    /// `/oauth2/token` and `/oauth2/revoke`.
    func tokenAnswer(_ request: SimulatorRequest) -> SimulatorAnswer {
        let form = request.form
        guard form["client_id"] != nil, form["client_secret"]?.isEmpty == false else {
            return Self.refused("invalid_client", "The client credentials are invalid")
        }
        if request.parts.last == "revoke" {
            account.tokens.revoke(form["token"] ?? "")
            return SimulatorAnswer(status: 200)
        }
        if let code = form["code"] {
            let made = state.withLock { $0.codes.removeValue(forKey: code) }
            guard let made, Timestamp.now.seconds - made.seconds <= Self.codeSeconds else {
                return Self.refused("invalid_grant", "The authorization code has expired")
            }
        }
        let used = form["refresh_token"]
        // Shortly after, a used refresh token gives the same pair once more.
        if let used, let known = state.withLock({ $0.exchanged[used] }),
            habits.repeatsRefreshedTokens
        {
            return Self.json(known)
        }
        switch SimulatedOAuth.token(request, tokens: account.tokens) {
        case .success(let issued):
            guard let used else { return Self.json(issued) }
            // A refresh token works once, and what belongs to it no longer.
            account.tokens.revoke(used)
            let next = account.tokens.issue()
            state.withLock { state in
                if state.exchanged.count >= 1000 { state.exchanged = [:] }
                state.exchanged[used] = next
            }
            return Self.json(next)
        case .failure(let refused):
            return Self.refused(refused.reason.rawValue, "Refresh token has expired")
        }
    }

    private static func json(_ issued: SimulatedTokens.Issued) -> SimulatorAnswer {
        .json([
            "access_token": .string(issued.access), "refresh_token": JSON(issued.refresh),
            "expires_in": .integer(Int64(issued.expiresIn)), "token_type": "bearer",
            "restricted_to": [],
        ])
    }

    private static func refused(_ error: String, _ text: String) -> SimulatorAnswer {
        .json(
            ["error": .string(error), "error_description": .string(text)],
            status: 400
        )
    }
}
