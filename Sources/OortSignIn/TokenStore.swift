/// Keeps credentials between runs.
///
/// `account` is the account's name in the settings; stores accept any text that is a file name.
public protocol TokenStore: Sendable {
    /// Where credentials lie, for people: `the Secret Service`, or a folder's path.
    var place: String { get }

    /// The account's credentials; nil when there are none.
    ///
    /// - Throws: `.store` when the store does not answer or holds something else.
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
