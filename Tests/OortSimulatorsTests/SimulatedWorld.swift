import Foundation
import OortSimulators
import OortTransport

/// A service's endpoints that all services have in some form.
struct Endpoints: Sendable, CustomStringConvertible {
    var description: String
    /// Method, host and path of the request that asks who one is.
    var whoAmI: (method: String, host: String, path: String)
    var authorize: (host: String, path: String)
    var token: (host: String, path: String)
    /// The route of `whoAmI`, as calls are counted.
    var route: String

    static let all = [
        Endpoints(
            description: "dropbox",
            whoAmI: ("POST", "api.dropboxapi.com", "/2/users/get_current_account"),
            authorize: ("www.dropbox.com", "/oauth2/authorize"),
            token: ("api.dropboxapi.com", "/oauth2/token"),
            route: "users/get_current_account"
        ),
        Endpoints(
            description: "drive",
            whoAmI: ("GET", "www.googleapis.com", "/drive/v3/about?fields=user"),
            authorize: ("accounts.google.com", "/o/oauth2/v2/auth"),
            token: ("oauth2.googleapis.com", "/token"),
            route: "about.get"
        ),
        Endpoints(
            description: "onedrive",
            whoAmI: ("GET", "graph.microsoft.com", "/v1.0/me"),
            authorize: ("login.microsoftonline.com", "/common/oauth2/v2.0/authorize"),
            token: ("login.microsoftonline.com", "/common/oauth2/v2.0/token"),
            route: "me"
        ),
    ]
}

/// A running simulator and a plain client.
struct SimulatedWorld {
    let endpoints: Endpoints
    let simulator: Simulator
    let client: CurlClient
    let tokens: SimulatedTokens.Issued

    static func with(
        _ endpoints: Endpoints,
        isSample: Bool = false,
        _ body: (SimulatedWorld) async throws -> Void
    ) async throws {
        let running = try await Simulators.start([endpoints.description], isSample: isSample)
        let client = try CurlClient()
        let outcome: Result<Void, any Error>
        do {
            guard let service = running.first else { throw SimulatorError.notStarted }
            try await body(
                SimulatedWorld(
                    endpoints: endpoints,
                    simulator: service.simulator,
                    client: client,
                    tokens: service.tokens
                )
            )
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await client.shutdown()
        for service in running { await service.simulator.stop() }
        try outcome.get()
    }

    /// Sends a request to one of the service's hosts; a JSON body has its type.
    func send(
        _ method: String,
        _ host: String,
        _ path: String,
        json: JSON? = nil,
        form: String? = nil,
        headers: [(name: String, value: String)] = [],
        token: String? = nil
    ) async throws -> HTTPResponse {
        var request = HTTPRequest(
            method: method,
            url: simulator.url(host: host) + path,
            headers: headers
        )
        if let token { request.headers.append(("Authorization", "Bearer \(token)")) }
        if let json {
            request.headers.append(("Content-Type", "application/json"))
            request.body = .bytes(json.bytes)
        }
        if let form {
            request.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
            request.body = .bytes(Array(form.utf8))
        }
        return try await client.send(request)
    }

    /// Asks who one is.
    func whoAmI(token: String? = nil) async throws -> HTTPResponse {
        try await send(
            endpoints.whoAmI.method,
            endpoints.whoAmI.host,
            endpoints.whoAmI.path,
            token: token ?? tokens.access
        )
    }

    /// A call of the simulator's control.
    func control(_ method: String, _ path: String, _ json: JSON? = nil) async throws -> HTTPResponse
    {
        var request = HTTPRequest(
            method: method,
            url: "http://127.0.0.1:\(simulator.port)/_oort/\(path)"
        )
        if let json { request.body = .bytes(json.bytes) }
        return try await client.send(request)
    }
}
