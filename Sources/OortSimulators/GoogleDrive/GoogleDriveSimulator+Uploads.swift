import Foundation
import OortModel
import Synchronization

extension GoogleDriveSimulator {
    /// A resumable upload that is under way, or over.
    struct UploadState: Sendable {
        var fileID: String?
        var isV2: Bool
        var metadata: GoogleDriveMetadata
        var type: String?
        var ifMatch: String?
        var announced: Int64?
        var parts: [SimulatedContent] = []
        var received: Int64 = 0
        /// The item that came of it; kept, so that a lost last answer can be had again.
        var result: String?
    }

    func upload(
        _ id: String?,
        isV2: Bool,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        if let key = request.query("upload_id") { return try resume(key, request) }
        let isUpdate = id != nil
        guard isUpdate ? ["PATCH", "PUT"].contains(request.method) : request.method == "POST"
        else { throw Failure(404, "notFound", "Not Found") }
        switch request.query("uploadType") {
        case "media":
            return try finish(
                UploadState(
                    fileID: id,
                    isV2: isV2,
                    metadata: .empty,
                    type: request.header("Content-Type"),
                    ifMatch: request.header("If-Match")
                ),
                SimulatedContent(request.bytes),
                request
            )
        case "multipart":
            guard
                let parts = MultipartBody.parts(
                    of: request.bytes,
                    type: request.header("Content-Type") ?? ""
                ),
                parts.count == 2
            else { throw Failure(400, "badContent", "Malformed multipart body.") }
            return try finish(
                UploadState(
                    fileID: id,
                    isV2: isV2,
                    metadata: try metadata(parts[0].body, isV2, isUpdate, request),
                    type: parts[1].header("content-type"),
                    ifMatch: request.header("If-Match")
                ),
                SimulatedContent(parts[1].body),
                request
            )
        case "resumable": return try open(id, isV2: isV2, request)
        default: throw Failure(400, "badRequest", "Bad Request", location: "uploadType")
        }
    }

    private func metadata(
        _ bytes: [UInt8],
        _ isV2: Bool,
        _ isUpdate: Bool,
        _ request: SimulatorRequest
    ) throws(Failure) -> GoogleDriveMetadata {
        isV2
            ? try GoogleDriveMetadata(
                v2: bytes,
                setsModifiedDate: request.query("setModifiedDate") == "true"
            )
            : try GoogleDriveMetadata(bytes, isUpdate: isUpdate)
    }

    // MARK: Sessions

    private func open(
        _ id: String?,
        isV2: Bool,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        let session = UploadState(
            fileID: id,
            isV2: isV2,
            metadata: try metadata(request.bytes, isV2, id != nil, request),
            type: request.header("X-Upload-Content-Type"),
            ifMatch: request.header("If-Match"),
            announced: request.header("X-Upload-Content-Length").flatMap { Int64($0) }
        )
        if let announced = session.announced { try checkRoom(for: announced) }
        try account.withTree { tree throws(Failure) in
            if let id {
                let item = try self.visible(id, in: tree, request)
                try self.check(session, against: item, in: tree)
            } else if let id = session.metadata.id, tree.item(id) != nil {
                throw Failure(409, "fileIdInUse", "A file already exists with the provided ID.")
            } else {
                for parent in session.metadata.parents ?? [] {
                    _ = try self.visible(parent, in: tree, request)
                }
            }
        }
        let key = state.withLock { state in
            let key = account.tokens.makeSecret("AFiuUpl")
            state.sessions[key] = session
            return key
        }
        let query = request.rawQuery.isEmpty ? "" : request.rawQuery + "&"
        let uri = request.url(
            host: request.host,
            path: "\(request.rawPath)?\(query)upload_id=\(key)"
        )
        return SimulatorAnswer(
            status: 200,
            headers: [("Location", uri), ("X-GUploader-UploadID", key)]
        )
    }

    private func check(
        _ session: UploadState,
        against item: SimulatedItem,
        in tree: SimulatedTree
    ) throws(Failure) {
        guard role(on: item, in: tree) >= .writer else { throw .noPermission }
        guard case .file = item.kind else {
            throw Failure(
                403,
                "fileNotDownloadable",
                "Only files with binary content can be replaced."
            )
        }
        if let wanted = session.ifMatch, wanted != "*", wanted != Self.etag(of: item) {
            throw Failure(
                412,
                "conditionNotMet",
                "Precondition Failed",
                location: "If-Match"
            )
        }
    }

