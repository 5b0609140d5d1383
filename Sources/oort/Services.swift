import Foundation
import Logging
import OortBox
import OortDropbox
import OortFTP
import OortGoogleDrive
import OortModel
import OortOneDrive
import OortS3
import OortSFTP
import OortSignIn
import OortTransport
import OortWeather
import OortWebDAV

/// The services that Oort speaks to, one registration each.
///
/// Nothing else knows which there are.
enum Services {
    static let all = [dropbox, drive, oneDrive, box, nextcloud, webDAV, sftp, ftp, s3, weather]

    /// Those where a person signs in with OAuth, in a browser.
    static let withOAuth = all.filter { $0.oauth != nil }

    private static let dropbox = CloudService(
        name: "dropbox",
        title: "Dropbox",
        oauth: OAuthAccess(
            addresses: {
                let endpoints = DropboxEndpoints($0)
                return [endpoints.api, endpoints.content, endpoints.notify]
            },
            authorization: { .dropbox(at: DropboxEndpoints($0)) },
            makeProvider: { client, hosts, _, _ in
                DropboxProvider(client: client, endpoints: DropboxEndpoints(hosts))
            },
            requests: .dropbox,
            answerRules: .dropbox,
            registration: .dropbox
        )
    )

    private static let drive = CloudService(
        name: "drive",
        title: "Google Drive",
        oauth: OAuthAccess(
            addresses: {
                let endpoints = GoogleDriveEndpoints($0)
                return [endpoints.api, endpoints.oauth]
            },
            authorization: { .googleDrive(at: GoogleDriveEndpoints($0)) },
            makeProvider: { client, hosts, _, revoke in
                GoogleDriveProvider(
                    client: client,
                    endpoints: GoogleDriveEndpoints(hosts),
                    revoke: revoke
                )
            },
            requests: .googleDrive,
            answerRules: .googleDrive,
            registration: .drive
        )
    )

    private static let oneDrive = CloudService(
        name: "onedrive",
        title: "OneDrive",
        oauth: OAuthAccess(
            addresses: {
                let endpoints = OneDriveEndpoints($0)
                return [endpoints.graph, endpoints.signIn]
            },
            authorization: { .oneDrive(at: OneDriveEndpoints($0)) },
            makeProvider: { client, hosts, _, _ in
                OneDriveProvider(client: client, endpoints: OneDriveEndpoints(hosts))
            },
            requests: .oneDrive,
            registration: .oneDrive
        ),
        noTrash: "Microsoft lists OneDrive's recycle bin on its web page only: onedrive.com, "
            + "Recycle bin."
    )

    private static let box = CloudService(
        name: "box",
        title: "Box",
        oauth: OAuthAccess(
            addresses: {
                let endpoints = BoxEndpoints($0)
                return [endpoints.api, endpoints.upload]
            },
            authorization: { .box(at: BoxEndpoints($0)) },
            makeProvider: { client, hosts, top, revoke in
                BoxProvider(
                    client: client,
                    endpoints: BoxEndpoints(hosts),
                    top: top,
                    revoke: revoke
                )
            },
            beginsAtFolders: true,
            requests: .box,
            answerRules: .box,
            registration: .box
        )
    )

    private static let nextcloud = CloudService(
        name: "nextcloud",
        title: "Nextcloud",
        place: dav
    )

    private static let webDAV = CloudService(name: "webdav", title: "WebDAV", place: dav)

    private static let dav = PlaceAccess { connection throws(ProviderError) in
        let account: WebDAVDiscovery.Account = try connection.address()
        let http = AccountClient.make(
            wire: connection.wire,
            tokens: connection.secret,
            signer: BasicSigner(user: account.address.user ?? ""),
            rules: .webDAV,
            requests: RequestLimit(.webDAV),
            policy: connection.policy,
            meter: connection.meter,
            logger: connection.logger
        )
        return WebDAVClient(
            http: http,
            address: account.address,
            dialect: account.dialect,
            abilities: account.abilities,
            push: account.dialect == .nextcloud
                ? CloudPush(
                    isEncrypted: account.address.origin.hasPrefix("https:"),
                    user: account.address.user ?? "",
                    secret: connection.secret,
                    settings: CurlClient.Settings(
                        userAgent: OortVersion.userAgent,
                        caFile: connection.caFile
                    ),
                    logger: connection.logger
                ) : nil
        )
    }

