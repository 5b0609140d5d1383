import OortModel
import Synchronization

/// Bytes that wait for their commit.
struct DropboxSession: Sendable {
    var isConcurrent: Bool
    var isClosed = false
    /// Parts by their offset; a sequential session has them one after the other.
    var parts: [Int64: SimulatedContent] = [:]

    var length: Int64 { parts.reduce(0) { Swift.max($0, $1.key + $1.value.size) } }

    var isComplete: Bool {
        var next: Int64 = 0
        for (offset, part) in parts.sorted(by: { $0.key < $1.key }) {
            guard offset == next else { return false }
            next += part.size
        }
        return true
    }

    var content: SimulatedContent {
        SimulatedContent(joining: parts.sorted { $0.key < $1.key }.map(\.value))
    }
}

/// Where an upload goes and how.
private struct DropboxCommit {
    static let known: Set<String> = [
        "path", "mode", "autorename", "client_modified", "mute", "property_groups",
        "strict_conflict",
    ]

    var path: String
    var mode: String
    var revision: String?
    var renames: Bool
    var isStrict: Bool
    var time: Timestamp?

    init(_ argument: DropboxArgument) throws(DropboxFailure) {
        path = try argument.path("path", .write)
        let mode = try argument.union(
            "mode",
            tags: ["add", "overwrite", "update"],
            default: "add"
        )
        self.mode = mode.tag
        if mode.tag == "update" {
            guard let revision = mode.value["update"]?.text, revision.count >= 9 else {
                throw .malformed("mode: update: missing or invalid revision")
            }
            self.revision = revision
        }
        renames = try argument.bool("autorename", default: false)
        isStrict = try argument.bool("strict_conflict", default: false)
        _ = try argument.bool("mute", default: false)
        time = try argument.time("client_modified")?.timestamp
    }
}

extension DropboxSimulator {
    private static let largestRequest = 157_286_400
    private static let block: Int64 = 4 << 20

    // MARK: Committing

    private func commit(
        _ commit: DropboxCommit,
        _ content: SimulatedContent
    ) throws(DropboxWriteError) -> JSON {
        let hasRoom = account.hasRoom(for: content.size)
        return try account.withTree { tree throws(DropboxWriteError) in
            let place: DropboxPlace
            do throws(DropboxLookupError) {
                place = try tree.place(commit.path)
            } catch {
                throw error == .malformedPath ? .malformedPath : .conflict("file_ancestor")
            }
            if let there = place.item {
                guard !there.isFolder else { throw .conflict("folder") }
                let isSame =
                    there.size == content.size
                    && there.head?.content.dropboxHash == content.dropboxHash
                let isCurrent = commit.revision == there.head?.id
                if isSame, !commit.isStrict || isCurrent {
                    return tree.metadata(there, tagged: false)
                }
                if commit.mode == "overwrite" || (commit.mode == "update" && isCurrent) {
                    guard hasRoom else { throw .insufficientSpace }
                    guard !tree.isReadOnly(there.id) else { throw .noWritePermission }
                    if let written = tree.write(
                        content,
                        to: there.id,
                        modifiedTime: commit.time
                    ) {
                        return tree.metadata(written, tagged: false)
                    }
                }
            } else if commit.mode == "update", commit.isStrict {
                throw .conflict("file")
            }
            let target = try tree.target(commit.path, renames: commit.renames)
            guard hasRoom else { throw .insufficientSpace }
            let parent = try tree.folder(at: target.dropLast())
            let item = tree.create(
                target[target.count - 1],
                in: parent,
                content: content,
                modifiedTime: commit.time
            )
            return tree.metadata(item, tagged: false)
        }
    }

