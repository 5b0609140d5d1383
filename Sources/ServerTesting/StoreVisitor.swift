import Foundation
import OortS3
import OortSignIn
public import OortTransport

/// Another client of a store, with requests of its own, below one prefix of its bucket.
public struct StoreVisitor: Sendable {
    let running: RunningStore
    let prefix: String

    /// A visitor of what begins with a prefix, which ends in a slash.
    public init(running: RunningStore, prefix: String) {
        self.running = running
        self.prefix = prefix
    }

    /// Sends a request about a key below the prefix; the query is encoded already.
    @discardableResult
    public func send(
        _ method: String,
        _ key: String,
        query: String = "",
        body: [UInt8] = []
    ) async throws -> HTTPResponse {
        try await send(
            method,
            path: "/\(Store.bucket)/\(Self.encoded(prefix + key, keeping: "/"))",
            query: query,
            body: body
        )
    }

    private func send(
        _ method: String,
        path: String,
        query: String,
        body: [UInt8] = []
    ) async throws -> HTTPResponse {
        let request = HTTPRequest(
            method: method,
            url: running.endpoint + path + query,
            body: method == "PUT" || method == "POST" ? .bytes(body) : .none
        )
        let signer = S3Signer(region: "us-east-1")
        let signed = try signer.sign(request, with: Store.keys.secret.revealed())
        let answer = try await running.wire.send(signed, limit: 256 << 20)
        guard answer.head.status < 300 || answer.head.status == 404 else {
            throw StoreFailure(
                description: "\(method) \(path)\(query): \(answer.head.status) "
                    + String(decoding: answer.body.prefix(500), as: UTF8.self)
            )
        }
        return answer
    }

    /// The bytes of an object; nil where there is none.
    public func bytes(_ key: String) async throws -> [UInt8]? {
        let answer = try await send("GET", key)
        return answer.head.status == 404 ? nil : answer.body
    }

    /// The sizes of all objects, by their keys below the prefix.
    public func objects() async throws -> [String: Int64] {
        var found: [String: Int64] = [:]
        var token: String?
        repeat {
            var query = "?encoding-type=url&list-type=2&prefix=\(Self.encoded(prefix))"
            if let token {
                query = "?continuation-token=\(Self.encoded(token))&" + query.dropFirst()
            }
            let answer = try await send("GET", path: "/\(Store.bucket)", query: query)
            let text = String(decoding: answer.body, as: UTF8.self)
            for part in text.components(separatedBy: "<Contents>").dropFirst() {
                guard let key = Self.element("Key", in: part),
                    let size = Self.element("Size", in: part).flatMap({ Int64($0) }),
                    let name = key.replacing("+", with: " ").removingPercentEncoding,
                    name.hasPrefix(prefix)
                else { continue }
                found[String(name.dropFirst(prefix.count))] = size
            }
            token =
                Self.element("IsTruncated", in: text) == "true"
                ? Self.element("NextContinuationToken", in: text) : nil
        } while token != nil
        return found
    }

    /// Removes an object, or all below a prefix.
    public func remove(_ start: String) async throws {
        for key in try await objects().keys where start.isEmpty || key.hasPrefix(start) {
            try await send("DELETE", key)
        }
    }

    /// Gives up all uploads in parts that were begun.
    public func abortUploads() async throws {
        let answer = try await send(
            "GET",
            path: "/\(Store.bucket)",
            query: "?prefix=\(Self.encoded(prefix))&uploads="
        )
        let text = String(decoding: answer.body, as: UTF8.self)
        for part in text.components(separatedBy: "<Upload>").dropFirst() {
            guard let key = Self.element("Key", in: part),
                let id = Self.element("UploadId", in: part), key.hasPrefix(prefix)
            else { continue }
            try await send(
                "DELETE",
                String(key.dropFirst(prefix.count)),
                query: "?uploadId=\(Self.encoded(id))"
            )
        }
    }

    private static func element(_ name: String, in text: String) -> String? {
        guard let start = text.range(of: "<\(name)>"),
            let end = text.range(of: "</\(name)>", range: start.upperBound..<text.endIndex)
        else { return nil }
        return [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#34;", "\""), ("&amp;", "&")]
            .reduce(String(text[start.upperBound..<end.lowerBound])) {
                $0.replacing($1.0, with: $1.1)
            }
    }

    private static func encoded(_ text: String, keeping kept: String = "") -> String {
        let plain = Set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8
        ).union(kept.utf8)
        return text.utf8.reduce(into: "") { encoded, byte in
            if plain.contains(byte) {
                encoded.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                let digits = String(byte, radix: 16, uppercase: true)
                encoded += byte < 16 ? "%0\(digits)" : "%\(digits)"
            }
        }
    }
}
