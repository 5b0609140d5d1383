import Foundation
import OortModel
import Synchronization

extension NextcloudSimulator {
    /// A request to a person's files.
    func files(_ request: SimulatorRequest, user: String, path: [String]) -> SimulatorAnswer {
        guard user.lowercased() == Self.userID else { return stranger(request, user) }
        let path = path.map(\.precomposedStringWithCanonicalMapping)
        return switch request.method {
        case "PROPFIND": propfind(request, path)
        case "GET", "HEAD": get(request, path)
        case "PUT": put(request, path)
        case "MKCOL": makeFolder(path)
        case "DELETE": delete(request, path)
        case "MOVE", "COPY": relocate(request, path)
        case "PROPPATCH": setTime(request, path)
        case "PATCH": recompute(request, path)
        case "OPTIONS":
            SimulatorAnswer(status: 200, headers: [("DAV", "1, 3, extended-mkcol, nc-paginate")])
        default: SimulatorAnswer(status: 501)
        }
    }

    /// Another person's files: an empty folder without a tag, for a known person.
    private func stranger(_ request: SimulatorRequest, _ user: String) -> SimulatorAnswer {
        guard user == "bob" else { return Self.failure(404, "NotFound", "not found") }
        guard request.method == "PROPFIND" else { return Self.failure(403, "Forbidden", "") }
        return DAVXML.multistatus([
            DAVXML.response(
                href: href(request, [], user: user, in: "files") + "/",
                ["resourcetype": "<d:collection/>"],
                asked: DAVXML.names(in: request.bytes)
            )
        ])
    }

    // MARK: Looking

    /// The path of something in one of the person's programs.
    func href(
        _ request: SimulatorRequest,
        _ path: [String],
        user: String = NextcloudSimulator.userID,
        in program: String
    ) -> String {
        href(request, ["remote.php", "dav", program, user] + path)
    }

    /// How the storage of a place is down; nil where it is up.
    private func down(_ path: [String]) -> (Down, isRoot: Bool)? {
        let habits = habits
        for count in stride(from: path.count, through: 1, by: -1) {
            let key = "/" + path.prefix(count).joined(separator: "/")
            if let down = habits.down[key] { return (down, count == path.count) }
        }
        return nil
    }

    private func mountType(_ item: SimulatedItem, _ tree: SimulatedTree) -> (String, isRoot: Bool) {
        var next: SimulatedItem? = item
        while let current = next {
            if current.isStrangers { return ("shared", current.id == item.id) }
            if let type = current.extra["mount-type"]?.text {
                return (type, current.id == item.id)
            }
            next = current.parentID.flatMap { tree.item($0) }
        }
        return ("", false)
    }

