import Foundation
import OortModel
import Synchronization

/// Google Drive's wire protocol, v3 and the calls of v2 that take preconditions, over one simulated
/// account.
///
/// Source: docs/providers/googledrive.md and the pages that it names.
public final class GoogleDriveSimulator: SimulatedService {
    public let name = "drive"
    public let account: SimulatedAccount
    public let hosts = [
        "www.googleapis.com", "drive.googleapis.com", "accounts.google.com",
        "oauth2.googleapis.com", "docs.google.com", "drive.google.com",
        "lh3.googleusercontent.com",
    ]

    /// What the service keeps beside the tree.
    struct State: Sendable {
        /// Shared drives, by the id of their root.
        var drives: Set<String> = []
        var formerDrives: Set<String> = []
        var sessions: [String: UploadState] = [:]
        var generatedIDs: Set<String> = []
        var random = RandomSource(seed: 11)
        /// What a question with further pages found; of the tree as it is.
        var found: [Question: [SimulatedItem]] = [:]
    }

    let state = Mutex(State())
    static let emptyContent = SimulatedContent([UInt8]())

    /// The service over an account whose tree has Drive's rules (`makeTree`).
    public init(account: SimulatedAccount) {
        self.account = account
        account.tokens.lifetime = 3599
    }

    /// An account's tree with Drive's ids and its rule that names need not differ.
    public static func makeTree(seed: UInt64) -> SimulatedTree {
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in "1" + random.text(32, of: letters) },
            makeRevisionID: { random in "0B" + random.text(48, of: letters) + "PQ" }
        )
        var random = RandomSource(seed: seed)
        return SimulatedTree(
            rules: rules,
            rootID: "0A" + random.text(14, of: letters) + "PVA",
            rootName: "My Drive",
            seed: seed
        )
    }

    public func loseUploadSessions() { state.withLock { $0.sessions = [:] } }

    /// Adds a shared drive; the change log reports it to the account.
    @discardableResult
    public func addDrive(_ name: String) -> String {
        let id = state.withLock { state in
            "0A" + state.random.text(15, of: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefgh") + "Uk9PVA"
        }
        state.withLock { _ = $0.drives.insert(id) }
        account.withTree { tree in
            tree.addRoot(id: id, name: name)
            tree.update(id) { _ in }
        }
        return id
    }

    /// Takes the account out of a shared drive.
    public func leaveDrive(_ id: String) {
        state.withLock { state in
            state.drives.remove(id)
            state.formerDrives.insert(id)
        }
        account.withTree { $0.remove(id) }
    }

    // MARK: Failures

    /// A refusal in the service's words.
    struct Failure: Error {
        var status: Int
        var reason: String
        var message: String
        var location: String?
        var headers: [(name: String, value: String)] = []

        init(_ status: Int, _ reason: String, _ message: String, location: String? = nil) {
            self.status = status
            self.reason = reason
            self.message = message
            self.location = location
        }

        static func notFound(_ id: String) -> Failure {
            Failure(404, "notFound", "File not found: \(id).", location: "fileId")
        }

        static func invalid(_ location: String, _ message: String = "Invalid Value") -> Failure {
            Failure(400, "invalid", message, location: location)
        }

        static let noPermission = Failure(
            403,
            "insufficientFilePermissions",
            "The user does not have sufficient permissions for this file."
        )

        var answer: SimulatorAnswer {
            var entry: [String: JSON] = [
                "domain": "global", "reason": .string(reason), "message": .string(message),
            ]
            if let location {
                entry["location"] = .string(location)
                entry["locationType"] = "parameter"
            }
            return .json(
                [
                    "error": [
                        "code": .integer(Int64(status)), "message": .string(message),
                        "errors": [.object(entry)],
                    ]
                ],
                status: status,
                headers: headers
            )
        }
    }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        var failure: Failure
        var wait: Int?
        switch trouble {
        case .rateLimited(let status, let after):
            failure = Failure(status, "rateLimitExceeded", "Rate Limit Exceeded")
            wait = after
        case .serverError(let status, let after):
            failure = Failure(status, "backendError", "Backend Error")
            wait = after
        case .expiredToken: failure = Self.unauthorized
        }
        if let wait { failure.headers.append(("Retry-After", String(wait))) }
        return failure.answer
    }

    private static var unauthorized: Failure {
        var failure = Failure(
            401,
            "authError",
            "Invalid Credentials",
            location: "Authorization"
        )
        failure.headers.append(
            (
                "WWW-Authenticate",
                "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\""
            )
        )
        return failure
    }

    // MARK: Requests

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        do throws(Failure) {
            return try handle(Self.overridden(request))
        } catch {
            return error.answer
        }
    }

    /// A GET whose query was too long for a URL comes as a form.
    private static func overridden(_ request: SimulatorRequest) -> SimulatorRequest {
        guard request.method == "POST",
            let method = request.header("X-HTTP-Method-Override")
        else { return request }
        let text = String(decoding: request.bytes, as: UTF8.self)
        let query = text.split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.replacing("+", with: " ").removingPercentEncoding ?? String($0) }
            return (name: sides.first ?? "", value: sides.count > 1 ? sides[1] : "")
        }
        return SimulatorRequest(
            method: method,
            host: request.host,
            rawPath: request.rawPath,
            query: request.query + query,
            rawQuery: request.rawQuery,
            headers: request.headers,
            origin: request.origin,
            bytes: method == "GET" ? [] : request.bytes
        )
    }

    public func route(of request: SimulatorRequest) -> String {
        operation(of: Self.overridden(request))?.route ?? "unknown"
    }

    func handle(_ request: SimulatorRequest) throws(Failure) -> SimulatorAnswer {
        guard let operation = operation(of: request) else {
            return SimulatorAnswer(
                status: 404,
                headers: [("Content-Type", "text/html; charset=UTF-8")],
                body: .bytes(Array("<html><title>Error 404 (Not Found)!!1</title></html>".utf8))
            )
        }
        try authorize(request, operation)
        switch operation {
        case .authorize: return authorizePage(request)
        case .token: return token(request)
        case .revoke: return revoke(request)
        case .deviceCode: return deviceCode(request)
        case .batch: return try batch(request)
        case .about: return try about(request)
        case .list: return try list(request)
        case .generateIDs: return try generateIDs(request)
        case .get(let id): return try get(id, request)
        case .create: return try create(request)
        case .update(let id): return try update(id, request)
        case .copy(let id): return try copy(id, request)
        case .delete(let id): return try delete(id, request)
        case .emptyTrash: return emptyTrash()
        case .export(let id): return try export(id, request)
        case .exportLink: return try exportLink(request)
        case .thumbnail(let id): return try thumbnail(id)
        case .upload(let id): return try upload(id, isV2: false, request)
        case .uploadV2(let id): return try upload(id, isV2: true, request)
        case .getV2(let id): return try getV2(id, request)
        case .startPageToken: return try startPageToken(request)
        case .changes: return try changes(request)
        case .drives: return try drives(request)
        case .drive(let id): return try drive(id, request)
        case .revisions(let id): return try revisions(id, request)
        case .revision(let id, let revision): return try self.revision(revision, of: id, request)
        case .permissions(let id): return try permissions(id, request)
        case .permission(let id, let permission):
            return try self.permission(permission, of: id, request)
        }
    }

    private func authorize(
        _ request: SimulatorRequest,
        _ operation: Operation
    ) throws(Failure) {
        switch operation {
        case .authorize, .token, .revoke, .deviceCode: return
        default: break
        }
        guard let token = request.bearerToken ?? request.query("access_token") else {
            // The URI of an upload session is a key by itself.
            if request.query("upload_id") != nil { return }
            throw Failure(
                403,
                "forbidden",
                "Method doesn't allow unregistered callers (callers without established "
                    + "identity). Please use API Key or other form of API consumer identity."
            )
        }
        guard account.tokens.standing(of: token) == .valid else { throw Self.unauthorized }
    }

    // MARK: Routes

    enum Operation {
        case authorize, token, revoke, deviceCode
        case batch, about, list, generateIDs, create, emptyTrash, exportLink
        case get(String), update(String), copy(String), delete(String), export(String)
        case thumbnail(String), getV2(String)
        case upload(String?), uploadV2(String?)
        case startPageToken, changes, drives
        case drive(String)
        case revisions(String), revision(String, String)
        case permissions(String), permission(String, String)

        var route: String {
            switch self {
            case .authorize: "oauth.authorize"
            case .token: "oauth.token"
            case .revoke: "oauth.revoke"
            case .deviceCode: "oauth.device"
            case .batch: "batch"
            case .about: "about.get"
            case .list: "files.list"
            case .generateIDs: "files.generateIds"
            case .create: "files.create"
            case .emptyTrash: "files.emptyTrash"
            case .exportLink: "files.exportLink"
            case .get: "files.get"
            case .update: "files.update"
            case .copy: "files.copy"
            case .delete: "files.delete"
            case .export: "files.export"
            case .thumbnail: "files.thumbnail"
            case .getV2: "v2.files.get"
            case .upload: "uploads"
            case .uploadV2: "v2.uploads"
            case .startPageToken: "changes.getStartPageToken"
            case .changes: "changes.list"
            case .drives: "drives.list"
            case .drive: "drives.get"
            case .revisions: "revisions.list"
            case .revision: "revisions.get"
            case .permissions: "permissions"
            case .permission: "permissions.one"
            }
        }
    }

    private func operation(of request: SimulatorRequest) -> Operation? {
        let parts = request.parts
        switch (request.host, parts.first) {
        case ("accounts.google.com", "o"?):
            return parts.last == "token" ? .token : .authorize
        case ("oauth2.googleapis.com", "token"?): return .token
        case ("oauth2.googleapis.com", "revoke"?): return .revoke
        case ("oauth2.googleapis.com", "device"?): return .deviceCode
        case ("docs.google.com", _): return .exportLink
        case ("lh3.googleusercontent.com", "thumb"?):
            return parts.last.flatMap { $0.split(separator: "=").first }
                .map { .thumbnail(String($0)) }
        case (_, "batch"?): return .batch
        case (_, "oauth2"?): return .token
        case (_, "upload"?):
            guard parts.count >= 4, parts[1] == "drive", parts[3] == "files" else { return nil }
            let id = parts.count > 4 ? parts[4] : nil
            return parts[2] == "v2" ? .uploadV2(id) : .upload(id)
        case (_, "drive"?):
            guard parts.count >= 3 else { return nil }
            if parts[1] == "v2" {
                return parts[2] == "files" && parts.count == 4 && request.method == "GET"
                    ? .getV2(parts[3]) : nil
            }
            return operation(request.method, Array(parts.dropFirst(2)))
        default: return nil
        }
    }

    private func operation(_ method: String, _ parts: [String]) -> Operation? {
        switch (method, parts.first ?? "", parts.count) {
        case ("GET", "about", 1): return .about
        case ("GET", "changes", 1): return .changes
        case ("GET", "changes", 2): return .startPageToken
        case ("GET", "drives", 1), ("GET", "teamdrives", 1): return .drives
        case ("GET", "drives", 2), ("GET", "teamdrives", 2): return .drive(parts[1])
        case ("GET", "files", 1): return .list
        case ("POST", "files", 1): return .create
        case ("GET", "files", 2):
            return parts[1] == "generateIds" ? .generateIDs : .get(parts[1])
        case ("PATCH", "files", 2): return .update(parts[1])
        case ("DELETE", "files", 2): return parts[1] == "trash" ? .emptyTrash : .delete(parts[1])
        case ("POST", "files", 3): return parts[2] == "copy" ? .copy(parts[1]) : permissions(parts)
        case ("GET", "files", 3):
            switch parts[2] {
            case "export": return .export(parts[1])
            case "revisions": return .revisions(parts[1])
            default: return permissions(parts)
            }
        case (_, "files", 4):
            switch parts[2] {
            case "revisions": return .revision(parts[1], parts[3])
            case "permissions": return .permission(parts[1], parts[3])
            default: return nil
            }
        default: return nil
        }
    }

    private func permissions(_ parts: [String]) -> Operation? {
        parts[2] == "permissions" ? .permissions(parts[1]) : nil
    }

    // MARK: Parameters

    /// The `fields` parameter for a resource, or the few fields that come without it.
    func mask(
        _ request: SimulatorRequest,
        _ schema: GoogleDriveSchema,
        default fallback: String
    ) throws(Failure) -> GoogleDriveFieldMask {
        let text = request.query("fields").flatMap { $0.isEmpty ? nil : $0 } ?? fallback
        do throws(GoogleDriveFieldMask.Invalid) {
            return try GoogleDriveFieldMask(text, for: schema)
        } catch {
            throw Failure(
                400,
                "invalidParameter",
                "Invalid field selection \(error.name)",
                location: "fields"
            )
        }
    }

    func supportsAllDrives(_ request: SimulatorRequest) -> Bool {
        (request.query("supportsAllDrives") ?? request.query("supportsTeamDrives")) == "true"
    }

    /// An item that the request may see; `root` is an alias.
    func visible(
        _ id: String,
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatedItem {
        guard let item = tree.item(id == "root" ? tree.rootID : id),
            supportsAllDrives(request) || drive(tree.root(of: item.id)) == nil
        else { throw .notFound(id) }
        return item
    }

    func pageSize(_ request: SimulatorRequest) throws(Failure) -> Int {
        guard let text = request.query("pageSize") else { return 100 }
        guard let size = Int(text), size > 0 else { throw .invalid("pageSize") }
        return min(size, 1000)
    }
}
