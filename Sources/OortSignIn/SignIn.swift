public import OortTransport

/// Signs in at one service under one registration.
///
/// The ways are in extensions: `withBrowser`, `withDevice`, `withCopiedCode`; `refresh` and
/// `revoke` work on what came out of any of them.
public struct SignIn: Sendable {
    /// The service.
    public let service: OAuthService
    /// The registration.
    public let client: OAuthClient
    let http: any HTTPClient

    /// `http` should retry what is transient; nothing sent here is marked as authorized.
    public init(service: OAuthService, client: OAuthClient, http: any HTTPClient) {
        self.service = service
        self.client = client
        self.http = http
    }
}
