import Foundation
import OortModel
import Synchronization

/// A Nextcloud of one person: its WebDAV, the OCS calls around it, and Login Flow v2.
///
/// Facts of a running Nextcloud 34: folder tags change with anything below, ids stay over moves,
/// checksums are kept unseen, old times are an error although the file is written. As an ownCloud 10 it
/// goes by that one's source (github.com/owncloud/core): checksums are compared and its own, no letter says
/// that something can be read, no browser's sign-in, no namespace of Nextcloud's.
public final class NextcloudSimulator: SimulatedService, DAVSimulator {
    /// How a storage that is not there shows.
    public enum Down: Sendable, Hashable {
        /// Listed without a tag; asking for it gives 503.
        case unavailable
        /// Asking for it gives itself alone, without a tag.
        case empty
        /// It is not even listed.
        case vanished
    }

    /// How the server behaves; may be changed at any time.
    public struct Habits: Sendable, Hashable {
        /// Everything but `status.php` gives 503.
        public var isUnderMaintenance = false
        /// Folders, by their path from the root, whose storage is down.
        public var down: [String: Down] = [:]
        /// What changes in external storages happens behind the server's back: it shows in no folder's tag.
        public var overlooksStorages = false
        /// Names that Windows could not store are refused.
        public var refusesWindowsNames = false
        /// So many uploads in parts are put together, but answered with 504.
        public var slowMoves = 0
        /// For so many looks at its session an upload is still put together, after a proxy gave up with 504.
        public var looksWhileAssembling = 0
        /// So many uploads in parts are stored with another byte at their end.
        public var damages = 0
        /// The server computes no checksum, neither of what comes nor of what it has.
        public var computesNothing = false
        /// What the root says of the data; another one once a backup was restored.
        public var fingerprint = ""
        /// So many requests are answered with 423.
        public var locks = 0
        /// What is deleted goes to a trash.
        public var hasTrash = true
        /// What `status.php` answers in place of the server's own words.
        public var status: JSON?

        /// The server gives notice of changes (the app notify_push).
        public var hasPush = false

        /// A server on a good day.
        public init() {}
    }

    struct Flow {
        var pollToken: String
        var loginToken: String
        var isGranted = false
    }

    struct Session {
        var destination: [String]
        var parts: [String: SimulatedContent] = [:]
        /// The request for what is being put together, and after how many looks that is done.
        var assembling: (request: SimulatorRequest, looks: Int)?

        /// In the order in which they are put together: by number, or as text where names are older
        /// clients' (`000000000000000-000000005242879`).
        var inOrder: [(name: String, content: SimulatedContent)] {
            parts.sorted { one, other in
                guard let first = Int64(one.key), let second = Int64(other.key) else {
                    return one.key < other.key
                }
                return first < second
            }.map { ($0.key, $0.value) }
        }
    }

    struct State: Sendable {
        var habits = Habits()
        var sessions: [String: Session] = [:]
        var flow: Flow?
        var failures = 0
        var shares: [NextcloudShare] = []
        var lastShare: Int64 = 0
    }

    public let name: String
    /// Whether it is an ownCloud 10.
    public let isOwnCloud: Bool
    public let hosts = [host]
    public let account: SimulatedAccount
    let state = Mutex(State())

    /// The server's name.
    public static let host = "cloud.example.org"
    /// The server's own key of the person.
    public static let userID = "ada"
    /// The person's own password; every token of the account is an app password.
    public static let ownPassword = "correct horse"
    /// The name that the person logs in with.
    public static let loginName = "ada@example.com"

    /// An empty account.
    public init(totalBytes: Int64? = nil, seed: UInt64 = 1, isOwnCloud: Bool = false) {
        self.isOwnCloud = isOwnCloud
        name = isOwnCloud ? "owncloud" : "nextcloud"
        let rules = SimulatedTreeRules(
            comparison: .composed,
            keepsPathLog: false,
            makeID: { _, random in
                // A number of eight digits, and the server's own name.
                let number = String(UInt32(random.hex(6), radix: 16) ?? 1)
                return String(repeating: "0", count: max(0, 8 - number.count)) + number
                    + "oclytkmxf811"
            },
            makeRevisionID: { $0.hex(32) }
        )
        let tree = SimulatedTree(
            rules: rules,
            rootID: "00000002oclytkmxf811",
            rootName: "",
            seed: seed
        )
        account = SimulatedAccount(tree: tree, totalBytes: totalBytes)
        account.tokens.lifetime = 10 * 365 * 86400
    }

    /// The account that the demo and the tests begin with.
    public static func sample() -> NextcloudSimulator {
        let simulator = NextcloudSimulator()
        simulator.fillWithSample()
        return simulator
    }

    /// How the server behaves.
    public var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    /// The person grants the sign-in that is under way.
    public func grantLogin() { state.withLock { $0.flow?.isGranted = true } }

