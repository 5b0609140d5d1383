import Foundation
import OortModel
import Synchronization

extension NextcloudSimulator {
    /// A request to an upload session: `SESSION`, `SESSION/00001`, `SESSION/.file`.
    func uploads(_ request: SimulatorRequest, _ parts: [String]) -> SimulatorAnswer {
        guard let name = parts.first, parts.count <= 2 else {
            return Self.failure(404, "NotFound", "not found")
        }
        switch (request.method, parts.count) {
        case ("MKCOL", 1): return open(name, request)
        case ("PROPFIND", 1): return list(name, request)
        case ("PUT", 2): return take(parts[1], of: name, request)
        case ("MOVE", 2): return beginAssembling(name, request)
        case ("DELETE", 1):
            let was = state.withLock { $0.sessions.removeValue(forKey: name) }
            return was == nil
                ? Self.failure(404, "NotFound", "not found") : SimulatorAnswer(status: 204)
        default: return SimulatorAnswer(status: 405)
        }
    }

    private func open(_ name: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        let destination = destination(request) ?? []
        let isNew = state.withLock { state in
            guard state.sessions[name] == nil else { return false }
            state.sessions[name] = Session(destination: destination)
            return true
        }
        return isNew
            ? SimulatorAnswer(status: 201) : Self.failure(405, "MethodNotAllowed", "exists")
    }

    private func list(_ name: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        let assembled = state.withLock { state -> SimulatorRequest? in
            guard let assembling = state.sessions[name]?.assembling else { return nil }
            state.sessions[name]?.assembling?.looks -= 1
            return assembling.looks <= 1 ? assembling.request : nil
        }
        if let assembled { _ = assemble(name, assembled) }
        guard let session = state.withLock({ $0.sessions[name] }) else {
            return Self.failure(404, "NotFound", "not found")
        }
        let asked = DAVXML.names(in: request.bytes)
        let base = "/remote.php/dav/uploads/\(Self.userID)/\(name)/"
        var responses = [
            DAVXML.response(href: base, ["resourcetype": "<d:collection/>"], asked: asked),
            DAVXML.response(
                href: base + ".file",
                ["resourcetype": "", "getcontentlength": "0"],
                asked: asked
            ),
        ]
        for (part, content) in session.inOrder {
            responses.append(
                DAVXML.response(
                    href: base + DAVXML.encoded([part]),
                    ["resourcetype": "", "getcontentlength": String(content.size)],
                    asked: asked
                )
            )
        }
        return DAVXML.multistatus(responses)
    }

    private func take(
        _ part: String,
        of name: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        let total = request.header("OC-Total-Length").flatMap { Int64($0) } ?? 0
        guard account.hasRoom(for: total) else {
            return Self.failure(507, "InsufficientStorage", "Insufficient space")
        }
        if let place = destination(request),
            account.withTree({ $0.item(at: Array(place.dropLast())) }) == nil
        {
            return Self.failure(404, "NotFound", "the folder is not there")
        }
        let content = SimulatedContent(request.bytes)
        let before: Int? = state.withLock { state in
            guard state.sessions[name] != nil else { return nil }
            let was = state.sessions[name]?.parts.updateValue(content, forKey: part)
            return was == nil ? 201 : 204
        }
        return before.map { SimulatorAnswer(status: $0) }
            ?? Self.failure(404, "NotFound", "not found")
    }

    /// Puts an upload together at once, or later, behind a proxy that does not wait for it.
    private func beginAssembling(
        _ name: String,
        _ request: SimulatorRequest
    ) -> SimulatorAnswer {
        let isLate = state.withLock { state in
            let looks = state.habits.looksWhileAssembling
            guard looks > 0, state.sessions[name] != nil else { return false }
            state.sessions[name]?.assembling = (request, looks)
            return true
        }
        return isLate ? SimulatorAnswer(status: 504) : assemble(name, request)
    }

    private func assemble(_ name: String, _ request: SimulatorRequest) -> SimulatorAnswer {
        guard let session = state.withLock({ $0.sessions[name] }) else {
            return Self.failure(404, "NotFound", "not found")
        }
        // Compared with `.file`, which has no tag: never right.
        guard request.header("If-Match") == nil else {
            return Self.failure(412, "PreconditionFailed", "If-Match")
        }
        guard let path = destination(request) else {
            return Self.failure(400, "BadRequest", "Destination")
        }
        var content = SimulatedContent(
            joining: session.inOrder.map(\.content)
        )
        // Without the sum a gap in the numbers is not noticed.
        if let total = request.header("OC-Total-Length").flatMap({ Int64($0) }),
            total != content.size
        {
            return Self.failure(400, "BadRequest", "Chunks on server do not sum up to \(total)")
        }
        let isDamaged = state.withLock { state in
            guard state.habits.damages > 0 else { return false }
            state.habits.damages -= 1
            return true
        }
        if isDamaged, let last = content.bytes.last {
            content = SimulatedContent(Array(content.bytes.dropLast()) + [~last])
        }
        let wanted = guarded(request)
        if wanted != nil, account.withTree({ $0.item(at: path) }) == nil {
            return Self.failure(404, "NotFound", "not found")
        }
        let answer = store(
            content,
            at: path,
            ifMatch: wanted,
            ifNoneMatch: request.header("Overwrite") == "F",
            time: request.header("X-OC-MTime"),
            checksum: request.header("OC-Checksum")
        )
        guard answer.status < 300 else { return answer }
        let isSlow = state.withLock { state in
            state.sessions[name] = nil
            guard state.habits.slowMoves > 0 else { return false }
            state.habits.slowMoves -= 1
            return true
        }
        return isSlow ? SimulatorAnswer(status: 504) : answer
    }
}
