import OortDropbox
import OortGoogleDrive
import OortModel
import OortOneDrive
import OortSignIn
import OortTransport

/// The services that Oort speaks to, one registration each.
///
/// Nothing else knows which there are.
enum Services {
    static let all = [dropbox, drive, oneDrive]

    private static let dropbox = CloudService(
        name: "dropbox",
        title: "Dropbox",
        addresses: {
            let endpoints = DropboxEndpoints($0)
            return [endpoints.api, endpoints.content, endpoints.notify]
        },
        authorization: { .dropbox(at: DropboxEndpoints($0)) },
        makeProvider: { client, hosts, _ in
            DropboxProvider(client: client, endpoints: DropboxEndpoints(hosts))
        },
        requests: .dropbox,
        answerRules: .dropbox
    )

    private static let drive = CloudService(
        name: "drive",
        title: "Google Drive",
        addresses: {
            let endpoints = GoogleDriveEndpoints($0)
            return [endpoints.api, endpoints.oauth]
        },
        authorization: { .googleDrive(at: GoogleDriveEndpoints($0)) },
        makeProvider: {
            GoogleDriveProvider(client: $0, endpoints: GoogleDriveEndpoints($1), revoke: $2)
        },
        requests: .googleDrive,
        answerRules: .googleDrive
    )

    private static let oneDrive = CloudService(
        name: "onedrive",
        title: "OneDrive",
        addresses: {
            let endpoints = OneDriveEndpoints($0)
            return [endpoints.graph, endpoints.signIn]
        },
        authorization: { .oneDrive(at: OneDriveEndpoints($0)) },
        makeProvider: { client, hosts, _ in
            OneDriveProvider(client: client, endpoints: OneDriveEndpoints(hosts))
        },
        requests: .oneDrive
    )

    /// The service of this name.
    static func named(_ name: String) -> CloudService? { all.first { $0.name == name } }
}

/// What the command line knows of a service.
struct CloudService: Sendable {
    /// Takes the account's tokens back at the service.
    typealias Revoke = @Sendable () async throws(ProviderError) -> Void

    /// As in `oort login SERVICE`, and the default name of an account.
    let name: String
    /// For people.
    let title: String
    /// The addresses without which nothing works, for who looks whether they answer.
    let addresses: @Sendable (Hosts) -> [String]
    /// How one signs in.
    let authorization: @Sendable (Hosts) -> OAuthService
    /// The strategy for one account over a client that carries the account's token.
    let makeProvider: @Sendable (any HTTPClient, Hosts, @escaping Revoke) -> any Provider
    /// How many requests of an account may be in flight.
    let requests: RequestBounds
    /// Which error answers only ask for patience.
    let answerRules: AnswerRules

    init(
        name: String,
        title: String,
        addresses: @escaping @Sendable (Hosts) -> [String],
        authorization: @escaping @Sendable (Hosts) -> OAuthService,
        makeProvider: @escaping @Sendable (any HTTPClient, Hosts, @escaping Revoke) -> any Provider,
        requests: RequestBounds,
        answerRules: AnswerRules = .standard
    ) {
        self.name = name
        self.title = title
        self.addresses = addresses
        self.authorization = authorization
        self.makeProvider = makeProvider
        self.requests = requests
        self.answerRules = answerRules
    }
}

/// Where hosts are: at themselves, or where the settings say (`[SERVICE.endpoints]`).
struct Hosts: Sendable {
    private let places: [String: String]

    /// Hosts of which some are elsewhere: base addresses by host name.
    init(_ places: [String: String]) { self.places = places }

    /// The address with its scheme and host replaced where the settings say so.
    func place(_ address: String) -> String {
        let scheme = "https://"
        guard address.hasPrefix(scheme) else { return address }
        let rest = address.dropFirst(scheme.count)
        let host = rest.prefix { $0 != "/" }
        guard let place = places[String(host)] else { return address }
        return (place.hasSuffix("/") ? String(place.dropLast()) : place)
            + rest.dropFirst(host.count)
    }
}

extension DropboxEndpoints {
    /// Dropbox's servers, or where the settings say.
    init(_ hosts: Hosts) {
        let live = Self.live
        self.init(
            api: hosts.place(live.api),
            content: hosts.place(live.content),
            notify: hosts.place(live.notify),
            web: hosts.place(live.web)
        )
    }
}

extension GoogleDriveEndpoints {
    /// Google's servers, or where the settings say.
    init(_ hosts: Hosts) {
        let live = Self.live
        self.init(
            api: hosts.place(live.api),
            accounts: hosts.place(live.accounts),
            oauth: hosts.place(live.oauth)
        )
    }
}

extension OneDriveEndpoints {
    /// Microsoft's servers, or where the settings say.
    init(_ hosts: Hosts) {
        let live = Self.live
        self.init(graph: hosts.place(live.graph), signIn: hosts.place(live.signIn))
    }
}
