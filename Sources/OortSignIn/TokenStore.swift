/// Keeps credentials between runs.
///
/// `account` is the account's name in the settings; stores accept any text that is a file name. Who keeps or
/// forgets holds the account's lock.
public protocol TokenStore: Sendable {
    /// Where new credentials lie, for people: `the Secret Service`, or a folder's path.
    var place: String { get }

    /// Where the credentials of this account lie, for people.
    func place(of account: String) async -> String

    /// Waits until nobody else changes the account's credentials, and has others wait until the lock is ended.
    ///
    /// A second one of the same task's would wait for the first.
    ///
    /// - Throws: `.store` when somebody else is busy for longer than `patience`, or no lock can be had;
    ///   `.transport(.cancelled)`.
    func lock(
        _ account: String,
        patience: Duration
    ) async throws(SignInError) -> CredentialsLock

    /// The account's credentials; nil when there are none.
    ///
    /// - Throws: `.store` when the store does not answer; `.damaged` when it holds something else.
    func credentials(of account: String) async throws(SignInError) -> Credentials?

    /// Keeps the credentials in place of older ones; returns when they are durable.
    ///
    /// - Throws: `.store`; the older ones are then still there.
    func keep(_ credentials: Credentials, of account: String) async throws(SignInError)

    /// Forgets the account's credentials, if there are any.
    ///
    /// - Throws: `.store`; they may still be there.
    func forget(_ account: String) async throws(SignInError)
}

extension TokenStore {
    /// Where all credentials lie.
    public func place(of account: String) async -> String { place }

    /// As with the patience for another one's refresh, or for a person at the keyring's question.
    public func lock(_ account: String) async throws(SignInError) -> CredentialsLock {
        try await lock(account, patience: .seconds(120))
    }
}
