import OortModel
import Synchronization

/// A shared link and what it was made with.
struct DropboxSharedLink: Sendable {
    var item: String
    var access: String
    var expires: String?
    var hasPassword: Bool
    /// Whom it opens for, where it has no password: `public`, `team_only`.
    var visibility = "public"
}

/// Dropbox API v2 over a simulated account (docs/providers/dropbox.md).
public final class DropboxSimulator: SimulatedService {
    public let name = "dropbox"
    public let hosts = [
        "api.dropboxapi.com", "content.dropboxapi.com", "notify.dropboxapi.com",
        "www.dropbox.com", "dl.dropboxusercontent.com",
    ]
    public let account: SimulatedAccount
    /// Files and folders below one that is moved, copied or deleted by a request.
    static let mostAtOnce = 10_000
    let memory = Mutex(Memory())

    /// What the service remembers beside the tree.
    struct Memory: Sendable {
        var random = RandomSource(seed: 11)
        var cursors: [String: DropboxListing] = [:]
        var sessions: [String: DropboxSession] = [:]
        var jobs: [String: (left: Int, result: JSON)] = [:]
        var temporaryLinks: [String: (SimulatedContent, expires: Timestamp)] = [:]
        var sharedLinks: [String: DropboxSharedLink] = [:]
        var searches: [String: [JSON]] = [:]
    }

    /// A service over an account, empty unless `account` was filled.
    public init(account: SimulatedAccount) { self.account = account }

    /// An empty account.
    public static func emptyAccount(seed: UInt64 = 1) -> SimulatedAccount {
        SimulatedAccount(tree: emptyTree(seed: seed))
    }

    /// The sample account within Dropbox's bounds.
    public static func sampleAccount(seed: UInt64 = 1) -> SimulatedAccount {
        var tree = emptyTree(seed: seed)
        SampleAccount(
            allowsDuplicates: false,
            allowsSlashes: false,
            allowsShortcuts: false,
            nativeName: { name, type in
                DropboxExports.fileExtension(of: type).map { "\(name).\($0)" }
            }
        ).fill(&tree)
        return SimulatedAccount(tree: tree)
    }

    private static func emptyTree(seed: UInt64) -> SimulatedTree {
        let rules = SimulatedTreeRules(
            comparison: .composedCaseInsensitive,
            keepsPathLog: true,
            makeID: { _, random in
                "id:"
                    + random.text(
                        22,
                        of: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
                    )
            },
            makeRevisionID: { "01" + $0.hex(25) }
        )
        return SimulatedTree(
            rules: rules,
            rootID: "id:root",
            rootName: "",
            seed: seed
        )
    }

    public func loseCursors() { memory.withLock { $0.cursors = [:] } }

    public func loseUploadSessions() { memory.withLock { $0.sessions = [:] } }

