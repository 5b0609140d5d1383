import Foundation
import OortModel
import Synchronization

/// What folders hold in all, computed anew only when the tree has changed.
struct FolderSums: Sendable {
    private(set) var sequence = -1
    private var bytes: [String: Int64] = [:]
    private var children: [String: Int64] = [:]

    func size(_ id: String) -> Int64 { bytes[id] ?? 0 }
    func count(_ id: String) -> Int64 { children[id] ?? 0 }

    mutating func refresh(_ tree: SimulatedTree) {
        guard sequence != tree.sequence else { return }
        self = FolderSums()
        sequence = tree.sequence
        for item in tree.allItems where item.trashedTime == nil {
            guard let parent = item.parentID else { continue }
            children[parent, default: 0] += 1
            guard item.size > 0 else { continue }
            var next: String? = parent
            while let folder = next {
                bytes[folder, default: 0] += item.size
                next = tree.item(folder)?.parentID
            }
        }
    }
}

extension OneDriveSimulator {
    /// Tags of an item: any change, and a change of content.
    static func tags(_ item: SimulatedItem) -> (eTag: String, cTag: String) {
        let hex = item.id.split(separator: "s").last.map { $0.uppercased() } ?? ""
        var guid = ""
        for (index, digit) in hex.enumerated() {
            if [8, 12, 16, 20].contains(index) { guid += "-" }
            guid.append(digit)
        }
        var contents = 0
        var last: SimulatedContent?
        for revision in item.revisions {
            if revision.content !== last { contents += 1 }
            last = revision.content
        }
        return ("\"{\(guid)},\(item.version)\"", "\"c:{\(guid)},\(contents)\"")
    }

    /// Whether a tag of `If-Match` is the item's.
    static func tag(_ tag: String, fits item: SimulatedItem) -> Bool {
        let current = tags(item)
        return tag == "*" || tag == current.eTag || tag == current.cTag
    }

    static func rfc3339(_ time: Timestamp) -> JSON { .string(time.rfc3339(.seconds)) }

    /// What an item looks like; the change feed leaves out some fields.
    func json(
        _ item: SimulatedItem,
        in tree: SimulatedTree,
        request: SimulatorRequest,
        isFeed: Bool = false
    ) -> JSON {
        let tags = Self.tags(item)
        let isRoot = item.parentID == nil
        var fields: [String: JSON] = [
            "id": .string(item.id), "name": .string(item.name),
            "createdDateTime": Self.rfc3339(item.createdTime),
            "lastModifiedDateTime": Self.rfc3339(item.modifiedTime),
            "webUrl": .string("https://onedrive.live.com/?id=\(item.id)"),
            "fileSystemInfo": [
                "createdDateTime": Self.rfc3339(item.createdTime),
                "lastModifiedDateTime": Self.rfc3339(item.modifiedTime),
            ],
            "parentReference": parent(of: item, in: tree),
            "createdBy": person(isMe: !item.isStrangers),
            "lastModifiedBy": person(isMe: !item.isStrangers),
        ]
        if item.isStrangers || !item.sharees.isEmpty { fields["shared"] = ["scope": "users"] }
        fields["size"] = .integer(item.size)
        if !(isRoot && isFeed) { fields["eTag"] = .string(tags.eTag) }
        if let text = item.description { fields["description"] = .string(text) }
        switch item.kind {
        case .folder:
            let (bytes, count) = state.withLock { state in
                state.sums.refresh(tree)
                let count = state.habits.countsChildren ? state.sums.count(item.id) : nil
                return (state.sums.size(item.id), count)
            }
            fields["size"] = .integer(bytes)
            fields["folder"] = count.map { ["childCount": .integer($0)] } ?? [:]
            if isRoot {
                fields["root"] = [:]
            } else {
                // Says nothing about what the folder holds.
                fields["cTag"] = .string(tags.cTag)
            }
        case .file:
            fields["cTag"] = .string(tags.cTag)
            addFile(&fields, item, request: request, isFeed: isFeed)
        case .nativeDocument:
            fields["package"] = ["type": "oneNote"]
            fields["cTag"] = .string(tags.cTag)
        case .shortcut(let target):
            fields["remoteItem"] = remote(target, in: tree)
            fields["folder"] = .null
            fields["size"] = 0
        }
        return JSON.object(fields).withoutNulls
    }

