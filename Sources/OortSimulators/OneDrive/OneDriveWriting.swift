import Foundation
import OortModel
import Synchronization

extension OneDriveSimulator {
    /// Why a change is refused, found inside of the tree's lock.
    struct Refused: Error {
        var status: Int
        var code: String
        var message: String?

        init(_ status: Int, _ code: String, _ message: String? = nil) {
            self.status = status
            self.code = code
            self.message = message
        }

        static let notFound = Refused(404, "itemNotFound", "The resource could not be found.")
        static let taken = Refused(409, "nameAlreadyExists", "Name already exists")
        static let stale = Refused(
            412,
            "resourceModified",
            "ETag does not match current item's value"
        )
        static let denied = Refused(403, "accessDenied", "Access denied")
        static let full = Refused(507, "quotaLimitReached", "Insufficient Space Available")
    }

    enum Conflict: String {
        case fail, replace, rename
    }

    /// Runs a change and answers with the item, or with why not.
    func changing(
        _ request: SimulatorRequest,
        status: Int = 200,
        _ body: (inout SimulatedTree) throws(Refused) -> SimulatedItem
    ) -> SimulatorAnswer {
        do throws(Refused) {
            return .json(
                try account.withTree { (tree) throws(Refused) -> JSON in
                    let item = try body(&tree)
                    return selected(json(item, in: tree, request: request), request)
                },
                status: status
            )
        } catch {
            return failure(error.status, error.code, error.message, request: request)
        }
    }

    /// Checks a precondition; the service is wrong now and then.
    func check(_ tag: String?, of item: SimulatedItem) throws(Refused) {
        guard let tag else { return }
        guard Self.tag(tag, fits: item) else { throw .stale }
        let isFalse = state.withLock { state in
            guard state.habits.falsePreconditions > 0 else { return false }
            state.habits.falsePreconditions -= 1
            return true
        }
        if isFalse { throw .stale }
    }

    /// Checks a name as the service does.
    func check(_ name: String, in parent: String, of tree: SimulatedTree) throws(Refused) {
        let lower = name.lowercased()
        let devices = ["con", "prn", "aux", "nul", ".lock", "desktop.ini"]
        let isDevice =
            devices.contains(lower)
            || (lower.count == 4 && (lower.hasPrefix("com") || lower.hasPrefix("lpt"))
                && lower.last?.isNumber == true)
        let isRefused =
            name.isEmpty || name == "." || name == ".." || name.begins(with: " ")
            || name.ends(with: " ") || name.ends(with: ".") || name.begins(with: "~$") || isDevice
            || lower.contains("_vti_")
            || name.unicodeScalars.contains {
                $0.value < 32 || "\"*:<>?/\\|".unicodeScalars.contains($0)
            }
            || (lower == "forms" && tree.item(parent)?.parentID == nil)
        if isRefused || tree.conditions.refusedNames.contains(name) {
            throw Refused(400, "invalidRequest", "The provided name cannot contain this.")
        }
        guard !tree.isReadOnly(parent) else { throw .denied }
        let above = (tree.path(of: parent) ?? []).reduce(0) { $0 + $1.utf16.count + 1 }
        guard name.utf16.count <= 255, above + name.utf16.count <= 400 else {
            throw Refused(400, "pathIsTooLong", "The path is too long.")
        }
    }

    /// A free name like `name 1.ext`.
    static func freeName(_ name: String, in parent: String, of tree: SimulatedTree) -> String {
        let dot = name.unicodeScalars.lastIndex(of: ".").flatMap {
            $0 == name.startIndex ? nil : $0
        }
        let stem = dot.map { name[..<$0] } ?? name[...]
        let end = dot.map { name[$0...] } ?? ""
        var number = 1
        while !tree.items(named: "\(stem) \(number)\(end)", in: parent).isEmpty { number += 1 }
        return "\(stem) \(number)\(end)"
    }

