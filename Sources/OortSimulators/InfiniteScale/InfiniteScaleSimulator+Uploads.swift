import Foundation
import OortModel
import Synchronization

/// Uploads in parts by TUS 1.0.0 (tus.io/protocols/resumable-upload).
extension InfiniteScaleSimulator {
    /// Begins an upload into a folder; its first bytes may come with it.
    func beginUpload(
        _ request: SimulatorRequest,
        _ root: String,
        _ folder: [String]
    ) -> SimulatorAnswer {
        guard request.header("Tus-Resumable") == "1.0.0",
            let size = request.header("Upload-Length").flatMap({ Int64($0) })
        else { return SimulatorAnswer(status: 412) }
        let fields = Self.metadata(request.header("Upload-Metadata") ?? "")
        let names = (fields["filename"] ?? "").parts(between: "/").filter { !$0.isEmpty }
        let path = Self.landing(folder + names.map(String.init))
        if let refusal = refusal(of: path.last ?? "") { return refusal }
        race(root, path)
        let tree = account.withTree { $0 }
        let old = tree.item(at: path, from: root)
        guard old?.isFolder != true else { return SimulatorAnswer(status: 409) }
        if let old, let wanted = request.header("If-Match") {
            guard wanted == "\"\(tag(old, tree))\"" else { return SimulatorAnswer(status: 412) }
        }
        guard account.hasRoom(for: size) else { return SimulatorAnswer(status: 507) }
        // A folder that is not there is answered as a condition that failed (reva, `tus.go`).
        guard tree.item(at: path.dropLast(), from: root)?.isFolder == true else {
            return SimulatorAnswer(status: 412)
        }
        var session = Session(root: root, path: path, size: size, replaced: old?.id)
        session.time = Self.time(fields["mtime"])
        session.checksum = fields["checksum"]?.lowercased()
        let token = account.tokens.makeSecret("tus")
        state.withLock { [session] in $0.sessions[token] = session }
        let location = request.url(host: Self.host, path: "/data/\(token)")
        var headers: [(name: String, value: String)] = [
            ("Tus-Resumable", "1.0.0"), ("Location", location),
        ]
        guard request.header("Content-Type") == "application/offset+octet-stream" || size == 0
        else { return SimulatorAnswer(status: 201, headers: headers) }
        let first = take(request.bytes, at: 0, token)
        guard first.status == 204 else { return SimulatorAnswer(status: first.status) }
        headers += first.headers
        return SimulatorAnswer(status: 201, headers: headers)
    }

    private static func metadata(_ text: String) -> [String: String] {
        var fields: [String: String] = [:]
        for pair in text.split(separator: ",") {
            let sides = pair.split(separator: " ").map(String.init)
            guard let name = sides.first else { continue }
            let value = sides.count > 1 ? Data(base64Encoded: sides[1]) : Data()
            fields[name] = value.map { String(decoding: $0, as: UTF8.self) }
        }
        return fields
    }

    /// A request to the address of an upload.
    func data(_ request: SimulatorRequest, _ token: String) -> SimulatorAnswer {
        guard let session = state.withLock({ $0.sessions[token] }) else {
            return SimulatorAnswer(status: 404)
        }
        switch request.method {
        case "HEAD":
            if session.isOver { finishNearer(token) }
            return SimulatorAnswer(
                status: 200,
                headers: [
                    ("Tus-Resumable", "1.0.0"), ("Upload-Offset", String(session.offset)),
                    ("Upload-Length", String(session.size)), ("Cache-Control", "no-store"),
                ]
            )
        case "PATCH":
            guard request.header("Tus-Resumable") == "1.0.0" else {
                return SimulatorAnswer(status: 412)
            }
            guard request.header("Content-Type") == "application/offset+octet-stream" else {
                return SimulatorAnswer(status: 400)
            }
            return take(
                request.bytes,
                at: request.header("Upload-Offset").flatMap { Int64($0) } ?? -1,
                token
            )
        case "DELETE":
            state.withLock { $0.sessions[token] = nil }
            return SimulatorAnswer(status: 204)
        default: return SimulatorAnswer(status: 405)
        }
    }

    /// Takes the next bytes of an upload, and writes the file with the last ones.
    private func take(_ bytes: [UInt8], at offset: Int64, _ token: String) -> SimulatorAnswer {
        let taken = state.withLock { state -> Session? in
            guard var session = state.sessions[token], session.offset == offset,
                offset + Int64(bytes.count) <= session.size, !session.isOver
            else { return nil }
            guard state.habits.forgottenParts == 0 else {
                state.habits.forgottenParts -= 1
                return session
            }
            session.finishing = state.habits.finishing
            session.parts.append(SimulatedContent(bytes))
            session.isOver = session.offset == session.size
            state.sessions[token] = session
            return session
        }
        guard let session = taken else { return SimulatorAnswer(status: 409) }
        let reached: [(name: String, value: String)] = [
            ("Tus-Resumable", "1.0.0"), ("Upload-Offset", String(session.offset)),
        ]
        guard session.isOver else { return SimulatorAnswer(status: 204, headers: reached) }
        guard session.finishing == 0 else { return SimulatorAnswer(status: 504) }
        let stored = finish(session, token)
        guard stored.status < 300 else { return stored }
        return SimulatorAnswer(status: 204, headers: reached + stored.headers)
    }

    /// Makes the file of an upload that was read for long enough.
    private func finishNearer(_ token: String) {
        let ready = state.withLock { state -> Session? in
            guard let session = state.sessions[token], session.finishing > 0 else { return nil }
            state.sessions[token]?.finishing -= 1
            return session.finishing == 1 ? session : nil
        }
        if let ready { _ = finish(ready, token) }
    }

    /// Makes the file of an upload of which all is here.
    private func finish(_ session: Session, _ token: String) -> SimulatorAnswer {
        guard !habits.failsToFinish else { return SimulatorAnswer(status: 500) }
        let content = SimulatedContent(joining: session.parts)
        // The upload is over then, and nothing was written.
        if let sum = session.checksum, sum.hasPrefix("sha1 "), sum != "sha1 \(content.sha1)" {
            state.withLock { $0.sessions[token] = nil }
            return SimulatorAnswer(status: 500)
        }
        // What was there is compared at the beginning only.
        let stored = store(
            content,
            session.root,
            session.path,
            time: session.time,
            begunOver: .some(session.replaced)
        )
        if stored.status < 300 { state.withLock { $0.sessions[token] = nil } }
        return stored
    }
}