    private func resume(
        _ key: String,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        guard var session = state.withLock({ $0.sessions[key] }) else {
            return .text("Not Found", status: 404)
        }
        if request.method == "DELETE" {
            state.withLock { $0.sessions[key] = nil }
            return SimulatorAnswer(status: 499)
        }
        if let id = session.result { return try answer(withUploaded: id, session, request) }
        let range: UploadRange
        if let field = request.header("Content-Range") {
            guard let parsed = UploadRange(field) else {
                return .text("Failed to parse Content-Range header.", status: 400)
            }
            range = parsed
        } else {
            let count = Int64(request.bytes.count)
            range = UploadRange(first: count > 0 ? 0 : nil, count: count, total: count)
        }
        if let first = range.first {
            guard Int64(request.bytes.count) == range.count else {
                return .text("The body is not as long as Content-Range says.", status: 400)
            }
            let isLast = range.total == first + range.count
            guard isLast || range.count >= Self.partMultiple else {
                return .text("Chunks must be multiples of 262144 bytes.", status: 400)
            }
            session = keep(request.bytes, from: first, isLast: isLast, in: key) ?? session
        }
        guard range.total == session.received else {
            var headers: [(name: String, value: String)] = [("X-GUploader-UploadID", key)]
            if session.received > 0 {
                headers.append(("Range", "bytes=0-\(session.received - 1)"))
            }
            return SimulatorAnswer(status: 308, headers: headers)
        }
        let content =
            session.parts.isEmpty
            ? Self.emptyContent : SimulatedContent(joining: session.parts)
        return try finish(session, content, request, key: key)
    }

    private static let partMultiple: Int64 = 262_144

    /// Adds to a session what is new of bytes that begin at `first`; of all but the last of a content
    /// only whole multiples are kept.
    ///
    /// - Returns: the session afterwards; nil when there is none.
    private func keep(
        _ bytes: [UInt8],
        from first: Int64,
        isLast: Bool,
        in key: String
    ) -> UploadState? {
        let count = Int64(bytes.count)
        let end = first + (isLast ? count : count / Self.partMultiple * Self.partMultiple)
        while true {
            guard let session = state.withLock({ $0.sessions[key] }) else { return nil }
            let start = session.received
            guard session.result == nil, first <= start, end > start else { return session }
            // Not under the lock: it may become a file.
            let isAll = first == start && end - first == count
            let new = SimulatedContent(
                isAll ? bytes : Array(bytes[Int(start - first)..<Int(end - first)])
            )
            let changed = state.withLock { state -> UploadState? in
                // Another request may have brought the same.
                guard state.sessions[key]?.received == start else { return nil }
                state.sessions[key]?.parts.append(new)
                state.sessions[key]?.received = end
                return state.sessions[key]
            }
            if let changed { return changed }
        }
    }

    /// A session has of a part what came of it so far, and keeps that when the rest is cut off.
    public func arriving(_ request: SimulatorRequest) {
        guard let key = request.query("upload_id"),
            let range = request.header("Content-Range").flatMap({ UploadRange($0) }),
            let first = range.first
        else { return }
        _ = keep(request.bytes, from: first, isLast: false, in: key)
    }

    // MARK: The end

    private func finish(
        _ session: UploadState,
        _ content: SimulatedContent,
        _ request: SimulatorRequest,
        key: String? = nil
    ) throws(Failure) -> SimulatorAnswer {
        try checkRoom(for: content.size)
        let id = try account.withTree { tree throws(Failure) in
            var metadata = session.metadata
            let type = session.type.flatMap { type in
                type.isEmpty || type == "application/octet-stream" ? nil : type
            }
            if let id = session.fileID {
                let item = try self.visible(id, in: tree, request)
                try self.check(session, against: item, in: tree)
                if metadata.mimeType == nil { metadata.mimeType = type }
                let time = metadata.modifiedTime
                tree.write(content, to: item.id, modifiedTime: time)
                try self.place(item, metadata, in: &tree, request)
                return item.id
            }
            if metadata.mimeType == nil { metadata.mimeType = type }
            return try self.create(metadata, content: content, in: &tree, request).id
        }
        if let key {
            state.withLock { state in
                state.sessions[key]?.result = id
                state.sessions[key]?.parts = []
            }
        }
        return try answer(withUploaded: id, session, request)
    }

