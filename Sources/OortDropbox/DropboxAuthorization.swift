public import OortSignIn

extension OAuthService {
    /// Dropbox's sign-in: PKCE without a secret; a redirect must equal a registered one exactly.
    ///
    /// Source: dropbox.com/developers/reference/oauth-guide. Without `token_access_type=offline`
    /// there is no refresh token; scopes are those that the application has ticked.
    public static func dropbox(at endpoints: DropboxEndpoints = .live) -> OAuthService {
        var service = OAuthService(
            name: "dropbox",
            authorizeURL: endpoints.web + "/oauth2/authorize",
            tokenURL: endpoints.api + "/oauth2/token",
            scopes: [
                "account_info.read", "files.metadata.read", "files.metadata.write",
                "files.content.read", "files.content.write", "sharing.read", "sharing.write",
            ],
            redirect: .fixedPorts([53682, 53683, 53684], host: "localhost", path: "/")
        )
        service.extraParameters = [("token_access_type", "offline")]
        service.revocation = .authorizedPost(url: endpoints.api + "/2/auth/token/revoke")
        service.sendsClientSecret = true
        service.showsCode = true
        return service
    }
}