    private func addFile(
        _ fields: inout [String: JSON],
        _ item: SimulatedItem,
        request: SimulatorRequest,
        isFeed: Bool
    ) {
        let type = item.mimeType ?? Self.mimeType(of: item.name)
        var file: [String: JSON] = ["mimeType": .string(type)]
        if let content = item.head?.content {
            file["hashes"] = ["quickXorHash": .string(Self.quickXor(content))]
        }
        fields["file"] = .object(file)
        if type.hasPrefix("image/") { fields["image"] = ["width": 640, "height": 480] }
        if item.extra["malware"] != nil {
            fields["malware"] = ["description": "Win32/Example"]
        } else if !isFeed {
            fields["@microsoft.graph.downloadUrl"] = .string(downloadURL(of: item, request))
        }
    }

    private func parent(of item: SimulatedItem, in tree: SimulatedTree) -> JSON {
        let drive = Self.drive(ofItem: item.id)
        var fields: [String: JSON] = [
            "driveId": .string(drive), "driveType": "personal",
        ]
        if let parentID = item.parentID {
            fields["id"] = .string(parentID)
            let parts = tree.path(of: parentID) ?? []
            fields["path"] = .string(
                "/drives/\(drive)/root:" + parts.map { "/" + $0 }.joined()
            )
            fields["name"] = JSON(tree.item(parentID)?.name)
        }
        return .object(fields)
    }

    private func remote(_ target: String, in tree: SimulatedTree) -> JSON {
        guard let item = tree.item(target) else { return [:] }
        return [
            "id": .string(item.id), "name": .string(item.name),
            "size": .integer(0), "folder": ["childCount": 0],
            "fileSystemInfo": [
                "createdDateTime": Self.rfc3339(item.createdTime),
                "lastModifiedDateTime": Self.rfc3339(item.modifiedTime),
            ],
            "parentReference": [
                "driveId": .string(Self.drive(ofItem: target)), "driveType": "personal",
                "id": JSON(item.parentID),
            ],
        ]
    }

    static func mimeType(of name: String) -> String {
        switch name.split(separator: ".").last.map({ $0.lowercased() }) {
        case "txt", "md": "text/plain"
        case "jpg", "jpeg": "image/jpeg"
        case "png": "image/png"
        case "pdf": "application/pdf"
        case "docx":
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        default: "application/octet-stream"
        }
    }

    // MARK: Query options

    /// The fields that `$select` names, all without it.
    func selected(_ json: JSON, _ request: SimulatorRequest) -> JSON {
        guard let list = request.query("$select") ?? request.query("select"),
            case .object(let fields) = json
        else { return json }
        let wanted = Set(
            list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        )
        return .object(fields.filter { wanted.contains($0.key) || $0.key.hasPrefix("@odata") })
    }

    // MARK: Account

    var person: JSON {
        [
            "id": .string(ownDriveID), "displayName": .string(account.displayName),
            "userPrincipalName": .string(account.email), "mail": .null,
        ]
    }

    func driveJSON(_ drive: String) -> JSON? {
        guard let root = Self.root(ofDrive: drive) else { return nil }
        let isOwn = root == Self.rootID
        var fields: [String: JSON] = [
            "id": .string(isOwn ? ownDriveID : Self.otherDriveID), "driveType": "personal",
            "name": "OneDrive",
            "owner": [
                "user": [
                    "displayName": .string(isOwn ? account.displayName : "Grace Example"),
                    "email": .string(isOwn ? account.email : "grace@example.com"),
                    "id": .string(isOwn ? ownDriveID : Self.otherDriveID),
                ]
            ],
        ]
        let used = account.withTree { $0.usedBytes }
        let total = account.totalBytes ?? 0
        fields["quota"] = [
            "used": .integer(used), "total": .integer(total),
            "remaining": .integer(max(0, total - used)), "deleted": 0,
            "state": .string(used > total && total > 0 ? "exceeded" : "normal"),
        ]
        return .object(fields)
    }

    private func person(isMe: Bool) -> JSON {
        [
            "user": [
                "displayName": .string(isMe ? account.displayName : "Grace Example"),
                "id": .string(isMe ? ownDriveID : Self.otherDriveID),
            ]
        ]
    }