    func upload(_ json: JSON, _ bytes: [UInt8]) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: DropboxCommit.known.union(["content_hash"]),
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let commit = try DropboxCommit(argument)
        guard bytes.count <= Self.largestRequest else { throw .tags("payload_too_large") }
        let content = SimulatedContent(bytes)
        try check(content, argument)
        do throws(DropboxWriteError) {
            return try self.commit(commit, content)
        } catch {
            let session = remember(
                DropboxSession(isConcurrent: false, isClosed: true, parts: [0: content])
            )
            throw .route([
                ".tag": "path", "reason": error.json, "upload_session_id": .string(session),
            ])
        }
    }

    private func check(
        _ content: SimulatedContent,
        _ argument: DropboxArgument
    ) throws(DropboxFailure) {
        guard let expected = try argument.optionalText("content_hash") else { return }
        guard expected == content.dropboxHash else { throw .tags("content_hash_mismatch") }
    }

    // MARK: Sessions

    private func remember(_ session: DropboxSession) -> String {
        memory.withLock { memory in
            let id = "pid_upload_session:" + memory.random.hex(40)
            memory.sessions[id] = session
            return id
        }
    }

    func sessionStart(_ json: JSON, _ bytes: [UInt8]) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["close", "session_type", "content_hash"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        let closes = try argument.bool("close", default: false)
        let type = try argument.union(
            "session_type",
            tags: ["sequential", "concurrent"],
            default: "sequential"
        ).tag
        guard bytes.count <= Self.largestRequest else { throw .tags("payload_too_large") }
        let content = SimulatedContent(bytes)
        try check(content, argument)
        if type == "concurrent" {
            guard bytes.isEmpty else { throw .tags("concurrent_session_data_not_allowed") }
            guard !closes else { throw .tags("concurrent_session_close_not_allowed") }
        }
        var session = DropboxSession(isConcurrent: type == "concurrent", isClosed: closes)
        if !bytes.isEmpty { session.parts[0] = content }
        return ["session_id": .string(remember(session))]
    }

    func sessionStartBatch(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["num_sessions", "session_type"],
            place: "request body"
        )
        let count = try argument.integer("num_sessions", in: 1...1000)
        let type = try argument.union(
            "session_type",
            tags: ["sequential", "concurrent"],
            default: "sequential"
        ).tag
        let ids = (0..<count).map { _ in
            JSON.string(remember(DropboxSession(isConcurrent: type == "concurrent")))
        }
        return ["session_ids": .array(ids)]
    }

    func sessionAppend(_ json: JSON, _ bytes: [UInt8]) throws(DropboxFailure) {
        let argument = try DropboxArgument(
            json,
            known: ["cursor", "close", "content_hash"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        guard bytes.count <= Self.largestRequest else { throw .tags("payload_too_large") }
        let content = SimulatedContent(bytes)
        try check(content, argument)
        let place = try cursor(argument)
        let closes = try argument.bool("close", default: false)
        do throws(DropboxSessionError) {
            try append(content, at: place, closes: closes)
        } catch { throw .route(error.json) }
    }

    func sessionAppendBatch(_ json: JSON, _ bytes: [UInt8]) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["entries", "content_hash"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        guard bytes.count <= Self.largestRequest else { throw .tags("payload_too_large") }
        try check(SimulatedContent(bytes), argument)
        var offset = 0
        var results: [JSON] = []
        for entry in try argument.list("entries", atMost: 1000) {
            let entry = try DropboxArgument(
                entry,
                known: ["cursor", "length", "close"],
                place: "entries"
            )
            let length = Int(try entry.integer("length", in: 0...Int64(Self.largestRequest)))
            guard offset + length <= bytes.count else {
                throw .malformed("entries: length: the body is too short")
            }
            let content = SimulatedContent(Array(bytes[offset..<offset + length]))
            offset += length
            let place = try cursor(entry)
            let closes = try entry.bool("close", default: false)
            do throws(DropboxSessionError) {
                try append(content, at: place, closes: closes)
                results.append([".tag": "success"])
            } catch {
                results.append([".tag": "failure", "failure": error.json])
            }
        }
        guard offset == bytes.count else {
            throw .malformed("entries: length: the body is too long")
        }
        return ["entries": .array(results)]
    }

    private func cursor(
        _ argument: DropboxArgument
    ) throws(DropboxFailure) -> (id: String, offset: Int64) {
        let cursor = try argument.nested("cursor", known: ["session_id", "offset"])
        return (
            try cursor.text("session_id"),
            try cursor.integer("offset", in: 0...(1 << 41))
        )
    }

    private func append(
        _ content: SimulatedContent,
        at place: (id: String, offset: Int64),
        closes: Bool
    ) throws(DropboxSessionError) {
        try memory.withLock { memory throws(DropboxSessionError) in
            guard var session = memory.sessions[place.id] else { throw .notFound }
            guard !session.isClosed else { throw .closed }
            if session.isConcurrent {
                guard place.offset % Self.block == 0 else { throw .invalidOffset }
                guard closes || content.size % Self.block == 0 else { throw .invalidSize }
            } else if place.offset != session.length {
                throw .incorrectOffset(session.length)
            }
            if content.size > 0 { session.parts[place.offset] = content }
            session.isClosed = closes
            memory.sessions[place.id] = session
        }
    }

    func sessionFinish(_ json: JSON, _ bytes: [UInt8]) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(
            json,
            known: ["cursor", "commit", "content_hash"],
            place: "HTTP header \"Dropbox-API-Arg\""
        )
        guard bytes.count <= Self.largestRequest else { throw .tags("payload_too_large") }
        let content = SimulatedContent(bytes)
        try check(content, argument)
        let place = try cursor(argument)
        let commit = try DropboxCommit(
            try argument.nested("commit", known: DropboxCommit.known)
        )
        do throws(DropboxSessionError) {
            return try finish(place, commit, last: content, needsClosed: false)
        } catch { throw .route(error.finishJSON) }
    }

    private func finish(
        _ place: (id: String, offset: Int64),
        _ commit: DropboxCommit,
        last: SimulatedContent,
        needsClosed: Bool
    ) throws(DropboxSessionError) -> JSON {
        let content = try memory.withLock { memory throws(DropboxSessionError) in
            guard var session = memory.sessions[place.id] else { throw .notFound }
            if session.isConcurrent {
                guard last.size == 0 else { throw .dataNotAllowed }
                guard session.isClosed else { throw .concurrentNotClosed }
                guard session.isComplete else { throw .missingData }
            } else {
                guard session.isClosed || !needsClosed else { throw .notClosed }
                guard place.offset == session.length else {
                    throw .incorrectOffset(session.length)
                }
                guard !session.isClosed || last.size == 0 else { throw .closed }
                if last.size > 0 { session.parts[place.offset] = last }
            }
            memory.sessions[place.id] = session
            return session.content
        }
        do throws(DropboxWriteError) {
            let metadata = try self.commit(commit, content)
            memory.withLock { $0.sessions[place.id] = nil }
            return metadata
        } catch { throw .path(error.json) }
    }

    func sessionFinishBatch(_ json: JSON) throws(DropboxFailure) -> JSON {
        let argument = try DropboxArgument(json, known: ["entries"], place: "request body")
        var results: [JSON] = []
        for entry in try argument.list("entries", atMost: 1000) {
            let entry = try DropboxArgument(
                entry,
                known: ["cursor", "commit", "content_hash"],
                place: "request body: entries"
            )
            let place = try cursor(entry)
            let commit = try DropboxCommit(
                try entry.nested("commit", known: DropboxCommit.known)
            )
            do throws(DropboxSessionError) {
                let metadata = try finish(
                    place,
                    commit,
                    last: SimulatedContent([]),
                    needsClosed: true
                )
                results.append(metadata.merging([".tag": "success"]))
            } catch {
                results.append([".tag": "failure", "failure": error.finishJSON])
            }
        }
        return ["entries": .array(results)]
    }
}

