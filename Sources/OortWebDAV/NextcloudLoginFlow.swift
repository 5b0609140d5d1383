import Foundation
import OortModel
public import OortTransport

/// Nextcloud's sign-in by the person's browser (Login Flow v2): the program never sees the password.
///
/// Source: docs.nextcloud.com, developer_manual/client_apis/LoginFlow.
public struct NextcloudLoginFlow: Sendable {
    /// What a person granted.
    public struct Credentials: Hashable, Sendable {
        /// The name for basic authentication.
        public var user: String
        /// A password of the program's own; a secret.
        public var appPassword: String
    }

    /// What the person opens, in any browser on any machine.
    public let loginURL: String
    private let endpoint: String
    private let token: String
    private let http: any HTTPClient

    /// How long a flow may be polled: the server forgets it then.
    public static let lifetime = Duration.seconds(20 * 60)
    /// The pause between two polls.
    public static let pollPause = Duration.seconds(1)

    private struct Begun: Decodable {
        struct Poll: Decodable {
            var token: String
            var endpoint: String
        }
        var poll: Poll
        var login: String
    }

    private struct Granted: Decodable {
        var server: String
        var loginName: String
        var appPassword: String
    }

    /// Begins a flow at a server that `WebDAVDiscovery` recognised.
    ///
    /// `name` is shown to the person, and names the app password in the settings: `Oort (HOSTNAME)`.
    public static func start(
        at server: WebDAVDiscovery.Server,
        name: String,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> NextcloudLoginFlow {
        let url = server.address.program(["index.php", "login", "v2"])
        let response = try await post(url, form: "", name: name, http: http)
        switch response.head.status {
        case 200: break
        case 404, 405:
            throw WebDAVSignInError(
                "The server at \(server.address.origin) has no sign-in by the browser. Make an app "
                    + "password in its settings (Security), and sign in with --user and "
                    + "--password-file."
            )
        case 503:
            throw WebDAVSignInError(
                "The server at \(server.address.origin) is under maintenance. Try again later."
            )
        case 429: throw tooMany(server.address.origin)
        default:
            throw WebDAVSignInError(
                "The server at \(server.address.origin) does not begin a sign-in (status "
                    + "\(response.head.status))."
            )
        }
        guard let begun = try? JSONDecoder().decode(Begun.self, from: Data(response.body)) else {
            throw WebDAVSignInError("What answers at \(url) is not a Nextcloud's sign-in.")
        }
        for link in [begun.login, begun.poll.endpoint] {
            guard isAt(server.address.origin, link) else {
                throw WebDAVSignInError(
                    "The server at \(server.address.origin) sends the sign-in to another host. Its "
                        + "administrator must set overwrite.cli.url and overwritehost to the address "
                        + "that you use."
                )
            }
        }
        return NextcloudLoginFlow(
            loginURL: begun.login,
            endpoint: begun.poll.endpoint,
            token: begun.poll.token,
            http: http
        )
    }

    /// Asks once whether the person has granted it; nil while not.
    ///
    /// The grant is answered once only. A connection that fails is no error: ask again.
    public func poll() async throws(WebDAVSignInError) -> Credentials? {
        let allowed = CharacterSet.alphanumerics
        let form =
            "token=" + (token.addingPercentEncoding(withAllowedCharacters: allowed) ?? token)
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await http.send(Self.request(endpoint, form: form), limit: 1 << 20)
        } catch {
            switch error {
            case .cancelled: throw WebDAVSignInError("The sign-in was cancelled.")
            case .untrusted(let detail):
                throw WebDAVSignInError("The server's certificate is not trusted (\(detail)).")
            default: return nil
            }
        }
        guard response.head.status == 200 else {
            if response.head.status == 429 { throw Self.tooMany(endpoint) }
            return nil
        }
        guard let granted = try? JSONDecoder().decode(Granted.self, from: Data(response.body)),
            !granted.loginName.has(":")
        else { throw WebDAVSignInError("The server's answer to the sign-in is not readable.") }
        return Credentials(user: granted.loginName, appPassword: granted.appPassword)
    }

    private static func tooMany(_ place: String) -> WebDAVSignInError {
        WebDAVSignInError(
            "The server at \(place) refuses all logins from here for half an hour, since too many wrong "
                + "passwords came from here."
        )
    }

    private static func isAt(_ origin: String, _ link: String) -> Bool {
        link.lowercased().begins(with: origin + "/")
    }

    private static func request(_ url: String, form: String, name: String? = nil) -> HTTPRequest {
        var request = HTTPRequest(method: "POST", url: url)
        request.isAuthorized = false
        request.headers = [
            ("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json"),
        ]
        if let name { request.headers.append(("User-Agent", name)) }
        request.body = .bytes(Array(form.utf8))
        return request
    }

    private static func post(
        _ url: String,
        form: String,
        name: String,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> HTTPResponse {
        do throws(TransportError) {
            return try await http.send(request(url, form: form, name: name), limit: 1 << 20)
        } catch {
            throw WebDAVSignInError("\(url) does not answer (\(error)).")
        }
    }
}
