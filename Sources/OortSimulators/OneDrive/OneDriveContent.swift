import Foundation
import OortModel
import Synchronization

extension OneDriveSimulator {
    // MARK: Reading

    /// A pre-signed address of an item's current content.
    func downloadURL(of item: SimulatedItem, _ request: SimulatorRequest) -> String {
        let epoch = state.withLock { $0.downloadEpoch }
        let signature = Data("\(epoch);\(item.id)".utf8).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        let path =
            "/personal/\(Self.driveID)/_layouts/15/download.aspx?UniqueId=\(item.version)"
            + "&Translate=false&tempauth=\(account.tokens.remember("v1e.\(signature)"))"
            + "&ApiVersion=2.0"
        return request.url(host: Hosts.content, path: path)
    }

    func contentRedirect(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }) else {
            return failure(404, "itemNotFound", request: request)
        }
        if let known = request.header("If-None-Match"), Self.tag(known, fits: item) {
            return SimulatorAnswer(status: 304)
        }
        if item.extra["malware"] != nil {
            return failure(
                403,
                "malwareDetected",
                headers: [("X-Virus-Infected", "Win32/Example")],
                request: request
            )
        }
        guard item.kind == .file else {
            return failure(
                400,
                "invalidRequest",
                "You cannot get content for a folder",
                request: request
            )
        }
        return SimulatorAnswer(
            status: 302,
            headers: [("Location", downloadURL(of: item, request))]
        )
    }

    func download(_ request: SimulatorRequest) -> SimulatorAnswer {
        guard request.method == "GET", var text = request.query("tempauth"), text.hasPrefix("v1e.")
        else { return failure(404, "itemNotFound", request: request) }
        text.removeFirst(4)
        text = text.replacing("-", with: "+").replacing("_", with: "/")
        text += String(repeating: "=", count: (4 - text.count % 4) % 4)
        let parts = (Data(base64Encoded: text).map { String(decoding: $0, as: UTF8.self) } ?? "")
            .split(separator: ";").map(String.init)
        let (epoch, tagsContent) = state.withLock { ($0.downloadEpoch, $0.habits.tagsContent) }
        guard parts.count >= 2, parts[0] == String(epoch) else {
            return failure(401, "unauthenticated", inner: "expiredToken", request: request)
        }
        if parts.count == 3 { return downloadVersion(parts[1], parts[2], request) }
        let found = account.withTree { tree in
            tree.isTrashed(parts[1]) ? nil : tree.item(parts[1])
        }
        guard let item = found, let content = item.head?.content else {
            return failure(404, "itemNotFound", request: request)
        }
        return .content(
            content,
            for: request,
            type: item.mimeType ?? Self.mimeType(of: item.name),
            headers: tagsContent ? [("ETag", Self.tags(item).eTag)] : []
        )
    }

    private func downloadVersion(
        _ id: String,
        _ version: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        let revisions = account.withTree { $0.item(id)?.revisions } ?? []
        guard let number = Int(version), revisions.indices.contains(number - 1) else {
            return failure(404, "itemNotFound", request: request)
        }
        return .content(revisions[number - 1].content, for: request)
    }

    // MARK: Versions

    func versions(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }) else {
            return failure(404, "itemNotFound", request: request)
        }
        if target.action.count == 1, request.method == "GET" {
            let list = item.revisions.enumerated().map { index, revision -> JSON in
                [
                    "id": .string("\(index + 1).0"),
                    "size": .integer(revision.content.size),
                    "lastModifiedDateTime": Self.rfc3339(revision.serverModifiedTime),
                ]
            }
            return .json(["value": .array(list.reversed())])
        }
        guard target.action.count == 3, let number = Double(target.action[1]).map({ Int($0) }),
            item.revisions.indices.contains(number - 1)
        else { return failure(404, "itemNotFound", request: request) }
        switch (request.method, target.action[2]) {
        case ("GET", "content"):
            guard number < item.revisions.count else {
                return failure(
                    400,
                    "invalidRequest",
                    "You cannot get the content of the current version.",
                    request: request
                )
            }
            let epoch = state.withLock { $0.downloadEpoch }
            let signature = Data("\(epoch);\(item.id);\(number)".utf8).base64EncodedString()
                .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
            let key = account.tokens.remember("v1e.\(signature)")
            let path = "/personal/x/_layouts/15/download.aspx?tempauth=\(key)"
            return SimulatorAnswer(
                status: 302,
                headers: [("Location", request.url(host: Hosts.content, path: path))]
            )
        case ("POST", "restoreVersion"):
            account.withTree { tree in
                _ = tree.write(item.revisions[number - 1].content, to: item.id)
            }
            return SimulatorAnswer(status: 204)
        default: return failure(405, "Request_BadRequest", request: request)
        }
    }

    // MARK: Thumbnails

    func thumbnailSets(of item: SimulatedItem, _ request: SimulatorRequest) -> JSON {
        let type = item.mimeType ?? Self.mimeType(of: item.name)
        guard item.kind == .file, type.hasPrefix("image/") else { return [] }
        func picture(_ edge: Int64) -> JSON {
            [
                "url": .string(
                    request.url(
                        host: Hosts.thumbnails,
                        path: "/transform/thumbnail?docid=\(item.id)&width=\(edge)"
                    )
                ),
                "width": .integer(edge), "height": .integer(edge * 3 / 4),
            ]
        }
        return [["id": "0", "small": picture(96), "medium": picture(176), "large": picture(800)]]
    }

    func thumbnails(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }) else {
            return failure(404, "itemNotFound", request: request)
        }
        let sets = thumbnailSets(of: item, request)
        guard target.action.count > 1 else { return .json(["value": sets]) }
        // thumbnails/0/medium, thumbnails/0/medium/content
        guard target.action.count > 2,
            let picture = sets.elements?.first?[target.action[2]], let url = picture["url"]?.text
        else { return failure(404, "itemNotFound", request: request) }
        guard target.action.last == "content" else { return .json(picture) }
        return SimulatorAnswer(status: 302, headers: [("Location", url)])
    }

    func thumbnailPicture(_ request: SimulatorRequest) -> SimulatorAnswer {
        let edge = min(max(request.query("width").flatMap { Int($0) } ?? 96, 1), 1024)
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", "image/jpeg")],
            body: .bytes(
                SamplePicture(width: edge, height: max(1, edge * 3 / 4), seed: 5).jpeg
            )
        )
    }

    // MARK: Search and links

    func search(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let words = SimulatedItem.words(of: target.argument ?? "")
        let top = min(max(request.query("$top").flatMap { Int($0) } ?? 200, 1), 1000)
        let start = request.query("$skiptoken").flatMap { Int($0) } ?? 0
        let (found, count) = account.withTree { tree in
            let all = tree.allItems.filter { item in
                item.id != tree.rootID && tree.lies(item.id, in: tree.rootID)
                    && item.isFound(by: words)
            }.sorted { $0.id < $1.id }
            let page = all.dropFirst(start).prefix(top)
                .map { selected(json($0, in: tree, request: request), request) }
            return (page, all.count)
        }
        var answer: [String: JSON] = ["value": .array(found)]
        if start + found.count < count {
            answer["@odata.nextLink"] = .string(
                link(request, with: ["$skiptoken": String(start + found.count)])
            )
        }
        return .json(.object(answer))
    }

    /// The same link for the same question, however often it is asked.
    func createLink(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }) else {
            return failure(404, "itemNotFound", request: request)
        }
        let type = request.json?["type"]?.text ?? "view"
        guard ["view", "edit", "embed"].contains(type) else {
            return failure(400, "invalidRequest", request: request)
        }
        let (password, expires) = (
            request.json?["password"]?.text, request.json?["expirationDateTime"]?.text
        )
        let isPaid = account.withTree { $0.conditions.isPaidPlan }
        guard isPaid || password == nil && expires == nil else {
            return failure(403, "accessDenied", "Not part of your plan.", request: request)
        }
        let scope = request.json?["scope"]?.text ?? "anonymous"
        guard Self.scopes.contains(scope) else {
            return failure(400, "invalidRequest", request: request)
        }
        let key = Self.key(item, type, scope)
        let (link, isNew) = state.withLock { state in
            if let known = state.links[key] { return (known, false) }
            state.nextNumber += 1
            let link = GivenLink(
                url: "https://1drv.ms/u/s!\(state.nextNumber)",
                expires: expires,
                hasPassword: password != nil,
                scope: scope
            )
            state.links[key] = link
            return (link, true)
        }
        return .json(Self.permission(key, type: type, link), status: isNew ? 201 : 200)
    }

    /// Takes a permission away.
    func deletePermission(
        _ target: GraphTarget,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }), target.action.count == 2 else {
            return failure(404, "itemNotFound", request: request)
        }
        let wasThere = state.withLock { state in
            guard target.action[1].hasPrefix(item.id + ";") else { return false }
            return state.links.removeValue(forKey: target.action[1]) != nil
        }
        return wasThere
            ? SimulatorAnswer(status: 204) : failure(404, "itemNotFound", request: request)
    }

    /// The links that an item was given away by.
    func permissions(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let item = account.withTree({ find(target, in: $0) }) else {
            return failure(404, "itemNotFound", request: request)
        }
        let links = state.withLock { state in
            ["view", "edit", "embed"].flatMap { type in
                Self.scopes.compactMap { scope -> JSON? in
                    let key = Self.key(item, type, scope)
                    return state.links[key].map { Self.permission(key, type: type, $0) }
                }
            }
        }
        let people: [JSON] = item.sharees.map { one in
            let identity: JSON = ["displayName": .string(one.name), "id": .string(one.id)]
            return [
                "id": .string("\(item.id);\(one.id)"), "roles": ["read"],
                "grantedToV2": one.isGroup ? ["group": identity] : ["user": identity],
            ]
        }
        let owner: JSON = [
            "id": .string("\(item.id);owner"), "roles": ["owner"],
            "grantedToV2": [
                "user": ["displayName": .string(account.displayName), "id": "owner"]
            ],
        ]
        return .json(["value": .array([owner] + people + links)])
    }

    private static let scopes = ["anonymous", "organization", "users"]

    /// The id of the permission that is a link.
    private static func key(_ item: SimulatedItem, _ type: String, _ scope: String) -> String {
        "\(item.id);\(type)" + (scope == "anonymous" ? "" : ";\(scope)")
    }

    private static func permission(_ key: String, type: String, _ link: GivenLink) -> JSON {
        var fields: [String: JSON] = [
            "id": .string(key), "roles": [.string(type == "edit" ? "write" : "read")],
            "hasPassword": .bool(link.hasPassword),
            "link": [
                "type": .string(type), "scope": .string(link.scope), "webUrl": .string(link.url),
            ],
        ]
        if let expires = link.expires { fields["expirationDateTime"] = .string(expires) }
        return .object(fields)
    }
}
