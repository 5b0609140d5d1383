import Foundation
import OortModel
public import OortTransport

/// Why a sign-in cannot go on: one sentence that says what to do.
public struct WebDAVSignInError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence, for the person at the terminal; no secrets.
    public let description: String
    /// Whether the person must sign in anew (a wrong or revoked password).
    public let isPasswordRefused: Bool

    init(_ description: String, isPasswordRefused: Bool = false) {
        self.description = description
        self.isPasswordRefused = isPasswordRefused
    }
}

/// Finds out what lies behind an address, and what an account there can do.
public enum WebDAVDiscovery {
    /// What is known of a server before anybody has signed in.
    public struct Server: Hashable, Sendable {
        /// Where it is; the place of the files at a cloud is complete after the sign-in only.
        public var address: WebDAVAddress
        /// Which family it is of.
        public var dialect: WebDAVDialect
        /// The product as it calls itself, such as `Nextcloud 34.0.1`; nil of most plain servers.
        public var product: String?
        /// The space that the address names, or a person chose (`WebDAVSpace`): its name, its address or its
        /// id; nil for the person's own.
        public var space: String?
        /// The id of the folder where the account begins, at an Infinite Scale of which the address names one;
        /// nil for the folder of `address`.
        public var folderID: String?

        /// Places the account in a space and at a folder that a person names in addition to the address.
        ///
        /// - Throws: for a space at a server without spaces, and in addition to an address that names a
        ///   folder, which is in a space already.
        public mutating func choose(
            space: String?,
            folder: [String]?
        ) throws(WebDAVSignInError) {
            if let folder {
                if dialect == .plain {
                    address.files += folder
                } else {
                    address.folder = folder
                    folderID = nil
                }
            }
            guard let space else { return }
            guard dialect == .infinitescale else {
                throw WebDAVSignInError(
                    "Only an OpenCloud or ownCloud Infinite Scale has spaces. For a folder of the "
                        + "account: --root FOLDER"
                )
            }
            guard folder != nil || address.folder.isEmpty && folderID == nil else {
                throw WebDAVSignInError(
                    "The address names a folder, which lies in a space already. With --space give "
                        + "the server's address, and name a folder in the space by --root FOLDER."
                )
            }
            self.space = space
        }
    }

    /// What a sign-in found, to be kept with the account: all but the password.
    public struct Account: Hashable, Sendable, Codable {
        /// Where the files are, and who asks.
        public var address: WebDAVAddress
        /// Which family the server is of.
        public var dialect: WebDAVDialect
        /// What the server was seen to do.
        public var abilities: WebDAVAbilities
        /// The stable key of the account, as `PlaceOwner.id`.
        public var ownerID: String
        /// The person's name, for display.
        public var displayName: String
        /// The e-mail address, where the server has it.
        public var email: String?
    }

    // MARK: The server

