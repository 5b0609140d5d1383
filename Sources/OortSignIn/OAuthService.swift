/// How a service does OAuth 2: what its `<Service>Authorization.swift` fills in.
///
/// `state` is always used, PKCE (S256) wherever the service knows it; neither needs further words
/// here. Every URL can be pointed to a simulator.
public struct OAuthService: Sendable {
    /// Where the browser may be sent back to (RFC 8252, section 7.3).
    public enum Redirect: Sendable, Hashable {
        /// Any free port of this machine: `http://HOST:PORT/PATH`. `host` is `127.0.0.1` or
        /// `localhost`, `path` begins with `/`, or is empty where the service wants nothing after
        /// the port.
        case anyPort(host: String, path: String)
        /// One of the ports that were registered at the service, tried in order.
        case fixedPorts([UInt16], host: String, path: String)
    }

    /// How a token is taken back.
    public enum Revocation: Sendable, Hashable {
        /// A form with the field `token` (RFC 7009): the refresh token where there is one.
        case form(url: String)
        /// A POST without a body, authorized by the token that it takes back.
        case authorizedPost(url: String)
    }

    /// The service's word, as in `oort login SERVICE`.
    public var name: String
    /// Where the browser is sent; may have a query of its own.
    public var authorizeURL: String
    /// Where codes and refresh tokens become access tokens.
    public var tokenURL: String
    /// Where a device code is asked for (RFC 8628); nil where the service has none.
    public var deviceURL: String?
    /// How a token is taken back; nil where the service has no way.
    public var revocation: Revocation?
    /// Whether what is taken back with a token is all that the person ever allowed this registration, on every
    /// machine.
    public var revocationEndsAll: Bool
    /// What is asked for; empty sends no `scope`.
    public var scopes: [String]
    /// Further fields of the authorize URL's query, such as `access_type=offline`.
    public var extraParameters: [(name: String, value: String)]
    /// Where the browser may be sent back to.
    public var redirect: Redirect
    /// Whether the client secret, where the person has one, is sent to the token URL.
    public var sendsClientSecret: Bool
    /// Whether a sign-in under a registration without a secret is impossible.
    public var needsClientSecret: Bool
    /// Whether the service knows PKCE (RFC 7636).
    public var usesPKCE: Bool
    /// Whether scopes are named again when refreshing and at the token URL (Microsoft).
    public var repeatsScopes: Bool
    /// Whether an authorize URL without a redirect shows the code for copying (Dropbox).
    public var showsCode: Bool
    /// Whether the answer to a refresh means that the person must sign in again.
    public var isSignedOut: @Sendable (OAuthRefusal) -> Bool

    /// A service with what every one must say; the rest is the standard's.
    public init(
        name: String,
        authorizeURL: String,
        tokenURL: String,
        scopes: [String],
        redirect: Redirect = .anyPort(host: "127.0.0.1", path: "/")
    ) {
        self.name = name
        self.authorizeURL = authorizeURL
        self.tokenURL = tokenURL
        self.scopes = scopes
        self.redirect = redirect
        deviceURL = nil
        revocation = nil
        revocationEndsAll = false
        extraParameters = []
        sendsClientSecret = false
        needsClientSecret = false
        usesPKCE = true
        repeatsScopes = false
        showsCode = false
        isSignedOut = { $0.code == "invalid_grant" }
    }
}

/// An error answer of the authorize, token or device URL (RFC 6749, section 5.2).
public struct OAuthRefusal: Hashable, Sendable {
    /// `invalid_grant`, `access_denied` and so on.
    public var code: String
    /// `error_description`, for people; empty where there is none.
    public var text: String
    /// The answer's status; 0 where it came by the browser.
    public var status: Int

    /// A refusal with all of its parts.
    public init(code: String, text: String = "", status: Int = 0) {
        self.code = code
        self.text = text
        self.status = status
    }

    /// Whether a refresh was refused because of who asks, not of what for: client id, secret or
    /// the form of the registration.
    ///
    /// Any code of RFC 6749 but those that time heals; an answer without a code is not the
    /// service's word (a proxy, a front end).
    public var concernsClient: Bool {
        !code.hasPrefix("status ")
            && !["invalid_grant", "server_error", "temporarily_unavailable", "slow_down"]
                .contains(code)
    }
}

/// The registration under which Oort asks: from the person's settings.
public struct OAuthClient: Hashable, Sendable {
    /// The client id (Dropbox: app key).
    ///
    /// No secret.
    public var id: String
    /// The client secret, where the registration has one.
    public var secret: Secret?

    /// A registration.
    public init(id: String, secret: Secret? = nil) {
        self.id = id
        self.secret = secret
    }
}
