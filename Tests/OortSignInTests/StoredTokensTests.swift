import Foundation
import Logging
import OortModel
import OortTesting
import OortTransport
import Synchronization
import Testing

@testable import OortSignIn

@Suite("stored tokens", .timeLimit(.minutes(5)))
struct StoredTokensTests {
    @Test("a hundred requests with an old token share one refresh")
    func sharedRefresh() async throws {
        try await withTokens { server, http, store async throws in
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

    @Test("a refresh that is under way when the account is signed out is waited for and taken back")
    func signedOutMeanwhile() async throws {
        try await withTokens { server, http, store async throws in
            let waiting = HeldClient(http)
            let mounted = server.storedTokens(in: store, waiting)
            let refresh = Task { try await mounted.refresh(afterRejectionOf: "access-0") }
            await waiting.untilAsked()
            let signOut = Task { try await server.storedTokens(in: store, http).signOut() }
            await Task.yield()
            waiting.letGo()
            #expect(try await refresh.value == "access-1")
            try await signOut.value
            #expect(server.state.withLock { $0.revoked } == ["refresh-1"])
            #expect(try await store.credentials(of: "work") == nil)
            await #expect(throws: TransportError.signedOut("work has no stored tokens")) {
                try await mounted.refresh(afterRejectionOf: "access-1")
            }
            #expect(try await store.credentials(of: "work") == nil)
            #expect(server.state.withLock { $0.tokenRequests } == 1)
        }
    }

    @Test("an account that was left asks for no new tokens")
    func retired() async throws {
        try await withTokens { server, http, store async throws in
            let tokens = server.storedTokens(in: store, http)
            await tokens.retire()
            await #expect(throws: TransportError.cancelled) {
                try await tokens.refresh(afterRejectionOf: "access-0")
            }
            #expect(server.state.withLock { $0.tokenRequests } == 0)
        }
    }

