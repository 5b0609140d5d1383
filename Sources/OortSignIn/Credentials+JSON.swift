import Foundation
import OortModel

extension Tokens {
    private struct TokenFile: Decodable {
        var access_token: String
        var refresh_token: String?
        var expires_at: String?
    }

    /// Reads a token file: `{"access_token":…, "refresh_token":…, "expires_at":RFC 3339}`, all but
    /// the first optional.
    ///
    /// - Throws: `.tokenFile`, which holds nothing of the file's content.
    public init(tokenFile bytes: [UInt8]) throws(SignInError) {
        guard let file = try? JSONDecoder().decode(TokenFile.self, from: Data(bytes)) else {
            throw .tokenFile(
                "it must be JSON like {\"access_token\": \"…\", \"refresh_token\": \"…\", "
                    + "\"expires_at\": \"2026-01-31T12:00:00Z\"}"
            )
        }
        guard !file.access_token.isEmpty else { throw .tokenFile("access_token is empty") }
        var expires: Timestamp?
        if let text = file.expires_at {
            guard let time = Timestamp(rfc3339: text) else {
                throw .tokenFile("expires_at is no RFC 3339 time such as 2026-01-31T12:00:00Z")
            }
            expires = time
        }
        self.init(
            accessToken: Secret(file.access_token),
            refreshToken: file.refresh_token.flatMap { $0.isEmpty ? nil : Secret($0) },
            expires: expires
        )
    }
}

extension Credentials {
    /// As stored: a token file with the registration beside it.
    private struct Stored: Codable {
        var client_id: String?
        var client_secret: String?
        var access_token: String
        var refresh_token: String?
        var expires_at: String?
        var scopes: [String]?
    }

    var json: [UInt8] {
        let stored = Stored(
            client_id: client?.id,
            client_secret: client?.secret?.revealed(),
            access_token: tokens.accessToken.revealed(),
            refresh_token: tokens.refreshToken?.revealed(),
            expires_at: tokens.expires?.rfc3339(.seconds),
            scopes: tokens.grantedScopes
        )
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Texts and nothing else: there is nothing that could fail to encode.
        return (try? encoder.encode(stored)).map { [UInt8]($0) } ?? []
    }

    init(json: [UInt8]) throws(SignInError) {
        guard let stored = try? JSONDecoder().decode(Stored.self, from: Data(json)) else {
            throw .damaged
        }
        self.init(
            client: stored.client_id.map {
                OAuthClient(id: $0, secret: stored.client_secret.map { Secret($0) })
            },
            tokens: Tokens(
                accessToken: Secret(stored.access_token),
                refreshToken: stored.refresh_token.map { Secret($0) },
                expires: stored.expires_at.flatMap { Timestamp(rfc3339: $0) },
                grantedScopes: stored.scopes
            )
        )
    }
}
