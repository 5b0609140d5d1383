import Foundation
import OortModel
import Synchronization

extension OneDriveSimulator {
    /// An upload in parts.
    struct Session: Sendable {
        /// The file that is replaced; nil for a new one.
        var item: String?
        /// The folder and the name of a new file.
        var parent: String
        var name: String
        var isByName: Bool
        var conflict: Conflict
        var tag: String?
        var modified: Timestamp?
        var created: Timestamp?
        var waitsForCommit: Bool
        var parts: [SimulatedContent] = []
        var received: Int64 = 0
        var total: Int64?
        /// A part that was no multiple of 320 KiB: found only at the end.
        var isCrooked = false
        /// The number in its address.
        var number: Int
    }

    static let partMultiple: Int64 = 327_680
    static let largestPart = 60 << 20
    private static let expiry: JSON = "2099-01-01T00:00:00Z"

    func createSession(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        let body = request.json
        let fields = body?["item"]
        if let size = fields?["fileSize"]?.integer, !account.hasRoom(for: size) {
            return failure(
                507,
                "quotaLimitReached",
                "Insufficient Space Available",
                request: request
            )
        }
        let conflict = conflict(request, fields) ?? .replace
        let session: Session
        do throws(Refused) {
            session = try account.withTree { (tree) throws(Refused) -> Session in
                var session = Session(
                    item: nil,
                    parent: "",
                    name: "",
                    isByName: !target.isByID,
                    conflict: conflict,
                    tag: request.header("If-Match"),
                    modified: Self.time(fields, "lastModifiedDateTime"),
                    created: Self.time(fields, "createdDateTime"),
                    waitsForCommit: body?["deferCommit"]?.bool ?? false,
                    number: 0
                )
                if let item = find(target, in: tree) {
                    guard item.kind == .file else { throw .taken }
                    guard !tree.isReadOnly(item.id) else { throw .denied }
                    try check(session.tag, of: item)
                    if session.isByName, conflict == .fail { throw .taken }
                    session.item = item.id
                    session.parent = item.parentID ?? ""
                    session.name = item.name
                } else {
                    guard let (parent, name) = findPlace(target, in: &tree, makingFolders: true)
                    else { throw .notFound }
                    guard session.tag == nil else { throw .stale }
                    try check(name, in: parent, of: tree)
                    session.parent = parent
                    session.name = name
                }
                if let name = fields?["name"]?.text, name != session.name, session.item == nil {
                    throw Refused(400, "invalidRequest", "The name is not the URL's.")
                }
                return session
            }
        } catch {
            return failure(error.status, error.code, error.message, request: request)
        }
        let key = state.withLock { state in
            state.nextNumber += 1
            var session = session
            session.number = state.nextNumber
            // The address is the permission to write: it is a secret like a token.
            let key = account.tokens.makeSecret("v1e.")
            state.sessions[key] = session
            return key
        }
        let path =
            "/personal/\(Self.driveID)/_api/v2.0/drive/items/\(session.item ?? session.parent)"
            + "/uploadSession?guid='\(session.number)'&overwrite=True&rename=False&dc=0"
            + "&tempauth=\(key)"
        return .json([
            "@odata.context":
                "https://graph.microsoft.com/v1.0/$metadata#microsoft.graph.uploadSession",
            "uploadUrl": .string(request.url(host: Hosts.content, path: path)),
            "expirationDateTime": Self.expiry, "nextExpectedRanges": ["0-"],
        ])
    }

    /// GET, PUT, DELETE and POST (a deferred commit) at a session's address.
    func uploadPart(_ request: SimulatorRequest) -> SimulatorAnswer {
        let key = request.query("tempauth") ?? ""
        guard let session = state.withLock({ $0.sessions[key] }) else {
            return failure(
                404,
                "itemNotFound",
                "The upload session was not found",
                request: request
            )
        }
        switch request.method {
        case "GET": return .json(Self.progress(session))
        case "DELETE":
            state.withLock { $0.sessions[key] = nil }
            return SimulatorAnswer(status: 204)
        case "POST": return commit(session, key: key, request)
        case "PUT": return receive(request, key: key)
        default: return failure(405, "Request_BadRequest", request: request)
        }
    }

    private static func progress(_ session: Session) -> JSON {
        let last = session.total.map { String($0 - 1) } ?? ""
        return [
            "expirationDateTime": expiry,
            "nextExpectedRanges":
                session.received == session.total
                ? [] : [.string("\(session.received)-\(last)")],
        ]
    }