    /// All drives; a hidden library comes first.
    func drives(_ request: SimulatorRequest) -> SimulatorAnswer {
        let hidden: JSON = [
            "id": .string(Self.hiddenDriveID), "driveType": "personal",
            "name": "Bundles_b896e2bb7ca3447691823a44c4ad6ad7",
            "owner": ["user": ["displayName": .string(account.displayName)]],
        ]
        return .json(["value": .array([hidden, driveJSON(Self.driveID) ?? [:]])])
    }

    // MARK: Items

    func itemAnswer(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let answer = account.withTree { tree -> (SimulatedItem, JSON)? in
            guard let item = find(target, in: tree) else { return nil }
            return (item, json(item, in: tree, request: request))
        }
        guard let (item, json) = answer else {
            return failure(404, "itemNotFound", request: request)
        }
        if let known = request.header("If-None-Match"), Self.tag(known, fits: item) {
            return SimulatorAnswer(status: 304)
        }
        let context: JSON = "https://graph.microsoft.com/v1.0/$metadata#items/$entity"
        return .json(selected(json.merging(["@odata.context": context]), request))
    }

    func children(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard request.query("$skip") == nil else {
            return failure(400, "invalidRequest", "$skip is not supported.", request: request)
        }
        let showsShared = request.prefers("Include-Feature=AddToOneDrive")
        let top = min(max(request.query("$top").flatMap { Int($0) } ?? 200, 1), 1000)
        let start = request.query("$skiptoken").flatMap { Int($0) } ?? 0
        let page = account.withTree { tree -> (items: [JSON], count: Int)? in
            guard let folder = find(target, in: tree) else { return nil }
            let all = sorted(
                tree.children(of: folder.id).filter { item in
                    if case .shortcut = item.kind { showsShared } else { true }
                },
                by: request.query("$orderby")
            )
            let items = all.dropFirst(start).prefix(top).map { item in
                var json = json(item, in: tree, request: request)
                if request.query("$expand") == "thumbnails" {
                    json = json.merging(["thumbnails": thumbnailSets(of: item, request)])
                }
                return selected(json, request)
            }
            return (Array(items), all.count)
        }
        guard let page else { return failure(404, "itemNotFound", request: request) }
        var answer: [String: JSON] = [
            "@odata.context": "https://graph.microsoft.com/v1.0/$metadata#items",
            "@odata.count": .integer(Int64(page.count)), "value": .array(page.items),
        ]
        if start + page.items.count < page.count {
            answer["@odata.nextLink"] = .string(
                link(request, with: ["$skiptoken": String(start + page.items.count)])
            )
        }
        return .json(.object(answer))
    }

    private func sorted(_ items: [SimulatedItem], by order: String?) -> [SimulatedItem] {
        let words = (order ?? "").split(separator: " ")
        let isDescending = words.count > 1 && words[1].lowercased() == "desc"
        let result =
            switch words.first {
            case "size": items.sorted { $0.size < $1.size }
            case "lastModifiedDateTime": items.sorted { $0.modifiedTime < $1.modifiedTime }
            case "name": items
            default: items.filter(\.isFolder) + items.filter { !$0.isFolder }
            }
        return isDescending ? result.reversed() : result
    }

    /// The request's own URL with some query fields set.
    func link(_ request: SimulatorRequest, with fields: [String: String]) -> String {
        var pairs = request.query.filter { fields[$0.name] == nil && $0.name != "token" }
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) { pairs.append((name, value)) }
        let query = pairs.map { pair in
            let value =
                pair.value.addingPercentEncoding(withAllowedCharacters: .alphanumerics)
                ?? pair.value
            return "\(pair.name)=\(value)"
        }
        return request.url(host: request.host, path: request.rawPath)
            + "?" + query.joined(separator: "&")
    }
}

extension SimulatorRequest {
    /// Whether a `Prefer` field names a preference.
    func prefers(_ name: String) -> Bool {
        (header("Prefer") ?? "").split(separator: ",").contains {
            $0.trimmingCharacters(in: .whitespaces).lowercased() == name.lowercased()
        }
    }
}
