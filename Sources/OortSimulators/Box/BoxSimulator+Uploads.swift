import Foundation
import OortModel
import Synchronization

extension BoxSimulator {
    /// An upload in parts.
    struct Session: Sendable {
        struct Part: Sendable {
            var id: String
            var offset: Int64
            var content: SimulatedContent
        }

        /// The file that gets a new version; nil for a new file.
        var file: String?
        /// The folder and the name of a new file.
        var folder: String
        var name: String
        var size: Int64
        var partSize: Int64
        var parts: [Int64: Part] = [:]
        var waits: Int

        func json(_ part: Part) -> JSON {
            [
                "part_id": .string(part.id), "offset": .integer(part.offset),
                "size": .integer(part.content.size), "sha1": .string(part.content.sha1),
            ]
        }
    }

    private static let largestSimpleUpload = 50 * 1024 * 1024

    /// `/api/2.0/files/…` at the upload host.
    func upload(_ parts: [String], _ request: SimulatorRequest) -> SimulatorAnswer {
        guard parts.first == "files" else { return failure(404, "not_found", request: request) }
        let rest = Array(parts.dropFirst())
        switch (request.method, rest.count, rest.last) {
        case ("POST", 1, "content"): return uploadContent(nil, request)
        case ("POST", 2, "content"): return uploadContent(rest[0], request)
        case ("POST", 1, "upload_sessions"): return openSession(nil, request)
        case ("POST", 2, "upload_sessions"): return openSession(rest[0], request)
        default: break
        }
        guard rest.count >= 2, rest[0] == "upload_sessions" else {
            return failure(404, "not_found", request: request)
        }
        return session(rest[1], rest.dropFirst(2).first ?? "", request)
    }

    // MARK: Before an upload

    /// The answer that an upload would get.
    func preflight(_ number: String?, _ request: SimulatorRequest) -> SimulatorAnswer {
        let body = request.json
        let size = body?["size"]?.integer ?? 0
        do throws(Refused) {
            try account.withTree { (tree) throws(Refused) in
                if let number {
                    _ = try find("f", number, in: tree)
                } else {
                    let parent = try place(body?["parent"]?["id"]?.text, in: tree)
                    try check(stored(body?["name"]?.text ?? ""), in: parent.id, of: tree)
                }
            }
            try checkSize(size)
            let url = request.url(host: Hosts.upload, path: "/api/2.0/files/content")
            return .json(["upload_url": .string(url), "upload_token": .null])
        } catch { return failure(error, request) }
    }

    private func checkSize(_ size: Int64) throws(Refused) {
        guard size <= habits.largestFile else { throw Refused(403, "file_size_limit_exceeded") }
        guard account.hasRoom(for: size) else { throw .noRoom }
    }

    // MARK: One request

    private func uploadContent(_ number: String?, _ request: SimulatorRequest) -> SimulatorAnswer {
        if spend(\.reservedNames) {
            return failure(409, "name_temporarily_reserved", request: request)
        }
        guard let parts = BoxForm.parts(request), parts.count >= 2 else {
            return failure(400, "bad_request", request: request)
        }
        guard parts[0].name == "attributes" else {
            return failure(400, "metadata_after_file_contents", request: request)
        }
        guard let attributes = JSON(parsing: parts[0].bytes), parts[1].name == "file",
            parts[1].bytes.count <= Self.largestSimpleUpload
        else { return failure(400, "bad_request", request: request) }
        let content = SimulatedContent(parts[1].bytes)
        // It is SHA-1, whatever the field's name says.
        if let digest = request.header("Content-MD5"), digest.lowercased() != content.sha1 {
            return failure(400, "bad_digest", request: request)
        }
        return finish(
            content,
            file: number,
            folder: attributes["parent"]?["id"]?.text,
            name: attributes["name"]?.text,
            attributes,
            request
        )
    }

