import Foundation
import OortModel
import OortTransport

extension SignIn {
    /// New tokens for old ones; keeps the refresh token when the service gives no new one.
    ///
    /// - Throws: `.refused` with the service's code: ask `service.isSignedOut` what it means.
    public func refresh(_ tokens: Tokens) async throws(SignInError) -> Tokens {
        guard let refreshToken = tokens.refreshToken else {
            throw .unsupported("there is no refresh token; sign in again")
        }
        var fields = FormFields([
            ("grant_type", "refresh_token"), ("refresh_token", refreshToken.revealed()),
        ])
        addClient(to: &fields)
        // Lost answers must be asked for again: without one there is no token at all.
        var new = try await requestTokens(fields, repetition: .harmless)
        new.refreshToken = new.refreshToken ?? refreshToken
        new.grantedScopes = new.grantedScopes ?? tokens.grantedScopes
        return new
    }

    /// Takes the tokens back at the service.
    ///
    /// Tokens that are no longer valid are no error.
    ///
    /// - Throws: `.transport` or `.refused` when they may still be valid.
    public func revoke(_ tokens: Tokens) async throws(SignInError) {
        switch service.revocation {
        case .form(let url):
            var fields = FormFields([
                ("token", (tokens.refreshToken ?? tokens.accessToken).revealed())
            ])
            fields.add("client_id", client.id)
            if service.sendsClientSecret { fields.add("client_secret", client.secret?.revealed()) }
            let answer = try await post(fields, to: url, repetition: .harmless)
            guard answer.head.status >= 300 else { return }
            let refusal = OAuthRefusal(answer, to: fields)
            if refusal.code != "invalid_token" { throw .refused(refusal) }
        case .authorizedPost(let url):
            // Only a live access token can revoke.
            let isOld = tokens.expires.map { $0 <= .now } ?? false
            let live = isOld ? try await refresh(tokens) : tokens
            let request = HTTPRequest(
                method: "POST",
                url: url,
                headers: [("Authorization", "Bearer \(live.accessToken.revealed())")],
                repetition: .harmless,
                isAuthorized: false
            )
            let answer = try await send(request)
            guard answer.head.status < 300 || answer.head.status == 401 else {
                throw .refused(OAuthRefusal(answer, to: FormFields()))
            }
        case nil:
            return
        }
    }

    /// Names the registration, and the scopes where the service wants them again.
    func addClient(to fields: inout FormFields) {
        fields.add("client_id", client.id)
        if service.sendsClientSecret { fields.add("client_secret", client.secret?.revealed()) }
        if service.repeatsScopes, !service.scopes.isEmpty {
            fields.add("scope", service.scopes.joined(separator: " "))
        }
    }

    /// Asks the token URL.
    func requestTokens(
        _ fields: FormFields,
        repetition: HTTPRequest.Repetition
    ) async throws(SignInError) -> Tokens {
        let answer = try await post(fields, to: service.tokenURL, repetition: repetition)
        guard (200..<300).contains(answer.head.status) else {
            throw OAuthRefusal.error(answer, to: fields)
        }
        guard let wire = try? JSONDecoder().decode(TokenAnswer.self, from: Data(answer.body)) else {
            throw .malformedAnswer("the token answer is not JSON with an access_token")
        }
        return Tokens(
            accessToken: Secret(wire.access_token),
            refreshToken: wire.refresh_token.map { Secret($0) },
            expires: wire.expires_in.map {
                Timestamp(seconds: Timestamp.now.seconds + $0.seconds)
            },
            grantedScopes: wire.scope?.split(separator: " ").map(String.init)
        )
    }

    func post(
        _ fields: FormFields,
        to url: String,
        repetition: HTTPRequest.Repetition
    ) async throws(SignInError) -> HTTPResponse {
        try await send(
            HTTPRequest(
                method: "POST",
                url: url,
                headers: [
                    ("Content-Type", "application/x-www-form-urlencoded"),
                    ("Accept", "application/json"),
                ],
                body: .bytes(Array(fields.encoded.utf8)),
                repetition: repetition,
                isAuthorized: false
            )
        )
    }

    private func send(_ request: HTTPRequest) async throws(SignInError) -> HTTPResponse {
        do throws(TransportError) {
            return try await http.send(request, limit: 1 << 20)
        } catch {
            throw .transport(error)
        }
    }
}

/// RFC 6749, section 5.1.
private struct TokenAnswer: Decodable {
    var access_token: String
    var refresh_token: String?
    var expires_in: Seconds?
    var scope: String?
}

/// A number of seconds, which some services write as text.
struct Seconds: Decodable {
    let seconds: Int64

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let number: Double? =
            if let number = try? container.decode(Double.self) {
                number
            } else {
                Double(try container.decode(String.self))
            }
        // A year is longer than any token lives, and short enough to be added to any time.
        // "NaN" is a number, too, and no comparison holds for it.
        let known = number.flatMap { $0.isNaN ? nil : $0 } ?? 0
        seconds = Int64(min(max(known, 0), 31_536_000))
    }
}

extension OAuthRefusal {
    private struct Wire: Decodable {
        var error: String?
        var error_description: String?
    }

    /// Reads an error answer; the status stands in for a code where there is none.
    init(_ answer: HTTPResponse, to fields: FormFields) {
        let wire = try? JSONDecoder().decode(Wire.self, from: Data(answer.body))
        self.init(
            code: wire?.error.map { fields.redacted($0) } ?? "status \(answer.head.status)",
            text: fields.redacted(wire?.error_description ?? ""),
            status: answer.head.status
        )
    }

    /// What an error answer means: faults of the server's are no refusal.
    static func error(_ answer: HTTPResponse, to fields: FormFields) -> SignInError {
        let refusal = OAuthRefusal(answer, to: fields)
        let isFault = answer.head.status >= 500 || refusal.code == "status 429"
        return isFault
            ? .transport(.broken("status \(answer.head.status) \(refusal.text)"))
            : .refused(refusal)
    }
}
