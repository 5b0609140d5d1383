public import OortTransport

/// An account's password or key, kept in a store: what a service takes that has no tokens.
public actor StoredSecret: AccessTokens {
    private let account: String
    private let store: any TokenStore
    private var known: String?

    /// The secret of `account`; the store is asked when it is first needed.
    public init(of account: String, in store: any TokenStore) {
        self.account = account
        self.store = store
    }

    public func token() async throws(TransportError) -> String {
        if let known { return known }
        return try await read()
    }

    /// A secret other than the rejected one, where the person has signed in anew meanwhile.
    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        let current = try await read()
        guard current != rejected else {
            throw .signedOut("the password or the key of \(account) is refused")
        }
        return current
    }

    /// Forgets the secret, here and in the store.
    ///
    /// - Throws: what the store throws.
    public func forget() async throws(SignInError) {
        known = nil
        let lock = try await store.lock(account)
        defer { lock.end() }
        try await store.forget(account)
    }

    private func read() async throws(TransportError) -> String {
        let stored: Credentials?
        do throws(SignInError) { stored = try await store.credentials(of: account) } catch {
            throw error == .damaged ? .signedOut("\(account): \(error)") : .localContent("\(error)")
        }
        guard let secret = stored?.tokens.accessToken.revealed() else {
            throw .signedOut("\(account) has no stored password")
        }
        known = secret
        return secret
    }
}
