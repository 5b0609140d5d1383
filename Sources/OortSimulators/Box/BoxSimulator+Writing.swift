import Foundation
import OortModel
import Synchronization

extension BoxSimulator {
    // MARK: Routes

    func file(_ parts: [String], _ request: SimulatorRequest) -> SimulatorAnswer {
        let action = parts.dropFirst().joined(separator: "/")
        guard let number = parts.first else { return failure(404, "not_found", request: request) }
        if number == "content", request.method == "OPTIONS" { return preflight(nil, request) }
        switch (request.method, action) {
        case ("GET", ""): return item("f", number, request)
        case ("PUT", ""): return change("f", number, request)
        case ("DELETE", ""): return delete("f", number, request)
        case ("POST", ""): return restore("f", number, request)
        case ("GET", "trash"): return trashed("f", number, request)
        case ("DELETE", "trash"): return purge("f", number, request)
        case ("POST", "copy"): return copy("f", number, request)
        case ("GET", "content"): return redirect(number, request)
        case ("OPTIONS", "content"): return preflight(number, request)
        case ("GET", "thumbnail.jpg"): return thumbnail(number, request)
        case ("GET", "versions"): return versions(number, request)
        case ("POST", "versions/current"): return promote(number, request)
        default: return failure(405, "method_not_allowed", request: request)
        }
    }

    func folder(_ parts: [String], _ request: SimulatorRequest) -> SimulatorAnswer {
        let action = parts.dropFirst().joined(separator: "/")
        guard let number = parts.first else {
            guard request.method == "POST" else {
                return failure(405, "method_not_allowed", request: request)
            }
            return createFolder(request)
        }
        if number == "trash", action == "items" { return trashItems(request) }
        switch (request.method, action) {
        case ("GET", ""): return item("d", number, request)
        case ("GET", "items"): return items(of: number, request)
        case ("PUT", ""): return change("d", number, request)
        case ("DELETE", ""): return delete("d", number, request)
        case ("POST", ""): return restore("d", number, request)
        case ("GET", "trash"): return trashed("d", number, request)
        case ("DELETE", "trash"): return purge("d", number, request)
        case ("POST", "copy"): return copy("d", number, request)
        default: return failure(405, "method_not_allowed", request: request)
        }
    }

    func webLink(_ parts: [String], _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let number = parts.first, parts.count == 1 else {
            return failure(404, "not_found", request: request)
        }
        switch request.method {
        case "GET": return item("w", number, request)
        case "PUT": return change("w", number, request)
        case "DELETE": return delete("w", number, request)
        default: return failure(405, "method_not_allowed", request: request)
        }
    }

    private func item(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        changing(request) { (tree) throws(Refused) in try find(letter, number, in: tree) }
    }

    private func trashed(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        changing(request) { (tree) throws(Refused) in
            guard let item = tree.item(letter + number), item.trashedTime != nil else {
                throw Refused(404, "not_trashed")
            }
            return item
        }
    }

    // MARK: Creating and changing

    private func createFolder(_ request: SimulatorRequest) -> SimulatorAnswer {
        if spend(\.reservedNames) {
            return failure(409, "name_temporarily_reserved", request: request)
        }
        let body = request.json
        return changing(request, status: 201) { (tree) throws(Refused) in
            let parent = try place(body?["parent"]?["id"]?.text, in: tree)
            let name = stored(body?["name"]?.text ?? "")
            try check(name, in: parent.id, of: tree)
            return tree.create(name, in: parent.id, kind: .folder)
        }
    }

    /// An act on a tree, which no other one may meet.
    private func actOnTree(_ request: SimulatorRequest) -> SimulatorAnswer? {
        spend(\.blockedTreeActs)
            ? failure(409, "operation_blocked_temporary", request: request) : nil
    }

    private func change(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        let body = request.json
        if body?["parent"] != nil, let blocked = actOnTree(request) { return blocked }
        return changing(request) { (tree) throws(Refused) in
            let item = try find(letter, number, in: tree)
            guard !tree.isReadOnly(item.id), item.parentID != nil else { throw .denied }
            // Moves are not guarded: Box moves whatever is current.
            if body?["parent"] == nil, body?["name"] == nil { try Self.checkTag(request, item) }
            let parent: String
            if let target = body?["parent"]?["id"]?.text {
                parent = try place(target, in: tree).id
            } else {
                parent = item.parentID ?? Self.rootID
            }
            let name = body?["name"]?.text.map { stored($0) } ?? item.name
            guard !tree.lies(parent, in: item.id) else {
                throw Refused(400, "cyclical_folder_structure")
            }
            if parent != item.parentID || !name.isSameText(as: item.name) {
                try check(name, in: parent, of: tree, except: item.id)
                tree.move(item.id, to: parent, name: name)
                note(parent == item.parentID ? "ITEM_RENAME" : "ITEM_MOVE", item.id, &tree)
            }
            try setLink(body, of: item.id, in: &tree)
            let time = body?["content_modified_at"]?.text.flatMap { Timestamp(rfc3339: $0) }
            let text = body?["description"]?.text
            if time != nil || text != nil {
                tree.update(item.id) { item in
                    if let time { item.modifiedTime = time.truncated(to: .seconds) }
                    // What is too long is cut without a word.
                    if let text { item.description = String(text.prefix(255)) }
                }
            }
            return try find(letter, number, in: tree)
        }
    }

