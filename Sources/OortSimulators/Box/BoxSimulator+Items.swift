import Foundation
import OortModel

extension BoxSimulator {
    // MARK: Finding

    /// A live item.
    func find(
        _ letter: String,
        _ number: String,
        in tree: SimulatedTree
    ) throws(Refused) -> SimulatedItem {
        guard let item = tree.item(letter + number) else { throw .notFound }
        guard !tree.isTrashed(item.id) else { throw .trashed }
        return item
    }

    /// A live folder that takes new items.
    func place(_ number: String?, in tree: SimulatedTree) throws(Refused) -> SimulatedItem {
        guard let number else { throw Refused(400, "bad_request") }
        let folder = try find("d", number, in: tree)
        guard !tree.isReadOnly(folder.id) else { throw .denied }
        return folder
    }

    /// Checks a name for a folder: files, folders and web links share one space of names.
    func check(
        _ name: String,
        in folder: String,
        of tree: SimulatedTree,
        except id: String? = nil
    ) throws(Refused) {
        let isRefused =
            name.isEmpty || name == "." || name == ".." || name.has("/") || name.has("\\")
            || name.begins(with: " ") || name.ends(with: " ")
            || name.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7F }
        if isRefused || tree.conditions.refusedNames.contains(name) {
            throw Refused(400, "item_name_invalid")
        }
        guard name.unicodeScalars.count <= 255 else { throw Refused(400, "item_name_too_long") }
        if let other = tree.items(named: name, in: folder).first(where: { $0.id != id }) {
            throw Refused(409, "item_name_in_use", conflict: other)
        }
    }

    /// The name as it is stored.
    func stored(_ name: String) -> String {
        let dropped = habits.droppedCharacters
        return dropped.isEmpty ? name : String(name.filter { !dropped.contains($0) })
    }

    static func checkTag(
        _ request: SimulatorRequest,
        _ item: SimulatedItem
    ) throws(Refused) {
        guard let tag = request.header("If-Match") else { return }
        guard tag == etag(item) else { throw .stale }
    }

    static func etag(_ item: SimulatedItem) -> String { String(item.version - 1) }

    // MARK: Telling

    static func number(_ id: String) -> String { String(id.dropFirst()) }

    static func type(_ item: SimulatedItem) -> String {
        switch item.kind {
        case .folder: "folder"
        case .nativeDocument: "web_link"
        case .file, .shortcut: "file"
        }
    }

    /// The smallest form of an item.
    static func mini(_ item: SimulatedItem) -> [String: JSON] {
        var json: [String: JSON] = [
            "type": .string(type(item)), "id": .string(number(item.id)),
            "name": .string(item.name),
        ]
        let isRoot = item.id == rootID
        json["etag"] = isRoot ? .null : .string(etag(item))
        json["sequence_id"] = isRoot ? .null : .string(String(item.version))
        if let head = item.head, item.kind == .file {
            json["sha1"] = .string(head.content.sha1)
            json["file_version"] = [
                "type": "file_version", "id": .string(head.id), "sha1": .string(head.content.sha1),
            ]
        }
        return json
    }

    /// All of an item's fields; permissions, link and lock come only when they are asked for.
    func full(_ item: SimulatedItem, in tree: SimulatedTree, all: Bool) -> [String: JSON] {
        var json = Self.mini(item)
        let me = Self.personID(account.person)
        let owner = item.isStrangers ? Self.strangerID : me
        if let parent = item.parentID.flatMap({ tree.item($0) }) {
            json["parent"] = .object(Self.mini(parent))
        } else {
            json["parent"] = .null
        }
        json["path_collection"] = above(item, in: tree)
        json["description"] = .string(item.description ?? "")
        json["created_at"] = Self.time(item.createdTime, item)
        json["modified_at"] = Self.time(item.serverModifiedTime, item)
        let created = item.extra["contentCreated"]?.integer.map { Timestamp(seconds: $0) }
        json["content_created_at"] = Self.time(created ?? item.createdTime, item)
        json["content_modified_at"] = Self.time(item.modifiedTime, item)
        json["item_status"] = tree.isTrashed(item.id) ? "trashed" : "active"
        json["trashed_at"] = item.trashedTime.map { Self.time($0, item) } ?? .null
        let name = item.isStrangers ? "Grace Other" : account.displayName
        for role in ["owned_by", "created_by", "modified_by"] {
            json[role] = ["type": "user", "id": .string(owner), "name": .string(name)]
        }
        switch item.kind {
        case .folder:
            json["size"] = item.id == Self.rootID ? .null : .number(0)
        case .nativeDocument:
            json["url"] = .string(String(decoding: item.head?.content.bytes ?? [], as: UTF8.self))
        case .file, .shortcut:
            json["size"] = item.size > 1 << 28 ? .number(Double(item.size)) : .integer(item.size)
        }
        guard all else { return json }
        let mayChange = JSON.bool(!tree.isReadOnly(item.id))
        json["permissions"] = [
            "can_download": true, "can_preview": true, "can_upload": mayChange,
            "can_rename": mayChange, "can_delete": mayChange, "can_share": true,
            "can_set_share_access": true,
        ]
        json["shared_link"] = item.extra["link"] ?? .null
        json["tags"] = .array(item.tags.map { .string($0) })
        json["lock"] = .null
        return json
    }

    /// The folders above an item, the root first; of what is in the trash, the trash.
    private func above(_ item: SimulatedItem, in tree: SimulatedTree) -> JSON {
        var folders: [JSON] = []
        var next = item.trashedTime == nil ? item.parentID.flatMap { tree.item($0) } : nil
        while let folder = next {
            folders.insert(.object(Self.mini(folder)), at: 0)
            next = folder.parentID.flatMap { tree.item($0) }
        }
        if item.trashedTime != nil { folders = [["type": "folder", "id": "1", "name": "Trash"]] }
        return ["total_count": .integer(Int64(folders.count)), "entries": .array(folders)]
    }

    func json(
        _ item: SimulatedItem,
        in tree: SimulatedTree,
        _ request: SimulatorRequest
    ) -> JSON {
        guard request.query("fields") != nil else {
            return .object(full(item, in: tree, all: false))
        }
        var json = selected(full(item, in: tree, all: true), request)
        for name in ["type", "id", "etag"] { json[name] = Self.mini(item)[name] }
        return .object(json)
    }

    /// The offset varies from item to item; whole seconds.
    static func time(_ time: Timestamp, _ item: SimulatedItem) -> JSON {
        guard item.version % 2 == 0 else {
            return .string(time.rfc3339(.seconds).replacing("Z", with: "+00:00"))
        }
        let local = Timestamp(seconds: time.seconds.addingSaturating(-7 * 3600))
        return .string(local.rfc3339(.seconds).replacing("Z", with: "-07:00"))
    }

    /// Does something and answers with the item.
    func changing(
        _ request: SimulatorRequest,
        status: Int = 200,
        isUpload: Bool = false,
        _ body: (inout SimulatedTree) throws(Refused) -> SimulatedItem
    ) -> SimulatorAnswer {
        do throws(Refused) {
            let json = try account.withTree { (tree) throws(Refused) -> JSON in
                self.json(try body(&tree), in: tree, request)
            }
            return .json(
                isUpload ? ["total_count": 1, "entries": [json]] : json,
                status: status
            )
        } catch { return failure(error, request) }
    }

    // MARK: Listing

    func items(of number: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        listing(request) { (tree) throws(Refused) in
            let folder = try find("d", number, in: tree)
            func rank(_ item: SimulatedItem) -> Int {
                switch item.kind {
                case .folder: 0
                case .nativeDocument: 2
                case .file, .shortcut: 1
                }
            }
            // Folders, files, web links.
            let children = tree.children(of: folder.id)
            return children.enumerated()
                .sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }
                .map(\.element)
        }
    }

    func trashItems(_ request: SimulatorRequest) -> SimulatorAnswer {
        listing(request) { (tree) throws(Refused) in
            tree.allItems.filter { $0.trashedTime != nil }
                .sorted { ($0.name, $0.id) < ($1.name, $1.id) }
        }
    }

    private func listing(
        _ request: SimulatorRequest,
        _ find: (SimulatedTree) throws(Refused) -> [SimulatedItem]
    ) -> SimulatorAnswer {
        let limit = min(max(request.query("limit").flatMap { Int($0) } ?? 100, 1), 1000)
        let usesMarker = request.query("usemarker")?.lowercased() == "true"
        let start: Int
        // rclone sends an empty one first.
        if usesMarker, let marker = request.query("marker"), !marker.isEmpty {
            guard let number = marker.dropping(beginning: "m").flatMap({ Int($0) }) else {
                return failure(400, "bad_request", request: request)
            }
            start = number
        } else {
            start = request.query("offset").flatMap { Int($0) } ?? 0
            guard start <= 9999 else {
                return failure(400, "requested_page_out_of_range", request: request)
            }
        }
        do throws(Refused) {
            return .json(
                try account.withTree { (tree) throws(Refused) -> JSON in
                    let all = try find(tree)
                    // A page may hold fewer than were asked for.
                    let size = account.pageSize(enumerating: all.count, atMost: limit)
                    let some = all.dropFirst(start).prefix(usesMarker ? size : limit)
                    let end = start + some.count
                    var answer: [String: JSON] = [
                        "entries": .array(some.map { json($0, in: tree, request) }),
                        "limit": .integer(Int64(limit)),
                    ]
                    if usesMarker {
                        // The end is marked by null, and by an empty text in places.
                        let last: JSON = request.path.ends(with: "/trash/items") ? "" : .null
                        answer["next_marker"] = end < all.count ? .string("m\(end)") : last
                    } else {
                        answer["offset"] = .integer(Int64(start))
                        answer["total_count"] = .integer(Int64(all.count))
                    }
                    return .object(answer)
                }
            )
        } catch { return failure(error, request) }
    }

    func search(_ request: SimulatorRequest) -> SimulatorAnswer {
        let words = SimulatedItem.words(of: request.query("query") ?? "")
        let limit = min(max(request.query("limit").flatMap { Int($0) } ?? 30, 1), 200)
        let start = request.query("offset").flatMap { Int($0) } ?? 0
        return .json(
            account.withTree { tree in
                let all = tree.allItems.filter { $0.id != Self.rootID && $0.isFound(by: words) }
                    .sorted { ($0.name, $0.id) < ($1.name, $1.id) }
                let some = all.dropFirst(start).prefix(limit)
                return [
                    "entries": .array(some.map { json($0, in: tree, request) }),
                    "total_count": .integer(Int64(all.count)), "limit": .integer(Int64(limit)),
                    "offset": .integer(Int64(start)),
                ]
            }
        )
    }
}
