import Foundation
import Logging
import OortModel
import OortTesting
import OortTransport
import Synchronization
import Testing

@testable import OortSignIn

@Suite("stored tokens")
struct StoredTokensTests {
    @Test("a hundred requests with an old token share one refresh")
    func sharedRefresh() async throws {
        try await withTokens { server, http, store in
            let tokens = server.storedTokens(in: store, http)
            let seen = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<100 {
                    group.addTask { try await tokens.refresh(afterRejectionOf: "access-0") }
                }
                return try await group.reduce(into: Set<String>()) { $0.insert($1) }
            }
            #expect(seen == ["access-1"])
            #expect(server.state.withLock { $0.tokenRequests } == 1)
            let kept = try #require(try await store.credentials(of: "work"))
            #expect(kept.tokens.refreshToken == Secret("refresh-1"))
            #expect(try await tokens.token() == "access-1")
            #expect(try await tokens.refresh(afterRejectionOf: "access-0") == "access-1")
            #expect(server.state.withLock { $0.tokenRequests } == 1)
        }
    }

    @Test("a refresh that was under way when the account was signed out keeps nothing")
    func retired() async throws {
        try await withTokens { server, http, store in
            let waiting = HeldClient(http)
            let tokens = server.storedTokens(in: store, waiting)
            let refresh = Task { try await tokens.refresh(afterRejectionOf: "access-0") }
            await waiting.untilAsked()
            let retiring = Task { await tokens.retire() }
            while await !tokens.isRetired { await Task.yield() }
            waiting.letGo()
            await retiring.value
            #expect(await (try? refresh.value) == nil)
            let kept = try await store.credentials(of: "work")
            #expect(kept?.tokens.accessToken == Secret("access-0"))
            await #expect(throws: TransportError.cancelled) {
                try await tokens.refresh(afterRejectionOf: "access-0")
            }
        }
    }

    @Test("a token that ends soon is refreshed ahead; one without an end is not")
    func ahead() async throws {
        for (left, expected) in [(299 as Int64?, "access-1"), (301, "access-0"), (nil, "access-0")]
        {
            try await withTokens(secondsLeft: left) { server, http, store in
                let tokens = server.storedTokens(
                    in: store,
                    http,
                    now: { Timestamp(seconds: 1_000_000) }
                )
                let token = try await tokens.token()
                #expect(token == expected)
            }
        }
    }

    @Test("the old refresh token stays where no new one comes")
    func keepsRefreshToken() async throws {
        try await withTokens { server, http, store in
            server.state.withLock { $0.rotates = false }
            let tokens = server.storedTokens(in: store, http)
            _ = try await tokens.refresh(afterRejectionOf: "access-0")
            let kept = try await store.credentials(of: "work")
            #expect(kept?.tokens.refreshToken == Secret("refresh-0"))
            #expect(kept?.tokens.accessToken == Secret("access-1"))
        }
    }

    @Test("only invalid_grant means signed out; the service is then not asked again")
    func invalidGrant() async throws {
        try await withTokens { server, http, store in
            server.state.withLock { $0.refreshTokens = [] }
            let tokens = server.storedTokens(in: store, http)
            for _ in 0..<3 {
                await #expect {
                    try await tokens.refresh(afterRejectionOf: "access-0")
                } throws: { error in
                    guard case TransportError.signedOut(let text)? = error as? TransportError
                    else { return false }
                    return text.contains("invalid_grant") || text.contains("refused")
                }
            }
            #expect(server.state.withLock { $0.tokenRequests } == 1)
            // Somebody signs in again while we run.
            server.state.withLock { _ = $0.refreshTokens.insert("refresh-new") }
            try await store.keep(
                Credentials(
                    client: server.client,
                    tokens: Tokens(
                        accessToken: Secret("access-new"),
                        refreshToken: Secret("refresh-new")
                    )
                ),
                of: "work"
            )
            #expect(try await tokens.refresh(afterRejectionOf: "access-0") == "access-new")
        }
    }

    @Test("a refused registration is neither a sign-out nor a lost network; a proxy's refusal is")
    func refusedClient() async throws {
        try await withTokens { server, http, store in
            let good = try #require(try await store.credentials(of: "work"))
            var bad = good
            bad.client = OAuthClient(id: server.client.id, secret: Secret("another"))
            try await store.keep(bad, of: "work")
            let tokens = server.storedTokens(in: store, http)
            await #expect {
                try await tokens.refresh(afterRejectionOf: "access-0")
            } throws: { error in
                guard case TransportError.clientRefused(let text)? = error as? TransportError else {
                    return false
                }
                return text.contains("invalid_client") && !text.contains("another")
            }
            server.standBehindProxy()
            await #expect {
                try await tokens.refresh(afterRejectionOf: "access-0")
            } throws: { error in
                guard case TransportError.unreachable? = error as? TransportError else {
                    return false
                }
                return true
            }
        }
    }

    @Test("a fault of the server's is no sign-out, and a token still good is used on")
    func fault() async throws {
        try await withTokens(secondsLeft: 100) { server, http, store in
            server.fail(true)
            let time = Mutex(Timestamp(seconds: 1_000_000))
            let tokens = server.storedTokens(in: store, http, now: { time.withLock { $0 } })
            let old = try await tokens.token()
            #expect(old == "access-0")
            time.withLock { $0 = Timestamp(seconds: 1_000_101) }
            for _ in 0..<2 {
                await #expect {
                    try await tokens.token()
                } throws: { error in
                    guard case TransportError.unreachable? = error as? TransportError else {
                        return false
                    }
                    return true
                }
            }
            server.fail(false)
            let new = try await tokens.token()
            #expect(new == "access-1")
        }
    }

    @Test("new tokens are not used before they are stored, and not lost when storing fails")
    func storesFirst() async throws {
        try await withTokens { server, http, files in
            let store = FailingStore(files)
            let tokens = server.storedTokens(in: store, http)
            store.fails.withLock { $0 = true }
            for _ in 0..<2 {
                await #expect(throws: TransportError.self) {
                    try await tokens.refresh(afterRejectionOf: "access-0")
                }
            }
            store.fails.withLock { $0 = false }
            #expect(try await tokens.refresh(afterRejectionOf: "access-0") == "access-1")
            #expect(server.state.withLock { $0.tokenRequests } == 1)
            let kept = try await files.credentials(of: "work")
            #expect(kept?.tokens.refreshToken == Secret("refresh-1"))
        }
    }

    @Test("signing out takes the tokens back and forgets them")
    func signOut() async throws {
        try await withTokens { server, http, store in
            let tokens = server.storedTokens(in: store, http)
            try await tokens.signOut()
            #expect(server.state.withLock { $0.revoked } == ["refresh-0"])
            #expect(try await store.credentials(of: "work") == nil)
            await #expect(throws: TransportError.signedOut("work has no stored tokens")) {
                try await tokens.token()
            }
        }
    }

    @Test("tokens that are not found are not said to be taken back")
    func signOutOfNothing() async throws {
        try await withTokens { server, http, store in
            try await store.forget("work")
            await #expect {
                try await server.storedTokens(in: store, http).signOut()
            } throws: { error in
                guard case SignInError.store(let text)? = error as? SignInError else {
                    return false
                }
                return text.contains(store.place)
            }
            #expect(server.state.withLock { $0.revoked.isEmpty })
        }
    }

    @Test("no log line of a whole stack holds a secret")
    func logs() async throws {
        try await withTokens { server, http, store in
            let lines = Mutex<[String]>([])
            var logger = Logger(label: "test") { _ in
                CapturedLog { line in lines.withLock { $0.append(line) } }
            }
            logger.logLevel = .trace
            let logged = LoggingClient(http, logger: logger)
            let tokens = server.storedTokens(in: store, logged)
            let client = AccountClient.make(
                wire: http,
                tokens: tokens,
                requests: RequestLimit(RequestBounds(first: 4, most: 4)),
                logger: logger
            )
            _ = try await client.send(
                OortTransport.HTTPRequest(method: "GET", url: server.base + "/files?token=access-0")
            )
            _ = try await tokens.refresh(afterRejectionOf: "access-0")
            server.state.withLock { $0.refreshTokens = [] }
            _ = try? await tokens.refresh(afterRejectionOf: "access-1")
            let text = lines.withLock { $0.joined(separator: "\n") }
            #expect(text.contains("/files: 404"))
            for secret in ["access-", "refresh-", "hush"] { #expect(!text.contains(secret)) }
        }
    }

    /// A server, and a store in a folder of its own that holds `access-0` and `refresh-0`.
    private func withTokens(
        secondsLeft: Int64? = 3600,
        _ body: (FakeAuthorizationServer, CurlClient, FileTokenStore) async throws -> Void
    ) async throws {
        let folder = NSTemporaryDirectory() + "oort-tokens-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let store = FileTokenStore(directory: folder)
        try await withFakeServer { server, http in
            let tokens = Tokens(
                accessToken: Secret("access-0"),
                refreshToken: Secret("refresh-0"),
                expires: secondsLeft.map { Timestamp(seconds: 1_000_000 + $0) }
            )
            try await store.keep(Credentials(client: server.client, tokens: tokens), of: "work")
            try await body(server, http, store)
        }
    }
}