    static func time(_ json: JSON?, _ field: String) -> Timestamp? {
        json?["fileSystemInfo"]?[field]?.text.flatMap { Timestamp(rfc3339: $0) }
            .map { $0.truncated(to: .seconds) }
    }

    // MARK: Children

    func createChild(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let body = request.json, let name = body["name"]?.text, body["folder"] != nil else {
            return failure(400, "invalidRequest", request: request)
        }
        let conflict = conflict(request, body) ?? .fail
        return changing(request, status: 201) { (tree) throws(Refused) in
            guard let parent = find(target, in: tree) else { throw .notFound }
            // A folder of another drive is changed through its own address.
            guard parent.isFolder else { throw Refused(400, "invalidRequest", "Not a folder.") }
            var name = name
            try check(name, in: parent.id, of: tree)
            if let other = tree.items(named: name, in: parent.id).first {
                switch conflict {
                case .fail: throw .taken
                case .replace:
                    guard other.isFolder else { throw .taken }
                    return other
                case .rename: name = Self.freeName(name, in: parent.id, of: tree)
                }
            }
            return tree.create(
                name,
                in: parent.id,
                kind: .folder,
                modifiedTime: Self.time(body, "lastModifiedDateTime"),
                id: newID(in: parent.id, &tree)
            ) { item in
                if let time = Self.time(body, "createdDateTime") { item.createdTime = time }
            }
        }
    }

    func conflict(_ request: SimulatorRequest, _ body: JSON?) -> Conflict? {
        let name = "@microsoft.graph.conflictBehavior"
        return
            (request.query(name) ?? body?[name]?.text
            ?? body?["@name.conflictBehavior"]?.text).flatMap { Conflict(rawValue: $0) }
    }

    // MARK: Content

    func putContent(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard request.bytes.count <= 250 << 20 else {
            return failure(413, "maxFileSizeExceeded", request: request)
        }
        guard account.hasRoom(for: Int64(request.bytes.count)) else {
            return failure(
                507,
                "quotaLimitReached",
                "Insufficient Space Available",
                request: request
            )
        }
        let content = SimulatedContent(request.bytes)
        let conflict = conflict(request, nil) ?? .replace
        var isNew = false
        let answer = changing(request) { (tree) throws(Refused) in
            if let item = find(target, in: tree) {
                try check(request.header("If-Match"), of: item)
                guard request.header("If-None-Match") != "*" else { throw .stale }
                switch conflict {
                case .fail: if !target.isByID { throw .taken }
                case .rename:
                    guard let parent = item.parentID, !target.isByID else { break }
                    isNew = true
                    return tree.create(
                        Self.freeName(item.name, in: parent, of: tree),
                        in: parent,
                        content: content,
                        id: newID(in: parent, &tree)
                    )
                case .replace: break
                }
                guard item.kind == .file else {
                    throw Refused(409, "nameAlreadyExists", "A folder has this name.")
                }
                guard !tree.isReadOnly(item.id) else { throw .denied }
                return tree.write(content, to: item.id, modifiedTime: tree.now()) ?? item
            }
            guard request.header("If-Match") == nil,
                let (parent, name) = findPlace(target, in: &tree, makingFolders: true)
            else { throw .notFound }
            try check(name, in: parent, of: tree)
            isNew = true
            return tree.create(
                name,
                in: parent,
                content: content,
                id: newID(in: parent, &tree)
            )
        }
        guard isNew, answer.status == 200 else { return answer }
        return SimulatorAnswer(status: 201, headers: answer.headers, body: answer.body)
    }

    // MARK: Changing

