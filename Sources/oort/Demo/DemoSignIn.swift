import Foundation
import OortS3
import OortSignIn
import OortSimulators
import OortTransport
import OortWeather
import OortWebDAV

/// What a person would sign in with at a simulated service, and where the account lies at a server of
/// one's own.
struct DemoSignIn: Sendable {
    /// The secrets of the account; nil where it has none.
    var credentials: Credentials?
    /// The service's own JSON; nil for a company's hosts.
    var address: String?

    /// Finds out what a sign-in finds out.
    ///
    /// - Throws: `Failure` when the simulator answers otherwise than the service would.
    init(
        at running: Simulators.Running,
        _ service: CloudService,
        http: any HTTPClient
    ) async throws(Failure) {
        do {
            switch (service.oauth, running.name) {
            case (.some, _):
                let tokens = Tokens(
                    accessToken: Secret(running.tokens.access),
                    refreshToken: running.tokens.refresh.map { Secret($0) }
                )
                let client = OAuthClient(id: "demo", secret: Secret("demo"))
                credentials = Credentials(client: client, tokens: tokens)
            case (nil, "nextcloud"):
                try await signIn(
                    at: running.simulator.url(host: NextcloudSimulator.host),
                    as: NextcloudSimulator.loginName,
                    running,
                    http
                )
            case (nil, "webdav"):
                try await signIn(
                    at: running.simulator.url(host: PlainDAVSimulator.host) + "/"
                        + PlainDAVSimulator.folder,
                    as: PlainDAVSimulator.userName,
                    dialect: .plain,
                    running,
                    http
                )
            case (nil, "s3"): try await signInToBucket(running, http)
            default:
                let weather = WeatherAccount(source: .openMeteo, contact: nil)
                address = try Self.text(weather)
            }
        } catch {
            throw Failure("The simulated \(service.title) cannot be signed in to: \(error)")
        }
    }

    private static func text(_ address: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode(address), as: UTF8.self)
    }

    private mutating func signIn(
        at url: String,
        as user: String,
        dialect: WebDAVDialect? = nil,
        _ running: Simulators.Running,
        _ http: any HTTPClient
    ) async throws {
        let secret = Secret(running.tokens.access)
        var server = try await WebDAVDiscovery.server(at: url, dialect: dialect, http: http)
        server.address.user = user
        let account = try await WebDAVDiscovery.account(
            at: server,
            http: DAVLogin.client(of: server, secret, http: http)
        )
        credentials = Credentials(client: nil, tokens: Tokens(accessToken: secret))
        address = try Self.text(account)
    }

    private mutating func signInToBucket(
        _ running: Simulators.Running,
        _ http: any HTTPClient
    ) async throws {
        let keys = S3Keys(
            accessKeyID: running.tokens.access,
            secretAccessKey: Secret(running.tokens.refresh ?? "")
        )
        let wish = try S3Wish(
            S3Simulator.bucket,
            endpoint: running.simulator.url(host: S3Simulator.host),
            isPathStyle: true
        )
        let found = try await S3Discovery(wire: http, logger: SilentLog.logger)
            .find(wish, keys: keys)
        credentials = Credentials(client: nil, tokens: Tokens(accessToken: keys.secret))
        address = try Self.text(S3Bucket(account: found.account, profile: nil))
    }
}
