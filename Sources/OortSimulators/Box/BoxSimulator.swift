import Foundation
import OortModel
import Synchronization

/// A Box account behind its API 2.0, with what its upload, download and event hosts do.
public final class BoxSimulator: SimulatedService {
    /// How the service behaves where it may behave in several ways; may be changed at any time.
    public struct Habits: Sendable, Hashable {
        /// Times that a commit is answered with 202 first.
        public var commitWaits = 1
        /// Times that a commit is answered as if the last part were not there yet.
        public var partsMismatches = 0
        /// Downloads that are answered with 202 first: the content is not ready.
        public var unreadyDownloads = 0
        /// Moves, copies, deletions and restorations that meet another one under way.
        public var blockedTreeActs = 0
        /// Creations that meet an equal one under way.
        public var reservedNames = 0
        /// Whether events come a second time, in another order.
        public var repeatsEvents = true
        /// Characters that are left out of the names of new items.
        public var droppedCharacters = ""
        /// Whether earlier versions are kept, which a plan decides.
        public var keepsVersions = true
        /// The largest file that the account's plan takes, in bytes.
        public var largestFile: Int64 = 5_000_000_000
        /// Bytes of each part of an upload session.
        public var partSize: Int64 = 4 << 20
        /// The smallest content that an upload session takes.
        public var smallestSession: Int64 = 20_000_000
        /// Whether the address to wait for news at is encrypted, where the simulator can be.
        public var pollsInTheClear = false
        /// Polls that end at once and ask to come again.
        public var shortPolls = 0
        /// Whether a refreshed pair of tokens is given again to who asks with the used refresh token.
        public var repeatsRefreshedTokens = true

        /// A service on a good day.
        public init() {}
    }

    struct State: Sendable {
        var habits = Habits()
        var sessions: [String: Session] = [:]
        /// Download addresses of other epochs have run out.
        var downloadEpoch = 1
        /// What is put among the next events as it is.
        var extraEvents: [JSON] = []
        /// When a code was made, and what a used refresh token was exchanged for.
        var codes: [String: Timestamp] = [:]
        var exchanged: [String: SimulatedTokens.Issued] = [:]
        var nextNumber = 1
        /// Requests to the host of news that brought a token.
        var tokensAtNews = 0
    }

    public let name = "box"
    public let hosts = [
        Hosts.api, Hosts.upload, Hosts.account, Hosts.app, Hosts.download, Hosts.news,
    ]
    public let account: SimulatedAccount
    let state = Mutex(State())

    enum Hosts {
        static let api = "api.box.com"
        static let upload = "upload.box.com"
        static let account = "account.box.com"
        /// Where sign-ins were before, and where older programs still ask.
        static let app = "app.box.com"
        static let download = "dl.boxcloud.com"
        static let news = "2.realtime.services.box.net"
    }

    /// The root's key in the tree; items have keys of `f`, `d` or `w` and the number that Box reports,
    /// because files, folders and web links are numbered separately.
    static let rootID = "d0"

    /// A service for an account whose tree was made by `makeTree`.
    public init(account: SimulatedAccount) {
        self.account = account
        account.tokens.lifetime = 3600
    }

    /// An empty account.
    public convenience init(totalBytes: Int64? = 2_000_000_000_000, seed: UInt64 = 1) {
        self.init(
            account: SimulatedAccount(tree: Self.makeTree(seed: seed), totalBytes: totalBytes)
        )
    }

    /// A tree of an empty root.
    public static func makeTree(seed: UInt64) -> SimulatedTree {
        let rules = SimulatedTreeRules(
            comparison: .caseInsensitive,
            keepsPathLog: false,
            makeID: { kind, random in
                let letter =
                    switch kind {
                    case .folder: "d"
                    case .nativeDocument: "w"
                    case .file, .shortcut: "f"
                    }
                return letter + "1" + random.text(11, of: "0123456789")
            },
            makeRevisionID: { "2" + $0.text(11, of: "0123456789") }
        )
        return SimulatedTree(rules: rules, rootID: rootID, rootName: "All Files", seed: seed)
    }

    /// How the service behaves.
    public var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    /// Counts a habit down; whether it applied.
    func spend(_ habit: WritableKeyPath<Habits, Int>) -> Bool {
        state.withLock { state in
            guard state.habits[keyPath: habit] > 0 else { return false }
            state.habits[keyPath: habit] -= 1
            return true
        }
    }

    /// Lets all download addresses run out.
    public func expireDownloads() { state.withLock { $0.downloadEpoch += 1 } }

    public func loseUploadSessions() { state.withLock { $0.sessions = [:] } }

    /// How often the host at which news are waited for was shown a token, which it has no need of.
    public var tokensAtNews: Int { state.withLock { $0.tokensAtNews } }

    /// The upload sessions that are open.
    public var openUploadSessions: Int { state.withLock { $0.sessions.count } }

    // MARK: Routes

    public func route(of request: SimulatorRequest) -> String {
        let method = request.method.lowercased()
        switch request.host {
        case Hosts.account, Hosts.app: return "oauth/" + (request.parts.last ?? "")
        case Hosts.download: return "download"
        case Hosts.news: return "poll"
        default: break
        }
        let parts = request.parts
        if parts.first == "oauth2" { return "oauth/" + (parts.last ?? "") }
        let resource = Self.resource(request)
        var names: [String] = []
        for (index, part) in resource.enumerated() {
            let isSession = index > 0 && resource[index - 1] == "upload_sessions"
            if !isSession, part.contains(where: { !$0.isNumber }) { names.append(part) }
        }
        if request.host == Hosts.upload, resource.first == "files", resource.last == "content" {
            return resource.count == 2 ? "upload/new" : "upload/version"
        }
        if request.query("recursive")?.lowercased() == "true" { names.append("tree") }
        return (names + [method]).joined(separator: "/")
    }

