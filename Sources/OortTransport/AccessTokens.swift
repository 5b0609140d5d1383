/// Where an account's access token comes from.
public protocol AccessTokens: Sendable {
    /// A token that has not ended as far as is known; a newer one is fetched beside when its end is near.
    ///
    /// - Throws: `.signedOut` when the service refused the refresh for good, `.clientRefused` when
    ///   it refused the program; the errors of the refresh's own request otherwise.
    func token() async throws(TransportError) -> String

    /// A newer token than `rejected`, which the service did not take. All who wait at one time
    /// share one refresh, and who comes late with an old token gets the one that is there.
    ///
    /// - Throws: As `token()`.
    func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String
}

/// A token that was given and cannot be refreshed.
public struct FixedToken: AccessTokens {
    private let text: String

    /// A token for the whole life of the account.
    public init(_ text: String) { self.text = text }

    public func token() async throws(TransportError) -> String { text }

    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        throw .signedOut("the access token was refused and there is no refresh token")
    }
}
