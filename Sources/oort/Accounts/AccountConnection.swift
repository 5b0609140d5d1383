import Logging
import OortModel
import OortSignIn
import OortTransport

/// One account's provider with all that its requests pass through.
struct AccountConnection: Sendable {
    /// The strategy for the account.
    let provider: any Provider
    /// The account's tokens.
    let tokens: StoredTokens

    /// The stack, from the outside in: provider, retry, limit, token, log, libcurl.
    ///
    /// `knownRequests` is what the account's service bore the last time; `remember` hears how that
    /// changes, from any thread, and must not block.
    init(
        account: String,
        service: CloudService,
        settings: Settings,
        store: any TokenStore,
        wire: any HTTPClient,
        policy: RetryPolicy = RetryPolicy(),
        knownRequests: Int? = nil,
        remember: @escaping @Sendable (Int) -> Void = { _ in },
        logger: Logger
    ) {
        let hosts = Hosts(settings.service(service.name).endpoints)
        // Asking for a token passes no limit: the requests that wait for it hold their turns.
        let plain = RetryingClient(LoggingClient(wire, logger: logger), policy: policy)
        let tokens = StoredTokens(
            account: account,
            service: service.authorization(hosts),
            store: store,
            http: plain
        )
        let client = AccountClient.make(
            wire: wire,
            tokens: tokens,
            rules: service.answerRules,
            requests: RequestLimit(service.requests, known: knownRequests),
            policy: policy,
            logger: logger,
            remember: remember
        )
        self.tokens = tokens
        provider = service.makeProvider(client, hosts) { () throws(ProviderError) in
            do throws(SignInError) {
                try await tokens.signOut()
            } catch {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(error)")
            }
        }
    }
}

/// Holds credentials in memory until it is known whose they are.
actor MemoryTokenStore: TokenStore {
    private var all: [String: Credentials] = [:]

    init(_ credentials: Credentials, of account: String) { all[account] = credentials }

    nonisolated var place: String { "memory" }
    func credentials(of account: String) async throws(SignInError) -> Credentials? { all[account] }
    func keep(_ credentials: Credentials, of account: String) async throws(SignInError) {
        all[account] = credentials
    }
    func forget(_ account: String) async throws(SignInError) { all[account] = nil }
}
