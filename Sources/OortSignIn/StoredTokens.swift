public import OortModel
public import OortTransport

/// An account's tokens, kept in a store and refreshed when they end: once for all who wait, and by one
/// process at a time.
///
/// A refresh token may work once only. So one is sent only while the account's lock is held and the store
/// has been read under it, and what comes back is used only once it is stored.
public actor StoredTokens: AccessTokens {
    private let account: String
    private let service: OAuthService
    private let store: any TokenStore
    private let http: any HTTPClient
    private let margin: Duration
    private let now: @Sendable () -> Timestamp

    /// As they were stored when the store was last read or written.
    private var credentials: Credentials?
    /// Refreshed credentials that could not be stored, which nobody may use before they are, and the access
    /// token beside which the spent refresh token lies.
    private var unsaved: (new: Credentials, replaced: Secret)?
    /// The one refresh under way, which ends by itself.
    ///
    /// No caller's cancellation ends it, since what it brings must be stored; `finish` does after a while.
    private var refreshing: Task<Result<Credentials, TransportError>, Never>?
    /// When a refresh failed last.
    private var failed: Timestamp?
    /// Whether the account was signed out, or signed in anew elsewhere.
    private var isRetired = false
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

    /// The stored token as long as it is good, while a new one is fetched ahead of its end; a new one then.
    public func token() async throws(TransportError) -> String {
        let current = try await load()
        guard ends(current, within: margin), current.client != nil,
            current.tokens.refreshToken != nil
        else { return current.tokens.accessToken.revealed() }
        if !ends(current, within: .zero) {
            refreshAhead(of: current)
            return current.tokens.accessToken.revealed()
        }
        return try await refreshed(from: current).tokens.accessToken.revealed()
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
        let last = try await forget()
        let client = last.client ?? OAuthClient(id: "")
        try await SignIn(service: service, client: client, http: http).revoke(last.tokens)
    }

    /// Forgets the tokens.
    ///
    /// - Returns: the last ones.
    private func forget() async throws(SignInError) -> Credentials {
        let lock = try await store.lock(account)
        defer { lock.end() }
        let stored = try await store.credentials(of: account)
        (credentials, isRetired) = (nil, true)
        try await store.forget(account)
        guard let stored else {
            throw .store("no tokens of \(account) were found in \(store.place)")
        }
        guard let unsaved, unsaved.replaced == stored.tokens.accessToken else { return stored }
        return unsaved.new
    }

    /// Asks the service for no new tokens from now on.
    ///
    /// What a refresh that is under way brings is stored, where the store still has what it began with.
    public func retire() { isRetired = true }

    /// Waits for a refresh that is under way, and has tokens stored that could not be until now; gives it up
    /// after some seconds.
    public func finish(within patience: Duration = .seconds(5)) async {
        if unsaved != nil, let credentials { _ = begin(from: credentials) }
        guard let refreshing else { return }
        let (ended, end) = AsyncStream<Void>.makeStream()
        // Owned by nothing: ends with the refresh.
        Task {
            _ = await refreshing.value
            end.finish()
        }
        let timer = Task {
            try? await Task.sleep(for: patience)
            end.finish()
        }
        for await _ in ended {}
        timer.cancel()
        // A host that does not answer would keep the account's lock from who signs it out.
        refreshing.cancel()
    }

    // MARK: What is stored

    private func ends(_ credentials: Credentials, within margin: Duration) -> Bool {
        guard let expires = credentials.tokens.expires else { return false }
        return expires.seconds - margin.components.seconds <= now().seconds
    }

    private func load() async throws(TransportError) -> Credentials {
        if let credentials { return credentials }
        let stored = try await read()
        // Another call may have read or refreshed meanwhile, which is newer.
        if let credentials { return credentials }
        credentials = stored
        return stored
    }

    private func read() async throws(TransportError) -> Credentials {
        let stored: Credentials?
        do throws(SignInError) {
            stored = try await store.credentials(of: account)
        } catch {
            throw transportError(error)
        }
        guard let stored else { throw .signedOut("\(account) has no stored tokens") }
        return stored
    }

    // MARK: Refreshing

    /// A pause after a failure, in seconds, before the service is asked again ahead of the token's end.
    private static let pause: Int64 = 30

    /// Refreshes beside the caller, who has a token that is still good.
    private func refreshAhead(of old: Credentials) {
        let pauses = failed.map { abs(now().seconds - $0.seconds) < Self.pause } ?? false
        if !isRetired, !pauses { _ = begin(from: old) }
    }

    private func refreshed(from old: Credentials) async throws(TransportError) -> Credentials {
        // Who was late with this old token finds the new one here already.
        if let credentials, credentials.tokens.accessToken != old.tokens.accessToken {
            return credentials
        }
        guard refreshing != nil || !isRetired else { throw .cancelled }
        let task = begin(from: old)
        let (outcomes, outcome) = AsyncStream<Result<Credentials, TransportError>>.makeStream()
        // Owned by nothing: ends with the refresh. The caller may be cancelled before that.
        Task {
            outcome.yield(await task.value)
            outcome.finish()
        }
        for await result in outcomes { return try result.get() }
        throw .cancelled
    }

    /// The refresh that is under way, or begins.
    private func begin(
        from old: Credentials
    ) -> Task<Result<Credentials, TransportError>, Never> {
        if let refreshing { return refreshing }
        let task = Task {
            // Others may wait for it that have less patience than who comes first, and other processes do.
            await RequestPriority.$current.withValue(.interactive) { await self.refresh(old) }
        }
        refreshing = task
        return task
    }

    private func refresh(_ old: Credentials) async -> Result<Credentials, TransportError> {
        defer { refreshing = nil }
        do throws(TransportError) {
            let new = try await newCredentials(for: old)
            failed = nil
            return .success(new)
        } catch {
            failed = now()
            return .failure(error)
        }
    }

    private func newCredentials(for old: Credentials) async throws(TransportError) -> Credentials {
        let lock: CredentialsLock
        do throws(SignInError) { lock = try await store.lock(account) } catch {
            throw transportError(error)
        }
        defer { lock.end() }
        let stored = try await read()
        credentials = stored
        if let unsaved, unsaved.replaced == stored.tokens.accessToken {
            return try await keep(unsaved.new)
        }
        unsaved = nil
        // Another process refreshed, or the person signed in again.
        guard stored.tokens.accessToken == old.tokens.accessToken || ends(stored, within: .zero)
        else { return stored }
        guard let client = stored.client, let refreshToken = stored.tokens.refreshToken else {
            throw .signedOut("\(account): there is no refresh token")
        }
        guard refreshToken != refused else {
            throw .signedOut("\(account): the refresh token was refused")
        }
        let signIn = SignIn(service: service, client: client, http: http)
        let tokens: Tokens
        do throws(SignInError) { tokens = try await signIn.refresh(stored.tokens) } catch {
            guard case .refused(let refusal) = error, service.isSignedOut(refusal) else {
                throw transportError(error)
            }
            refused = refreshToken
            // An older version takes no lock.
            let latest = try await read()
            credentials = latest
            guard latest.tokens.accessToken != stored.tokens.accessToken else {
                throw .signedOut("\(account): \(error)")
            }
            return latest
        }
        let new = Credentials(client: client, tokens: tokens)
        unsaved = (new, stored.tokens.accessToken)
        return try await keep(new)
    }

    /// Stores what was refreshed, under the account's lock.
    private func keep(_ new: Credentials) async throws(TransportError) -> Credentials {
        do throws(SignInError) {
            try await store.keep(new, of: account)
        } catch {
            throw transportError(error)
        }
        (credentials, unsaved) = (new, nil)
        return new
    }

    private func transportError(_ error: SignInError) -> TransportError {
        switch error {
        case .refused(let refusal) where refusal.concernsClient:
            .clientRefused("\(account): \(error)")
        case .store, .keyringSilent: .localContent("\(error)")
        case .damaged: .signedOut("\(account): \(error)")
        case .transport(.cancelled): .cancelled
        case .transport(.untrusted(let detail)): .untrusted(detail)
        // The request that needs the token was certainly not sent.
        default: .unreachable("no access token for \(account): \(error)")
        }
    }
}