    /// The path's parts after the version of the API.
    static func resource(_ request: SimulatorRequest) -> [String] {
        Array(request.parts.dropFirst(request.host == Hosts.upload ? 2 : 1))
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        switch request.host {
        case Hosts.account, Hosts.app:
            return request.parts.last == "authorize" ? authorize(request) : tokenAnswer(request)
        case Hosts.download: return download(request)
        case Hosts.news: return await poll(request)
        default: break
        }
        if request.parts.first == "oauth2" { return tokenAnswer(request) }
        guard let token = request.bearerToken, account.tokens.standing(of: token) == .valid else {
            return Self.tokenRejected
        }
        let parts = Self.resource(request)
        if request.host == Hosts.upload { return upload(parts, request) }
        let first = parts.first ?? ""
        let rest = Array(parts.dropFirst())
        switch first {
        case "users": return person(request)
        case "events": return events(request)
        case "search": return search(request)
        case "files": return file(rest, request)
        case "folders": return folder(rest, request)
        case "web_links": return webLink(rest, request)
        default: return failure(404, "not_found", request: request)
        }
    }

    /// It may come without a body.
    private static let tokenRejected = SimulatorAnswer(
        status: 401,
        headers: [
            (
                "WWW-Authenticate",
                "Bearer realm=\"Service\", error=\"invalid_token\", "
                    + "error_description=\"The access token provided is invalid.\""
            )
        ]
    )

    private func person(_ request: SimulatorRequest) -> SimulatorAnswer {
        let used = account.withTree { $0.usedBytes }
        let full: [String: JSON] = [
            "name": .string(account.displayName), "login": .string(account.email),
            // Huge numbers come as floats.
            "space_amount": .number(account.totalBytes.map(Double.init) ?? 1e18),
            "space_used": .integer(used), "max_upload_size": .integer(habits.largestFile),
            "status": "active", "language": "en",
        ]
        var json = selected(full, request)
        json["type"] = "user"
        json["id"] = .string(Self.personID(account.person))
        return .json(.object(json))
    }

    static func personID(_ person: SimulatedPerson) -> String { "200000000\(person.number)" }
    static let strangerID = "2999999999"

    /// The fields that were asked for, all where none were.
    func selected(_ full: [String: JSON], _ request: SimulatorRequest) -> [String: JSON] {
        guard let fields = request.query("fields") else { return full }
        let names = Set(fields.split(separator: ",").map(String.init))
        return full.filter { names.contains($0.key) }
    }

    // MARK: Trouble

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(let status, let after):
            return failure(
                status,
                status == 503 ? "unavailable" : "rate_limit_exceeded",
                headers: after.map { [("Retry-After", String($0))] } ?? [],
                request: request
            )
        case .serverError(let status, let after):
            let code =
                switch status {
                case 400: "bad_request"
                case 401: "unauthorized"
                case 403: "access_denied_insufficient_permissions"
                case 404: "not_found"
                case 409: "item_name_in_use"
                case 410: "session_expired"
                case 412: "precondition_failed"
                case 507: "storage_limit_exceeded"
                case 502: "bad_gateway"
                case 503: "unavailable"
                default: "internal_server_error"
                }
            return failure(
                status == 507 ? 403 : status,
                code,
                headers: after.map { [("Retry-After", String($0))] } ?? [],
                request: request
            )
        case .expiredToken: return Self.tokenRejected
        }
    }

    /// An error in the service's form.
    func failure(
        _ status: Int,
        _ code: String,
        context: JSON? = nil,
        headers: [(name: String, value: String)] = [],
        request: SimulatorRequest
    ) -> SimulatorAnswer {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        var body: [String: JSON] = [
            "type": "error", "status": .integer(Int64(status)), "code": .string(code),
            "message": .string(code.replacing("_", with: " ")),
            "help_url": "https://developer.box.com/guides/api-calls/permissions-and-errors/",
            "request_id": .string("r\(number)"),
        ]
        if let context { body["context_info"] = context }
        return .json(
            .object(body),
            status: status,
            headers: headers + [("box-request-id", "r\(number)")]
        )
    }

    /// Why something is not done.
    struct Refused: Error, Sendable {
        var status: Int
        var code: String
        /// The item that has the name.
        var conflict: SimulatedItem?

        init(_ status: Int, _ code: String, conflict: SimulatedItem? = nil) {
            self.status = status
            self.code = code
            self.conflict = conflict
        }

        static let notFound = Refused(404, "not_found")
        static let trashed = Refused(404, "trashed")
        static let denied = Refused(403, "access_denied_insufficient_permissions")
        static let stale = Refused(412, "precondition_failed")
        static let noRoom = Refused(403, "storage_limit_exceeded")
    }

    func failure(_ refused: Refused, _ request: SimulatorRequest) -> SimulatorAnswer {
        var context: JSON?
        if let other = refused.conflict {
            let json: JSON = .object(Self.mini(other))
            // Of a folder's creation a list of one, else the item itself.
            context = ["conflicts": request.path.ends(with: "/folders") ? [json] : json]
        }
        return failure(refused.status, refused.code, context: context, request: request)
    }
}