    private static let s3 = CloudService(
        name: "s3",
        title: "S3",
        place: PlaceAccess { connection throws(ProviderError) in
            let kept: S3Bucket = try connection.address()
            let tokens: any AccessTokens =
                if let profile = kept.profile {
                    S3ProfileTokens(
                        profile: profile,
                        environment: ProcessInfo.processInfo.environment
                    )
                } else { connection.secret }
            let signer = S3Signer(region: kept.account.place.region)
            let http = AccountClient.make(
                wire: connection.wire,
                tokens: tokens,
                signer: signer,
                rules: .s3,
                requests: RequestLimit(.s3),
                policy: connection.policy,
                meter: connection.meter,
                logger: connection.logger
            )
            return S3Client(
                client: http,
                account: kept.account,
                signer: signer,
                linkKeys: tokens,
                begunUploads: connection.begunUploads
            )
        }
    )

    private static let sftp = CloudService(
        name: "sftp",
        title: "SFTP",
        place: PlaceAccess { connection throws(ProviderError) in
            let address: SFTPAddress = try connection.address()
            return SFTPClient(
                SSHConnection(
                    address,
                    folder: connection.runtimeFolder,
                    environment: ProcessInfo.processInfo.environment,
                    secret: connection.secret
                ),
                keepsTrash: connection.keepsTrash,
                bandwidth: connection.bandwidth
            )
        }
    )

    private static let ftp = CloudService(
        name: "ftp",
        title: "FTP",
        place: PlaceAccess { connection throws(ProviderError) in
            FTPClient(
                try connection.address(),
                secret: connection.secret,
                settings: FTPSettings(caFile: connection.caFile),
                keepsTrash: connection.keepsTrash,
                meter: connection.meter,
                bandwidth: connection.bandwidth
            )
        }
    )

    private static let weather = CloudService(
        name: "weather",
        title: "the weather",
        source: SourceAccess { connection throws(ProviderError) in
            let account: WeatherAccount = try connection.address()
            return AccountSource(identity: WeatherProvider.identity(account)) {
                file throws(ProviderError) in
                // A file of old weather is better than a long wait for new.
                var policy = connection.policy
                policy.interactivePatience = min(policy.interactivePatience, .seconds(5))
                return try WeatherProvider(
                    account,
                    client: AccountClient.make(
                        wire: connection.wire,
                        tokens: FixedToken(""),
                        requests: RequestLimit(RequestBounds(first: 4, most: 4)),
                        policy: policy,
                        meter: connection.meter,
                        logger: connection.logger
                    ),
                    endpoints: WeatherEndpoints(connection.hosts),
                    userAgent: "io.github.oort.Oort/\(OortVersion.current)"
                        + (account.contact.map { " \($0)" } ?? ""),
                    units: connection.units,
                    file: file,
                    logger: connection.logger
                )
            }
        }
    )

    /// The service of this name.
    static func named(_ name: String) -> CloudService? { all.first { $0.name == name } }
}

/// What the command line knows of a service.
struct CloudService: Sendable {
    /// How one comes to it.
    enum Access: Sendable {
        /// In a browser, with a token.
        case oauth(OAuthAccess)
        /// At an address of the person's, a server or a bucket.
        case place(PlaceAccess)
        /// Without a sign-in: what is the person's lies on this machine.
        case source(SourceAccess)
    }

    /// As in `oort login SERVICE`, and the default name of an account.
    let name: String
    /// For people.
    let title: String
    /// How one comes to it.
    let access: Access
    /// Why an account has no trash that Oort can list, where that is not for want of one.
    let noTrash: String?

    init(name: String, title: String, oauth: OAuthAccess, noTrash: String? = nil) {
        self.name = name
        self.title = title
        access = .oauth(oauth)
        self.noTrash = noTrash
    }

    init(name: String, title: String, place: PlaceAccess) {
        self.name = name
        self.title = title
        access = .place(place)
        noTrash = nil
    }

    init(name: String, title: String, source: SourceAccess) {
        self.name = name
        self.title = title
        access = .source(source)
        noTrash = nil
    }

    /// How one signs in with OAuth; nil where one does not.
    var oauth: OAuthAccess? {
        if case .oauth(let access) = access { access } else { nil }
    }
}

/// A service where a person signs in in a browser, at the hosts of its company.
struct OAuthAccess: Sendable {
    /// Takes the account's tokens back at the service.
    typealias Revoke = @Sendable () async throws(ProviderError) -> Void
    /// The strategy for one account over a client that carries the account's token; the folder is where
    /// the account begins, nil for all that the person has there.
    typealias MakeProvider =
        @Sendable (any HTTPClient, Hosts, AccountFolder?, @escaping Revoke) -> any Provider

