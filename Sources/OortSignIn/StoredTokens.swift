public import OortModel
public import OortTransport

/// An account's tokens, kept in a store and refreshed when they end: once for all who wait.
public actor StoredTokens: AccessTokens {
    private let account: String
    private let service: OAuthService
    private let store: any TokenStore
    private let http: any HTTPClient
    private let margin: Duration
    private let now: @Sendable () -> Timestamp

    private var credentials: Credentials?
    /// Set while refreshed credentials are not in the store yet: nothing may use them before.
    private var isUnsaved = false
    /// The one refresh under way; it ends by itself, and is not cancelled since other callers may wait.
    private var refreshing: Task<Result<Credentials, TransportError>, Never>?
    /// Whether the account's tokens are no longer stored here.
    private(set) var isRetired = false
    /// The refresh token that the service refused for good: it is not asked again with this one.
    private var refused: Secret?

    /// The tokens of `account`, refreshed `margin` ahead of their end.
    ///
    /// `http` sends to the token URL and should retry what is transient.
    public init(
        account: String,
        service: OAuthService,
        store: any TokenStore,
        http: any HTTPClient,
        margin: Duration = .seconds(300),
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        self.account = account
        self.service = service
        self.store = store
        self.http = http
        self.margin = margin
        self.now = now
    }

    public func token() async throws(TransportError) -> String {
        let current = try await load()
        guard ends(current, within: margin), current.client != nil,
            current.tokens.refreshToken != nil
        else { return current.tokens.accessToken.revealed() }
        do throws(TransportError) {
            return try await refreshed(from: current).tokens.accessToken.revealed()
        } catch {
            // The old one is still good for a while; only its owner can be wrong about that.
            guard !ends(current, within: .zero), !isUnsaved else { throw error }
            return current.tokens.accessToken.revealed()
        }
    }

    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        let current = try await load()
        let token = current.tokens.accessToken.revealed()
        if token != rejected { return token }
        return try await refreshed(from: current).tokens.accessToken.revealed()
    }

    /// Takes the tokens back at the service and forgets them.
    ///
    /// They are forgotten even when the service cannot be asked.
    ///
    /// - Throws: What `SignIn.revoke` or the store throws; `.store` where none were found, so that nothing
    ///   was taken back.
    public func signOut() async throws(SignInError) {
        let stored =
            isUnsaved ? credentials : try await store.credentials(of: account) ?? credentials
        credentials = nil
        try await store.forget(account)
        guard let stored else {
            throw .store("no tokens of \(account) were found in \(store.place)")
        }
        let client = stored.client ?? OAuthClient(id: "")
        try await SignIn(service: service, client: client, http: http).revoke(stored.tokens)
    }

    /// Stores nothing from now on: the account was signed out, or signed in anew elsewhere.
    ///
    /// A refresh that was under way has ended when this returns; what it brought is dropped.
    public func retire() async {
        isRetired = true
        refreshing?.cancel()
        _ = await refreshing?.value
    }

    // MARK: Refreshing

    private func ends(_ credentials: Credentials, within margin: Duration) -> Bool {
        guard let expires = credentials.tokens.expires else { return false }
        return expires.seconds - margin.components.seconds <= now().seconds
    }

    private func load() async throws(TransportError) -> Credentials {
        if let credentials {
            if isUnsaved, let refreshing { return try await refreshing.value.get() }
            if isUnsaved { try await save(credentials) }
            return credentials
        }
        return try await reload()
    }

    private func reload() async throws(TransportError) -> Credentials {
        let stored: Credentials?
        do throws(SignInError) {
            stored = try await store.credentials(of: account)
        } catch {
            throw .localContent("\(error)")
        }
        guard let stored else { throw .signedOut("\(account) has no stored tokens") }
        // Another call may have loaded or refreshed meanwhile, which is newer.
        if let credentials, isUnsaved { return credentials }
        credentials = stored
        return stored
    }

    private func refreshed(from old: Credentials) async throws(TransportError) -> Credentials {
        if let refreshing { return try await refreshing.value.get() }
        guard !isRetired else { throw .cancelled }
        // Who was late with this old token finds the new one here already.
        if let credentials, credentials.tokens.accessToken != old.tokens.accessToken {
            return credentials
        }
        let task = Task { await self.refresh(old) }
        refreshing = task
        return try await task.value.get()
    }

    private func refresh(_ old: Credentials) async -> Result<Credentials, TransportError> {
        defer { refreshing = nil }
        do throws(TransportError) {
            let new = try await newCredentials(for: old)
            return .success(new)
        } catch {
            return .failure(error)
        }
    }

    private func newCredentials(for old: Credentials) async throws(TransportError) -> Credentials {
        guard let client = old.client, let refreshToken = old.tokens.refreshToken else {
            return try await storedInstead(of: old, or: "there is no refresh token")
        }
        if refreshToken == refused {
            return try await storedInstead(of: old, or: "the refresh token was refused")
        }
        let signIn = SignIn(service: service, client: client, http: http)
        do throws(SignInError) {
            let new = Credentials(client: client, tokens: try await signIn.refresh(old.tokens))
            guard !isRetired else { throw .transport(.cancelled) }
            credentials = new
            isUnsaved = true
            try await store.keep(new, of: account)
            isUnsaved = false
            return new
        } catch {
            switch error {
            case .refused(let refusal) where service.isSignedOut(refusal):
                refused = refreshToken
                return try await storedInstead(of: old, or: "\(error)")
            case .refused(let refusal) where refusal.concernsClient:
                throw .clientRefused("\(account): \(error)")
            case .store: throw .localContent("\(error)")
            case .transport(.cancelled): throw .cancelled
            case .transport(.untrusted(let detail)): throw .untrusted(detail)
            // The request that needs the token was certainly not sent.
            default: throw .unreachable("no access token for \(account): \(error)")
            }
        }
    }

    /// Credentials that were stored meanwhile (`oort login` again); signed out without.
    private func storedInstead(
        of old: Credentials,
        or reason: String
    ) async throws(TransportError) -> Credentials {
        let stored = try await reload()
        guard stored.tokens.accessToken != old.tokens.accessToken else {
            throw .signedOut("\(account): \(reason)")
        }
        return stored
    }

    private func save(_ credentials: Credentials) async throws(TransportError) {
        guard !isRetired else { throw .cancelled }
        do throws(SignInError) {
            try await store.keep(credentials, of: account)
        } catch {
            throw .localContent("\(error)")
        }
        if self.credentials == credentials { isUnsaved = false }
    }
}
