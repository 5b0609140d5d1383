import Foundation

/// A request as a simulated service sees it.
public struct SimulatorRequest: Sendable {
    /// GET, POST, PUT, PATCH, DELETE.
    public let method: String
    /// The real host name that was meant, by the Host header or by the first part of the path.
    public let host: String
    /// The path at that host, as sent: still percent-encoded.
    public let rawPath: String
    /// The query, decoded, in order.
    public let query: [(name: String, value: String)]
    /// The query as sent.
    public let rawQuery: String
    /// Header fields with their names in lower case.
    public let headers: [String: String]
    /// Where URLs in answers must begin, so that the client can follow them the way it came.
    let origin: String
    /// The body.
    public let bytes: [UInt8]

    /// The path's parts, each decoded; a final slash gives an empty last part.
    public var parts: [String] {
        rawPath.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
            .map { $0.removingPercentEncoding ?? String($0) }
    }

    /// The path, decoded.
    public var path: String { rawPath.removingPercentEncoding ?? rawPath }

    /// The first value of a query field.
    public func query(_ name: String) -> String? { query.first { $0.name == name }?.value }

    /// A header field, its name compared without case.
    public func header(_ name: String) -> String? { headers[name.lowercased()] }

    /// The token of `Authorization: Bearer`.
    public var bearerToken: String? {
        guard let value = header("Authorization"), value.lowercased().hasPrefix("bearer ") else {
            return nil
        }
        return String(value.dropFirst(7))
    }

    /// A URL at one of the service's hosts that this client can follow; `path` begins with `/`.
    public func url(host: String, path: String) -> String {
        origin.isEmpty ? "https://\(host)\(path)" : "\(origin)/\(host)\(path)"
    }

    /// The body as JSON; nil when it is none.
    public var json: JSON? { JSON(parsing: bytes) }

    /// The fields of a form body (`application/x-www-form-urlencoded`).
    public var form: [String: String] {
        let text = String(decoding: bytes, as: UTF8.self)
        var fields: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.replacing("+", with: " ").removingPercentEncoding ?? String($0) }
            if sides.count == 2 { fields[sides[0]] = sides[1] }
        }
        return fields
    }
}

/// What can go wrong inside of a simulator; the client's connection is cut.
public enum SimulatorError: Error, Hashable, Sendable {
    /// A request without a host that the service knows, or of a malformed target.
    case malformedRequest
    /// A scripted fault.
    case cut
    /// The server did not come up.
    case notStarted
}

/// A service's answer.
public struct SimulatorAnswer: Sendable {
    /// What follows the head.
    public enum Body: Sendable {
        /// Bytes at hand.
        case bytes([UInt8])
        /// A part of a content.
        case content(SimulatedContent, Range<Int64>)
        /// Bytes whose length is not announced.
        case chunked([UInt8])
    }

    /// The status.
    public var status: Int
    /// Header fields.
    public var headers: [(name: String, value: String)]
    /// What follows the head.
    public var body: Body

    /// An answer with all of its parts.
    public init(
        status: Int,
        headers: [(name: String, value: String)] = [],
        body: Body = .bytes([])
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// An answer of JSON.
    public static func json(
        _ value: JSON,
        status: Int = 200,
        headers: [(name: String, value: String)] = []
    ) -> SimulatorAnswer {
        SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "application/json")] + headers,
            body: .bytes(value.bytes)
        )
    }

    /// An answer of plain text.
    public static func text(
        _ text: String,
        status: Int,
        headers: [(name: String, value: String)] = []
    ) -> SimulatorAnswer {
        SimulatorAnswer(
            status: status,
            headers: [("Content-Type", "text/plain; charset=utf-8")] + headers,
            body: .bytes(Array(text.utf8))
        )
    }

    /// A content, or the part of it that the request's `Range` asks for: 200, 206 or 416.
    public static func content(
        _ content: SimulatedContent,
        for request: SimulatorRequest,
        type: String = "application/octet-stream",
        headers: [(name: String, value: String)] = []
    ) -> SimulatorAnswer {
        let headers = [("Content-Type", type), ("Accept-Ranges", "bytes")] + headers
        guard let text = request.header("Range") else {
            return SimulatorAnswer(
                status: 200,
                headers: headers,
                body: .content(content, 0..<content.size)
            )
        }
        switch ByteRange.parse(text, size: content.size) {
        case .whole:
            return SimulatorAnswer(
                status: 200,
                headers: headers,
                body: .content(content, 0..<content.size)
            )
        case .part(let range):
            let field = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(content.size)"
            return SimulatorAnswer(
                status: 206,
                headers: headers + [("Content-Range", field)],
                body: .content(content, range)
            )
        case .unsatisfiable:
            return SimulatorAnswer(
                status: 416,
                headers: [("Content-Range", "bytes */\(content.size)")]
            )
        }
    }
}

/// The header field `Range` (RFC 9110, section 14.2), one range only.
enum ByteRange: Equatable {
    case whole
    case part(Range<Int64>)
    case unsatisfiable

    static func parse(_ text: String, size: Int64) -> ByteRange {
        guard text.hasPrefix("bytes="), !text.contains(",") else { return .whole }
        let sides = text.dropFirst(6).split(
            separator: "-",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard sides.count == 2 else { return .whole }
        if sides[0].isEmpty {
            guard let count = Int64(sides[1]) else { return .whole }
            guard count > 0, size > 0 else { return .unsatisfiable }
            return .part(max(0, size - count)..<size)
        }
        guard let first = Int64(sides[0]) else { return .whole }
        guard first < size else { return .unsatisfiable }
        if sides[1].isEmpty { return .part(first..<size) }
        guard let last = Int64(sides[1]), last >= first else { return .whole }
        return .part(first..<min(last + 1, size))
    }
}
