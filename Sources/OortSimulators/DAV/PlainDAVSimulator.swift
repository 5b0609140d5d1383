import Foundation
import OortModel

/// A server that speaks WebDAV and nothing beside it, one person's files at `/files`.
///
/// It behaves as RFC 4918 has it and as Apache's mod_dav does where that leaves a choice: folders have no
/// tags, deleted files are gone, times cannot be set, and whatever replaces something must say so.
public final class PlainDAVSimulator: SimulatedService, DAVSimulator {
    public let name = "webdav"
    public let hosts = [host]
    public let account: SimulatedAccount

    /// The server's name.
    public static let host = "dav.example.org"
    /// Where the files are.
    public static let folder = "files"
    /// The person who logs in; every token of the account is a password.
    public static let userName = "ada"

    /// An empty account.
    public init(totalBytes: Int64? = nil, seed: UInt64 = 1) {
        let rules = SimulatedTreeRules(
            comparison: .exact,
            keepsPathLog: false,
            makeID: { _, random in random.hex(16) },
            makeRevisionID: { $0.hex(20) }
        )
        let tree = SimulatedTree(rules: rules, rootID: "root", rootName: "", seed: seed)
        account = SimulatedAccount(tree: tree, totalBytes: totalBytes)
        account.tokens.lifetime = 10 * 365 * 86400
    }

    /// The account that the demo begins with.
    public static func sample() -> PlainDAVSimulator {
        let simulator = PlainDAVSimulator()
        simulator.fillWithSample()
        return simulator
    }

    /// There are none: each content comes in one request.
    public func loseUploadSessions() {}

    // MARK: Requests

    public func route(of request: SimulatorRequest) -> String { "\(request.method) files" }

    public func answer(
        to request: SimulatorRequest,
        for trouble: SimulatedTrouble
    ) -> SimulatorAnswer {
        switch trouble {
        case .rateLimited(let status, let after), .serverError(let status, let after):
            Self.answer(status: status, retryAfterSeconds: after)
        case .expiredToken: Self.unauthorized
        }
    }

    private static let unauthorized = SimulatorAnswer(
        status: 401,
        headers: [("WWW-Authenticate", "Basic realm=\"files\"")]
    )

    public func answer(_ request: SimulatorRequest) async -> SimulatorAnswer {
        guard let (user, password) = Self.credentials(request), user == Self.userName,
            account.tokens.standing(of: password) == .valid
        else { return Self.unauthorized }
        guard let path = path(in: request.parts) else { return SimulatorAnswer(status: 404) }
        return switch request.method {
        case "PROPFIND": propfind(request, path)
        case "GET", "HEAD": get(request, path)
        case "PUT": put(request, path)
        case "MKCOL": makeFolder(request, path)
        case "DELETE": delete(request, path)
        case "MOVE", "COPY": relocate(request, path)
        case "PROPPATCH": refuseProperties(request, path)
        case "OPTIONS": SimulatorAnswer(status: 200, headers: [("DAV", "1")])
        default: SimulatorAnswer(status: 405)
        }
    }

    /// The names below the files in the parts of a path; nil for what lies elsewhere.
    private func path(in parts: [String]) -> [String]? {
        let parts = parts.filter { !$0.isEmpty }
        return parts.first == Self.folder ? Array(parts.dropFirst()) : nil
    }

    private func place(_ request: SimulatorRequest, _ path: [String], isFolder: Bool) -> String {
        href(request, [Self.folder] + path) + (isFolder ? "/" : "")
    }

    // MARK: Looking

    private func propfind(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        let depth = request.header("Depth") ?? "infinity"
        guard depth == "0" || depth == "1" else { return SimulatorAnswer(status: 403) }
        var asked = DAVXML.names(in: request.bytes)
        if asked.isEmpty || asked.contains("allprop") {
            asked = [
                "resourcetype", "getetag", "getlastmodified", "getcontentlength", "getcontenttype",
            ]
        }
        let tree = account.withTree { $0 }
        guard let item = tree.item(at: path) else { return SimulatorAnswer(status: 404) }
        func response(_ item: SimulatedItem, _ path: [String]) -> String {
            DAVXML.response(
                href: place(request, path, isFolder: item.isFolder),
                properties(item, tree),
                asked: asked
            )
        }
        let children = depth == "1" && item.isFolder ? tree.children(of: item.id) : []
        return DAVXML.multistatus(
            [response(item, path)] + children.map { response($0, path + [$0.name]) }
        )
    }

    private func properties(_ item: SimulatedItem, _ tree: SimulatedTree) -> [String: String] {
        var values = [
            "resourcetype": item.isFolder ? "<d:collection/>" : "",
            "getlastmodified": DAVXML.httpDate(item.modifiedTime),
        ]
        if let head = item.head {
            values["getetag"] = DAVXML.escaped("\"\(head.id)\"")
            values["getcontentlength"] = String(item.size)
            values["getcontenttype"] = item.mimeType ?? "application/octet-stream"
        }
        if let total = account.totalBytes {
            values["quota-used-bytes"] = String(tree.usedBytes)
            values["quota-available-bytes"] = String(max(0, total - tree.usedBytes))
        }
        return values
    }