    /// Sends the event that reports a change.
    func note(_ event: String, _ id: String, _ tree: inout SimulatedTree) {
        let version = tree.item(id)?.version ?? 0
        let sequence = Int64(tree.sequence + 1)
        tree.update(id) { item in
            // Each act has an event of its own, though they report one state of the item.
            let events = (item.extra["events"]?.elements ?? []).suffix(7)
            item.extra["events"] = .array(
                Array(events) + [["type": .string(event), "sequence": .integer(sequence)]]
            )
            item.extra["event"] = .string(event)
            item.extra["eventVersion"] = .integer(version + 1)
        }
    }

    private func setLink(
        _ body: JSON?,
        of id: String,
        in tree: inout SimulatedTree
    ) throws(Refused) {
        guard let wish = body?["shared_link"] else { return }
        guard wish != .null else {
            tree.update(id) { $0.extra["link"] = nil }
            return
        }
        let isPaid = tree.conditions.isPaidPlan
        let needsPlan = wish["password"]?.text != nil || wish["unshared_at"]?.text != nil
        guard isPaid || !needsPlan else { throw .denied }
        let url = "https://app.box.com/s/" + tree.random.hex(32)
        tree.update(id) { item in
            item.extra["link"] = [
                "url": item.extra["link"]?["url"] ?? .string(url),
                "access": wish["access"] ?? "open",
                "unshared_at": wish["unshared_at"] ?? .null,
                "is_password_enabled": .bool(wish["password"]?.text != nil),
            ]
        }
    }

    // MARK: Trash

    private func delete(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        if letter == "d", let blocked = actOnTree(request) { return blocked }
        do throws(Refused) {
            try account.withTree { (tree) throws(Refused) in
                let item = try find(letter, number, in: tree)
                guard !tree.isReadOnly(item.id), item.parentID != nil else { throw .denied }
                try Self.checkTag(request, item)
                if item.isFolder, request.query("recursive")?.lowercased() != "true",
                    !tree.children(of: item.id).isEmpty
                {
                    throw Refused(400, "folder_not_empty")
                }
                tree.trash(item.id)
            }
            return SimulatorAnswer(status: 204)
        } catch { return failure(error, request) }
    }

    private func purge(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        do throws(Refused) {
            try account.withTree { (tree) throws(Refused) in
                guard let item = tree.item(letter + number), item.trashedTime != nil else {
                    throw Refused(404, "not_trashed")
                }
                tree.remove(item.id)
            }
            return SimulatorAnswer(status: 204)
        } catch { return failure(error, request) }
    }

    private func restore(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        if let blocked = actOnTree(request) { return blocked }
        let body = request.json
        return changing(request, status: 201) { (tree) throws(Refused) in
            guard let item = tree.item(letter + number), item.trashedTime != nil else {
                throw .notFound
            }
            // The folder that is named counts only where the former one is gone.
            var parent = item.parentID ?? Self.rootID
            if tree.item(parent) == nil || tree.isTrashed(parent) {
                parent = try place(body?["parent"]?["id"]?.text, in: tree).id
            }
            let name = body?["name"]?.text ?? item.name
            try check(name, in: parent, of: tree, except: item.id)
            tree.restore(item.id)
            tree.move(item.id, to: parent, name: name)
            note("ITEM_UNDELETE_VIA_TRASH", item.id, &tree)
            return try find(letter, number, in: tree)
        }
    }

    // MARK: Copying

    private func copy(
        _ letter: String,
        _ number: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        if let blocked = actOnTree(request) { return blocked }
        let body = request.json
        return changing(request, status: 201) { (tree) throws(Refused) in
            let item = try find(letter, number, in: tree)
            let parent = try place(body?["parent"]?["id"]?.text, in: tree)
            let name = stored(body?["name"]?.text ?? item.name)
            try check(name, in: parent.id, of: tree)
            guard !tree.lies(parent.id, in: item.id) else {
                throw Refused(400, "cyclical_folder_structure")
            }
            let copy = duplicate(item, as: name, in: parent.id, &tree)
            note("ITEM_COPY", copy, &tree)
            return tree.item(copy) ?? item
        }
    }