    func patch(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let body = request.json, body.fields != nil else {
            return failure(400, "invalidRequest", request: request)
        }
        if patchLies(target) { return SimulatorAnswer(status: 204) }
        return changing(request) { (tree) throws(Refused) in
            guard let item = find(target, in: tree) else { throw .notFound }
            guard item.parentID != nil || body["name"] == nil else {
                throw Refused(403, "accessDenied", "The root cannot be renamed.")
            }
            try check(request.header("If-Match"), of: item)
            let moved = try move(item, body, request, in: &tree)
            let time = Self.time(body, "lastModifiedDateTime")
            // Without a time of the client's, any rename or move is a modification of now.
            let modified = time ?? (moved ? tree.now().truncated(to: .seconds) : nil)
            let changesTime = time != nil && time != item.modifiedTime.truncated(to: .seconds)
            let updated = tree.update(item.id) { item in
                if let modified { item.modifiedTime = modified }
                if let created = Self.time(body, "createdDateTime") { item.createdTime = created }
                if let text = body["description"]?.text {
                    item.description = text.isEmpty ? nil : text
                }
            }
            if changesTime, !moved { tree.renewRevision(of: item.id) }
            return tree.item(item.id) ?? updated ?? item
        }
    }

    /// Whether this PATCH is one of those that the service only says it did.
    private func patchLies(_ target: GraphTarget) -> Bool {
        let habits = self.habits
        guard habits.patchLies, target.isByID,
            case .item(_, let start?, _) = target.resource
        else { return false }
        let number = start.prefix { $0 != "!" }
        guard habits.paddedIDsHelp, number.count == 16 else { return true }
        return false
    }

    /// Moves and renames as the body says; whether anything moved.
    private func move(
        _ item: SimulatedItem,
        _ body: JSON,
        _ request: SimulatorRequest,
        in tree: inout SimulatedTree
    ) throws(Refused) -> Bool {
        var name = body["name"]?.text ?? item.name
        var parent = item.parentID
        if let reference = body["parentReference"] {
            if let id = reference["id"]?.text {
                guard id != "root" else { throw Refused(400, "invalidRequest", "No such id.") }
                guard let folder = tree.item(Self.plainID(id)), folder.isFolder,
                    !tree.isTrashed(folder.id)
                else { throw .notFound }
                parent = folder.id
            } else if let path = reference["path"]?.text, let below = path.cut(atFirst: ":")?.after
            {
                let parts = below.parts(between: "/").filter { !$0.isEmpty }
                    .map { $0.removingPercentEncoding ?? String($0) }
                guard let folder = tree.item(at: parts), folder.isFolder else { throw .notFound }
                parent = folder.id
            }
        }
        guard !name.isSameText(as: item.name) || parent != item.parentID, let parent else {
            return false
        }
        guard Self.drive(ofItem: parent) == Self.drive(ofItem: item.id) else {
            throw Refused(400, "invalidRequest", "Items cannot be moved between drives.")
        }
        guard !tree.lies(parent, in: item.id) else {
            throw Refused(400, "invalidRequest", "A folder cannot be moved into itself.")
        }
        try check(name, in: parent, of: tree)
        if let other = tree.items(named: name, in: parent).first(where: { $0.id != item.id }) {
            switch conflict(request, body) ?? .fail {
            case .fail: throw .taken
            case .replace:
                guard other.kind == .file, item.kind == .file else { throw .taken }
                tree.trash(other.id)
            case .rename: name = Self.freeName(name, in: parent, of: tree)
            }
        }
        tree.move(item.id, to: parent, name: name)
        return true
    }

    func delete(
        _ target: GraphTarget,
        _ request: SimulatorRequest,
        forGood: Bool
    ) -> SimulatorAnswer {
        do throws(Refused) {
            try account.withTree { (tree) throws(Refused) in
                guard let item = find(target, in: tree) else { throw .notFound }
                guard item.parentID != nil else {
                    throw Refused(403, "accessDenied", "The root cannot be deleted.")
                }
                try check(request.header("If-Match"), of: item)
                guard !tree.isReadOnly(item.id) else { throw .denied }
                if forGood { tree.remove(item.id) } else { tree.trash(item.id) }
            }
            return SimulatorAnswer(status: 204)
        } catch {
            return failure(error.status, error.code, error.message, request: request)
        }
    }

