import Foundation
import OortModel
import Synchronization

/// A personal OneDrive behind Microsoft Graph v1.0, with what its front ends and content hosts do.
///
/// The account number begins with a zero, so that drive id and item ids spell it differently, as
/// they do at the service.
public final class OneDriveSimulator: SimulatedService {
    /// How the service's known faults behave; may be changed at any time.
    public struct Habits: Sendable, Hashable {
        /// PATCH by an item id without leading zeros answers 204 and does nothing.
        public var patchLies = false
        /// PATCH by an id with all of its zeros works although `patchLies`.
        public var paddedIDsHelp = true
        /// If-Match is answered with 412 although the tag is right, so many times.
        public var falsePreconditions = 0
        /// Folders come with the number of their items.
        public var countsChildren = true
        /// Content comes with its item's eTag.
        public var tagsContent = true
        /// Parts of a batch that are throttled, one by one.
        public var throttledBatchParts = 0
        /// Times that a copy's monitor says "in progress" first.
        public var copyPolls = 1
        /// What a copy's monitor says in the end; nil for what became of it.
        public var copyEnd: JSON?

        /// A service on a good day.
        public init() {}
    }

    /// A link that an item was given away by.
    struct GivenLink: Sendable {
        var url: String
        var expires: String?
        var hasPassword: Bool
        /// Whom it opens for: `anonymous`, `organization` or `users`.
        var scope = "anonymous"
    }

    struct State: Sendable {
        var habits = Habits()
        var sessions: [String: Session] = [:]
        var copies: [String: CopyJob] = [:]
        var enumerations: [String: Enumeration] = [:]
        var nextNumber = 1
        /// Delta tokens of before are too old, with this code.
        var oldestSequence = 0
        var lostCode = "resyncChangesApplyDifferences"
        /// Download addresses of other epochs have run out.
        var downloadEpoch = 1
        var links: [String: GivenLink] = [:]
        var sums = FolderSums()
    }

    public let name = "onedrive"
    public let hosts = [
        Hosts.graph, Hosts.content, Hosts.thumbnails, Hosts.signIn,
    ]
    public let account: SimulatedAccount
    let state = Mutex(State())

    enum Hosts {
        static let graph = "graph.microsoft.com"
        static let content = "my.microsoftpersonalcontent.com"
        static let thumbnails = "westeurope1-mediap.svc.ms"
        static let signIn = "login.microsoftonline.com"
    }

    /// The account's own drive.
    public static let driveID = "0f0978a1b2c3d4e5"
    /// Another person's drive, in which a shared folder lies.
    public static let otherDriveID = "77aa88bb99cc0011"
    /// The key of the account's own drive as it is reported: all persons' items have the same ids here, but
    /// two persons have two drives.
    var ownDriveID: String {
        account.person == .ada
            ? Self.driveID : "\(Self.driveID.dropLast())\(account.person.number)"
    }
    static let accountNumber = "F0978A1B2C3D4E5"
    static let otherAccountNumber = "77AA88BB99CC0011"
    static let rootID = accountNumber + "!sea8cc6beffdb43d7976fbc7da445c639"
    /// The root of the other person's drive.
    public static let otherRoot = otherRootID
    static let otherRootID = otherAccountNumber + "!sea8cc6beffdb43d7976fbc7da445c639"
    /// A hidden library, the first in the list of drives.
    static let hiddenDriveID = "b!RkVHaWRkZW4tYWxidW1zLWxpYnJhcnk"

    /// A service for an account whose tree was made by `makeTree`.
    public init(account: SimulatedAccount) {
        self.account = account
        account.tokens.lifetime = 3600
    }

    /// An empty account.
    public convenience init(totalBytes: Int64? = 1 << 40, seed: UInt64 = 1) {
        self.init(
            account: SimulatedAccount(tree: Self.makeTree(seed: seed), totalBytes: totalBytes)
        )
    }

    /// A tree with the roots of both drives and nothing in them.
    public static func makeTree(seed: UInt64) -> SimulatedTree {
        let rules = SimulatedTreeRules(
            comparison: .caseInsensitive,
            keepsPathLog: false,
            makeID: { _, random in "\(accountNumber)!s\(random.hex(32))" },
            makeRevisionID: { $0.hex(16) }
        )
        var tree = SimulatedTree(rules: rules, rootID: rootID, rootName: "root", seed: seed)
        tree.addRoot(id: otherRootID, name: "root")
        return tree
    }

    /// The service's known faults.
    public var habits: Habits {
        get { state.withLock { $0.habits } }
        set { state.withLock { $0.habits = newValue } }
    }

    /// Makes all delta links of until now too old, in either of the service's two ways.
    public func expireDeltaLinks(code: String = "resyncChangesApplyDifferences") {
        let sequence = account.withTree { $0.sequence }
        state.withLock { state in
            state.oldestSequence = sequence + 1
            state.lostCode = code
            state.enumerations = [:]
        }
    }

    public func loseCursors() { expireDeltaLinks() }

    /// Lets all download addresses run out.
    public func expireDownloads() { state.withLock { $0.downloadEpoch += 1 } }

    /// Forgets all upload sessions.
    public func loseUploadSessions() { state.withLock { $0.sessions = [:] } }

    /// The upload sessions that are open.
    public var openUploadSessions: Int { state.withLock { $0.sessions.count } }

    // MARK: Routes

