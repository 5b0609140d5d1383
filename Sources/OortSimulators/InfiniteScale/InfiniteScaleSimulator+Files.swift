import Crypto
import Foundation
import OortModel
import Synchronization

extension InfiniteScaleSimulator {
    /// A request to something in a space.
    func space(_ request: SimulatorRequest, _ root: String, _ path: [String]) -> SimulatorAnswer {
        switch request.method {
        case "PROPFIND": propfind(request, root, path)
        case "GET", "HEAD": get(request, root, path)
        case "PUT": put(request, root, path)
        case "POST": beginUpload(request, root, path)
        case "MKCOL": makeFolder(root, path)
        case "DELETE": delete(root, path)
        case "MOVE", "COPY": relocate(request, root, path)
        case "PROPPATCH": proppatch(request, root, path)
        case "OPTIONS":
            SimulatorAnswer(
                status: 200,
                headers: [("DAV", "1, 2"), ("Tus-Resumable", "1.0.0"), ("Tus-Version", "1.0.0")]
            )
        default: SimulatorAnswer(status: 501)
        }
    }

    // MARK: Tags

    private static func md5(_ text: String) -> String {
        Insecure.MD5.hash(data: Array(text.utf8)).map {
            String($0 >> 4, radix: 16) + String($0 & 15, radix: 16)
        }.joined()
    }

    /// Of an item's id and time alone: other content with the same time has the same tag.
    func tag(_ item: SimulatedItem, _ tree: SimulatedTree) -> String {
        let time = item.isFolder ? shownTime(item, tree) : item.modifiedTime
        return Self.md5("\(item.id) \(time.seconds).\(time.nanoseconds)")
    }

    /// What is below a folder at this moment.
    private func live(_ item: SimulatedItem, _ tree: SimulatedTree) -> String {
        guard item.isFolder else {
            return "\(item.head?.id ?? "")/\(item.modifiedTime.seconds)."
                + "\(item.modifiedTime.nanoseconds)"
        }
        let below = tree.children(of: item.id).map { "\($0.id)/\($0.name)/\(live($0, tree))" }
        return Self.md5(below.joined(separator: "|"))
    }

    /// The time of a folder, which follows what is below it late.
    private func shownTime(_ folder: SimulatedItem, _ tree: SimulatedTree) -> Timestamp {
        let live = live(folder, tree)
        return state.withLock { state in
            guard var shown = state.shown[folder.id] else {
                let latest = tree.descendants(of: folder.id).map(\.serverModifiedTime).max()
                let time = max(latest ?? folder.createdTime, folder.createdTime)
                state.shown[folder.id] = Shown(live: live, time: time)
                return time
            }
            guard shown.live != live else { return shown.time }
            guard !state.habits.losesChanges else {
                state.shown[folder.id]?.live = live
                return shown.time
            }
            shown.looks += 1
            if shown.looks > state.habits.lag {
                shown = Shown(live: live, time: max(.now, shown.time))
            }
            state.shown[folder.id] = shown
            return shown.time
        }
    }

    // MARK: Looking

    private func properties(_ item: SimulatedItem, _ tree: SimulatedTree) -> [String: String] {
        let root = tree.root(of: item.id)
        let id = Self.fullID(item, tree)
        var values = [
            "id": id, "fileid": id, "spaceid": Self.space(root),
            "name": DAVXML.escaped(item.name),
            "resourcetype": item.isFolder ? "<d:collection/>" : "",
            "getetag": "&quot;\(tag(item, tree))&quot;",
            "permissions": tree.isReadOnly(item.id)
                ? "" : item.isFolder ? "RDNVCKP" : "RDNVWP",
        ]
        let hasLink = state.withLock { $0.links.contains { $0.item == item.id } }
        values["share-types"] = DAVXML.shareTypes(item, hasLink: hasLink)
        values["file-parent"] = item.parentID.flatMap { tree.item($0) }
            .map { Self.fullID($0, tree) }
        if item.isFolder {
            let time = shownTime(item, tree)
            values["getlastmodified"] = DAVXML.httpDate(time)
            let size = tree.descendants(of: item.id).reduce(0) { $0 + $1.size }
            values["size"] = String(size)
            values["quota-used-bytes"] = String(size)
            values["quota-available-bytes"] =
                account.totalBytes.map { String(max(0, $0 - tree.usedBytes)) } ?? "-3"
        } else {
            values["getlastmodified"] = DAVXML.httpDate(item.modifiedTime)
            values["size"] = String(item.size)
            values["getcontentlength"] = String(item.size)
            values["getcontenttype"] = item.mimeType ?? "application/octet-stream"
            values["has-preview"] = DAVXML.hasPreview(item) ? "1" : "0"
            if let content = item.head?.content {
                values["checksums"] =
                    "<oc:checksum>SHA1:\(content.sha1) MD5:\(content.md5)</oc:checksum>"
            }
        }
        return values
    }

