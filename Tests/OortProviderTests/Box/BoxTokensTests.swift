import OortBox
import OortModel
import OortSignIn
import OortSimulators
import OortTransport
import Synchronization
import Testing

/// Refresh tokens that work once: the new one is stored before anything is done with what came with it.
@Suite("Box: tokens", .timeLimit(.minutes(5)))
struct BoxTokensTests {
    /// A store that keeps in memory, or not.
    private final class Store: TokenStore {
        let state: Mutex<(kept: Credentials, isBroken: Bool, keeps: Int)>

        init(_ credentials: Credentials) { state = Mutex((credentials, false, 0)) }

        var place: String { "memory" }

        func lock(
            _ account: String,
            patience: Duration
        ) async throws(SignInError) -> CredentialsLock { CredentialsLock() }

        func credentials(of account: String) async throws(SignInError) -> Credentials? {
            state.withLock { $0.kept }
        }

        func keep(_ credentials: Credentials, of account: String) async throws(SignInError) {
            let isBroken = state.withLock { state in
                guard !state.isBroken else { return true }
                state.kept = credentials
                state.keeps += 1
                return false
            }
            if isBroken { throw .store("the disk is full") }
        }

        func forget(_ account: String) async throws(SignInError) {}
    }

    private func withTokens(
        _ body: (BoxSimulator, Simulator, any HTTPClient, Store) async throws -> Void
    ) async throws {
        let box = BoxSimulator()
        // The hard case: who comes with a used one is refused at once.
        box.habits.repeatsRefreshedTokens = false
        let simulator = try await Simulator.start(box)
        let wire = try CurlClient()
        let issued = box.account.tokens.issue()
        let store = Store(
            Credentials(
                client: OAuthClient(id: "id", secret: Secret("secret")),
                tokens: Tokens(
                    accessToken: Secret(issued.access),
                    refreshToken: issued.refresh.map { Secret($0) }
                )
            )
        )
        let outcome: Result<Void, any Error>
        do {
            outcome = .success(try await body(box, simulator, wire, store))
        } catch { outcome = .failure(error) }
        await wire.shutdown()
        await simulator.stop()
        try outcome.get()
    }

    private func tokens(
        _ simulator: Simulator,
        _ client: any HTTPClient,
        _ store: Store
    ) -> StoredTokens {
        StoredTokens(
            account: "box",
            service: .box(at: .simulated(by: simulator)),
            store: store,
            http: client
        )
    }

    @Test("a pair that could not be stored is used by nobody until it is")
    func storedFirst() async throws {
        try await withTokens { box, simulator, client, store in
            let tokens = tokens(simulator, client, store)
            let old = try await tokens.token()
            store.state.withLock { $0.isBroken = true }
            await #expect(throws: TransportError.self) {
                try await tokens.refresh(afterRejectionOf: old)
            }
            #expect(try await tokens.token() == old)
            store.state.withLock { $0.isBroken = false }
            let new = try await tokens.refresh(afterRejectionOf: old)
            #expect(new != old && box.account.tokens.standing(of: new) == .valid)
            let kept = store.state.withLock { $0.kept.tokens }
            #expect(kept.accessToken == Secret(new))
            // A process that begins with the store now gets in, though the first refresh token is used up.
            let later = self.tokens(simulator, client, store)
            let next = try await later.refresh(afterRejectionOf: new)
            #expect(box.account.tokens.standing(of: next) == .valid)
        }
    }

    @Test("who comes with a used refresh token finds what another one stored")
    func anotherProcess() async throws {
        try await withTokens { box, simulator, client, store in
            let one = tokens(simulator, client, store)
            let other = tokens(simulator, client, store)
            let old = try await one.token()
            #expect(try await other.token() == old)
            let new = try await one.refresh(afterRejectionOf: old)
            #expect(try await other.refresh(afterRejectionOf: old) == new)
            #expect(store.state.withLock { $0.keeps } == 1)
        }
    }

    @Test("an answer that was lost is asked for again, and gives the same pair")
    func lostAnswer() async throws {
        try await withTokens { box, simulator, client, store in
            box.habits.repeatsRefreshedTokens = true
            var policy = RetryPolicy()
            policy.firstDelay = .milliseconds(1)
            let patient = RetryingClient(client, policy: policy)
            let tokens = tokens(simulator, patient, store)
            let old = try await tokens.token()
            simulator.add(FaultRule(.doneButNoAnswer, at: "oauth/token"))
            let new = try await tokens.refresh(afterRejectionOf: old)
            #expect(new != old && box.account.tokens.standing(of: new) == .valid)
        }
    }
}
