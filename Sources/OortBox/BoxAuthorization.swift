public import OortSignIn

extension OAuthService {
    /// Box's sign-in, under a registration of the person's own that has a secret.
    ///
    /// Source: developer.box.com, guides authentication/oauth2 and authentication/tokens/refresh.
    /// `http://127.0.0.1/callback` is registered; any port of it is accepted then. A code lives 30
    /// seconds. A refresh token works once, and each refresh gives a new one. What is asked for comes
    /// from the registration's own settings. Box has no device codes and knows nothing of PKCE.
    public static func box(at endpoints: BoxEndpoints = .live) -> OAuthService {
        var service = OAuthService(
            name: "box",
            authorizeURL: endpoints.account + "/api/oauth2/authorize",
            tokenURL: endpoints.api + "/oauth2/token",
            scopes: [],
            redirect: .anyPort(host: "127.0.0.1", path: "/callback")
        )
        service.revocation = .form(url: endpoints.api + "/oauth2/revoke")
        service.sendsClientSecret = true
        service.needsClientSecret = true
        service.usesPKCE = false
        return service
    }
}
