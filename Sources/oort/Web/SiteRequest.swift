import FlyingSocks
import Foundation
import OortModel

/// One request of a browser, within limits that no browser comes near.
struct SiteRequest: Sendable {
    /// `GET`, `HEAD` or `POST`, or whatever else was sent.
    let method: String
    /// The path as it was sent, percent-encoded.
    let path: String
    /// The fields of the query.
    let query: [String: String]
    /// The header fields by name in small letters; several of one name are in order.
    let fields: [String: [String]]
    /// The whole body.
    let body: Data

    /// Bytes of the request line and the header fields together.
    private static let longestHead = 64 << 10
    /// Bytes of a body: a form with a path.
    private static let longestBody = 64 << 10

    /// Reads one request.
    ///
    /// - Throws: `ControlRefusal` for something that is no request, or too long; `SocketError` when the
    ///   browser disconnects.
    static func read(from socket: AsyncSocket) async throws -> SiteRequest {
        var bytes: [UInt8] = []
        var end: Int?
        while end == nil {
            guard bytes.count < longestHead else {
                throw ControlRefusal(431, "The request's header is longer than 64 KiB.")
            }
            // The end may lie across the border of two parts.
            let searched = max(0, bytes.count - 3)
            bytes += try await socket.read(atMost: 4096)
            end = ControlMessage.endOfHead(bytes, from: searched)
        }
        let lines = bytes.prefix(end ?? 0).split(separator: UInt8(ascii: "\n")).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }
        let length = try ControlMessage.bodyLength(lines.dropFirst())
        guard length <= longestBody else {
            throw ControlRefusal(413, "The request's body is longer than 64 KiB.")
        }
        var body = Data(bytes.dropFirst(end ?? 0).prefix(length))
        while body.count < length {
            body += try await socket.read(atMost: length - body.count)
        }
        return try SiteRequest(head: lines, body: body)
    }

    /// A request whose lines are these.
    ///
    /// - Throws: `ControlRefusal` for what is no request.
    init(head lines: [ArraySlice<UInt8>], body: Data) throws {
        let words = (lines.first ?? []).split(separator: UInt8(ascii: " ")).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard words.count == 3, words[2].hasPrefix("HTTP/1."), words[1].begins(with: "/") else {
            throw ControlRefusal(400, "This is no HTTP/1.1 request.")
        }
        let target = Array(words[1].utf8)
        let mark = target.firstIndex(of: UInt8(ascii: "?")) ?? target.endIndex
        method = words[0]
        path = String(decoding: target[..<mark], as: UTF8.self)
        query = PercentCoding.fields(target[mark...].dropFirst())
        self.body = body
        var fields: [String: [String]] = [:]
        for line in lines.dropFirst() where !line.isEmpty {
            let parts = line.split(
                separator: UInt8(ascii: ":"),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard parts.count == 2, !parts[0].isEmpty, parts[0].first != UInt8(ascii: " "),
                parts[0].first != UInt8(ascii: "\t")
            else { throw ControlRefusal(400, "A header field of the request is none.") }
            fields[String(decoding: parts[0], as: UTF8.self).lowercased(), default: []].append(
                String(decoding: parts[1], as: UTF8.self).trimmingCharacters(in: .whitespaces)
            )
        }
        self.fields = fields
    }

    /// The only value of a header field; nil where there is none, or where there are several.
    func field(_ name: String) -> String? {
        guard let values = fields[name], values.count == 1 else { return nil }
        return values[0]
    }

    /// A cookie's value; nil where there is none, or where two are sent under its name.
    func cookie(_ name: String) -> String? {
        let values = (fields["cookie"] ?? []).flatMap { $0.split(separator: ";") }
            .map { $0.trimmingCharacters(in: .whitespaces) }
            .compactMap { $0.hasPrefix(name + "=") ? String($0.dropFirst(name.count + 1)) : nil }
        return values.count == 1 ? values[0] : nil
    }

    /// The fields of a form that was sent.
    var form: [String: String] { PercentCoding.fields(body) }
}