/// Why a session does not take what it is given.
enum DropboxSessionError: Error {
    case notFound
    case closed
    case notClosed
    case incorrectOffset(Int64)
    case invalidOffset
    case invalidSize
    case dataNotAllowed
    case concurrentNotClosed
    case missingData
    case path(JSON)

    /// As append answers it.
    var json: JSON {
        switch self {
        case .notFound: [".tag": "not_found"]
        case .closed: [".tag": "closed"]
        case .notClosed: [".tag": "not_closed"]
        case .incorrectOffset(let correct):
            [".tag": "incorrect_offset", "correct_offset": .integer(correct)]
        case .invalidOffset: [".tag": "concurrent_session_invalid_offset"]
        case .invalidSize: [".tag": "concurrent_session_invalid_data_size"]
        case .dataNotAllowed: [".tag": "concurrent_session_data_not_allowed"]
        case .concurrentNotClosed: [".tag": "concurrent_session_not_closed"]
        case .missingData: [".tag": "concurrent_session_missing_data"]
        case .path(let error): DropboxFailure.wrapping("path", error)
        }
    }

    /// As finish answers it: what concerns the session is one level down.
    var finishJSON: JSON {
        switch self {
        case .notFound, .closed, .notClosed, .incorrectOffset:
            DropboxFailure.wrapping("lookup_failed", json)
        default: json
        }
    }
}