    public func route(of request: SimulatorRequest) -> String {
        let path = request.path
        if request.host == "dl.dropboxusercontent.com" { return "link" }
        if path.hasPrefix("/2/") { return String(path.dropFirst(3)) }
        return String(path.dropFirst())
    }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(429, let after):
            let seconds = after ?? 1
            return marked(
                .json(
                    [
                        "error_summary": "too_many_requests/...",
                        "error": [
                            "reason": [".tag": "too_many_requests"],
                            "retry_after": .integer(Int64(seconds)),
                        ],
                    ],
                    status: 429,
                    headers: [("Retry-After", String(seconds))]
                )
            )
        case .rateLimited(let status, let after), .serverError(let status, let after):
            let headers = after.map { [(name: "Retry-After", value: String($0))] } ?? []
            return marked(
                .text("Internal Server Error", status: status, headers: headers)
            )
        case .expiredToken: return marked(failed(.token("expired_access_token"), request))
        }
    }

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        do throws(DropboxFailure) {
            return marked(try await dispatch(request))
        } catch {
            return marked(failed(error, request))
        }
    }

    func failed(_ failure: DropboxFailure, _ request: SimulatorRequest) -> SimulatorAnswer {
        failure.answer(
            route: route(of: request),
            random: memory.withLock { $0.random.next() }
        )
    }

    /// Every answer carries the id of its request.
    private func marked(_ answer: SimulatorAnswer) -> SimulatorAnswer {
        var answer = answer
        answer.headers.append(
            ("X-Dropbox-Request-Id", memory.withLock { $0.random.hex(32) })
        )
        return answer
    }

    // MARK: Dispatch

    private func dispatch(
        _ request: SimulatorRequest
    ) async throws(DropboxFailure) -> SimulatorAnswer {
        switch (request.host, request.path) {
        case ("www.dropbox.com", "/oauth2/authorize"):
            return SimulatedOAuth.authorize(
                request,
                tokens: account.tokens,
                isOffline: request.query("token_access_type") == "offline"
            )
        case ("api.dropboxapi.com", "/oauth2/token"), ("api.dropbox.com", "/oauth2/token"):
            return token(request)
        case ("dl.dropboxusercontent.com", _): return try temporaryLink(request)
        default: break
        }
        let route = route(of: request)
        guard request.path.hasPrefix("/2/"), let style = Self.styles[route] else {
            throw .malformed("Unknown API function: \"\(route)\"")
        }
        guard request.host == style.host else {
            throw .malformed(
                "You have used an incorrect hostname. Please use \(style.host)."
            )
        }
        let argument = try argument(of: request, style: style)
        try authorize(request, style: style)
        return try await perform(route, argument, request)
    }

    private func token(_ request: SimulatorRequest) -> SimulatorAnswer {
        switch SimulatedOAuth.token(request, tokens: account.tokens) {
        case .success(let issued):
            var fields: [String: JSON] = [
                "access_token": .string(issued.access), "token_type": "bearer",
                "expires_in": .integer(Int64(issued.expiresIn)),
            ]
            if request.form["grant_type"] == "authorization_code" {
                fields["refresh_token"] = JSON(issued.refresh)
                fields["account_id"] = .string(accountID)
                fields["uid"] = "12345"
                fields["scope"] = .string(Self.scopes)
            }
            // Recorded live: the type is JavaScript, the content JSON.
            return SimulatorAnswer(
                status: 200,
                headers: [("Content-Type", "text/javascript")],
                body: .bytes(JSON.object(fields).withoutNulls.bytes)
            )
        case .failure(let refused):
            let text =
                request.form["grant_type"] == "refresh_token"
                ? "refresh token is invalid or revoked" : "code doesn't exist or has expired"
            return .json(refused.json(description: text), status: 400)
        }
    }

    private func authorize(
        _ request: SimulatorRequest,
        style: DropboxStyle
    ) throws(DropboxFailure) {
        guard style.isAuthorized else {
            guard request.header("Authorization") == nil else {
                throw .malformed(
                    "This API function does not take an Authorization header."
                )
            }
            return
        }
        guard let field = request.header("Authorization") else {
            throw .malformed(
                "Must provide HTTP header \"Authorization\" or URL parameter "
                    + "\"authorization\"."
            )
        }
        guard let token = request.bearerToken, !token.isEmpty else {
            throw .malformed(
                "Invalid authorization value in HTTP header \"Authorization\": "
                    + "\"\(field.prefix(6))…\""
            )
        }
        switch account.tokens.standing(of: token) {
        case .valid: break
        case .expired: throw .token("expired_access_token")
        case .invalid: throw .token("invalid_access_token")
        }
        if let text = request.header("Dropbox-API-Path-Root") {
            guard let root = JSON(parsing: Array(text.utf8)), let tag = root[".tag"]?.text else {
                throw .malformed("HTTP header \"Dropbox-API-Path-Root\": could not decode")
            }
            let named = root["root"]?.text ?? root["namespace_id"]?.text
            guard tag == "home" || named == Self.namespace else {
                throw .pathRoot(
                    tag == "root"
                        ? [".tag": "invalid_root", "invalid_root": Self.rootInfo]
                        : [".tag": "no_permission"]
                )
            }
        }
    }

    private func argument(
        of request: SimulatorRequest,
        style: DropboxStyle
    ) throws(DropboxFailure) -> JSON {
        let type = request.header("Content-Type")?.lowercased()
            .replacing(" ", with: "")
        let text: [UInt8]
        let place: String
        switch style.kind {
        case .rpc, .nothing:
            place = "request body"
            text = request.bytes
            if style.kind == .nothing, text.isEmpty, type == nil { return .null }
            let known = [
                "application/json", "application/json;charset=utf-8",
                "application/json;charset=dropbox-cors-hack",
                "text/plain;charset=dropbox-cors-hack",
            ]
            guard let type, known.contains(type) else {
                throw .malformed(
                    "Bad HTTP \"Content-Type\" header: \"\(type ?? "")\".  Expecting one of "
                        + "\"application/json\", \"application/json; charset=utf-8\"."
                )
            }
        case .upload, .download:
            if style.kind == .upload {
                guard
                    type == "application/octet-stream"
                        || type == "text/plain;charset=dropbox-cors-hack"
                else {
                    throw .malformed(
                        "Bad HTTP \"Content-Type\" header: \"\(type ?? "")\".  Expecting one of "
                            + "\"application/octet-stream\"."
                    )
                }
            } else if let type, type != "application/octet-stream",
                !type.hasPrefix("text/plain"), request.method != "GET"
            {
                throw .malformed("Bad HTTP \"Content-Type\" header: \"\(type)\".")
            }
            if let field = request.header("Dropbox-API-Arg") {
                place = "HTTP header \"Dropbox-API-Arg\""
                text = Array(field.utf8)
                guard text.allSatisfy({ $0 < 0x7F }) else {
                    throw .malformed("\(place): could not decode input as JSON")
                }
            } else if let field = request.query("arg") {
                place = "URL parameter \"arg\""
                text = Array(field.utf8)
            } else {
                throw .malformed(
                    "Must provide HTTP header \"Dropbox-API-Arg\" or URL parameter \"arg\"."
                )
            }
        }
        guard let json = JSON(parsing: text) else {
            throw .malformed("\(place): could not decode input as JSON")
        }
        guard style.kind != .nothing || json == .null else {
            throw .malformed("\(place): expected null, got \(json.kindName)")
        }
        return json
    }

    // MARK: The account

    var accountID: String { "dbid:AADemoDemoDemoDemoDemoDemoDemoDemo\(account.person.number)" }
    static let namespace = "7001"
    static let rootInfo: JSON = [
        ".tag": "user", "root_namespace_id": .string(namespace),
        "home_namespace_id": .string(namespace),
    ]
    static let scopes =
        "account_info.read files.content.read files.content.write files.metadata.read "
        + "files.metadata.write sharing.read sharing.write"

    func currentAccount() -> JSON {
        let names = account.displayName.split(separator: " ", maxSplits: 1).map(String.init)
        return [
            "account_id": .string(accountID),
            "name": [
                "given_name": JSON(names.first), "surname": JSON(names.last),
                "familiar_name": JSON(names.first),
                "display_name": .string(account.displayName), "abbreviated_name": "AE",
            ],
            "email": .string(account.email), "email_verified": true, "disabled": false,
            "country": "NL", "locale": "en", "referral_link": "https://www.dropbox.com/referrals/x",
            "is_paired": false, "account_type": [".tag": "basic"], "root_info": Self.rootInfo,
        ]
    }

    func spaceUsage() -> JSON {
        [
            "used": .integer(account.withTree { $0.usedBytes }),
            "allocation": [
                ".tag": "individual",
                "allocated": .integer(account.totalBytes ?? 1 << 50),
            ],
        ]
    }
}