    /// The server that an address leads to: a person may paste anything from a bare host to a browser's
    /// address.
    ///
    /// No password is sent. A given `dialect` is trusted.
    public static func server(
        at text: String,
        dialect: WebDAVDialect? = nil,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> Server {
        let pasted = try PastedAddress(text)
        var stranger: String?
        if dialect != .plain {
            let found = try await cloud(pasted, dialect: dialect, stranger: &stranger, http: http)
            if let found { return found }
        }
        if let dialect, dialect != .plain {
            throw WebDAVSignInError(
                "No \(dialect.rawValue) server answers at \(pasted.text). Give the address under "
                    + "which its web pages open."
            )
        }
        do throws(WebDAVSignInError) {
            var server = try await plain(pasted, http: http)
            server.product = stranger
            return server
        } catch { throw WebDAVSignInError(named(stranger) + error.description) }
    }

    /// How a sentence begins about a server that says what it is, and is none of the clouds.
    private static func named(_ product: String?) -> String {
        product.map { "The server calls itself \($0), which Oort knows as plain WebDAV only. " }
            ?? ""
    }

    /// The cloud at an address; nil where there is none, with another server's own name in `stranger`.
    private static func cloud(
        _ pasted: PastedAddress,
        dialect: WebDAVDialect?,
        stranger: inout String?,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> Server? {
        for base in pasted.bases {
            let address = WebDAVAddress(origin: pasted.origin, base: base, files: [])
            guard
                let (response, origin) = try await get(address.program(["status.php"]), http: http),
                response.head.status == 200,
                let status = try? JSONDecoder().decode(
                    CloudStatus.self,
                    from: Data(response.body)
                ), status.version != nil
            else { continue }
            guard let found = dialect ?? status.dialect else {
                stranger = stranger ?? status.product
                continue
            }
            if status.maintenance == true {
                throw WebDAVSignInError(
                    "The server at \(pasted.text) is under maintenance. Try again later."
                )
            }
            let named = try pasted.named(below: base)
            if let id = named.folderID, found != .infinitescale {
                throw WebDAVSignInError(
                    "The address names its folder by the number \(id) alone. Open it in a browser and "
                        + "give the address that is shown then, or give the server's address and "
                        + "name the folder: --root FOLDER."
                )
            }
            return Server(
                address: WebDAVAddress(
                    origin: origin,
                    base: base,
                    files: [],
                    folder: named.folder,
                    user: pasted.user
                ),
                dialect: found,
                product: status.product,
                space: found == .infinitescale ? named.space : nil,
                folderID: named.folderID
            )
        }
        return nil
    }

    private static func plain(
        _ pasted: PastedAddress,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> Server {
        var address = WebDAVAddress(
            origin: pasted.origin,
            files: pasted.path,
            user: pasted.user
        )
        for _ in 0..<4 {
            var request = WebDAVAPI.propfind(
                address.text,
                depth: 0,
                properties: [.dav("resourcetype")]
            )
            request.isAuthorized = false
            let response = try await answer(to: request, at: address.origin, http: http)
            switch response.head.status {
            case 207:
                guard (try? Multistatus.responses(in: response.body)) != nil else {
                    throw notWebDAV(pasted)
                }
                return Server(address: address, dialect: .plain)
            case 401:
                let schemes = response.head.headers.filter {
                    $0.name.lowercased() == "www-authenticate"
                }.map { $0.value.lowercased() }
                guard schemes.isEmpty || schemes.contains(where: { $0.contains("basic") }) else {
                    throw WebDAVSignInError(
                        "The server at \(pasted.text) wants another way of signing in than a "
                            + "password over an encrypted connection (Basic), which Oort does not "
                            + "have."
                    )
                }
                return Server(address: address, dialect: .plain)
            case 301, 302, 307, 308:
                guard let location = response.head.header("Location") else {
                    throw notWebDAV(pasted)
                }
                let next = try redirected(location, from: address.text)
                guard let names = PercentEncoding.names(ofReference: next.path),
                    next.origin != address.origin || names != address.files
                else { throw notWebDAV(pasted) }
                address.origin = next.origin
                address.files = names
            case 404:
                throw WebDAVSignInError(
                    "The server has nothing at \(address.text). Look up the WebDAV address in its "
                        + "settings: it often ends in /dav, /webdav or a user's name."
                )
            case 403:
                throw WebDAVSignInError("The server does not let anybody in at \(address.text).")
            case 503, 429:
                throw WebDAVSignInError(
                    "The server at \(pasted.text) asks for patience (status "
                        + "\(response.head.status)). Try again later."
                )
            default: throw notWebDAV(pasted)
            }
        }
        throw notWebDAV(pasted)
    }

    private static func notWebDAV(_ pasted: PastedAddress) -> WebDAVSignInError {
        WebDAVSignInError(
            "What answers at \(pasted.text) is no WebDAV server. Look up the WebDAV address in the "
                + "server's settings."
        )
    }

    // MARK: Requests

    /// Asks without a password, and follows redirects on the same host.
    ///
    /// - Returns: the answer and the origin that gave it; nil where an answer leads nowhere.
    private static func get(
        _ url: String,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> (HTTPResponse, origin: String)? {
        var url = url
        for _ in 0..<4 {
            let origin = origin(of: url)
            var request = HTTPRequest(method: "GET", url: url, repetition: .harmless)
            request.isAuthorized = false
            request.headers = [("Accept", "application/json")]
            let response = try await answer(to: request, at: origin, http: http)
            guard [301, 302, 303, 307, 308].contains(response.head.status) else {
                return (response, origin)
            }
            // Only a server whose programs lie here redirects to them; a login page does not.
            guard let location = response.head.header("Location") else { return nil }
            let next = try redirected(location, from: url)
            guard next.path.ends(with: "status.php") else { return nil }
            url = next.origin + next.path
        }
        return nil
    }

    private static func answer(
        to request: HTTPRequest,
        at origin: String,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> HTTPResponse {
        do throws(TransportError) {
            return try await http.send(request, limit: 1 << 20)
        } catch {
            switch error {
            case .untrusted(let detail):
                throw WebDAVSignInError(
                    "The certificate of \(origin) is not trusted (\(detail)). If it is your own "
                        + "server's, name its authority by the setting ca_file."
                )
            case .unreachable(let detail), .broken(let detail):
                throw WebDAVSignInError(
                    "\(origin) does not answer (\(detail)). Look at the address and the network."
                )
            default: throw WebDAVSignInError("\(origin) cannot be asked: \(error)")
            }
        }
    }

    /// Where a redirect leads: to the same host only, and never from an encrypted connection to an
    /// open one.
    private static func redirected(
        _ location: String,
        from url: String
    ) throws(WebDAVSignInError) -> (origin: String, path: String) {
        let before = origin(of: url)
        guard location.firstRange(of: "://") != nil else {
            return (before, pathOnly(location))
        }
        let after = origin(of: location)
        let host = PastedAddress.host(of: after)
        let isSameHost = host != nil && host == PastedAddress.host(of: before)
        let staysSafe = after.begins(with: "https://") || before.begins(with: "http://")
        guard isSameHost, staysSafe else {
            throw WebDAVSignInError(
                "\(before) sends on to \(after). If that is the server that you mean, give its "
                    + "address."
            )
        }
        let rest = location.dropFirst(after.count)
        return (after, pathOnly(String(rest)))
    }

    private static func pathOnly(_ text: String) -> String {
        String(text.prefix { $0 != "?" && $0 != "#" })
    }

    private static func origin(of url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url.lowercased() }
        let rest = url[scheme.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        return String(url[..<end]).lowercased()
    }

    // MARK: The account

    /// Signs in and finds out what is there and what the server can do.
    ///
    /// `http` adds the password. At a plain server some files are written in a folder `.oort-probe-…` and
    /// removed again. A wrong password is sent once.
    public static func account(
        at server: Server,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> Account {
        do throws(ProviderError) {
            return server.dialect.isCloud
                ? try await cloudAccount(server, http: http)
                : try await plainAccount(server, http: http)
        } catch {
            throw WebDAVSignInError(
                sentence(error, server),
                isPasswordRefused: error.kind == .signedOut
            )
        }
    }

    /// An app password for this program, where `http` adds the person's own one to an account at a
    /// Nextcloud; nil where that is one already, or the server makes none.
    ///
    /// - Throws: where it is not known whether a password was made.
    public static func appPassword(
        for account: Account,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) -> String? {
        guard account.dialect == .nextcloud else { return nil }
        let api = WebDAVAPI(client: http, address: account.address, dialect: account.dialect)
        do throws(ProviderError) {
            return try await CloudPrograms(api: api).newAppPassword()
        } catch {
            guard !error.isLastingRefusal else { return nil }
            throw WebDAVSignInError(
                "The server made no app password in place of the one that was typed: \(error.detail)"
            )
        }
    }

    /// Withdraws the app password with which `http` signs, which was made at a Nextcloud for a sign-in that
    /// failed.
    public static func removeAppPassword(
        at server: Server,
        http: any HTTPClient
    ) async throws(WebDAVSignInError) {
        let api = WebDAVAPI(client: http, address: server.address, dialect: server.dialect)
        do throws(ProviderError) {
            try await CloudPrograms(api: api).removeAppPassword()
        } catch {
            throw WebDAVSignInError(
                "The server did not take the app password back: \(error.detail)."
            )
        }
    }

    private static func plainAccount(
        _ server: Server,
        http: any HTTPClient
    ) async throws(ProviderError) -> Account {
        let first = WebDAVClient(
            http: http,
            address: server.address,
            dialect: .plain,
            abilities: WebDAVAbilities()
        )
        _ = try await first.ownEntry(of: .root, depth: 0, isFolder: true, isSignIn: true)
        let owner = WebDAVClient.owner(of: server.address)
        guard try await first.entry(at: .root).kind == .folder else {
            throw ProviderError(.notAFolder, detail: "a file is there")
        }
        let abilities = try await WebDAVAbilities.probed(http: http, address: server.address)
        return Account(
            address: server.address,
            dialect: .plain,
            abilities: abilities,
            ownerID: owner.id,
            displayName: owner.displayName
        )
    }

    private static func cloudAccount(
        _ server: Server,
        http: any HTTPClient
    ) async throws(ProviderError) -> Account {
        var address = server.address
        let programs = CloudPrograms(
            api: WebDAVAPI(client: http, address: address, dialect: server.dialect)
        )
        let person = try await programs.person(isSignIn: true)
        address.userID = person.id
        if server.dialect == .infinitescale {
            let space = try await InfiniteScaleSpaces(api: programs.api).space(server.space)
            address.space = space
            address.files = address.base + ["dav", "spaces", space.id]
            if let id = server.folderID {
                address.folder = try await InfiniteScaleSpaces(api: programs.api).names(toItem: id)
            }
        } else {
            address.files = address.base + ["remote.php", "dav", "files", person.id]
        }
        var abilities = WebDAVAbilities()
        abilities.cloud = try await programs.capabilities()
        let client = WebDAVClient(
            http: http,
            address: address,
            dialect: server.dialect,
            abilities: abilities
        )
        // For a person who does not exist, the server answers with an empty folder without a tag.
        let root = try await client.entry(at: .root)
        guard root.kind == .folder else {
            throw ProviderError(.notAFolder, detail: "a file is there")
        }
        if let id = server.folderID, root.key?.isSameText(as: id) != true {
            throw ProviderError(
                .unsupported,
                detail: "the server does not say where the folder of the address lies; give the "
                    + "server's address, and name the folder by --root FOLDER"
            )
        }
        abilities.cloud?.fingerprint = client.memory.fingerprint
        let owner = WebDAVClient.owner(person, address: address)
        return Account(
            address: address,
            dialect: server.dialect,
            abilities: abilities,
            ownerID: owner.id,
            displayName: owner.displayName,
            email: owner.email
        )
    }

    /// An error of a sign-in in words.
    private static func sentence(_ error: ProviderError, _ server: Server) -> String {
        let address = server.address
        let base = address.base.isEmpty ? "" : "/" + PercentEncoding.path(address.base)
        let place = server.dialect.isCloud ? address.origin + base : address.text
        let before = server.dialect == .plain ? named(server.product) : ""
        return before + sentence(error, at: place, address)
    }

    private static func sentence(
        _ error: ProviderError,
        at place: String,
        _ address: WebDAVAddress
    ) -> String {
        switch error.kind {
        case .signedOut:
            "The server at \(place) does not take the password"
                + (address.user.map { " of \($0)" } ?? "") + ". It was tried once."
        case .outcomeUnknown:
            "The server gives this account no folder at \(place) (\(error.detail)). Look at the "
                + "address, and try again."
        // Apache calls the address of a file with a slash at its end a bad request.
        case .notFound, .badRequest:
            "The server has no folder at \(place) for this account (\(error.detail))."
        case .quotaExceeded:
            "There is no room at \(place), and what the server can do is found out with some small files. "
                + "Make room there, and sign in again."
        case .notAFolder: "A file lies at \(place); an account begins at a folder."
        case .noPermission: "The server does not let this account in at \(place)."
        case .malformedAnswer: "What answers at \(place) does not speak WebDAV (\(error.detail))."
        case .rateLimited:
            "The server at \(place) asks for patience: perhaps too many wrong passwords came from "
                + "here. Try again in half an hour."
        case .offline: "The server at \(place) cannot be used at present (\(error.detail))."
        default: "The sign-in at \(place) failed: \(error.detail)."
        }
    }
}
