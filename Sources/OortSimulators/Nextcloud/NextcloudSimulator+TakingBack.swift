import Foundation
import OortModel
import Synchronization

/// A public link.
struct NextcloudShare: Sendable {
    var id: Int64
    var item: String
    var permissions: Int64
    var password: String?
    var expiration: String?
    var token: String
}

/// Trash, versions and links of a Nextcloud, in the words of a running server.
extension NextcloudSimulator {
    // MARK: Trash

    /// `trash/NAME.dSECONDS`.
    func trash(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        guard habits.hasTrash, parts.first == "trash", parts.count <= 2 else {
            return Self.failure(404, "NotFound", "not found")
        }
        switch (request.method, parts.count) {
        case ("PROPFIND", 1):
            let asked = DAVXML.names(in: request.bytes)
            let entries = account.withTree { tree in
                tree.allItems.filter { $0.trashedTime != nil }.map { item in
                    DAVXML.response(
                        href: href(request, ["trash", Self.trashName(item)], in: "trashbin"),
                        properties(ofTrashed: item, tree),
                        asked: asked
                    )
                }
            }
            let own = DAVXML.response(
                href: href(request, ["trash"], in: "trashbin") + "/",
                ["resourcetype": "<d:collection/>"],
                asked: asked
            )
            return DAVXML.multistatus([own] + entries.sorted())
        case ("PROPFIND", 2):
            return account.withTree { tree in
                guard let item = Self.trashed(parts[1], tree) else {
                    return Self.failure(404, "NotFound", "not found")
                }
                return DAVXML.multistatus([
                    DAVXML.response(
                        href: href(request, parts, in: "trashbin"),
                        properties(ofTrashed: item, tree),
                        asked: DAVXML.names(in: request.bytes)
                    )
                ])
            }
        case ("MOVE", 2): return moveFromTrash(parts[1], request)
        default: return Self.failure(405, "MethodNotAllowed", "")
        }
    }

    private static func trashName(_ item: SimulatedItem) -> String {
        "\(item.name).d\(item.trashedTime?.seconds ?? 0)"
    }

    private func properties(
        ofTrashed item: SimulatedItem,
        _ tree: SimulatedTree
    ) -> [String: String] {
        var values = [
            "resourcetype": item.isFolder ? "<d:collection/>" : "",
            "fileid": DAVXML.number(of: item.id), "id": DAVXML.number(of: item.id),
            "trashbin-filename": DAVXML.escaped(item.name),
            "trashbin-original-location": DAVXML.escaped(
                (tree.path(of: item.id) ?? []).joined(separator: "/")
            ),
            "trashbin-deletion-time": String(item.trashedTime?.seconds ?? 0),
            "size": String(item.size),
        ]
        if !item.isFolder { values["getcontentlength"] = String(item.size) }
        return values
    }

    /// A move out of the trash: to `restore/ANYTHING` it puts back where it lay, under another name
    /// where that is taken; to a place among the files only a copy of a file can go.
    private func moveFromTrash(_ name: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        let target = target(request)
        let replaces = request.header("Overwrite") != "F"
        return account.withTree { tree in
            guard let item = Self.trashed(name, tree) else {
                return Self.failure(404, "NotFound", "not found")
            }
            switch target {
            case .files(let user, let path)?:
                guard user == Self.userID, let name = path.last else {
                    return Self.failure(403, "Forbidden", "")
                }
                return Self.copyOut(item, to: path.dropLast(), name, replaces, &tree)
            case .trash(let user, let path)?:
                guard user == Self.userID, path.first == "restore", path.count == 2 else {
                    return Self.failure(403, "Forbidden", "")
                }
                return Self.restore(item, &tree)
            default: return Self.failure(400, "BadRequest", "Destination")
            }
        }
    }

    private static func trashed(_ name: String, _ tree: SimulatedTree) -> SimulatedItem? {
        tree.allItems.first { $0.trashedTime != nil && trashName($0).isSameText(as: name) }
    }