    /// Makes a folder a mount of a kind (`external`, `shared`, `group`).
    public func mount(_ path: [String], as type: String) {
        account.withTree { tree in
            guard let item = tree.item(at: path) else { return }
            tree.update(item.id) { $0.extra["mount-type"] = .string(type) }
        }
    }

    public func loseUploadSessions() { state.withLock { $0.sessions = [:] } }

    // MARK: Requests

    public func route(of request: SimulatorRequest) -> String {
        "\(request.method) \(Place(request).route)"
    }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(let status, let after), .serverError(let status, let after):
            Self.answer(status: status, retryAfterSeconds: after)
        case .expiredToken: Self.failure(401, "NotAuthenticated", "No public access")
        }
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        let place = Place(request)
        if case .status = place.program { return status() }
        if habits.isUnderMaintenance {
            // WebDAV says so without Retry-After, all other programs with it.
            return place.isDAV
                ? Self.failure(503, "ServerMaintenanceMode", "System in maintenance mode.")
                : SimulatorAnswer(
                    status: 503,
                    headers: [("X-Nextcloud-Maintenance-Mode", "1"), ("Retry-After", "120")]
                )
        }
        switch place.program {
        case .login where !isOwnCloud: return beginLogin(request)
        case .poll where !isOwnCloud: return pollLogin(request)
        case .flow(let token) where !isOwnCloud: return loginPage(request, token)
        case .grant where !isOwnCloud: return grant(request)
        default: break
        }
        guard state.withLock({ $0.failures <= 10 }) else {
            return SimulatorAnswer.text("Reached maximum delay", status: 429)
        }
        if case .ocs = place.program, request.header("OCS-APIRequest") == nil {
            return SimulatorAnswer.text("CSRF check failed", status: 412)
        }
        guard let password = password(request) else {
            if request.header("Authorization") != nil { state.withLock { $0.failures += 1 } }
            var answer = Self.failure(401, "NotAuthenticated", "Cannot authenticate")
            answer.headers.append(("WWW-Authenticate", "Basic realm=\"Nextcloud\""))
            return answer
        }
        state.withLock { $0.failures = 0 }
        switch place.program {
        case .ocs(let parts):
            return OCSWords.put(ocs(request, parts, password: password), for: request)
        case .preview: return preview(request)
        case .search: return search(request)
        case .files(let user, let parts):
            let isLocked = state.withLock { state in
                guard state.habits.locks > 0, request.method != "PROPFIND" else { return false }
                state.habits.locks -= 1
                return true
            }
            if isLocked { return Self.failure(423, "FileLocked", "\"x\" is locked") }
            return files(request, user: user, path: parts)
        case .uploads(let user, let parts):
            guard user == Self.userID else { return Self.failure(403, "Forbidden", "") }
            return uploads(request, parts)
        case .trash(let user, let parts):
            guard user == Self.userID else { return Self.failure(403, "Forbidden", "") }
            return trash(request, parts)
        case .versions(let user, let parts):
            guard user == Self.userID else { return Self.failure(403, "Forbidden", "") }
            return versions(request, parts)
        case .status, .login, .poll, .flow, .grant, .unknown:
            return SimulatorAnswer(
                status: 404,
                headers: [("Content-Type", "text/html")],
                body: .bytes(Array("<html>Not found</html>".utf8))
            )
        }
    }

    /// The app password of a request; nil where it is not good.
    private func password(_ request: SimulatorRequest) -> String? {
        if let token = request.bearerToken { return isGood(token) ? token : nil }
        guard let (user, password) = Self.credentials(request),
            [Self.userID, Self.loginName].contains(user.lowercased())
        else { return nil }
        return isGood(password) ? password : nil
    }

    func isGood(_ password: String) -> Bool {
        password == Self.ownPassword || account.tokens.standing(of: password) == .valid
    }

    /// An error in the words of the sabre family.
    static func failure(_ status: Int, _ exception: String, _ message: String) -> SimulatorAnswer {
        let body = """
            <?xml version="1.0" encoding="utf-8"?>
            <d:error xmlns:d="DAV:" xmlns:s="http://sabredav.org/ns">
              <s:exception>Sabre\\DAV\\Exception\\\(exception)</s:exception>
              <s:message>\(DAVXML.escaped(message))</s:message>
            </d:error>
            """
        return SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "application/xml; charset=utf-8")],
            body: .bytes(Array(body.utf8))
        )
    }

    // MARK: Beside the files

    private func status() -> SimulatorAnswer {
        if let other = habits.status { return .json(other) }
        if isOwnCloud {
            return .json([
                "installed": .bool(true), "maintenance": .bool(habits.isUnderMaintenance),
                "needsDbUpgrade": .bool(false), "version": .string("10.15.0.3"),
                "versionstring": .string("10.15.0"), "edition": .string("Community"),
                "productname": .string("ownCloud"), "product": .string("ownCloud"),
            ])
        }
        return .json([
            "installed": .bool(true), "maintenance": .bool(habits.isUnderMaintenance),
            "needsDbUpgrade": .bool(false), "version": .string("34.0.1.2"),
            "versionstring": .string("34.0.1"), "edition": .string(""),
            "productname": .string("Nextcloud"), "extendedSupport": .bool(false),
        ])
    }

    private func ocs(
        _ request: SimulatorRequest,
        _ parts: [String],
        password: String
    ) -> SimulatorAnswer {
        func good(_ data: JSON) -> SimulatorAnswer {
            let meta: JSON = ["status": .string("ok"), "statuscode": .integer(200)]
            return .json(["ocs": ["meta": meta, "data": data]])
        }
        switch (request.method, parts) {
        case ("GET", ["cloud", "user"]):
            return good([
                "id": .string(Self.userID),
                isOwnCloud ? "display-name" : "displayname": .string(account.displayName),
                "email": .string(account.email),
            ])
        case ("GET", ["cloud", "capabilities"]): return good(capabilities(request))
        case (_, let parts)
        where parts.starts(with: ["apps", "files_sharing", "api", "v1", "shares"]):
            return shares(request, Array(parts.dropFirst(5)))
        case ("GET", ["core", "getapppassword"]) where !isOwnCloud:
            guard password == Self.ownPassword else { return SimulatorAnswer(status: 403) }
            return good(["apppassword": .string(account.tokens.issue().access)])
        case ("DELETE", ["core", "apppassword"]) where !isOwnCloud:
            _ = account.tokens.revoke(password)
            return good([:])
        default: return SimulatorAnswer(status: 404)
        }
    }

    private func capabilities(_ request: SimulatorRequest) -> JSON {
        // Without the app nobody says anything of a trash.
        let undelete: JSON = habits.hasTrash ? .bool(true) : .null
        if isOwnCloud {
            return [
                "version": [
                    "major": .integer(10), "minor": .integer(15), "micro": .integer(0),
                    "string": .string("10.15.0"), "edition": .string("Community"),
                ],
                "capabilities": [
                    // In milliseconds.
                    "core": ["pollinterval": .integer(30000)],
                    "dav": ["chunking": .string("1.0")],
                    "checksums": [
                        "supportedTypes": .array([.string("SHA1")]),
                        "preferredUploadType": .string("SHA1"),
                    ],
                    "files": [
                        "bigfilechunking": .bool(true), "undelete": undelete,
                        "versioning": .bool(true),
                        "blacklisted_files": .array([.string(".htaccess")]),
                    ],
                ],
            ]
        }
        let isWindows = habits.refusesWindowsNames
        let characters = isWindows ? ["<", ">", ":", "\"", "|", "?", "*", "\\", "/"] : ["\\", "/"]
        var capabilities: [String: JSON] = [
            "core": ["pollinterval": .integer(60)],
            "dav": ["chunking": .string("1.0")],
            "files_sharing": ["api_enabled": .bool(true)],
            "files": [
                "bigfilechunking": .bool(true), "undelete": undelete,
                "versioning": .bool(true),
                "chunked_upload": [
                    "max_size": .integer(104_857_600), "max_parallel_count": .integer(5),
                ],
                "forbidden_filenames": .array([.string(".htaccess")]),
                "forbidden_filename_basenames": .array(
                    isWindows ? ["con", "aux", "nul"].map { .string($0) } : []
                ),
                "forbidden_filename_characters": .array(characters.map { .string($0) }),
                "forbidden_filename_extensions": .array(
                    ([".part", ".filepart"] + (isWindows ? [" ", "."] : [])).map {
                        .string($0)
                    }
                ),
            ],
        ]
        if habits.hasPush { capabilities["notify_push"] = pushCapability(request) }
        return [
            "version": [
                "major": .integer(34), "minor": .integer(0), "micro": .integer(1),
                "string": .string("34.0.1"), "edition": .string(""),
                "extendedSupport": .bool(false),
            ],
            "capabilities": .object(capabilities),
        ]
    }

    private func beginLogin(_ request: SimulatorRequest) -> SimulatorAnswer {
        guard request.method == "POST" else { return SimulatorAnswer(status: 405) }
        let flow = Flow(
            pollToken: account.tokens.makeSecret("poll"),
            loginToken: account.tokens.makeSecret("flow")
        )
        state.withLock { $0.flow = flow }
        return .json([
            "poll": [
                "token": .string(flow.pollToken),
                "endpoint": .string(request.url(host: Self.host, path: "/login/v2/poll")),
            ],
            "login": .string(
                request.url(host: Self.host, path: "/login/v2/flow/\(flow.loginToken)")
            ),
        ])
    }

    /// The page to which a sign-in leads a person, who is logged in there already.
    private func loginPage(_ request: SimulatorRequest, _ token: String) -> SimulatorAnswer {
        guard request.method == "GET", state.withLock({ $0.flow?.loginToken == token }) else {
            return Self.page("Your login token is invalid or has expired", status: 403)
        }
        let action = request.url(host: Self.host, path: "/login/v2/grant")
        return Self.page(
            """
            <form method="post" action="\(action)"><input type="hidden" name="stateToken" \
            value="\(token)"><button>Grant access</button></form>
            """
        )
    }

    private func grant(_ request: SimulatorRequest) -> SimulatorAnswer {
        let isGranted = state.withLock { state in
            guard request.method == "POST", let flow = state.flow,
                request.form["stateToken"] == flow.loginToken
            else { return false }
            state.flow?.isGranted = true
            return true
        }
        return isGranted
            ? Self.page("Account connected. Your client should now be connected!")
            : Self.page("State token does not match", status: 403)
    }

    private static func page(_ words: String, status: Int = 200) -> SimulatorAnswer {
        SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "text/html; charset=utf-8")],
            body: .bytes(Array("<!doctype html><html><body>\(words)</body></html>".utf8))
        )
    }

    private func pollLogin(_ request: SimulatorRequest) -> SimulatorAnswer {
        let isGranted = state.withLock { state in
            guard let flow = state.flow, flow.isGranted,
                request.form["token"] == flow.pollToken
            else { return false }
            state.flow = nil
            return true
        }
        // The grant is given once only.
        guard isGranted else { return .json(.array([]), status: 404) }
        return .json([
            "server": .string(request.url(host: Self.host, path: "")),
            "loginName": .string(Self.loginName),
            "appPassword": .string(account.tokens.issue().access),
        ])
    }

    private func preview(_ request: SimulatorRequest) -> SimulatorAnswer {
        let number = request.query("fileId") ?? ""
        let item = account.withTree { tree in
            tree.allItems.first { DAVXML.number(of: $0.id) == number }
        }
        guard let item, !isOwnCloud else { return .json(.array([]), status: 404) }
        return picture(of: item)
    }

    func picture(of item: SimulatedItem) -> SimulatorAnswer {
        Self.picture(of: item) ?? .json(.array([]), status: 404)
    }
}

