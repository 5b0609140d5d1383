import Foundation
import OortModel
import Synchronization

/// Trash, versions and links of an OpenCloud.
extension InfiniteScaleSimulator {
    // MARK: Trash

    /// The trash of a space: `KEY`.
    func trash(_ request: SimulatorRequest, _ root: String, _ key: [String]) -> SimulatorAnswer {
        switch (request.method, key.count) {
        case ("PROPFIND", 0): return listTrash(request, root)
        case ("MOVE", 1): return restore(request, root, key[0])
        default: return SimulatorAnswer(status: 501)
        }
    }

    private func listTrash(_ request: SimulatorRequest, _ root: String) -> SimulatorAnswer {
        let base = ["dav", "spaces", "trash-bin", Self.space(root)]
        let tree = account.withTree { $0 }
        let own = response(
            request,
            href: href(request, base) + "/",
            ["resourcetype": "<d:collection/>", "trashbin-original-filename": ""]
        )
        let deleted = tree.allItems.filter { $0.trashedTime != nil && tree.root(of: $0.id) == root }
        let entries = deleted.map { item in
            let seconds = item.trashedTime?.seconds ?? 0
            var values = [
                "resourcetype": item.isFolder ? "<d:collection/>" : "",
                "trashbin-original-filename": DAVXML.escaped(item.name),
                "trashbin-original-location": DAVXML.escaped(
                    (tree.path(of: item.id) ?? []).joined(separator: "/")
                ),
                "trashbin-delete-timestamp": String(seconds), "spaceid": Self.space(root),
            ]
            values[item.isFolder ? "size" : "getcontentlength"] = String(item.size)
            return response(
                request,
                href: href(request, base + [item.id]) + (item.isFolder ? "/" : ""),
                values
            )
        }
        return DAVXML.multistatus([own] + entries.sorted())
    }

    /// Puts what was deleted to the place that the destination names.
    private func restore(
        _ request: SimulatorRequest,
        _ root: String,
        _ key: String
    ) -> SimulatorAnswer {
        guard let (newRoot, path) = destination(request), newRoot == root, let name = path.last
        else { return SimulatorAnswer(status: 400) }
        return account.withTree { tree in
            if let old = tree.item(at: path, from: root) {
                guard request.header("Overwrite") != "F" else {
                    return Self.failure(412, "PreconditionFailed", "The destination node exists")
                }
                tree.trash(old.id)
            }
            guard let parent = tree.item(at: path.dropLast(), from: root), parent.isFolder else {
                return SimulatorAnswer(status: 409)
            }
            guard let item = tree.item(key), item.trashedTime != nil else {
                return SimulatorAnswer(status: 404)
            }
            tree.restore(item.id)
            tree.move(item.id, to: parent.id, name: name)
            tree.update(item.id) { $0.modifiedTime = item.modifiedTime }
            return SimulatorAnswer(status: 201)
        }
    }

    // MARK: Versions

    /// The earlier contents of a file: `KEY`.
    func versions(_ request: SimulatorRequest, _ id: String, _ key: [String]) -> SimulatorAnswer {
        let tree = account.withTree { $0 }
        guard let item = tree.item(Self.node(id)), !tree.isTrashed(item.id) else {
            return Self.failure(404, "NotFound", "Resource not found")
        }
        let earlier = Self.versions(of: item)
        let base = ["dav", "meta", id, "v"]
        switch (request.method, key.count) {
        case ("PROPFIND", 0):
            let own = response(
                request,
                href: href(request, base) + "/",
                ["resourcetype": "<d:collection/>"]
            )
            // What the file has now is not among them.
            let all = earlier.map { name, revision in
                response(
                    request,
                    href: href(request, base + [name]),
                    [
                        "resourcetype": "", "getcontentlength": String(revision.content.size),
                        "getlastmodified": DAVXML.httpDate(revision.modifiedTime),
                    ]
                )
            }
            return DAVXML.multistatus([own] + all)
        case ("GET", 1):
            guard let revision = earlier.first(where: { $0.name == key[0] })?.revision else {
                return SimulatorAnswer(status: 404)
            }
            return .content(revision.content, for: request)
        case ("COPY", 1):
            guard let revision = earlier.first(where: { $0.name == key[0] })?.revision else {
                return SimulatorAnswer(status: 404)
            }
            account.withTree { tree in
                _ = tree.write(
                    revision.content,
                    to: item.id,
                    modifiedTime: revision.modifiedTime
                )
            }
            return SimulatorAnswer(status: 204)
        default: return SimulatorAnswer(status: 501)
        }
    }

