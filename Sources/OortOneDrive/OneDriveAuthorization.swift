public import OortSignIn

extension OAuthService {
    /// Microsoft's sign-in: a public client with PKCE, for accounts of persons and organizations.
    ///
    /// Source: learn.microsoft.com, identity platform, "v2-oauth2-auth-code-flow",
    /// "v2-oauth2-device-code", "reply-url". `http://localhost` is registered; any port of it is
    /// accepted then. Each refresh gives a new refresh token. There is no way to take a token back.
    public static func oneDrive(at endpoints: OneDriveEndpoints = .live) -> OAuthService {
        var service = OAuthService(
            name: "onedrive",
            authorizeURL: endpoints.signIn + "/authorize",
            tokenURL: endpoints.signIn + "/token",
            // Without offline_access there is no refresh token.
            scopes: ["Files.ReadWrite.All", "User.Read", "offline_access"],
            redirect: .anyPort(host: "localhost", path: "")
        )
        service.deviceURL = endpoints.signIn + "/devicecode"
        service.sendsClientSecret = true
        service.repeatsScopes = true
        return service
    }
}
