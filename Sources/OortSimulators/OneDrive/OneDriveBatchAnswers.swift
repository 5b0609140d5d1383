import Foundation
import OortModel
import Synchronization

extension OneDriveSimulator {
    /// `$batch`: every part an answer of its own, in no order that means anything.
    func batch(_ request: SimulatorRequest) async -> SimulatorAnswer {
        guard request.method == "POST", let parts = request.json?["requests"]?.elements else {
            return failure(400, "BadRequest", request: request)
        }
        let ids = parts.compactMap { $0["id"]?.text }
        guard parts.count <= 20, ids.count == parts.count, Set(ids).count == ids.count else {
            return failure(400, "BadRequest", "Invalid batch payload format.", request: request)
        }
        var statuses: [String: Int] = [:]
        var answers: [JSON] = []
        for part in parts {
            let id = part["id"]?.text ?? ""
            let awaited = (part["dependsOn"]?.elements ?? []).compactMap(\.text)
            let answer: SimulatorAnswer
            if awaited.contains(where: { !(200..<400).contains(statuses[$0] ?? 424) }) {
                answer = failure(424, "failedDependency", request: request)
            } else if isThrottlingPart() {
                answer = failure(
                    429,
                    "activityLimitReached",
                    headers: [("Retry-After", "1")],
                    request: request
                )
            } else if let inner = innerRequest(part, of: request) {
                answer = await graphPart(inner)
            } else {
                answer = failure(400, "BadRequest", request: request)
            }
            statuses[id] = answer.status
            answers.insert(Self.json(answer, id: id), at: answers.count / 2)
        }
        return .json(["responses": .array(answers)])
    }

    private func graphPart(_ request: SimulatorRequest) async -> SimulatorAnswer {
        guard let target = GraphTarget(request), target.resource != .batch else {
            return failure(400, "BadRequest", request: request)
        }
        return await answer(request)
    }

    private func isThrottlingPart() -> Bool {
        state.withLock { state in
            guard state.habits.throttledBatchParts > 0 else { return false }
            state.habits.throttledBatchParts -= 1
            return true
        }
    }

    private func innerRequest(_ part: JSON, of outer: SimulatorRequest) -> SimulatorRequest? {
        guard let method = part["method"]?.text, let url = part["url"]?.text else { return nil }
        let sides = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let path = "/v1.0" + (sides[0].hasPrefix("/") ? "" : "/") + sides[0]
        let rawQuery = sides.count > 1 ? String(sides[1]) : ""
        let query = rawQuery.split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.removingPercentEncoding ?? String($0) }
            return (name: sides.first ?? "", value: sides.count > 1 ? sides[1] : "")
        }
        var headers = ["authorization": outer.header("Authorization") ?? ""]
        for (name, value) in part["headers"]?.fields ?? [:] {
            headers[name.lowercased()] = value.text
        }
        var bytes: [UInt8] = []
        if let text = part["body"]?.text {
            bytes = Data(base64Encoded: text).map { Array($0) } ?? []
        } else if let body = part["body"] {
            bytes = body.bytes
        }
        return SimulatorRequest(
            method: method.uppercased(),
            host: outer.host,
            rawPath: path,
            query: query,
            rawQuery: rawQuery,
            headers: headers,
            origin: outer.origin,
            bytes: bytes
        )
    }

    private static func json(_ answer: SimulatorAnswer, id: String) -> JSON {
        var fields: [String: JSON] = [
            "id": .string(id), "status": .integer(Int64(answer.status)),
            "headers": .object(
                Dictionary(answer.headers.map { ($0.name, .string($0.value)) }) { $1 }
            ),
        ]
        if case .bytes(let bytes) = answer.body, let body = JSON(parsing: bytes) {
            fields["body"] = body
        }
        return .object(fields)
    }
}