    private func answer(
        withUploaded id: String,
        _ session: UploadState,
        _ request: SimulatorRequest
    ) throws(Failure) -> SimulatorAnswer {
        try account.withTree { tree throws(Failure) in
            guard let item = tree.item(id) else { throw .notFound(id) }
            guard session.isV2 else { return try self.answer(with: item, in: tree, request) }
            let mask = try self.mask(request, GoogleDriveSchema.fileV2, default: "*")
            return .json(self.resourceV2(of: item, in: tree, for: request, mask: mask))
        }
    }
}

/// The header field `Content-Range` of a part of an upload: `bytes a-b/N`, `bytes */N`, each also
/// with `*` for N.
struct UploadRange {
    /// Where the part begins; nil for a question about the status.
    var first: Int64?
    var count: Int64
    /// The size of the whole; nil while it is unknown.
    var total: Int64?

    init(first: Int64?, count: Int64, total: Int64?) {
        self.first = first
        self.count = count
        self.total = total
    }

    init?(_ field: String) {
        guard field.hasPrefix("bytes ") else { return nil }
        let sides = field.dropFirst(6).split(separator: "/")
        guard sides.count == 2 else { return nil }
        total = Int64(sides[1])
        guard total != nil || sides[1] == "*" else { return nil }
        if sides[0] == "*" {
            count = 0
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]), last >= first
        else { return nil }
        self.first = first
        count = last - first + 1
        if let total, last >= total { return nil }
    }
}

/// A body in parts (RFC 2046): `multipart/related` and `multipart/mixed`.
enum MultipartBody {
    struct Part {
        var headers: [(name: String, value: String)]
        var body: [UInt8]

        func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name }?.value
        }
    }

    /// The parts; nil when the body is not of its type, or its end is missing.
    static func parts(of bytes: [UInt8], type: String) -> [Part]? {
        guard type.lowercased().hasPrefix("multipart/"), let mark = type.range(of: "boundary=")
        else { return nil }
        let boundary = type[mark.upperBound...].prefix { $0 != ";" }
            .trimmingCharacters(in: CharacterSet(charactersIn: "\"' "))
        let data = Data(bytes)
        let line = Data("--\(boundary)".utf8)
        var parts: [Part] = []
        guard var start = data.range(of: line)?.upperBound else { return nil }
        while true {
            if data[start...].starts(with: Data("--".utf8)) { return parts }
            let separator = Data("\r\n--\(boundary)".utf8)
            let bare = Data("\n--\(boundary)".utf8)
            guard
                let end = data.range(of: separator, in: start..<data.endIndex)
                    ?? data.range(of: bare, in: start..<data.endIndex),
                let part = part(data[start..<end.lowerBound])
            else { return nil }
            parts.append(part)
            start = end.upperBound
        }
    }

    /// Header fields and body of what stands after a boundary's line end.
    static func part(_ data: Data) -> Part? {
        guard let lineEnd = data.firstIndex(of: 10) else { return nil }
        return headersAndBody(data[data.index(after: lineEnd)...])
    }

    static func headersAndBody(_ data: Data) -> Part? {
        var headers: [(name: String, value: String)] = []
        var rest = data
        while let end = rest.firstIndex(of: 10) {
            var line = rest[rest.startIndex..<end]
            if line.last == 13 { line = line.dropLast() }
            rest = rest[rest.index(after: end)...]
            if line.isEmpty { return Part(headers: headers, body: Array(rest)) }
            let text = String(decoding: line, as: UTF8.self)
            guard let colon = text.firstIndex(of: ":") else { return nil }
            headers.append(
                (
                    String(text[..<colon]),
                    text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
                )
            )
        }
        // Without an empty line there is no body.
        return rest.isEmpty ? Part(headers: headers, body: []) : nil
    }
}