    /// The addresses without which nothing works, for who looks whether they answer.
    let addresses: @Sendable (Hosts) -> [String]
    /// How one signs in.
    let authorization: @Sendable (Hosts) -> OAuthService
    /// The strategy for one account.
    let makeProvider: MakeProvider
    /// Whether an account may begin at a folder.
    let beginsAtFolders: Bool
    /// How many requests of an account may be in flight.
    let requests: RequestBounds
    /// Which error answers only ask for patience.
    let answerRules: AnswerRules
    /// How a person registers Oort there; nil where no registration is needed.
    let registration: RegistrationGuide?

    init(
        addresses: @escaping @Sendable (Hosts) -> [String],
        authorization: @escaping @Sendable (Hosts) -> OAuthService,
        makeProvider: @escaping MakeProvider,
        beginsAtFolders: Bool = false,
        requests: RequestBounds,
        answerRules: AnswerRules = .standard,
        registration: RegistrationGuide? = nil
    ) {
        self.addresses = addresses
        self.authorization = authorization
        self.makeProvider = makeProvider
        self.beginsAtFolders = beginsAtFolders
        self.requests = requests
        self.answerRules = answerRules
        self.registration = registration
    }
}

/// A service of places, at an address of the person's.
struct PlaceAccess: Sendable {
    /// A client for one account; nothing is asked of the server yet.
    let connect: @Sendable (PlaceConnection) throws(ProviderError) -> any PlaceClient
}

/// A service without sign-in, of which each person has a list on this machine.
struct SourceAccess: Sendable {
    /// The account; nothing is asked of the service.
    let connect: @Sendable (PlaceConnection) throws(ProviderError) -> AccountSource
}

/// One account of such a service.
struct AccountSource: Sendable {
    /// Whose it is.
    let identity: AccountIdentity
    /// The strategy, whose list lies in a file of its own.
    let provider: @Sendable (_ file: String) throws(ProviderError) -> any Provider
}

/// Where an account at S3 lies, and where its keys are.
struct S3Bucket: Codable, Sendable {
    /// The bucket, and what its store can do.
    var account: S3Account
    /// The profile of `~/.aws` whose keys count; nil where the keys are kept with the account.
    var profile: String?
}

/// What a client of places is made of.
struct PlaceConnection: Sendable {
    /// Where the account lies, in the service's own JSON (`RegisteredAccount.address`).
    let text: String
    /// The account's secret, where it has one.
    let secret: any AccessTokens
    /// The way to hosts.
    let wire: any HTTPClient
    /// The limits of contents that go another way.
    let bandwidth: Bandwidth
    /// How long is tried again.
    let policy: RetryPolicy
    /// Counts what goes over the wire.
    let meter: TrafficMeter
    /// A file of what was begun at the service and has not ended; its folder is there while it is mounted.
    let begunUploads: String
    /// A folder of the account's own for sockets.
    let runtimeFolder: String
    /// A file of certificate authorities trusted in place of the system's, where the settings name one.
    let caFile: String?
    /// Where hosts are.
    let hosts: Hosts
    /// The units in which the weather is shown.
    let units: WeatherUnits
    /// Whether what is deleted is kept for a while in a trash that Oort makes at the service.
    let keepsTrash: Bool
    let logger: Logger

    /// Where the account lies.
    ///
    /// - Throws: `.signedOut` for what an older or newer Oort wrote otherwise.
    func address<Address: Decodable>() throws(ProviderError) -> Address {
        do { return try JSONDecoder().decode(Address.self, from: Data(text.utf8)) } catch {
            throw ProviderError(
                .signedOut,
                detail: "where the account lies is not known any more; sign in again"
            )
        }
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

extension BoxEndpoints {
    /// Box's servers, or where the settings say.
    init(_ hosts: Hosts) {
        let live = Self.live
        self.init(
            api: hosts.place(live.api),
            upload: hosts.place(live.upload),
            account: hosts.place(live.account)
        )
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

extension WeatherEndpoints {
    /// The weather services, or where the settings say.
    init(_ hosts: Hosts) {
        let live = Self.live
        self.init(
            openMeteo: hosts.place(live.openMeteo),
            geocoding: hosts.place(live.geocoding),
            metNorway: hosts.place(live.metNorway)
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
