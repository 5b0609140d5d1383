public import OortModel

/// What a service handed out for one account.
public struct Tokens: Hashable, Sendable {
    /// Goes with each request.
    public var accessToken: Secret
    /// Makes new access tokens; nil where the service gave none.
    public var refreshToken: Secret?
    /// When the access token ends; nil when unknown.
    public var expires: Timestamp?
    /// The scopes that were granted, where the service said so; the person may have unticked some.
    public var grantedScopes: [String]?

    /// Tokens with all of their parts.
    public init(
        accessToken: Secret,
        refreshToken: Secret? = nil,
        expires: Timestamp? = nil,
        grantedScopes: [String]? = nil
    ) {
        self.accessToken = accessToken
        self.refreshToken = refreshToken
        self.expires = expires
        self.grantedScopes = grantedScopes
    }
}

/// All that is needed to speak for one account: kept together in the token store.
public struct Credentials: Hashable, Sendable {
    /// The registration that the tokens belong to; nil for a bare access token, which cannot be
    /// refreshed.
    public var client: OAuthClient?
    /// What the service handed out.
    public var tokens: Tokens

    /// Tokens and the registration that they belong to.
    public init(client: OAuthClient?, tokens: Tokens) {
        self.client = client
        self.tokens = tokens
    }
}
