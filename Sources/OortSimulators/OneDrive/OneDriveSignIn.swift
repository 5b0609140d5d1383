import Foundation

extension OneDriveSimulator {
    /// Microsoft's OAuth endpoints.
    ///
    /// Each refresh gives a new refresh token, too; the old one stays good for a while.
    func signIn(_ request: SimulatorRequest) -> SimulatorAnswer {
        switch request.parts.last {
        case "authorize":
            let scopes = request.query("scope") ?? ""
            return SimulatedOAuth.authorize(
                request,
                tokens: account.tokens,
                isOffline: scopes.contains("offline_access")
            )
        case "devicecode":
            guard
                let answer = SimulatedOAuth.deviceCode(
                    request,
                    tokens: account.tokens,
                    verificationURI: "https://www.microsoft.com/link"
                )
            else { return Self.refused("invalid_request", 900_144) }
            return .json(answer)
        case "token": return token(request)
        default: return .text("Not found", status: 404)
        }
    }

    private func token(_ request: SimulatorRequest) -> SimulatorAnswer {
        let isRefresh = request.form["grant_type"] == "refresh_token"
        switch SimulatedOAuth.token(request, tokens: account.tokens) {
        case .success(let issued):
            let issued = isRefresh ? account.tokens.issue() : issued
            var answer: [String: JSON] = [
                "token_type": "Bearer", "access_token": .string(issued.access),
                "expires_in": .integer(Int64(issued.expiresIn)),
                "ext_expires_in": .integer(Int64(issued.expiresIn)),
                "scope": .string(request.form["scope"] ?? "Files.ReadWrite.All offline_access"),
            ]
            if let refresh = issued.refresh { answer["refresh_token"] = .string(refresh) }
            return .json(.object(answer))
        case .failure(let refused):
            return Self.refused(
                refused.reason.rawValue,
                refused.reason == .invalidGrant ? 70_008 : 900_144
            )
        }
    }

    private static func refused(_ error: String, _ code: Int64) -> SimulatorAnswer {
        .json(
            [
                "error": .string(error),
                "error_description": .string("AADSTS\(code): \(error)"),
                "error_codes": [.integer(code)],
            ],
            status: 400
        )
    }
}