    private static func copyOut(
        _ item: SimulatedItem,
        to folder: ArraySlice<String>,
        _ name: String,
        _ replaces: Bool,
        _ tree: inout SimulatedTree
    ) -> SimulatorAnswer {
        guard let parent = tree.item(at: Array(folder)), parent.isFolder else {
            return failure(409, "Conflict", "The destination node is not found")
        }
        let old = tree.items(named: name, in: parent.id).first
        guard old == nil || replaces else { return failure(412, "PreconditionFailed", "exists") }
        guard !item.isFolder else { return failure(400, "BadRequest", "Incompatible node types") }
        if let old { tree.trash(old.id) }
        _ = tree.create(name, in: parent.id, content: item.head?.content)
        tree.remove(item.id)
        return SimulatorAnswer(status: old == nil ? 201 : 204)
    }

    private static func restore(
        _ item: SimulatedItem,
        _ tree: inout SimulatedTree
    ) -> SimulatorAnswer {
        // By its path: a folder that was made anew holds it, too.
        let lay = tree.path(of: item.id)?.dropLast() ?? []
        guard
            let parent = tree.item(at: Array(lay)).flatMap({ $0.isFolder ? $0 : nil })
                ?? tree.item(tree.rootID)
        else { return failure(409, "Conflict", "") }
        var name = item.name
        var number = 1
        while !tree.items(named: name, in: parent.id).isEmpty {
            let (before, ending) = item.name.cut(atLast: ".") ?? (item.name[...], "")
            name = "\(before) (restored\(number == 1 ? "" : " \(number)"))"
            if !ending.isEmpty { name += ".\(ending)" }
            number += 1
        }
        let time = item.modifiedTime
        tree.restore(item.id)
        tree.move(item.id, to: parent.id, name: name)
        tree.update(item.id) { $0.modifiedTime = time }
        return SimulatorAnswer(status: 201)
    }

    // MARK: Versions

    /// `versions/FILEID/SECONDS`.
    func versions(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        guard parts.first == "versions", parts.count == 2 || parts.count == 3 else {
            return Self.failure(404, "NotFound", "not found")
        }
        let found = account.withTree { tree in
            tree.allItems.first {
                !$0.isFolder && DAVXML.number(of: $0.id) == parts[1]
                    && !tree.isTrashed($0.id)
            }
        }
        guard let item = found else { return Self.failure(404, "NotFound", "not found") }
        // Contents of one second are one version.
        var contents: [Int64: SimulatedRevision] = [:]
        for revision in item.revisions { contents[revision.modifiedTime.seconds] = revision }
        switch (request.method, parts.count) {
        case ("PROPFIND", 2):
            let asked = DAVXML.names(in: request.bytes)
            let own = DAVXML.response(
                href: href(request, parts, in: "versions") + "/",
                ["resourcetype": "<d:collection/>"],
                asked: asked
            )
            let all = contents.keys.sorted().map { seconds in
                DAVXML.response(
                    href: href(request, parts + [String(seconds)], in: "versions"),
                    [
                        "resourcetype": "",
                        "getcontentlength": String(contents[seconds]?.content.size ?? 0),
                        "getlastmodified": DAVXML.httpDate(Timestamp(seconds: seconds)),
                        "getetag": String(seconds),
                    ],
                    asked: asked
                )
            }
            return DAVXML.multistatus([own] + all)
        case ("GET", 3):
            // What the file has now is listed, but not handed out here.
            guard let seconds = Int64(parts[2]), let revision = contents[seconds],
                revision.id != item.head?.id
            else { return Self.failure(404, "NotFound", "not found") }
            return .content(revision.content, for: request)
        case ("MOVE", 3):
            guard let seconds = Int64(parts[2]), let revision = contents[seconds],
                case .versions(_, let place)? = target(request), place.first == "restore"
            else { return Self.failure(404, "NotFound", "not found") }
            account.withTree { tree in
                _ = tree.write(
                    revision.content,
                    to: item.id,
                    modifiedTime: revision.modifiedTime
                )
            }
            return SimulatorAnswer(status: 201)
        default: return Self.failure(405, "MethodNotAllowed", "")
        }
    }