    /// Copies an item with all below it, without events.
    private func duplicate(
        _ item: SimulatedItem,
        as name: String,
        in parent: String,
        _ tree: inout SimulatedTree,
        isTold: Bool = true
    ) -> String {
        let copy = tree.create(
            name,
            in: parent,
            kind: item.kind,
            content: item.head?.content,
            modifiedTime: item.modifiedTime
        ) { if !isTold { $0.extra["untold"] = true } }
        for child in item.isFolder ? tree.children(of: item.id) : [] {
            _ = duplicate(child, as: child.name, in: copy.id, &tree, isTold: false)
        }
        return copy.id
    }

    // MARK: Versions

    private func versions(_ number: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard habits.keepsVersions else { return failure(.denied, request) }
        let limit = min(max(request.query("limit").flatMap { Int($0) } ?? 100, 1), 1000)
        let start = request.query("offset").flatMap { Int($0) } ?? 0
        do throws(Refused) {
            return .json(
                try account.withTree { (tree) throws(Refused) -> JSON in
                    let item = try find("f", number, in: tree)
                    // The current one is not among them.
                    let old = item.revisions.dropLast().reversed()
                    let size = account.pageSize(enumerating: old.count, atMost: limit)
                    let some = old.dropFirst(start).prefix(size)
                    return [
                        "total_count": .integer(Int64(old.count)),
                        "offset": .integer(Int64(start)), "limit": .integer(Int64(limit)),
                        "entries": .array(
                            some.map { revision in
                                [
                                    "type": "file_version", "id": .string(revision.id),
                                    "sha1": .string(revision.content.sha1),
                                    "name": .string(item.name),
                                    "size": .integer(revision.content.size),
                                    "created_at": Self.time(revision.serverModifiedTime, item),
                                    "modified_at": Self.time(revision.modifiedTime, item),
                                    "modified_by": ["name": .string(account.displayName)],
                                    "trashed_at": .null,
                                ]
                            }
                        ),
                    ]
                }
            )
        } catch { return failure(error, request) }
    }

    private func promote(_ number: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard habits.keepsVersions else { return failure(.denied, request) }
        let version = request.json?["id"]?.text
        do throws(Refused) {
            let id = try account.withTree { (tree) throws(Refused) -> String in
                let item = try find("f", number, in: tree)
                guard let old = item.revisions.first(where: { $0.id == version }) else {
                    throw .notFound
                }
                tree.write(old.content, to: item.id, modifiedTime: old.modifiedTime)
                note("ITEM_MAKE_CURRENT_VERSION", item.id, &tree)
                return tree.item(item.id)?.head?.id ?? ""
            }
            return .json(["type": "file_version", "id": .string(id)], status: 201)
        } catch { return failure(error, request) }
    }

    // MARK: Reading

    private func redirect(_ number: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        if spend(\.unreadyDownloads) {
            return SimulatorAnswer(status: 202, headers: [("Retry-After", "0")])
        }
        do throws(Refused) {
            let revision = try account.withTree { (tree) throws(Refused) -> String in
                let item = try find("f", number, in: tree)
                guard let head = item.head else { throw .notFound }
                guard let version = request.query("version") else { return head.id }
                guard item.revisions.contains(where: { $0.id == version }),
                    habits.keepsVersions || version == head.id
                else { throw .notFound }
                return version
            }
            let epoch = state.withLock { $0.downloadEpoch }
            // The address is the permission to read.
            let key = account.tokens.makeSecret("b1!")
            let path = "/d/1/\(key)/download?version=\(revision)&epoch=\(epoch)"
            return SimulatorAnswer(
                status: 302,
                headers: [("Location", request.url(host: Hosts.download, path: path))]
            )
        } catch { return failure(error, request) }
    }

    func download(_ request: SimulatorRequest) -> SimulatorAnswer {
        // A token has no business here.
        guard request.header("Authorization") == nil else {
            return .text("no token, please", status: 400)
        }
        let key = request.parts.count > 2 ? request.parts[2] : ""
        guard account.tokens.secrets.contains(key), let version = request.query("version"),
            request.query("epoch") == String(state.withLock { $0.downloadEpoch })
        else { return .text("This link has expired.", status: 403) }
        let content = account.withTree { tree in
            tree.item(ofRevision: version)?.revisions.first { $0.id == version }?.content
        }
        guard let content else { return .text("Not found", status: 404) }
        return .content(content, for: request)
    }

    private func thumbnail(_ number: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        let known = account.withTree { $0.item("f" + number) }
        guard let known else { return failure(.notFound, request) }
        let name = known.name.lowercased()
        guard name.hasSuffix(".jpg") || name.hasSuffix(".png") else {
            return SimulatorAnswer(
                status: 302,
                headers: [("Location", "https://cdn01.boxcdn.net/placeholder.png")]
            )
        }
        let edge = request.query("min_width").flatMap { Int($0) } ?? 32
        let picture = SamplePicture(width: edge, height: max(1, edge * 3 / 4), seed: 6)
        return SimulatorAnswer(
            status: 200,
            headers: [("Content-Type", "image/jpeg")],
            body: .bytes(picture.jpeg)
        )
    }
}