    private func properties(
        _ item: SimulatedItem,
        _ path: [String],
        _ tree: SimulatedTree
    ) -> [String: String] {
        let (mount, isMountRoot) = mountType(item, tree)
        let isDown = down(path)?.isRoot == true
        let tag = DAVXML.tag(item, in: tree, overlooks: habits.overlooksStorages)
        var values = [
            "resourcetype": item.isFolder ? "<d:collection/>" : "",
            "getetag": isDown
                ? "" : DAVXML.escaped("\"\(tag)\""),
            "getlastmodified": DAVXML.httpDate(item.modifiedTime),
            "displayname": DAVXML.escaped(item.name),
            "id": item.id, "fileid": DAVXML.number(of: item.id),
            "owner-display-name": mount == "shared"
                ? "Grace Other" : DAVXML.escaped(account.displayName),
            "mount-type": mount, "is-mount-root": isMountRoot ? "true" : "false",
            "is-encrypted": item.extra["is-encrypted"] == nil ? "0" : "1",
        ]
        let hasLink = state.withLock { $0.shares.contains { $0.item == item.id } }
        // Empty where it is not shared.
        values["share-types"] = DAVXML.shareTypes(item, hasLink: hasLink) ?? ""
        if !isOwnCloud {
            values["sharees"] = DAVXML.sharees(item, hasLink: hasLink)
            values["system-tags"] = DAVXML.systemTags(item)
        }
        let access = item.isFolder ? "CK" : "W"
        values["permissions"] =
            switch (mount, isMountRoot) {
            case ("", _): "RGDNV" + access
            case ("shared", _): item.extra["read-only"] == nil ? "SRGDNV" + access : "SG"
            case (_, true): isDown ? "MG" : "MG" + access
            default: "MGDNV" + access
            }
        if isOwnCloud {
            values["permissions"]?.removeAll { $0 == "G" }
            for name in ["mount-type", "is-mount-root", "is-encrypted"] { values[name] = nil }
            if let content = item.head?.content {
                values["checksums"] =
                    "<oc:checksum>SHA1:\(content.sha1) MD5:\(content.md5)</oc:checksum>"
            }
        }
        if item.isFolder {
            let total = tree.descendants(of: item.id).reduce(0) { $0 + $1.size }
            values["size"] = String(total)
            if item.parentID == nil {
                values["data-fingerprint"] = DAVXML.escaped(habits.fingerprint)
                let used = tree.usedBytes
                values["quota-used-bytes"] = String(used)
                values["quota-available-bytes"] =
                    account.totalBytes.map { String(max(0, $0 - used)) } ?? "-3"
            }
        } else {
            values["size"] = String(item.size)
            values["getcontentlength"] = String(item.size)
            values["getcontenttype"] = item.mimeType ?? "application/octet-stream"
            if isOwnCloud { return values }
            values["creation_time"] = "0"
            values["has-preview"] = DAVXML.hasPreview(item) ? "true" : "false"
            if let checksum = item.extra["checksum"]?.text {
                values["checksums"] =
                    "<oc:checksum>\(DAVXML.escaped(checksum))</oc:checksum>"
            }
        }
        return values
    }

    private func propfind(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        let depth = request.header("Depth") ?? "1"
        if isOwnCloud, depth == "infinity" {
            return Self.failure(412, "PreconditionFailed", "Depth infinity not supported")
        }
        if let (down, isRoot) = down(path) {
            if down == .vanished { return Self.failure(404, "NotFound", "could not be located") }
            if down == .unavailable || !isRoot {
                return Self.failure(
                    503,
                    "ServiceUnavailable",
                    "Storage is temporarily not available"
                )
            }
        }
        var asked = DAVXML.names(in: request.bytes)
        if asked.isEmpty || asked.contains("allprop") {
            asked = [
                "resourcetype", "getetag", "getlastmodified", "getcontentlength", "getcontenttype",
            ]
        }
        // Worked out outside of the lock of the account, which `properties` takes, too.
        let tree = account.withTree { $0 }
        guard let item = tree.item(at: path) else {
            return Self.failure(404, "NotFound", "File with name \(path.last ?? "") not found")
        }
        var responses: [String] = []
        func add(_ item: SimulatedItem, _ path: [String], levels: Int) {
            let place = path.isEmpty || item.isFolder ? "/" : ""
            responses.append(
                DAVXML.response(
                    href: href(request, path, in: "files") + place,
                    properties(item, path, tree),
                    asked: asked
                )
            )
            guard levels > 0, item.isFolder, down(path) == nil else { return }
            for child in tree.children(of: item.id) {
                let childPath = path + [child.name]
                if down(childPath)?.0 == .vanished { continue }
                add(child, childPath, levels: levels - 1)
            }
        }
        add(item, path, levels: depth == "infinity" ? 64 : Int(depth) ?? 1)
        return DAVXML.multistatus(responses)
    }