    /// Whether the server still looks an upload over; each question brings the end nearer.
    func isProcessing(_ item: SimulatedItem) -> Bool {
        state.withLock { state in
            guard let left = state.processing[item.id], left > 0 else { return false }
            state.processing[item.id] = left - 1
            return true
        }
    }

    /// Properties that this server has in another namespace than its kin.
    private static let prefixes: [String: String] = [
        "has-preview": "oc", "name": "oc", "file-parent": "oc", "spaceid": "oc",
        "meta-path-for-user": "oc",
        "trashbin-original-filename": "oc", "trashbin-original-location": "oc",
        "trashbin-delete-timestamp": "oc", "trashbin-delete-datetime": "oc",
    ]

    func response(
        _ request: SimulatorRequest,
        href: String,
        _ values: [String: String],
        isProcessing: Bool = false
    ) -> String {
        var asked = DAVXML.names(in: request.bytes)
        if asked.isEmpty || asked.contains("allprop") { asked = Set(values.keys) }
        let isMinimal = request.header("Prefer")?.contains("return=minimal") == true
        return DAVXML.response(
            href: href,
            values,
            asked: isMinimal || isProcessing ? asked.filter { values[$0] != nil } : asked,
            status: isProcessing ? "425 TOO EARLY" : "200 OK",
            prefixes: Self.prefixes
        )
    }

    private func propfind(
        _ request: SimulatorRequest,
        _ root: String,
        _ path: [String]
    ) -> SimulatorAnswer {
        let depth = request.header("Depth") ?? "1"
        guard depth == "0" || depth == "1" else {
            return Self.failure(400, "BadRequest", "Invalid Depth header value: \(depth)")
        }
        let tree = account.withTree { $0 }
        guard let item = tree.item(at: path, from: root) else {
            return Self.failure(404, "NotFound", "Resource not found")
        }
        if depth == "1", habits.unlistable.contains(path) {
            return Self.failure(500, "ServerError", "the storage is down")
        }
        let base = ["dav", "spaces", Self.space(root)]
        func response(_ item: SimulatedItem, _ path: [String]) -> String {
            self.response(
                request,
                href: href(request, base + path) + (item.isFolder ? "/" : ""),
                properties(item, tree),
                isProcessing: !item.isFolder && isProcessing(item)
            )
        }
        var responses = [response(item, path)]
        if depth == "1", item.isFolder {
            responses += tree.children(of: item.id)
                .filter { !Self.isHidden($0.name, atTop: path.isEmpty) }
                .map { response($0, path + [$0.name]) }
        }
        return DAVXML.multistatus(responses)
    }

    private func get(
        _ request: SimulatorRequest,
        _ root: String,
        _ path: [String]
    ) -> SimulatorAnswer {
        let tree = account.withTree { $0 }
        guard let item = tree.item(at: path, from: root) else {
            return SimulatorAnswer(status: 404)
        }
        // A folder is answered with nothing, and no error.
        guard let head = item.head else { return SimulatorAnswer(status: 200) }
        if isProcessing(item) { return SimulatorAnswer(status: 425) }
        if request.query("preview") == "1" {
            return Self.picture(of: item) ?? SimulatorAnswer(status: 404)
        }
        // Neither `If-Match` nor `If-Range` is looked at.
        let tag = "\"\(tag(item, tree))\""
        return .content(
            head.content,
            for: request,
            headers: [
                ("ETag", tag), ("OC-ETag", tag), ("OC-FileId", Self.fullID(item, tree)),
                ("OC-Checksum", "SHA1:\(head.content.sha1)"),
                ("Last-Modified", DAVXML.httpDate(item.modifiedTime)),
            ]
        )
    }

    // MARK: Writing

    /// The refusal of a name; nil where it is taken.
    func refusal(of name: String) -> SimulatorAnswer? {
        let isRefused =
            name.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty || name.utf8.count > 255
            || [".", ".."].contains(name)
            || name.unicodeScalars.contains { ["\u{C}", "\r", "\n", "\\"].contains($0) }
        return isRefused
            ? Self.failure(400, "BadRequest", "name validation failed: must not contain it") : nil
    }