    func restore(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard case .item(_, let start?, _) = target.resource else {
            return failure(400, "invalidRequest", request: request)
        }
        let body = request.json
        return changing(request) { (tree) throws(Refused) in
            guard let item = tree.item(Self.plainID(start)), item.trashedTime != nil else {
                throw .notFound
            }
            let parent = body?["parentReference"]?["id"]?.text.map(Self.plainID) ?? item.parentID
            guard let parent, tree.item(parent)?.isFolder == true, !tree.isTrashed(parent) else {
                throw .notFound
            }
            let name = body?["name"]?.text ?? item.name
            guard tree.items(named: name, in: parent).isEmpty else { throw .taken }
            tree.restore(item.id)
            tree.move(item.id, to: parent, name: name)
            return tree.item(item.id) ?? item
        }
    }

    // MARK: Copy

    /// A copy that is under way: the work is done, but reported only after some requests.
    struct CopyJob: Sendable {
        var polls: Int
        var answer: JSON
    }

    func copy(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let body = request.json
        var job = CopyJob(polls: habits.copyPolls, answer: [:])
        do throws(Refused) {
            job.answer = try account.withTree { (tree) throws(Refused) -> JSON in
                guard let item = find(target, in: tree) else { throw .notFound }
                let parent =
                    body?["parentReference"]?["id"]?.text.map(Self.plainID)
                    ?? item.parentID
                guard let parent, tree.item(parent)?.isFolder == true, !tree.isTrashed(parent)
                else { throw .notFound }
                let name = body?["name"]?.text ?? item.name
                try check(name, in: parent, of: tree)
                // A copy that fails does so later, and with a status of 200.
                guard tree.items(named: name, in: parent).isEmpty else {
                    return [
                        "status": "failed", "errorCode": "nameAlreadyExists",
                        "error": ["code": "nameAlreadyExists", "message": "Name already exists"],
                    ]
                }
                guard !tree.lies(parent, in: item.id) else {
                    return ["status": "failed", "error": ["code": "invalidRequest"]]
                }
                let id = duplicate(item, as: name, in: parent, &tree)
                return [
                    "status": "completed", "percentageComplete": 100, "resourceId": .string(id),
                ]
            }
        } catch {
            return failure(error.status, error.code, error.message, request: request)
        }
        let finished = job
        let number = state.withLock { state in
            state.nextNumber += 1
            let number = String(state.nextNumber)
            state.copies[number] = finished
            return number
        }
        let path = "/_api/v2.0/monitor/4A3407B5-88FC-4504-8B21-\(number)?tempauth=v1e.\(number)"
        return SimulatorAnswer(
            status: 202,
            headers: [("Location", request.url(host: Hosts.content, path: path))]
        )
    }

    private func duplicate(
        _ item: SimulatedItem,
        as name: String,
        in parent: String,
        _ tree: inout SimulatedTree
    ) -> String {
        let copy = tree.create(
            name,
            in: parent,
            kind: item.kind,
            content: item.head?.content,
            id: newID(in: parent, &tree)
        )
        if item.isFolder {
            for child in tree.children(of: item.id) {
                _ = duplicate(child, as: child.name, in: copy.id, &tree)
            }
        }
        return copy.id
    }

    func copyProgress(_ request: SimulatorRequest) -> SimulatorAnswer {
        let number = request.query("tempauth").map { String($0.dropFirst(4)) } ?? ""
        let job = state.withLock { state in
            let job = state.copies[number]
            state.copies[number]?.polls -= 1
            return job
        }
        guard let job else { return failure(404, "itemNotFound", request: request) }
        guard job.polls <= 0 else {
            return .json(["status": "inProgress", "percentageComplete": 12], status: 202)
        }
        return .json(habits.copyEnd ?? job.answer)
    }
}

extension GraphTarget {
    /// Whether the item is named by its id alone.
    var isByID: Bool {
        if case .item(_, .some, let path) = resource { path.isEmpty } else { false }
    }
}
