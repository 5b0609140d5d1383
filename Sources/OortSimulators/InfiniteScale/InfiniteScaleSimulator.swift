import Crypto
import Foundation
import OortModel
import Synchronization

/// An OpenCloud of one person: spaces by WebDAV, uploads by TUS, and the Graph calls around them.
///
/// It speaks as its source says (github.com/opencloud-eu/reva, `internal/http/services/owncloud/ocdav`);
/// ownCloud Infinite Scale has the same roots. The edits of tests are in the personal space; there is a project space beside it.
public final class InfiniteScaleSimulator: SimulatedService, DAVSimulator {
    /// How the server behaves; may be changed at any time.
    public struct Habits: Sendable, Hashable {
        /// So often is each upload answered with 425 before the server has looked it over.
        public var processing = 0
        /// So often is a folder asked for after a change below it before its tag shows that: each folder
        /// by itself, so the root's may be new while one below it is still old.
        public var lag = 0
        /// Whether changes get lost on their way to the tags of the folders above.
        public var losesChanges = false
        /// The paths of folders that cannot be listed at present.
        public var unlistable: Set<[String]> = []
        /// Whether the server cannot give the place of an item by its id, and answers an empty path.
        public var hidesPaths = false
        /// So many requests are answered with 423.
        public var locks = 0
        /// Before so many uploads that create a file, another client has made one of the same name.
        public var races = 0
        /// The contents that the other client saves then, one after the other.
        public var raceTexts = ["theirs"]
        /// So often is the address of an upload in parts asked after its last bytes, which are answered with
        /// 504, before the file is there: the server reads all of it first.
        public var finishing = 0
        /// Whether the server fails to make files of uploads in parts, and keeps these.
        public var failsToFinish = false
        /// So many parts of uploads are answered as taken, and are not.
        public var forgottenParts = 0

        /// A server on a good day.
        public init() {}
    }

    /// What a folder shows of its time, from which its tag follows.
    struct Shown {
        var live: String
        var time: Timestamp
        var looks = 0
    }

    struct Session {
        var root: String
        var path: [String]
        var size: Int64
        var time: Timestamp?
        var checksum: String?
        /// The file that was there when it began.
        var replaced: String?
        var parts: [SimulatedContent] = []
        var isOver = false
        /// How often the server is asked before it has read what it got.
        var finishing = 0

        var offset: Int64 { parts.reduce(0) { $0 + $1.size } }
    }

    struct Link: Sendable {
        var id: String
        var item: String
        var type: String
        var expires: String?
        var hasPassword: Bool
    }

    struct State {
        var habits = Habits()
        var shown: [String: Shown] = [:]
        var processing: [String: Int] = [:]
        var sessions: [String: Session] = [:]
        var links: [Link] = []
        var lastNumber = 0
    }

    public let name = "opencloud"
    public let hosts = [host]
    public let account: SimulatedAccount
    let state = Mutex(State())

    /// The server's name.
    public static let host = "opencloud.example.org"
    /// The name that the person logs in with.
    public static let user = "ada"
    /// The storage in which all spaces lie.
    static let storage = "8f06d4a1-1111-4c2a-9d5e-000000000001"
    static let personal = "0c5d6b5e-2222-4b7f-8a31-000000000002"
    static let project = "77aa3f0c-3333-4e0d-b9f2-000000000003"
    /// The name of the project space.
    public static let projectName = "The Team"

    /// The id of the personal space, as the Graph calls it.
    public static var personalSpace: String { "\(storage)$\(personal)" }
    /// The id of the project space.
    public static var projectSpace: String { "\(storage)$\(project)" }

