import Foundation
import OortSimulators
import OortTransport
import Testing

@Suite("simulated sign-in", .timeLimit(.minutes(15)))
struct SignInTests {
    private static let verifier = String(repeating: "v", count: 50)
    private static let redirect = "http://localhost:53682/"

    /// The parameters of the redirect that the authorization page answers with.
    private func authorize(_ world: SimulatedWorld) async throws -> [String: String] {
        let challenge = SimulatedTokens.challenge(of: Self.verifier)
        let page = try await world.send(
            "GET",
            world.endpoints.authorize.host,
            world.endpoints.authorize.path
                + "?response_type=code&client_id=app&state=s%2B1&redirect_uri=\(Self.redirect)"
                + "&code_challenge=\(challenge)&code_challenge_method=S256"
                + "&token_access_type=offline&access_type=offline&scope=offline_access"
        )
        #expect(page.head.status == 302)
        let items = URLComponents(string: page.head.header("Location") ?? "")?.queryItems ?? []
        return Dictionary(items.map { ($0.name, $0.value ?? "") }) { $1 }
    }

    private func token(
        _ world: SimulatedWorld,
        _ form: String
    ) async throws -> (status: Int, json: JSON?) {
        let answer = try await world.send(
            "POST",
            world.endpoints.token.host,
            world.endpoints.token.path,
            form: form + "&client_id=app&client_secret=secret"
        )
        return (answer.head.status, JSON(parsing: answer.body))
    }

    private func exchange(
        _ world: SimulatedWorld,
        code: String,
        verifier: String = verifier
    ) async throws -> (status: Int, json: JSON?) {
        try await token(
            world,
            "grant_type=authorization_code&code=\(code)&redirect_uri=\(Self.redirect)"
                + "&code_verifier=\(verifier)"
        )
    }

    @Test("a code is good once, with its verifier; the state comes back", arguments: Endpoints.all)
    func codes(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            let first = try await authorize(world)
            #expect(first["state"] == "s+1")
            let wrong = try await exchange(
                world,
                code: first["code"] ?? "",
                verifier: String(repeating: "w", count: 50)
            )
            #expect(wrong.status == 400)
            #expect(wrong.json?["error"]?.text == "invalid_grant")

            let code = try await authorize(world)["code"] ?? ""
            let good = try await exchange(world, code: code)
            #expect(good.status == 200)
            let access = try #require(good.json?["access_token"]?.text)
            #expect(good.json?["refresh_token"]?.text != nil)
            #expect(try await world.whoAmI(token: access).head.status == 200)
            #expect(try await exchange(world, code: code).status == 400)
        }
    }

    @Test("expired tokens are refreshed, revoked ones are not", arguments: Endpoints.all)
    func refreshing(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            let refresh = try #require(world.tokens.refresh)
            world.simulator.account.tokens.expireAccessTokens()
            #expect(try await world.whoAmI().head.status == 401)
            let renewed = try await token(
                world,
                "grant_type=refresh_token&refresh_token=\(refresh)"
            )
            let access = try #require(renewed.json?["access_token"]?.text)
            #expect(try await world.whoAmI(token: access).head.status == 200)

            world.simulator.account.tokens.revokeAll()
            #expect(try await world.whoAmI(token: access).head.status == 401)
            let refused = try await token(
                world,
                "grant_type=refresh_token&refresh_token=\(refresh)"
            )
            #expect(refused.status == 400)
            #expect(refused.json?["error"]?.text == "invalid_grant")
        }
    }

    @Test("without a token nobody comes in", arguments: Endpoints.all)
    func strangers(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            #expect(try await world.whoAmI(token: "guessed").head.status >= 400)
        }
    }
}