    /// What has the number that a search names (`oc:fileid`), the only thing that is searched for here.
    func search(_ request: SimulatorRequest) -> SimulatorAnswer {
        let asked = DAVXML.names(in: request.bytes)
        guard request.method == "SEARCH", !isOwnCloud, asked.isSuperset(of: ["eq", "fileid"]),
            let number = DAVXML.text(of: "literal", in: request.bytes).map(DAVXML.number)
        else { return Self.failure(501, "NotImplemented", "") }
        let tree = account.withTree { $0 }
        let found = tree.allItems.filter {
            DAVXML.number(of: $0.id) == number && !tree.isTrashed($0.id)
        }
        return DAVXML.multistatus(
            found.map { item in
                let path = tree.path(of: item.id) ?? []
                return DAVXML.response(
                    href: href(request, path, in: "files") + (item.isFolder ? "/" : ""),
                    properties(item, path, tree),
                    asked: asked
                )
            }
        )
    }

    private func get(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        if down(path) != nil { return Self.failure(503, "StorageNotAvailable", "not available") }
        guard let item = account.withTree({ $0.item(at: path) }) else {
            return Self.failure(404, "NotFound", "not found")
        }
        if isOwnCloud, request.query("preview") == "1" { return picture(of: item) }
        guard let head = item.head else {
            return SimulatorAnswer(
                status: 200,
                headers: [("Content-Type", "text/html")],
                body: .bytes(Array("This is the WebDAV interface.".utf8))
            )
        }
        if let wanted = request.header("If-Match"), wanted != "\"\(head.id)\"", wanted != "*" {
            return Self.failure(412, "PreconditionFailed", "If-Match")
        }
        var headers: [(name: String, value: String)] = [
            ("ETag", "\"\(head.id)\""), ("OC-ETag", "\"\(head.id)\""),
            ("Last-Modified", DAVXML.httpDate(item.modifiedTime)),
        ]
        if let checksum = item.extra["checksum"]?.text { headers.append(("OC-Checksum", checksum)) }
        return .content(head.content, for: request, headers: headers)
    }

    // MARK: Writing

    /// The refusal of a name; nil where it is taken.
    func refusal(of name: String) -> SimulatorAnswer? {
        if name.lowercased() == ".htaccess" { return Self.failure(500, "ForbiddenException", "") }
        let windows = habits.refusesWindowsNames && name.contains { "<>:\"|?*".contains($0) }
        let isRefused =
            windows || name.utf8.count > 250 || name.contains("\\")
            || [".part", ".filepart"].contains { name.lowercased().hasSuffix($0) }
            || name.unicodeScalars.contains { $0.value < 32 }
        return isRefused ? Self.failure(400, "InvalidPath", "File name is not allowed") : nil
    }