    /// Whether listings lack a name, which the server takes (reva, `ignore.go`).
    private static func isHidden(_ name: String, atTop: Bool) -> Bool {
        name.hasSuffix(".flock") || name.hasSuffix(".mlock")
            || atTop && [".Trash", ".oc-nodes", ".oc-tmp"].contains(name)
    }

    private static let chunkMark = "-chunking-[A-Za-z0-9_]+-[0-9]+-[0-9]+$"

    /// The place where an upload lands: a name may be that of a part of another file (reva,
    /// `chunking.go`).
    static func landing(_ path: [String]) -> [String] {
        guard let name = path.last,
            name.range(of: chunkMark, options: .regularExpression) != nil,
            let whole = name.components(separatedBy: "-chunking-").first
        else { return path }
        return path.dropLast() + [whole]
    }

    /// The time in seconds and nanoseconds, `SECONDS.NANOSECONDS`.
    static func time(_ text: String?) -> Timestamp? {
        guard let text else { return nil }
        let (whole, part) = text.cut(atFirst: ".").map { ($0.before, $0.after) } ?? (text[...], "")
        return Int64(whole).map { Timestamp(seconds: $0, nanoseconds: Int32(part) ?? 0) }
    }

    /// Makes a file as another client, just before an upload that is to make one.
    func race(_ root: String, _ path: [String]) {
        let texts = state.withLock { state -> [String] in
            guard state.habits.races > 0 else { return [] }
            state.habits.races -= 1
            return state.habits.raceTexts
        }
        guard let first = texts.first, let name = path.last else { return }
        account.withTree { tree in
            guard let parent = tree.item(at: path.dropLast(), from: root),
                tree.items(named: name, in: parent.id).isEmpty
            else { return }
            let made = tree.create(name, in: parent.id, content: SimulatedContent(first))
            for text in texts.dropFirst() { _ = tree.write(SimulatedContent(text), to: made.id) }
        }
    }

    private func put(
        _ request: SimulatorRequest,
        _ root: String,
        _ path: [String]
    ) -> SimulatorAnswer {
        guard let name = path.last else { return SimulatorAnswer(status: 409) }
        if let refusal = refusal(of: name) { return refusal }
        guard request.header("Content-Range") == nil else { return SimulatorAnswer(status: 501) }
        let path = Self.landing(path)
        race(root, path)
        let content = SimulatedContent(request.bytes)
        let tag = request.header("If-Match")
        let tree = account.withTree { $0 }
        // On what is not there it fails, too; `If-None-Match` is not looked at.
        if let tag {
            let now = tree.item(at: path, from: root).map { "\"\(self.tag($0, tree))\"" }
            guard now == tag else { return SimulatorAnswer(status: 412) }
        }
        if let sum = request.header("OC-Checksum")?.lowercased() {
            guard sum == "sha1:\(content.sha1)" || !sum.hasPrefix("sha1:") else {
                return Self.failure(
                    400,
                    "BadRequest",
                    "The computed checksum does not match the one received from the client."
                )
            }
        }
        return store(content, root, path, time: Self.time(request.header("X-OC-MTime")))
    }

    /// Writes a whole content; `replaced` is the file that was there when its upload began, where it was
    /// begun before: a file that came since is not written over.
    func store(
        _ content: SimulatedContent,
        _ root: String,
        _ path: [String],
        time: Timestamp?,
        begunOver replaced: String?? = nil
    ) -> SimulatorAnswer {
        guard account.hasRoom(for: content.size) else { return SimulatorAnswer(status: 507) }
        let stored = account.withTree { tree -> (SimulatedItem, Bool, String)? in
            guard let name = path.last,
                let parent = tree.item(at: path.dropLast(), from: root), parent.isFolder
            else { return nil }
            let old = tree.items(named: name, in: parent.id).first
            guard old?.isFolder != true else { return nil }
            if case .some(nil) = replaced, old != nil { return nil }
            let item: SimulatedItem
            if let old, let written = tree.write(content, to: old.id, modifiedTime: time) {
                item = written
            } else {
                item = tree.create(name, in: parent.id, content: content, modifiedTime: time)
            }
            return (item, old == nil, Self.fullID(item, tree))
        }
        guard let (item, isNew, id) = stored else { return SimulatorAnswer(status: 409) }
        let processing = habits.processing
        if processing > 0, content.size > 0 {
            state.withLock { $0.processing[item.id] = processing }
        }
        var headers: [(name: String, value: String)] = []
        // An empty content over another one is answered without.
        if content.size > 0 || isNew {
            let tag = "\"\(account.withTree { self.tag(item, $0) })\""
            headers = [("OC-FileId", id), ("OC-ETag", tag), ("ETag", tag)]
        }
        if time != nil { headers.append(("X-OC-Mtime", "accepted")) }
        return SimulatorAnswer(status: isNew ? 201 : 204, headers: headers)
    }

