import Crypto
import FlyingFox
import FlyingSocks
import Foundation
import OortSignIn
import OortTransport
import Synchronization

/// An authorization server on loopback that does what RFC 6749, 7636 and 8628 say.
final class FakeAuthorizationServer: Sendable {
    struct State {
        var codes: [String: (challenge: String, redirect: String?)] = [:]
        var refreshTokens: Set<String> = ["refresh-0"]
        var refreshes = 0
        var tokenRequests = 0
        var revoked: [String] = []
        /// Answers of the device's token polls, in order; then tokens.
        var deviceAnswers: [String] = []
        var rotates = true
        /// Status answered by the token URL instead of anything else.
        var fault: HTTPStatusCode?
    }

    let base: String
    let state = Mutex(State())
    private let server: HTTPServer
    private let running: Task<Void, Never>

    init() async throws {
        server = HTTPServer(
            address: try .inet(ip4: "127.0.0.1", port: 0),
            logger: .disabled
        )
        let server = server
        running = Task { _ = try? await server.run() }
        try await server.waitUntilListening(timeout: 120)
        guard case .ip4(_, let port)? = await server.listeningAddress else {
            throw SignInError.timedOut
        }
        base = "http://127.0.0.1:\(port)"
        await server.appendRoute("*") { [weak self] request in
            try await self?.answer(request) ?? FlyingFox.HTTPResponse(statusCode: .gone)
        }
    }

    func stop() async {
        await server.stop(timeout: 0)
        running.cancel()
        await running.value
    }

    var service: OAuthService {
        var service = OAuthService(
            name: "fake",
            authorizeURL: base + "/authorize?fixed=1",
            tokenURL: base + "/token",
            scopes: ["files.read", "files write"]
        )
        service.deviceURL = base + "/device"
        service.revocation = .form(url: base + "/revoke")
        service.sendsClientSecret = true
        service.showsCode = true
        service.extraParameters = [("access_type", "offline")]
        return service
    }

    let client = OAuthClient(id: "client", secret: Secret("client hush+&="))

    /// What a person does in the browser: follows the URL, agrees, and is sent back.
    ///
    /// - Returns: The status and text of the page that is seen last.
    func browse(
        _ url: String,
        denies: Bool = false,
        changesState: Bool = false
    ) async throws -> (status: Int, text: String) {
        let query = Dictionary(
            (URLComponents(string: url)?.queryItems ?? []).map { ($0.name, $0.value ?? "") },
            uniquingKeysWith: { first, _ in first }
        )
        guard query["fixed"] == "1", query["access_type"] == "offline",
            query["response_type"] == "code", query["client_id"] == client.id,
            query["code_challenge_method"] == "S256", query["scope"] == "files.read files write",
            let challenge = query["code_challenge"], let redirect = query["redirect_uri"],
            let state = query["state"], state.count >= 32
        else { return (400, "bad authorize request: \(query)") }
        let code = "code/+ \(UUID().uuidString)"
        self.state.withLock { $0.codes[code] = (challenge, redirect) }
        var back = URLComponents(string: redirect) ?? URLComponents()
        back.queryItems = [
            URLQueryItem(name: "state", value: changesState ? "other" : state),
            denies
                ? URLQueryItem(name: "error", value: "access_denied")
                : URLQueryItem(name: "code", value: code),
            URLQueryItem(name: "iss", value: "x"),
        ]
        let encoded = back.percentEncodedQuery?.replacing("+", with: "%2B") ?? ""
        back.percentEncodedQuery = encoded
        let client = try CurlClient()
        let page = try await client.send(
            OortTransport.HTTPRequest(method: "GET", url: back.string ?? "", isAuthorized: false)
        )
        await client.shutdown()
        return (page.head.status, String(decoding: page.body, as: UTF8.self))
    }

    /// A code as the service would show it for copying.
    func shownCode(for url: String) -> String? {
        let items = URLComponents(string: url)?.queryItems ?? []
        guard let challenge = items.first(where: { $0.name == "code_challenge" })?.value,
            !items.contains(where: { $0.name == "redirect_uri" })
        else { return nil }
        let code = "copied\(UUID().uuidString)"
        state.withLock { $0.codes[code] = (challenge, nil) }
        return code
    }