    private func finish(
        _ content: SimulatedContent,
        file: String?,
        folder: String?,
        name: String?,
        _ attributes: JSON?,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        func time(_ field: String) -> Timestamp? {
            attributes?[field]?.text.flatMap { Timestamp(rfc3339: $0) }?.truncated(to: .seconds)
        }
        // The account's lock is taken already where the tree is changed.
        let room = account.totalBytes
        return changing(request, status: 201, isUpload: true) { (tree) throws(Refused) in
            guard content.size <= habits.largestFile else {
                throw Refused(403, "file_size_limit_exceeded")
            }
            if let room, tree.usedBytes + content.size > room { throw .noRoom }
            if let file {
                let item = try find("f", file, in: tree)
                guard !tree.isReadOnly(item.id) else { throw .denied }
                try Self.checkTag(request, item)
                tree.write(content, to: item.id, modifiedTime: time("content_modified_at"))
                note("ITEM_UPLOAD", item.id, &tree)
                return try find("f", file, in: tree)
            }
            let parent = try place(folder, in: tree)
            let stored = stored(name ?? "")
            try check(stored, in: parent.id, of: tree)
            let created = time("content_created_at")
            return tree.create(
                stored,
                in: parent.id,
                content: content,
                modifiedTime: time("content_modified_at")
            ) { item in
                if let created { item.extra["contentCreated"] = .integer(created.seconds) }
            }
        }
    }

    // MARK: Sessions

    private func openSession(_ number: String?, _ request: SimulatorRequest) -> SimulatorAnswer {
        let body = request.json
        let size = body?["file_size"]?.integer ?? 0
        let habits = habits
        guard size >= habits.smallestSession else {
            return failure(400, "file_size_too_small", request: request)
        }
        var session = Session(
            file: number,
            folder: body?["folder_id"]?.text ?? "",
            name: body?["file_name"]?.text ?? "",
            size: size,
            partSize: habits.partSize,
            waits: habits.commitWaits
        )
        do throws(Refused) {
            try checkSize(size)
            try account.withTree { (tree) throws(Refused) in
                if let number {
                    let item = try find("f", number, in: tree)
                    guard !tree.isReadOnly(item.id) else { throw .denied }
                } else {
                    let parent = try place(session.folder, in: tree)
                    session.name = stored(session.name)
                    try check(session.name, in: parent.id, of: tree)
                }
            }
        } catch { return failure(error, request) }
        let made = session
        let id = state.withLock { state in
            state.nextNumber += 1
            let id = "F971964745A5CD0C001BBE4E\(state.nextNumber)"
            state.sessions[id] = made
            return id
        }
        func url(_ action: String) -> JSON {
            let path = "/api/2.0/files/upload_sessions/\(id)\(action)"
            return .string(request.url(host: Hosts.upload, path: path))
        }
        return .json(
            [
                "type": "upload_session", "id": .string(id),
                "session_expires_at": "2099-01-01T00:00:00Z",
                "part_size": .integer(habits.partSize),
                "total_parts": .integer((size + habits.partSize - 1) / habits.partSize),
                "num_parts_processed": 0,
                "session_endpoints": [
                    "upload_part": url(""), "commit": url("/commit"), "abort": url(""),
                    "list_parts": url("/parts"), "status": url(""), "log_event": url("/log"),
                ],
            ],
            status: 201
        )
    }

    private func session(
        _ id: String,
        _ action: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        guard let session = state.withLock({ $0.sessions[id] }) else {
            return failure(404, "not_found", request: request)
        }
        switch (request.method, action) {
        case ("GET", "parts"):
            let start = request.query("offset").flatMap { Int($0) } ?? 0
            let limit = min(request.query("limit").flatMap { Int($0) } ?? 1000, 10_000)
            let all = session.parts.values.sorted { $0.offset < $1.offset }
            let some = all.dropFirst(start).prefix(limit)
            return .json([
                "entries": .array(some.map { session.json($0) }),
                "total_count": .integer(Int64(all.count)), "offset": .integer(Int64(start)),
                "limit": .integer(Int64(limit)), "order": [],
            ])
        case ("GET", ""):
            return .json([
                "type": "upload_session", "id": .string(id),
                "part_size": .integer(session.partSize),
                "num_parts_processed": .integer(Int64(session.parts.count)),
            ])
        case ("PUT", ""): return receive(id, session, request)
        case ("POST", "commit"): return commit(id, session, request)
        case ("DELETE", ""):
            state.withLock { $0.sessions[id] = nil }
            return SimulatorAnswer(status: 204)
        default: return failure(405, "method_not_allowed", request: request)
        }
    }