    /// What a content was, with all checks in one step.
    func store(
        _ content: SimulatedContent,
        at path: [String],
        ifMatch: String?,
        ifNoneMatch: Bool,
        time: String?,
        checksum: String?
    ) -> SimulatorAnswer {
        guard let name = path.last else { return Self.failure(409, "Conflict", "") }
        if let refusal = refusal(of: name) { return refusal }
        guard account.hasRoom(for: content.size) else {
            return Self.failure(507, "InsufficientStorage", "Insufficient space")
        }
        if down(path) != nil { return Self.failure(503, "StorageNotAvailable", "not available") }
        let seconds = time.flatMap { Int64($0) }
        // Written all the same, and only then refused.
        let isBadTime = !isOwnCloud && time != nil && (seconds ?? 0) <= 86400
        if isOwnCloud, let sum = checksum?.lowercased(), sum.hasPrefix("sha1:"),
            sum != "sha1:\(content.sha1)"
        {
            return Self.failure(
                400,
                "BadRequest",
                "The computed checksum does not match the one received from the client."
            )
        }
        let stamp = isBadTime ? nil : seconds.map { Timestamp(seconds: $0) }
        return account.withTree { tree in
            guard let parent = tree.item(at: Array(path.dropLast())), parent.isFolder else {
                return isOwnCloud
                    ? Self.failure(
                        409,
                        "Conflict",
                        "Files cannot be created in non-existent folders"
                    )
                    : Self.failure(404, "NotFound", "the folder is not there")
            }
            let old = tree.items(named: name, in: parent.id).first
            if let old, old.isFolder { return Self.failure(409, "Conflict", "a folder") }
            if ifNoneMatch, old != nil { return Self.failure(412, "PreconditionFailed", "exists") }
            if let ifMatch, ifMatch != old?.head.map({ "\"\($0.id)\"" }) {
                return Self.failure(412, "PreconditionFailed", "If-Match")
            }
            let item: SimulatedItem
            if let old, let written = tree.write(content, to: old.id, modifiedTime: stamp) {
                item = written
            } else {
                item = tree.create(name, in: parent.id, content: content, modifiedTime: stamp)
            }
            tree.update(item.id) { $0.extra["checksum"] = checksum.map { .string($0) } }
            if isBadTime {
                return Self.failure(500, "InvalidArgumentException", "X-OC-MTime")
            }
            let tag = "\"\(item.head?.id ?? "")\""
            var headers: [(name: String, value: String)] = [
                ("OC-FileId", item.id), ("OC-ETag", tag), ("ETag", tag),
            ]
            if time != nil { headers.append(("X-OC-MTime", "accepted")) }
            return SimulatorAnswer(status: old == nil ? 201 : 204, headers: headers)
        }
    }

    private func put(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        let content = SimulatedContent(request.bytes)
        var answer = store(
            content,
            at: path,
            ifMatch: request.header("If-Match"),
            ifNoneMatch: request.header("If-None-Match") == "*",
            time: request.header("X-OC-MTime"),
            checksum: request.header("OC-Checksum")
        )
        if answer.status < 300, request.header("X-Hash") == "sha1", !habits.computesNothing,
            !isOwnCloud
        {
            answer.headers.append(("X-Hash-SHA1", content.sha1))
        }
        return answer
    }

    /// Computes the checksum of what is stored, and keeps it; the revision stays.
    private func recompute(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard request.header("X-Recalculate-Hash") == "sha1", !habits.computesNothing, !isOwnCloud
        else {
            return SimulatorAnswer(status: 501)
        }
        let checksum = account.withTree { tree -> String? in
            guard let item = tree.item(at: path), let head = item.head else { return nil }
            let checksum = "SHA1:\(head.content.sha1)"
            tree.update(item.id) { $0.extra["checksum"] = .string(checksum) }
            return checksum
        }
        guard let checksum else { return Self.failure(404, "NotFound", "not found") }
        return SimulatorAnswer(status: 204, headers: [("OC-Checksum", checksum)])
    }

    private func makeFolder(_ path: [String]) -> SimulatorAnswer {
        guard let name = path.last else { return Self.failure(405, "MethodNotAllowed", "") }
        if let refusal = refusal(of: name) { return refusal }
        return account.withTree { tree in
            guard let parent = tree.item(at: Array(path.dropLast())), parent.isFolder else {
                return Self.failure(409, "Conflict", "Parent node does not exist")
            }
            guard tree.items(named: name, in: parent.id).isEmpty else {
                return Self.failure(405, "MethodNotAllowed", "exists already")
            }
            let folder = tree.create(name, in: parent.id, kind: .folder)
            return SimulatorAnswer(status: 201, headers: [("OC-FileId", folder.id)])
        }
    }

    private func delete(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        let hasTrash = habits.hasTrash
        return account.withTree { tree in
            guard let item = tree.item(at: path), item.parentID != nil else {
                return Self.failure(404, "NotFound", "not found")
            }
            // Folders have no tag to sabre.
            if let wanted = request.header("If-Match"), wanted != item.head.map({ "\"\($0.id)\"" })
            {
                return Self.failure(412, "PreconditionFailed", "If-Match")
            }
            if hasTrash { tree.trash(item.id) } else { tree.remove(item.id) }
            return SimulatorAnswer(status: 204)
        }
    }

