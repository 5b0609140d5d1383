public import OortSignIn

extension OAuthService {
    /// Google's sign-in for a desktop client, with access to the person's whole Drive; the narrower
    /// scopes show only what Oort itself made.
    ///
    /// Source: developers.google.com/identity/protocols/oauth2/native-app. There is no device flow:
    /// Google refuses it for this scope. A refresh gives no new refresh token.
    public static func googleDrive(at endpoints: GoogleDriveEndpoints = .live) -> OAuthService {
        var service = OAuthService(
            name: "drive",
            authorizeURL: endpoints.accounts + "/o/oauth2/v2/auth",
            tokenURL: endpoints.oauth + "/token",
            scopes: ["https://www.googleapis.com/auth/drive"],
            redirect: .anyPort(host: "127.0.0.1", path: "/")
        )
        service.revocation = .form(url: endpoints.oauth + "/revoke")
        service.revocationEndsAll = true
        // Unless consent is asked for anew, a second sign-in brings no refresh token.
        service.extraParameters = [("access_type", "offline"), ("prompt", "consent")]
        // A desktop client's secret is wanted even with PKCE.
        service.sendsClientSecret = true
        return service
    }
}