    private func get(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard let item = account.withTree({ $0.item(at: path) }) else {
            return SimulatorAnswer(status: 404)
        }
        guard let head = item.head else { return SimulatorAnswer(status: 405) }
        if let refusal = refusal(of: request, item) { return refusal }
        return .content(
            head.content,
            for: request,
            type: item.mimeType ?? "application/octet-stream",
            headers: [
                ("ETag", "\"\(head.id)\""),
                ("Last-Modified", DAVXML.httpDate(item.modifiedTime)),
            ]
        )
    }

    // MARK: Changing

    /// The refusal by a condition that does not hold of what is there; nil where all do.
    private func refusal(of request: SimulatorRequest, _ item: SimulatedItem?) -> SimulatorAnswer? {
        if request.header("If-None-Match") == "*", item != nil {
            return SimulatorAnswer(status: 412)
        }
        guard let wanted = request.header("If-Match") else { return nil }
        let isMet = wanted == "*" ? item != nil : wanted == item?.head.map { "\"\($0.id)\"" }
        return isMet ? nil : SimulatorAnswer(status: 412)
    }

    /// A folder at a path, in which something is to be.
    private static func parent(of path: [String], _ tree: SimulatedTree) -> SimulatedItem? {
        tree.item(at: Array(path.dropLast())).flatMap { $0.isFolder ? $0 : nil }
    }

    private func isRefused(_ name: String, _ tree: SimulatedTree) -> Bool {
        tree.conditions.refusedNames.contains(name) || name.utf8.count > 255
    }

    private func put(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        let content = SimulatedContent(request.bytes)
        guard account.hasRoom(for: content.size) else { return SimulatorAnswer(status: 507) }
        return account.withTree { tree in
            guard let name = path.last else { return SimulatorAnswer(status: 405) }
            guard let parent = Self.parent(of: path, tree) else {
                return SimulatorAnswer(status: 409)
            }
            let old = tree.items(named: name, in: parent.id).first
            if let refusal = refusal(of: request, old) { return refusal }
            guard old?.isFolder != true else { return SimulatorAnswer(status: 405) }
            guard !isRefused(name, tree), !tree.isReadOnly(old?.id ?? parent.id) else {
                return SimulatorAnswer(status: 403)
            }
            let item =
                old.flatMap { tree.write(content, to: $0.id) }
                ?? tree.create(name, in: parent.id, content: content)
            tree.update(item.id) { $0.mimeType = request.header("Content-Type") }
            return SimulatorAnswer(
                status: old == nil ? 201 : 204,
                headers: [("ETag", "\"\(item.head?.id ?? "")\"")]
            )
        }
    }

    private func makeFolder(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard request.bytes.isEmpty else { return SimulatorAnswer(status: 415) }
        return account.withTree { tree in
            guard let name = path.last, tree.item(at: path) == nil else {
                return SimulatorAnswer(status: 405)
            }
            guard let parent = Self.parent(of: path, tree) else {
                return SimulatorAnswer(status: 409)
            }
            guard !isRefused(name, tree), !tree.isReadOnly(parent.id) else {
                return SimulatorAnswer(status: 403)
            }
            tree.create(name, in: parent.id, kind: .folder)
            return SimulatorAnswer(status: 201)
        }
    }

    private func delete(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        account.withTree { tree in
            guard let item = tree.item(at: path) else { return SimulatorAnswer(status: 404) }
            if let refusal = refusal(of: request, item) { return refusal }
            guard item.parentID != nil, !tree.isReadOnly(item.id) else {
                return SimulatorAnswer(status: 403)
            }
            tree.remove(item.id)
            return SimulatorAnswer(status: 204)
        }
    }

    private func relocate(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard let new = Self.destinationParts(request).flatMap({ self.path(in: $0) }),
            let name = new.last
        else { return SimulatorAnswer(status: 400) }
        let replaces = request.header("Overwrite") != "F"
        return account.withTree { tree in
            guard let item = tree.item(at: path), item.parentID != nil else {
                return SimulatorAnswer(status: 404)
            }
            if let refusal = refusal(of: request, item) { return refusal }
            guard let parent = Self.parent(of: new, tree) else {
                return SimulatorAnswer(status: 409)
            }
            let old = tree.items(named: name, in: parent.id).first
            guard !tree.lies(parent.id, in: item.id), old?.id != item.id,
                !isRefused(name, tree), !tree.isReadOnly(parent.id), !tree.isReadOnly(item.id)
            else { return SimulatorAnswer(status: 403) }
            if let old {
                guard replaces else { return SimulatorAnswer(status: 412) }
                guard !tree.lies(item.id, in: old.id) else { return SimulatorAnswer(status: 403) }
                tree.remove(old.id)
            }
            if request.method == "MOVE" {
                tree.move(item.id, to: parent.id, name: name)
            } else {
                Self.copy(item, to: parent.id, name: name, &tree)
            }
            return SimulatorAnswer(status: old == nil ? 201 : 204)
        }
    }

    /// No property can be set.
    private func refuseProperties(
        _ request: SimulatorRequest,
        _ path: [String]
    ) -> SimulatorAnswer {
        guard let item = account.withTree({ $0.item(at: path) }) else {
            return SimulatorAnswer(status: 404)
        }
        return DAVXML.multistatus([
            "<d:response><d:href>\(place(request, path, isFolder: item.isFolder))</d:href>"
                + "<d:propstat><d:prop><d:getlastmodified/></d:prop>"
                + "<d:status>HTTP/1.1 403 Forbidden</d:status></d:propstat></d:response>"
        ])
    }
}