    private func makeFolder(_ root: String, _ path: [String]) -> SimulatorAnswer {
        guard let name = path.last else { return SimulatorAnswer(status: 405) }
        if let refusal = refusal(of: name) { return refusal }
        return account.withTree { tree in
            guard let parent = tree.item(at: path.dropLast(), from: root), parent.isFolder else {
                return Self.failure(409, "Conflict", "parent does not exist")
            }
            guard tree.items(named: name, in: parent.id).isEmpty else {
                return Self.failure(405, "MethodNotAllowed", "The resource exists already")
            }
            _ = tree.create(name, in: parent.id, kind: .folder)
            return SimulatorAnswer(status: 201)
        }
    }

    /// `If-Match` is not looked at.
    private func delete(_ root: String, _ path: [String]) -> SimulatorAnswer {
        account.withTree { tree in
            guard let item = tree.item(at: path, from: root) else {
                return Self.failure(404, "NotFound", "Resource not found")
            }
            guard item.parentID != nil else { return SimulatorAnswer(status: 405) }
            tree.trash(item.id)
            return SimulatorAnswer(status: 204)
        }
    }

    /// Takes any property, and does nothing with a modified time.
    private func proppatch(
        _ request: SimulatorRequest,
        _ root: String,
        _ path: [String]
    ) -> SimulatorAnswer {
        guard account.withTree({ $0.item(at: path, from: root) }) != nil else {
            return SimulatorAnswer(status: 404)
        }
        let place = href(request, ["dav", "spaces", Self.space(root)] + path)
        return DAVXML.multistatus([
            "<d:response><d:href>\(place)</d:href><d:propstat><d:prop><d:lastmodified/></d:prop>"
                + "<d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>"
        ])
    }

    /// The space and path that a destination names; nil where it is none, or names the space's program
    /// twice.
    func destination(_ request: SimulatorRequest) -> (root: String, path: [String])? {
        guard let parts = Self.destinationParts(request) else { return nil }
        let whole = "/" + parts.joined(separator: "/")
        guard whole.components(separatedBy: "/dav/spaces").count == 2,
            case .space(let id, let path) = Place(parts), let root = Self.root(ofSpace: id)
        else { return nil }
        return (root, path)
    }

    private func relocate(
        _ request: SimulatorRequest,
        _ root: String,
        _ path: [String]
    ) -> SimulatorAnswer {
        guard let (newRoot, new) = destination(request), let name = new.last else {
            return SimulatorAnswer(status: 400)
        }
        if let refusal = refusal(of: name) { return refusal }
        let replaces = request.header("Overwrite") != "F"
        return account.withTree { tree in
            guard let item = tree.item(at: path, from: root), item.parentID != nil else {
                return Self.failure(404, "NotFound", "Resource not found")
            }
            let old = tree.item(at: new, from: newRoot)
            if let old, old.id != item.id, tree.lies(item.id, in: old.id) {
                return SimulatorAnswer(status: 409)
            }
            if let old {
                guard replaces else { return SimulatorAnswer(status: 412) }
                if old.id != item.id { tree.trash(old.id) }
            }
            guard let parent = tree.item(at: new.dropLast(), from: newRoot), parent.isFolder else {
                return SimulatorAnswer(status: 409)
            }
            if parent.id == item.id || tree.lies(parent.id, in: item.id) {
                return SimulatorAnswer(status: 409)
            }
            if request.method == "MOVE" {
                guard root == newRoot else { return SimulatorAnswer(status: 502) }
                tree.move(item.id, to: parent.id, name: name)
                // A rename changes nothing of the content, nor of its time.
                tree.update(item.id) { $0.modifiedTime = item.modifiedTime }
            } else {
                Self.copy(item, to: parent.id, name: name, &tree)
            }
            return SimulatorAnswer(status: old == nil ? 201 : 204)
        }
    }
}