    private func receive(_ request: SimulatorRequest, key: String) -> SimulatorAnswer {
        guard request.bytes.count < Self.largestPart else {
            return failure(413, "maxFragmentLengthExceeded", request: request)
        }
        guard let (range, total) = Self.contentRange(request.header("Content-Range")),
            range.count == request.bytes.count, range.upperBound <= total
        else {
            return failure(400, "invalidRequest", "Invalid Content-Range header", request: request)
        }
        let content = SimulatedContent(request.bytes)
        enum Outcome: Sendable {
            case refused(Int, String)
            case more(Session)
            case complete(Session)
        }
        let outcome = state.withLock { state -> Outcome in
            guard var session = state.sessions[key] else { return .refused(404, "itemNotFound") }
            guard session.total ?? total == total else { return .refused(400, "invalidRequest") }
            guard range.lowerBound == session.received else { return .refused(416, "invalidRange") }
            session.total = total
            session.parts.append(content)
            session.received = range.upperBound
            let isLast = session.received == total
            if !isLast, range.count % Int(Self.partMultiple) != 0 { session.isCrooked = true }
            state.sessions[key] = session
            return isLast && !session.waitsForCommit ? .complete(session) : .more(session)
        }
        switch outcome {
        case .refused(let status, let code): return failure(status, code, request: request)
        case .more(let session): return .json(Self.progress(session), status: 202)
        case .complete(let session): return commit(session, key: key, request)
        }
    }

    private static func contentRange(_ text: String?) -> (range: Range<Int64>, total: Int64)? {
        guard let text, text.hasPrefix("bytes ") else { return nil }
        let sides = text.dropFirst(6).split(separator: "/")
        guard sides.count == 2, let total = Int64(sides[1]) else { return nil }
        let ends = sides[0].split(separator: "-")
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]),
            first <= last
        else { return nil }
        return (first..<last + 1, total)
    }

    private func commit(
        _ session: Session,
        key: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        guard !session.isCrooked else {
            state.withLock { $0.sessions[key] = nil }
            return failure(
                400,
                "invalidRequest",
                "Fragments were not multiples of 320 KiB",
                request: request
            )
        }
        guard session.received == session.total else {
            return failure(400, "invalidRequest", "uploadSessionIncomplete", request: request)
        }
        guard account.hasRoom(for: session.received) else {
            return failure(
                507,
                "quotaLimitReached",
                "Insufficient Space Available",
                request: request
            )
        }
        var isNew = false
        let answer = changing(request) { (tree) throws(Refused) in
            let item = try finish(session, in: &tree)
            isNew = item.revisions.count == 1
            return item
        }
        // After a 409 or 412 the bytes can still be committed under another name.
        guard answer.status == 200 else { return answer }
        state.withLock { $0.sessions[key] = nil }
        return SimulatorAnswer(
            status: isNew ? 201 : 200,
            headers: answer.headers,
            body: contentHostForm(answer.body)
        )
    }

    private func finish(
        _ session: Session,
        in tree: inout SimulatedTree
    ) throws(Refused) -> SimulatedItem {
        let content = SimulatedContent(joining: session.parts)
        var session = session
        let present = session.item.flatMap { tree.isTrashed($0) ? nil : tree.item($0) }
        if let present {
            try check(session.tag, of: present)
        } else if session.item != nil {
            // Deleted meanwhile.
            guard session.isByName else { throw .notFound }
            session.item = nil
        }
        var target = present
        if target == nil, let other = tree.items(named: session.name, in: session.parent).first {
            switch session.conflict {
            case .fail: throw .taken
            case .replace:
                guard other.kind == .file else { throw .taken }
                target = other
            case .rename:
                session.name = Self.freeName(session.name, in: session.parent, of: tree)
            }
        }
        if let target {
            let written = tree.write(
                content,
                to: target.id,
                modifiedTime: session.modified ?? tree.now()
            )
            return written ?? target
        }
        guard tree.item(session.parent) != nil, !tree.isTrashed(session.parent) else {
            throw .notFound
        }
        return tree.create(
            session.name,
            in: session.parent,
            content: content,
            modifiedTime: session.modified,
            id: newID(in: session.parent, &tree)
        ) { item in
            if let created = session.created { item.createdTime = created }
        }
    }

    /// The content host's answer: its download address has another name.
    private func contentHostForm(_ body: SimulatorAnswer.Body) -> SimulatorAnswer.Body {
        guard case .bytes(let bytes) = body, case .object(var fields)? = JSON(parsing: bytes) else {
            return body
        }
        fields["@content.downloadUrl"] = fields.removeValue(forKey: "@microsoft.graph.downloadUrl")
        fields["@odata.context"] =
            "https://my.microsoftpersonalcontent.com/_api/v2.0/$metadata#items/$entity"
        return .bytes(JSON.object(fields).bytes)
    }

    /// `PUT …:/path` with `sourceUrl`: commits a session under another name.
    func commitSession(_ target: GraphTarget, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let body = request.json,
            let source = body["@microsoft.graph.sourceUrl"]?.text,
            let key = source.split(separator: "&").first(where: { $0.hasPrefix("tempauth=") })
                .map({ String($0.dropFirst("tempauth=".count)) }),
            var session = state.withLock({ $0.sessions[key] }),
            session.received == session.total
        else { return failure(400, "invalidRequest", request: request) }
        let place = account.withTree { tree in findPlace(target, in: &tree) }
        guard let place else { return failure(404, "itemNotFound", request: request) }
        session.item = nil
        session.tag = nil
        session.isByName = true
        session.parent = place.parent
        session.name = body["name"]?.text ?? place.name
        session.conflict = conflict(request, body) ?? .fail
        return commit(session, key: key, request)
    }
}