    /// The place that a destination names; nil where it is none of the person's files.
    func destination(_ request: SimulatorRequest) -> [String]? {
        guard case .files(let user, let rest)? = target(request), user.lowercased() == Self.userID
        else { return nil }
        return rest.map(\.precomposedStringWithCanonicalMapping)
    }

    /// The program that a destination names.
    func target(_ request: SimulatorRequest) -> Place.Program? {
        Self.destinationParts(request).flatMap(Place.dav)
    }

    /// The tag in `If: <place> (["tag"])`, in quotes; nil without the field.
    func guarded(_ request: SimulatorRequest) -> String? {
        guard let field = request.header("If"), let begin = field.firstRange(of: "(["),
            let end = field.firstRange(of: "])")
        else { return nil }
        return String(field[begin.upperBound..<end.lowerBound])
    }

    private func relocate(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard let new = destination(request), let name = new.last else {
            return Self.failure(400, "BadRequest", "Destination")
        }
        if let refusal = refusal(of: name) { return refusal }
        let replaces = request.header("Overwrite") != "F"
        let wanted = guarded(request)
        return account.withTree { tree in
            guard let item = tree.item(at: path), item.parentID != nil else {
                return Self.failure(404, "NotFound", "not found")
            }
            guard let parent = tree.item(at: Array(new.dropLast())), parent.isFolder else {
                return Self.failure(409, "Conflict", "The destination node is not found")
            }
            if parent.id == item.id || tree.lies(parent.id, in: item.id) {
                return Self.failure(409, "Conflict", "into itself")
            }
            let old = tree.items(named: name, in: parent.id).first
            if old?.id == item.id, new.last?.isSameText(as: item.name) == true {
                return Self.failure(403, "Forbidden", "source and destination are the same")
            }
            if let wanted, wanted != old?.head.map({ "\"\($0.id)\"" }) {
                return old == nil
                    ? Self.failure(404, "NotFound", "")
                    : Self.failure(412, "PreconditionFailed", "If")
            }
            if let old, old.id != item.id {
                guard replaces else { return Self.failure(412, "PreconditionFailed", "exists") }
                tree.trash(old.id)
            }
            if request.method == "MOVE" {
                tree.move(item.id, to: parent.id, name: name)
                // A rename changes nothing of the content, nor of its time.
                tree.update(item.id) { $0.modifiedTime = item.modifiedTime }
            } else {
                Self.copy(item, to: parent.id, name: name, &tree)
            }
            let id = tree.items(named: name, in: parent.id).first?.id
            return SimulatorAnswer(
                status: old == nil ? 201 : 204,
                headers: id.map { [("OC-FileId", $0)] } ?? []
            )
        }
    }

    private func setTime(_ request: SimulatorRequest, _ path: [String]) -> SimulatorAnswer {
        guard let text = DAVXML.text(of: "lastmodified", in: request.bytes),
            let seconds = Int64(text)
        else { return Self.failure(403, "Forbidden", "") }
        let refusal = account.withTree { tree -> SimulatorAnswer? in
            guard let item = tree.item(at: path) else {
                return Self.failure(404, "NotFound", "not found")
            }
            // sabre compares before every method.
            if let wanted = request.header("If-Match"), wanted != item.head.map({ "\"\($0.id)\"" })
            {
                return Self.failure(412, "PreconditionFailed", "If-Match")
            }
            tree.update(item.id) { $0.modifiedTime = Timestamp(seconds: seconds) }
            tree.renewRevision(of: item.id)
            return nil
        }
        if let refusal { return refusal }
        return DAVXML.multistatus([
            "<d:response><d:href>\(href(request, path, in: "files"))</d:href><d:propstat><d:prop>"
                + "<d:lastmodified/></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat>"
                + "</d:response>"
        ])
    }
}