    /// An empty account.
    public init(totalBytes: Int64? = nil, seed: UInt64 = 1) {
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in
                let digits = random.hex(32)
                return [8, 4, 4, 4, 12].reduce(into: (text: "", rest: digits[...])) { made, count in
                    made.text += (made.text.isEmpty ? "" : "-") + made.rest.prefix(count)
                    made.rest = made.rest.dropFirst(count)
                }.text
            },
            makeRevisionID: { $0.hex(32) }
        )
        var tree = SimulatedTree(rules: rules, rootID: Self.personal, rootName: "", seed: seed)
        tree.addRoot(id: Self.project, name: Self.projectName)
        account = SimulatedAccount(tree: tree, totalBytes: totalBytes)
        account.tokens.lifetime = 10 * 365 * 86400
    }

    /// The account that tests begin with.
    public static func sample() -> InfiniteScaleSimulator {
        let simulator = InfiniteScaleSimulator()
        simulator.fillWithSample()
        return simulator
    }

    /// How the server behaves.
    public var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    public func loseUploadSessions() { state.withLock { $0.sessions = [:] } }

    /// `{"processing", "lag", "finishing"}`.
    public func set(habits json: JSON) -> Bool {
        state.withLock { state in
            state.habits.processing = json["processing"]?.integer.map { Int($0) } ?? 0
            state.habits.lag = json["lag"]?.integer.map { Int($0) } ?? 0
            state.habits.finishing = json["finishing"]?.integer.map { Int($0) } ?? 0
        }
        return true
    }

    // MARK: Requests

    /// Where a request goes.
    enum Place {
        case status, unknown
        case capabilities
        case graph([String])
        case space(String, [String])
        case trash(String, [String])
        case versions(String, [String])
        case meta(String)
        case data(String)

        init(_ parts: [String]) {
            let parts = parts.filter { !$0.isEmpty }
            self = .unknown
            if parts == ["status.php"] { self = .status }
            if parts == ["ocs", "v2.php", "cloud", "capabilities"] { self = .capabilities }
            if parts.first == "graph" { self = .graph(Array(parts.dropFirst())) }
            if parts.count == 2, parts[0] == "data" { self = .data(parts[1]) }
            let dav = parts.first == "remote.php" ? Array(parts.dropFirst()) : parts
            guard dav.count >= 3, dav[0] == "dav" else { return }
            let rest = Array(dav.dropFirst(3))
            switch dav[1] {
            case "spaces" where dav[2] == "trash-bin" && dav.count > 3:
                self = .trash(dav[3], Array(dav.dropFirst(4)))
            case "spaces": self = .space(dav[2], rest)
            case "meta" where rest.isEmpty: self = .meta(dav[2])
            case "meta" where rest.first == "v": self = .versions(dav[2], Array(rest.dropFirst()))
            default: break
            }
        }

        var route: String {
            switch self {
            case .status: "status.php"
            case .capabilities: "capabilities"
            case .graph(let parts) where parts.contains("permissions"): "graph/permissions"
            case .graph(let parts): "graph/" + (parts.last ?? "")
            case .space: "spaces"
            case .trash: "trash-bin"
            case .versions: "versions"
            case .meta: "meta"
            case .data: "data"
            case .unknown: "unknown"
            }
        }
    }

    public func route(of request: SimulatorRequest) -> String {
        "\(request.method) \(Place(request.parts).route)"
    }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(let status, let after), .serverError(let status, let after):
            Self.answer(status: status, retryAfterSeconds: after)
        case .expiredToken: SimulatorAnswer(status: 401)
        }
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        let place = Place(request.parts)
        switch place {
        case .status: return status()
        // The address is the permission to send: it carries a token.
        case .data(let token): return data(request, token)
        default: break
        }
        guard isSignedIn(request) else {
            return SimulatorAnswer(
                status: 401,
                headers: [("WWW-Authenticate", "Basic realm=\"\(Self.host)\", charset=\"UTF-8\"")]
            )
        }
        switch place {
        case .capabilities: return capabilities()
        case .graph(let parts): return graph(request, parts)
        case .space(let id, let path):
            let isLocked = state.withLock { state in
                guard state.habits.locks > 0, request.method != "PROPFIND" else { return false }
                state.habits.locks -= 1
                return true
            }
            if isLocked { return SimulatorAnswer(status: 423) }
            guard let root = Self.root(ofSpace: id) else { return SimulatorAnswer(status: 404) }
            return space(request, root, path)
        case .trash(let id, let key):
            guard let root = Self.root(ofSpace: id) else { return SimulatorAnswer(status: 404) }
            return trash(request, root, key)
        case .versions(let id, let key): return versions(request, id, key)
        case .meta(let id): return meta(request, id)
        case .status, .data, .unknown: return SimulatorAnswer(status: 404)
        }
    }

    /// An app token with the person's name; the person's own password is not taken.
    private func isSignedIn(_ request: SimulatorRequest) -> Bool {
        guard let (user, token) = Self.credentials(request), user == Self.user else {
            return false
        }
        return account.tokens.standing(of: token) == .valid
    }

    /// An error in the words of the sabre family, with this server's own namespace.
    static func failure(_ status: Int, _ exception: String, _ message: String) -> SimulatorAnswer {
        let body =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<d:error xmlns:d=\"DAV\" "
            + "xmlns:s=\"http://sabredav.org/ns\"><s:exception>Sabre\\DAV\\Exception\\\(exception)"
            + "</s:exception><s:message>\(DAVXML.escaped(message))</s:message>"
            + "<s:errorcode></s:errorcode></d:error>"
        return SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "application/xml; charset=utf-8")],
            body: .bytes(Array(body.utf8))
        )
    }

    // MARK: Beside the files

    private func status() -> SimulatorAnswer {
        .json([
            "installed": .bool(true), "maintenance": .bool(false), "needsDbUpgrade": .bool(false),
            "version": .string("10.11.0.0"), "versionstring": .string("10.11.0"),
            "edition": .string(""), "productname": .string("OpenCloud"),
            "product": .string("OpenCloud"), "productversion": .string("3.4.0"),
        ])
    }

    private func capabilities() -> SimulatorAnswer {
        let files: JSON = [
            "bigfilechunking": .bool(false), "blacklisted_files": .array([]),
            "undelete": .bool(true), "versioning": .bool(true),
            "tus_support": [
                "version": .string("1.0.0"), "resumable": .string("1.0.0"),
                "extension": .string("creation,creation-with-upload"),
                "max_chunk_size": .integer(10_000_000), "http_method_override": .string(""),
            ],
        ]
        let meta: JSON = [
            "status": .string("ok"), "statuscode": .integer(200), "message": .string("OK"),
        ]
        return .json([
            "ocs": [
                "meta": meta,
                "data": [
                    "version": ["major": .integer(10), "string": .string("10.11.0")],
                    "capabilities": ["core": ["pollinterval": .integer(60)], "files": files],
                ],
            ]
        ])
    }

    /// The root's node of a space's id.
    static func root(ofSpace id: String) -> String? {
        switch id {
        case personalSpace, "\(personalSpace)!\(personal)": personal
        case projectSpace, "\(projectSpace)!\(project)": project
        default: nil
        }
    }

    static func space(_ root: String) -> String { "\(storage)$\(root)" }

    static func fullID(_ item: SimulatedItem, _ tree: SimulatedTree) -> String {
        "\(space(tree.root(of: item.id)))!\(item.id)"
    }

    /// The node that an id names.
    static func node(_ id: String) -> String {
        id.cut(atLast: "!").map { String($0.after) } ?? id
    }

    private func graph(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        switch (request.method, parts) {
        case ("GET", ["v1.0", "me"]):
            return .json([
                "id": .string("4c510ada-c86b-4815-8820-42cdf82c3d51"),
                "displayName": .string(account.displayName), "mail": .string(account.email),
                "onPremisesSamAccountName": .string(Self.user),
            ])
        case ("GET", ["v1.0", "me", "drives"]):
            let tree = account.withTree { $0 }
            let drives = [
                drive(Self.project, Self.projectName, "project", "project/the-team", tree, request),
                drive(Self.personal, "Ada", "personal", "personal/ada", tree, request),
                [
                    "id": .string(
                        "a0ca6a90-a365-4782-871e-d44447bbc668$a0ca6a90-a365-4782-871e-d44447bbc668"
                    ), "name": .string("Shares"), "driveType": .string("virtual"), "root": [:],
                ],
            ]
            return .json(["value": .array(drives)])
        case (_, let parts) where parts.first == "v1beta1": return links(request, parts)
        default: return SimulatorAnswer(status: 404)
        }
    }

    private func drive(
        _ root: String,
        _ name: String,
        _ type: String,
        _ alias: String,
        _ tree: SimulatedTree,
        _ request: SimulatorRequest
    ) -> JSON {
        let id = Self.space(root)
        let tag = tree.item(root).map { self.tag($0, tree) } ?? ""
        return [
            "id": .string(id), "name": .string(name), "driveType": .string(type),
            "driveAlias": .string(alias), "quota": ["state": .string("normal")],
            "root": [
                "id": .string(id), "eTag": .string("\"\(tag)\""),
                "webDavUrl": .string(request.url(host: Self.host, path: "/dav/spaces/\(id)")),
            ],
        ]
    }
}