    @Test("two processes send a refresh token once, and nobody stores anything meanwhile")
    func twoProcesses() async throws {
        try await withTokens(secondsLeft: nil) { server, http, store async throws in
            let waiting = HeldClient(http)
            let one = server.storedTokens(in: store, waiting)
            let other = server.storedTokens(in: store, http)
            #expect(try await other.token() == "access-0")
            let first = Task { try await one.refresh(afterRejectionOf: "access-0") }
            await waiting.untilAsked()
            await #expect {
                try await store.lock("work", patience: .zero)
            } throws: { error in
                guard case SignInError.store(let text)? = error as? SignInError else {
                    return false
                }
                return text.contains("another process")
            }
            let second = Task { try await other.refresh(afterRejectionOf: "access-0") }
            await Task.yield()
            waiting.letGo()
            #expect(try await first.value == "access-1")
            #expect(try await second.value == "access-1")
            #expect(server.state.withLock { $0.tokenRequests } == 1)
        }
    }

    @Test("no refresh token is sent while the store cannot be read")
    func unreadableStore() async throws {
        try await withTokens(secondsLeft: nil) { server, http, files async throws in
            let store = FailingStore(files)
            let tokens = server.storedTokens(in: store, http)
            #expect(try await tokens.token() == "access-0")
            store.hides.withLock { $0 = true }
            await #expect {
                try await tokens.refresh(afterRejectionOf: "access-0")
            } throws: { error in
                guard case TransportError.localContent? = error as? TransportError else {
                    return false
                }
                return true
            }
            #expect(server.state.withLock { $0.tokenRequests } == 0)
            store.hides.withLock { $0 = false }
            #expect(try await tokens.refresh(afterRejectionOf: "access-0") == "access-1")
        }
    }

    @Test("a token that ends soon is refreshed ahead; one without an end is not")
    func ahead() async throws {
        for (left, isRefreshed) in [(299 as Int64?, true), (301, false), (nil, false)] {
            try await withTokens(secondsLeft: left) { server, http, store async throws in
                let tokens = server.storedTokens(
                    in: store,
                    http,
                    now: { Timestamp(seconds: 1_000_000) }
                )
                #expect(try await tokens.token() == "access-0")
                await tokens.finish(within: .seconds(60))
                #expect(try await tokens.token() == (isRefreshed ? "access-1" : "access-0"))
            }
        }
    }

    @Test("a token host that does not answer delays nobody whose token is good, and no end")
    func stalledHost() async throws {
        try await withTokens(secondsLeft: 100) { server, http, store async throws in
            let waiting = HeldClient(http)
            let time = Mutex(Timestamp(seconds: 1_000_000))
            let tokens = server.storedTokens(in: store, waiting, now: { time.withLock { $0 } })
            #expect(try await tokens.token() == "access-0")
            await waiting.untilAsked()
            #expect(try await tokens.token() == "access-0")
            time.withLock { $0 = Timestamp(seconds: 1_000_100) }
            let waiter = Task { try await tokens.token() }
            await Task.yield()
            waiter.cancel()
            await #expect(throws: TransportError.cancelled) { try await waiter.value }
            await tokens.finish(within: .zero)
            waiting.letGo()
            await tokens.finish(within: .seconds(60))
            let kept = try await store.credentials(of: "work")
            #expect(kept?.tokens.accessToken == Secret("access-1"))
        }
    }

    @Test("a refresh that gets no answer is given up at the end, and lets others go on")
    func givenUp() async throws {
        try await withTokens { server, http, store async throws in
            let stalled = StalledClient()
            let tokens = server.storedTokens(in: store, stalled)
            let waiter = Task { try await tokens.refresh(afterRejectionOf: "access-0") }
            await stalled.untilAsked()
            await tokens.finish(within: .zero)
            await #expect(throws: TransportError.cancelled) { try await waiter.value }
            try await server.storedTokens(in: store, http).signOut()
            #expect(server.state.withLock { $0.revoked } == ["refresh-0"])
        }
    }

    @Test("the old refresh token stays where no new one comes")
    func keepsRefreshToken() async throws {
        try await withTokens { server, http, store async throws in
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
        try await withTokens { server, http, store async throws in
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
        try await withTokens { server, http, store async throws in
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
        try await withTokens(secondsLeft: 100) { server, http, store async throws in
            server.fail(true)
            let time = Mutex(Timestamp(seconds: 1_000_000))
            let tokens = server.storedTokens(in: store, http, now: { time.withLock { $0 } })
            let old = try await tokens.token()
            #expect(old == "access-0")
            await tokens.finish(within: .seconds(60))
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
        try await withTokens { server, http, files async throws in
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

    @Test("new tokens that could not be stored are stored at the end, but never over a new sign-in")
    func storesLater() async throws {
        for isSignedInAnew in [false, true] {
            try await withTokens { server, http, files async throws in
                let store = FailingStore(files)
                let tokens = server.storedTokens(in: store, http)
                store.fails.withLock { $0 = true }
                await #expect(throws: TransportError.self) {
                    try await tokens.refresh(afterRejectionOf: "access-0")
                }
                store.fails.withLock { $0 = false }
                if isSignedInAnew {
                    let new = Tokens(accessToken: Secret("access-new"))
                    let credentials = Credentials(client: server.client, tokens: new)
                    try await files.keep(credentials, of: "work")
                }
                await tokens.finish(within: .seconds(60))
                let kept = try await files.credentials(of: "work")
                let expected = isSignedInAnew ? "access-new" : "access-1"
                #expect(kept?.tokens.accessToken == Secret(expected))
                #expect(try await tokens.token() == expected)
            }
        }
    }

    @Test("signing out takes the tokens back and forgets them")
    func signOut() async throws {
        try await withTokens { server, http, store async throws in
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
        try await withTokens { server, http, store async throws in
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

    @Test("damaged tokens, which no waiting mends, mean that the person has to sign in again")
    func damaged() async throws {
        try await withTokens { server, http, store in
            let file = "\(store.place)/work.json"
            try "hush".write(toFile: file, atomically: true, encoding: .utf8)
            let tokens = server.storedTokens(in: store, http)
            let secret = StoredSecret(of: "work", in: store)
            for source in [tokens, secret] as [any AccessTokens] {
                await #expect {
                    try await source.token()
                } throws: { error in
                    guard case TransportError.signedOut? = error as? TransportError else {
                        return false
                    }
                    return true
                }
            }
        }
    }

    @Test("no log line of a whole stack holds a secret")
    func logs() async throws {
        try await withTokens { server, http, store async throws in
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

/// A store that can be made to fail at storing, or at being read.
private final class FailingStore: TokenStore {
    let fails = Mutex(false)
    let hides = Mutex(false)
    private let store: FileTokenStore
    init(_ store: FileTokenStore) { self.store = store }
    var place: String { store.place }
    func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock {
        try await store.lock(account, patience: patience)
    }
    func credentials(of account: String) async throws(SignInError) -> Credentials? {
        guard !hides.withLock({ $0 }) else { throw .store("locked") }
        return try await store.credentials(of: account)
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

/// A client that never gets an answer.
private final class StalledClient: HTTPClient {
    private let asked = AsyncStream<Void>.makeStream()
    private let answer = AsyncStream<Void>.makeStream()

    func untilAsked() async {
        for await _ in asked.stream { return }
    }

    func stream(
        _ request: OortTransport.HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        asked.continuation.yield()
        for await _ in answer.stream {}
        throw .cancelled
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