    /// The address that a browser which agrees is sent to, where it cannot go there.
    func addressSentTo(for url: String) -> String {
        let items = URLComponents(string: url)?.queryItems ?? []
        func field(_ name: String) -> String { items.first { $0.name == name }?.value ?? "" }
        let code = "sent\(UUID().uuidString)"
        let redirect = field("redirect_uri")
        self.state.withLock { $0.codes[code] = (field("code_challenge"), redirect) }
        return "\(redirect)?code=\(code)&state=\(field("state"))"
    }

    /// Whether the token URL answers with a server's fault.
    func fail(_ fails: Bool) { state.withLock { $0.fault = fails ? .badGateway : nil } }

    /// From now on a proxy refuses in the token URL's place.
    func standBehindProxy() { state.withLock { $0.fault = .forbidden } }

    // MARK: The server's side

    private func answer(
        _ request: FlyingFox.HTTPRequest
    ) async throws -> FlyingFox.HTTPResponse {
        let body = String(decoding: try await request.bodyData, as: UTF8.self)
        var components = URLComponents()
        components.percentEncodedQuery = body
        let form = Dictionary(
            (components.queryItems ?? []).map { ($0.name, $0.value ?? "") },
            uniquingKeysWith: { first, _ in first }
        )
        switch request.path {
        case "/token": return token(form)
        case "/device":
            return json(
                .ok,
                #"{"device_code":"device hush","user_code":"ABCD","verification_url":"http://go","#
                    + #""expires_in":"600","interval":5}"#
            )
        case "/revoke":
            state.withLock { $0.revoked.append(form["token"] ?? "") }
            return json(.ok, "{}")
        default: return FlyingFox.HTTPResponse(statusCode: .notFound)
        }
    }

    private func token(_ form: [String: String]) -> FlyingFox.HTTPResponse {
        state.withLock { state in
            state.tokenRequests += 1
            if let fault = state.fault { return json(fault, "gateway") }
            guard form["client_id"] == client.id,
                form["client_secret"] == client.secret?.revealed()
            else { return refusal("invalid_client") }
            switch form["grant_type"] {
            case "authorization_code":
                guard let code = form["code"], let kept = state.codes.removeValue(forKey: code),
                    kept.redirect == form["redirect_uri"],
                    let verifier = form["code_verifier"], (43...128).contains(verifier.count),
                    Self.challenge(verifier) == kept.challenge
                else { return refusal("invalid_grant", repeating: form["code"]) }
                return tokens(&state)
            case "refresh_token":
                let old = form["refresh_token"] ?? ""
                guard state.refreshTokens.contains(old) else {
                    return refusal("invalid_grant", repeating: old)
                }
                if state.rotates { state.refreshTokens.remove(old) }
                return tokens(&state)
            case "urn:ietf:params:oauth:grant-type:device_code":
                guard form["device_code"] == "device hush" else { return refusal("invalid_grant") }
                guard state.deviceAnswers.isEmpty else {
                    return refusal(state.deviceAnswers.removeFirst())
                }
                return tokens(&state)
            default: return refusal("unsupported_grant_type")
            }
        }
    }

    private func tokens(_ state: inout State) -> FlyingFox.HTTPResponse {
        state.refreshes += 1
        let number = state.refreshes
        var more = ""
        if state.rotates {
            state.refreshTokens.insert("refresh-\(number)")
            more = #","refresh_token":"refresh-\#(number)""#
        }
        return json(
            .ok,
            #"{"access_token":"access-\#(number)","expires_in":3600,"token_type":"bearer","#
                + #""scope":"files.read"\#(more)}"#
        )
    }

    private func refusal(_ code: String, repeating text: String? = nil) -> FlyingFox.HTTPResponse {
        json(.badRequest, #"{"error":"\#(code)","error_description":"bad \#(text ?? "")"}"#)
    }

    private func json(_ status: HTTPStatusCode, _ text: String) -> FlyingFox.HTTPResponse {
        FlyingFox.HTTPResponse(
            statusCode: status,
            headers: [.contentType: "text/javascript"],
            body: Data(text.utf8)
        )
    }

    private static func challenge(_ verifier: String) -> String {
        Data(SHA256.hash(data: Data(verifier.utf8))).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}

/// Runs `body` with a fake server and a client, and stops both.
func withFakeServer(
    _ body: (_ server: FakeAuthorizationServer, _ http: CurlClient) async throws -> Void
) async throws {
    let server = try await FakeAuthorizationServer()
    let http = try CurlClient()
    let result: Result<Void, any Error>
    do {
        try await body(server, http)
        result = .success(())
    } catch {
        result = .failure(error)
    }
    await http.shutdown()
    await server.stop()
    try result.get()
}