    public func route(of request: SimulatorRequest) -> String {
        switch request.host {
        case Hosts.signIn: return "oauth/" + (request.parts.last ?? "")
        case Hosts.thumbnails: return "thumbnail"
        case Hosts.content: return contentRoute(of: request)
        default: break
        }
        guard let target = GraphTarget(request) else { return "unknown" }
        let method = request.method.lowercased()
        switch target.resource {
        case .me, .drives, .drive: return target.routeName
        case .batch: return "batch"
        case .item:
            return target.action.isEmpty ? "item/\(method)" : "\(target.routeName)/\(method)"
        }
    }

    private func contentRoute(of request: SimulatorRequest) -> String {
        if request.path.contains("/uploadSession") {
            return "upload/\(request.method.lowercased())"
        }
        if request.path.contains("/monitor/") { return "copy/monitor" }
        return "download"
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        switch request.host {
        case Hosts.signIn: return signIn(request)
        case Hosts.thumbnails: return thumbnailPicture(request)
        case Hosts.content:
            // The address is the permission; personal drives refuse a token beside it.
            guard request.header("Authorization") == nil else {
                return failure(401, "unauthenticated", request: request)
            }
            if request.path.contains("/uploadSession") { return uploadPart(request) }
            if request.path.contains("/monitor/") { return copyProgress(request) }
            return download(request)
        case Hosts.graph: return await graph(request)
        default: return failure(404, "itemNotFound", request: request)
        }
    }

    private func graph(_ request: SimulatorRequest) async -> SimulatorAnswer {
        guard let token = request.bearerToken, account.tokens.standing(of: token) == .valid else {
            return failure(401, "InvalidAuthenticationToken", request: request)
        }
        guard let target = GraphTarget(request) else {
            return failure(
                400,
                "BadRequest",
                "Resource not found for the segment of \(request.path).",
                request: request
            )
        }
        switch target.resource {
        case .batch: return await batch(request)
        case .me: return .json(person)
        case .drives: return drives(request)
        case .drive(let drive):
            if target.action.first == "search" { return search(target, request) }
            guard let json = driveJSON(drive) else {
                return failure(404, "itemNotFound", request: request)
            }
            return .json(selected(json, request))
        case .item: return item(target, request)
        }
    }

    private func item(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let action = target.action.first ?? ""
        switch (request.method, action) {
        case ("GET", ""): return itemAnswer(target, request)
        case ("PUT", ""): return commitSession(target, request)
        case ("PATCH", ""): return patch(target, request)
        case ("DELETE", ""): return delete(target, request, forGood: false)
        case ("POST", "permanentDelete"): return delete(target, request, forGood: true)
        case ("GET", "children"): return children(target, request)
        case ("POST", "children"): return createChild(target, request)
        case ("GET", "content"): return contentRedirect(target, request)
        case ("PUT", "content"): return putContent(target, request)
        case ("POST", "createUploadSession"): return createSession(target, request)
        case ("GET", "delta"): return delta(target, request)
        case ("POST", "copy"): return copy(target, request)
        case ("POST", "restore"): return restore(target, request)
        case ("GET", "thumbnails"): return thumbnails(target, request)
        case ("GET", "search"): return search(target, request)
        case ("POST", "createLink"): return createLink(target, request)
        case ("GET", "versions"), ("POST", "versions"): return versions(target, request)
        case ("GET", "permissions"): return permissions(target, request)
        case ("DELETE", "permissions"): return deletePermission(target, request)
        case (_, "children"), (_, "content"), (_, "delta"), (_, "copy"):
            return failure(405, "Request_BadRequest", request: request)
        default:
            return failure(
                400,
                "BadRequest",
                "Resource not found for the segment of \(request.path).",
                request: request
            )
        }
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
                status == 503 ? "serviceNotAvailable" : "activityLimitReached",
                headers: after.map { [("Retry-After", String($0))] } ?? [],
                request: request
            )
        case .serverError(410, _):
            return failure(
                410,
                "resyncRequired",
                inner: "resyncChangesApplyDifferences",
                headers: [("Location", request.url(host: Hosts.graph, path: request.rawPath))],
                request: request
            )
        case .serverError(let status, let after):
            let code =
                switch status {
                case 400: "invalidRequest"
                case 401: "unauthenticated"
                case 403: "accessDenied"
                case 404: "itemNotFound"
                case 409: "nameAlreadyExists"
                case 412: "resourceModified"
                case 416: "invalidRange"
                case 423: "notAllowed"
                case 503: "serviceNotAvailable"
                case 507: "quotaLimitReached"
                default: "generalException"
                }
            return failure(
                status,
                code,
                headers: after.map { [("Retry-After", String($0))] } ?? [],
                request: request
            )
        case .expiredToken:
            return failure(
                401,
                "InvalidAuthenticationToken",
                "Lifetime validation failed, the token is expired.",
                request: request
            )
        }
    }

    /// An error in the service's form; the content hosts leave the request ids out.
    func failure(
        _ status: Int,
        _ code: String,
        _ message: String? = nil,
        inner: String? = nil,
        headers: [(name: String, value: String)] = [],
        request: SimulatorRequest
    ) -> SimulatorAnswer {
        var innerError: [String: JSON] = [:]
        if let inner { innerError["code"] = .string(inner) }
        var headers = headers
        if request.host == Hosts.graph {
            let id = UUID().uuidString.lowercased()
            innerError["date"] = "2026-11-21T14:00:00"
            innerError["request-id"] = .string(id)
            innerError["client-request-id"] = .string(id)
            headers.append(("request-id", id))
        }
        var error: [String: JSON] = ["code": .string(code), "message": .string(message ?? code)]
        if !innerError.isEmpty {
            error[request.host == Hosts.graph ? "innerError" : "innererror"] = .object(innerError)
        }
        return .json(["error": .object(error)], status: status, headers: headers)
    }
}