/// Where a request goes.
struct Place {
    enum Program {
        case status, login, poll, grant, preview, search, unknown
        case flow(String)
        case ocs([String])
        case files(user: String, [String])
        case trash(user: String, [String])
        case versions(user: String, [String])
        case uploads(user: String, [String])
    }

    var program: Program

    init(_ request: SimulatorRequest) {
        let parts = request.parts.filter { !$0.isEmpty }
        program = .unknown
        let plain = parts.first == "index.php" ? Array(parts.dropFirst()) : parts
        switch plain {
        case ["status.php"]: program = .status
        case ["login", "v2"]: program = .login
        case ["login", "v2", "poll"]: program = .poll
        case ["login", "v2", "grant"]: program = .grant
        case ["login", "v2", "flow", plain.last]: program = .flow(plain.last ?? "")
        case ["core", "preview"]: program = .preview
        default: break
        }
        if parts.count > 2, parts[0] == "ocs", ["v1.php", "v2.php"].contains(parts[1]) {
            program = .ocs(Array(parts.dropFirst(2)))
        }
        if parts == ["remote.php", "dav"] { program = .search }
        if let place = Self.dav(parts) { program = place }
    }

    static func dav(_ parts: [String]) -> Program? {
        if parts.starts(with: ["remote.php", "webdav"]) {
            return .files(user: NextcloudSimulator.userID, Array(parts.dropFirst(2)))
        }
        guard parts.count >= 4, parts.starts(with: ["remote.php", "dav"]) else { return nil }
        let rest = Array(parts.dropFirst(4))
        return switch parts[2] {
        case "files": .files(user: parts[3], rest)
        case "uploads": .uploads(user: parts[3], rest)
        case "trashbin": .trash(user: parts[3], rest)
        case "versions": .versions(user: parts[3], rest)
        default: nil
        }
    }

    var isDAV: Bool {
        switch program {
        case .files, .uploads, .trash, .versions: true
        default: false
        }
    }

    var route: String {
        switch program {
        case .status: "status.php"
        case .login: "login"
        case .poll: "poll"
        case .flow: "flow"
        case .grant: "grant"
        case .preview: "preview"
        case .search: "search"
        case .ocs(let parts): "ocs/" + parts.joined(separator: "/")
        case .files: "files"
        case .trash: "trashbin"
        case .versions: "versions"
        case .uploads(_, let parts): parts.last == ".file" ? "uploads/.file" : "uploads"
        case .unknown: "unknown"
        }
    }
}