    /// The earlier contents of a file, in the order of their names: these have the modified time to the
    /// nanosecond, and a number where another content of the same time came after (reva,
    /// `CreateRevision`).
    private static func versions(
        of item: SimulatedItem
    ) -> [(name: String, revision: SimulatedRevision)] {
        let format = Date.ISO8601FormatStyle()
        var numbers: [String: Int] = [:]
        var found: [(name: String, revision: SimulatedRevision)] = []
        for revision in item.revisions.dropLast() {
            let time = revision.modifiedTime
            let whole = Date(timeIntervalSince1970: Double(time.seconds)).formatted(format)
            var part = "." + String(1_000_000_000 + Int(time.nanoseconds)).dropFirst()
            while part.hasSuffix("0") { part.removeLast() }
            let name = "\(item.id).REV.\(whole.dropLast())\(part == "." ? "" : part)Z"
            if let last = found.firstIndex(where: { $0.name == name }) {
                numbers[name, default: 0] += 1
                found[last].name += ".\(numbers[name, default: 0])"
            }
            found.append((name, revision))
        }
        return found.sorted { $0.name < $1.name }
    }

    /// Where an item lies in its space.
    func meta(_ request: SimulatorRequest, _ id: String) -> SimulatorAnswer {
        let tree = account.withTree { $0 }
        guard request.method == "PROPFIND", let item = tree.item(Self.node(id)),
            !tree.isTrashed(item.id)
        else { return Self.failure(404, "NotFound", "Resource \(id) not found") }
        let names = tree.path(of: item.id) ?? []
        let path = habits.hidesPaths ? "" : "/" + names.joined(separator: "/")
        return DAVXML.multistatus([
            response(
                request,
                href: href(request, ["dav", "meta", id]) + "/",
                ["meta-path-for-user": DAVXML.escaped(path), "id": id]
            )
        ])
    }

    // MARK: Links

    /// `v1beta1/drives/DRIVE/items/ITEM/createLink`, `…/permissions`, `…/permissions/ID`, and
    /// `v1beta1/me/drive/sharedByMe`.
    func links(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        let tree = account.withTree { $0 }
        if request.method == "GET", parts == ["v1beta1", "me", "drive", "sharedByMe"] {
            let all = Dictionary(grouping: state.withLock { $0.links }, by: \.item)
            let items = all.compactMap { node, links -> JSON? in
                guard let item = tree.item(node), !tree.isTrashed(node) else { return nil }
                return [
                    "id": .string(Self.fullID(item, tree)), "name": .string(item.name),
                    "permissions": .array(links.map { json($0, request) }),
                ]
            }
            return .json(["value": .array(items)])
        }
        guard parts.count >= 6, parts[1] == "drives", parts[3] == "items",
            let item = tree.item(Self.node(parts[4])), !tree.isTrashed(item.id)
        else { return Self.graphFailure(404, "itemNotFound", "not found") }
        switch (request.method, Array(parts.dropFirst(5))) {
        case ("POST", ["createLink"]):
            let type = request.json?["type"]?.text ?? ""
            guard ["view", "edit", "upload", "createOnly"].contains(type) else {
                return Self.graphFailure(400, "invalidRequest", "invalid link type")
            }
            guard request.json?["password"]?.text?.isEmpty != true else {
                return Self.graphFailure(400, "invalidRequest", "password protection is enforced")
            }
            let link = state.withLock { state in
                state.lastNumber += 1
                let link = Link(
                    id: "link\(state.lastNumber)",
                    item: item.id,
                    type: type,
                    expires: request.json?["expirationDateTime"]?.text,
                    hasPassword: request.json?["password"]?.text != nil
                )
                state.links.append(link)
                return link
            }
            return .json(json(link, request))
        case ("GET", ["permissions"]):
            let own = state.withLock { $0.links }.filter { $0.item == item.id }
            // Who the item is shared with by name is listed, too.
            let person: JSON = [
                "id": .string("u:1"), "grantedToV2": ["user": ["displayName": .string("Grace")]],
            ]
            return .json(["value": .array([person] + own.map { json($0, request) })])
        case ("DELETE", let rest) where rest.count == 2 && rest[0] == "permissions":
            let wasThere = state.withLock { state in
                let count = state.links.count
                state.links.removeAll { $0.id == rest[1] && $0.item == item.id }
                return state.links.count < count
            }
            return wasThere
                ? SimulatorAnswer(status: 204)
                : Self.graphFailure(404, "itemNotFound", "no such permission")
        default: return SimulatorAnswer(status: 405)
        }
    }

    private func json(_ link: Link, _ request: SimulatorRequest) -> JSON {
        [
            "id": .string(link.id), "hasPassword": .bool(link.hasPassword),
            "expirationDateTime": JSON(link.expires),
            "link": [
                "type": .string(link.type),
                "webUrl": .string(request.url(host: Self.host, path: "/s/\(link.id)")),
            ],
        ]
    }

    private static func graphFailure(
        _ status: Int,
        _ code: String,
        _ message: String
    ) -> SimulatorAnswer {
        .json(["error": ["code": .string(code), "message": .string(message)]], status: status)
    }
}