/// A store that can be made to fail at storing.
private final class FailingStore: TokenStore {
    let fails = Mutex(false)
    private let store: FileTokenStore
    init(_ store: FileTokenStore) { self.store = store }
    var place: String { store.place }
    func credentials(of account: String) async throws(SignInError) -> Credentials? {
        try await store.credentials(of: account)
    }
    func keep(_ credentials: Credentials, of account: String) async throws(SignInError) {
        guard !fails.withLock({ $0 }) else { throw .store("disk full") }
        try await store.keep(credentials, of: account)
    }
    func forget(_ account: String) async throws(SignInError) { try await store.forget(account) }
}

extension FakeAuthorizationServer {
    /// The tokens of the account "work", as a running Oort has them.
    fileprivate func storedTokens(
        in store: any TokenStore,
        _ http: any HTTPClient,
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) -> StoredTokens {
        StoredTokens(account: "work", service: service, store: store, http: http, now: now)
    }
}

/// A client whose answers come when the test wants them.
private final class HeldClient: HTTPClient {
    private let next: any HTTPClient
    private let asked = AsyncStream<Void>.makeStream()
    private let released = AsyncStream<Void>.makeStream()

    init(_ next: any HTTPClient) { self.next = next }

    func untilAsked() async {
        for await _ in asked.stream { return }
    }

    func letGo() { released.continuation.finish() }

    func stream(
        _ request: OortTransport.HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        asked.continuation.yield()
        // Not with the caller's cancellation: the answer is on its way.
        let answer = await Task.detached { [next, stream = released.stream] in
            for await _ in stream {}
            do throws(TransportError) {
                return Result<_, TransportError>.success(try await next.stream(request))
            } catch {
                return .failure(error)
            }
        }.value
        return try answer.get()
    }
}