    private func receive(
        _ id: String,
        _ session: Session,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        guard let (range, total) = Self.contentRange(request.header("Content-Range")),
            total == session.size, range.lowerBound % session.partSize == 0,
            range.upperBound == min(range.lowerBound + session.partSize, total),
            range.count == request.bytes.count
        else { return failure(400, "bad_request", request: request) }
        let content = SimulatedContent(request.bytes)
        guard Self.digest(request) == content.sha1 else {
            return failure(400, "bad_digest", request: request)
        }
        let part = state.withLock { state -> Session.Part? in
            guard state.sessions[id]?.parts[range.lowerBound] == nil else { return nil }
            state.nextNumber += 1
            let part = Session.Part(
                id: "P\(state.nextNumber)",
                offset: range.lowerBound,
                content: content
            )
            state.sessions[id]?.parts[range.lowerBound] = part
            return part
        }
        guard let part else {
            return failure(409, "range_overlaps_existing_part", request: request)
        }
        return .json(["part": session.json(part)])
    }

    private func commit(
        _ id: String,
        _ session: Session,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        let named = (request.json?["parts"]?.elements ?? []).compactMap { $0["part_id"]?.text }
        let all = session.parts.values.sorted { $0.offset < $1.offset }
        guard named == all.map(\.id), !spend(\.partsMismatches),
            all.reduce(0, { $0 + $1.content.size }) == session.size
        else { return failure(400, "parts_mismatch", request: request) }
        let isWaiting = state.withLock { state in
            guard let waits = state.sessions[id]?.waits, waits > 0 else { return false }
            state.sessions[id]?.waits -= 1
            return true
        }
        if isWaiting { return SimulatorAnswer(status: 202, headers: [("Retry-After", "0")]) }
        let content = SimulatedContent(joining: all.map(\.content))
        guard Self.digest(request) == content.sha1 else {
            return failure(400, "bad_digest", request: request)
        }
        let answer = finish(
            content,
            file: session.file,
            folder: session.folder,
            name: request.json?["attributes"]?["name"]?.text ?? session.name,
            request.json?["attributes"],
            request
        )
        if answer.status == 201 { state.withLock { $0.sessions[id] = nil } }
        return answer
    }

    /// `Digest: sha=BASE64` in hex.
    private static func digest(_ request: SimulatorRequest) -> String? {
        guard let field = request.header("Digest"), field.hasPrefix("sha=") else { return nil }
        return Base64.decode(String(field.dropFirst(4)))?.hexadecimal
    }

    private static func contentRange(_ text: String?) -> (range: Range<Int64>, total: Int64)? {
        guard let text, text.hasPrefix("bytes ") else { return nil }
        let sides = text.dropFirst(6).split(separator: "/")
        guard sides.count == 2, let total = Int64(sides[1]) else { return nil }
        let ends = sides[0].split(separator: "-")
        guard ends.count == 2, let first = Int64(ends[0]), let last = Int64(ends[1]),
            first <= last, last < total
        else { return nil }
        return (first..<last + 1, total)
    }
}

/// A form in parts (RFC 7578).
enum BoxForm {
    struct Part {
        var name: String
        var bytes: [UInt8]
    }

    /// The parts of a request's body; nil when it is no such form.
    static func parts(_ request: SimulatorRequest) -> [Part]? {
        guard let type = request.header("Content-Type"),
            let start = type.range(of: "boundary=")
        else { return nil }
        let boundary = type[start.upperBound...].prefix { $0 != ";" }
            .trimmingCharacters(in: ["\""])
        let data = Data(request.bytes)
        let delimiter = Data("--\(boundary)".utf8)
        var parts: [Part] = []
        guard var place = data.range(of: delimiter)?.upperBound else { return nil }
        let between = Data("\r\n--\(boundary)".utf8)
        while let end = data.range(of: between, in: place..<data.endIndex) {
            guard
                let head = data.range(
                    of: Data("\r\n\r\n".utf8),
                    in: place..<end.lowerBound
                )
            else { return nil }
            let fields = String(decoding: data[place..<head.lowerBound], as: UTF8.self)
            guard let name = fields.range(of: " name=\"") ?? fields.range(of: ";name=\"") else {
                return nil
            }
            parts.append(
                Part(
                    name: String(fields[name.upperBound...].prefix { $0 != "\"" }),
                    bytes: Array(data[head.upperBound..<end.lowerBound])
                )
            )
            place = end.upperBound
        }
        // A body that was cut off has no end.
        let isWhole = data[place...].starts(with: Data("--".utf8))
        return isWhole ? parts : nil
    }
}