    // MARK: Links

    private static func ocs(_ data: JSON) -> SimulatorAnswer {
        let meta: JSON = ["status": .string("ok"), "statuscode": .integer(200)]
        return .json(["ocs": ["meta": meta, "data": data]])
    }

    private static func ocs(_ status: Int, _ message: String) -> SimulatorAnswer {
        let meta: JSON = [
            "status": .string("failure"), "statuscode": .integer(Int64(status)),
            "message": .string(message),
        ]
        return .json(["ocs": ["meta": meta, "data": .array([])]], status: status)
    }

    /// The sharing programs: `shares`, `shares/ID`.
    func shares(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        let body = request.form
        func field(_ name: String) -> String? { body[name] ?? request.query(name) }
        switch (request.method, parts.count) {
        case ("POST", 0):
            guard field("shareType") == "3" else { return Self.ocs(400, "Unknown share type") }
            let path = Self.names(in: field("path") ?? "")
            guard let item = account.withTree({ $0.item(at: path) }), item.parentID != nil else {
                return Self.ocs(404, "Wrong path, file/folder does not exist")
            }
            if let day = field("expireDate"), day.utf8.count != 10 {
                return Self.ocs(404, "Invalid date, date format must be YYYY-MM-DD")
            }
            let share = state.withLock { state in
                state.lastShare += 1
                let share = NextcloudShare(
                    id: state.lastShare,
                    item: item.id,
                    permissions: field("permissions").flatMap { Int64($0) } ?? 1,
                    password: field("password"),
                    expiration: field("expireDate").map { $0 + " 00:00:00" },
                    token: "token\(state.lastShare)"
                )
                state.shares.append(share)
                return share
            }
            return Self.ocs(json(share, request))
        case ("GET", 0):
            var shares = state.withLock { $0.shares }
            if let path = request.query("path") {
                let parts = Self.names(in: path)
                guard let item = account.withTree({ $0.item(at: parts) }) else {
                    return Self.ocs(404, "Wrong path, file/folder does not exist")
                }
                shares.removeAll { $0.item != item.id }
            }
            return Self.ocs(.array(shares.map { json($0, request) }))
        case ("DELETE", 1):
            let wasThere = state.withLock { state in
                let count = state.shares.count
                state.shares.removeAll { String($0.id) == parts[0] }
                return state.shares.count < count
            }
            return wasThere
                ? Self.ocs(.array([])) : Self.ocs(404, "Wrong share ID, share does not exist")
        default: return Self.ocs(405, "Method not allowed")
        }
    }

    private func json(_ share: NextcloudShare, _ request: SimulatorRequest) -> JSON {
        let path = account.withTree { $0.path(of: share.item) } ?? []
        let isFolder = account.withTree { $0.item(share.item)?.isFolder == true }
        return [
            "item_type": .string(isFolder ? "folder" : "file"),
            "id": .string(String(share.id)), "share_type": .integer(3),
            "path": .string("/" + path.joined(separator: "/")),
            // A link may always be shared on.
            "permissions": .integer(share.permissions | 16),
            "expiration": share.expiration.map { .string($0) } ?? .null,
            "password": share.password == nil ? .null : .string("hidden"),
            "token": .string(share.token), "name": "", "share_with": .null,
            "url": .string(request.url(host: Self.host, path: "/s/\(share.token)")),
        ]
    }

    /// The names of a path that a field of a form has.
    private static func names(in path: String) -> [String] {
        path.unicodeScalars.split(separator: "/").map { String($0) }
    }
}
