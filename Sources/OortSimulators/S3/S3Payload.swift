import Crypto
import OortModel

/// A request's body as its sender meant it, without the frames that some clients put around it.
///
/// Source: docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html.
struct S3Payload: Sendable {
    private(set) var bytes: [UInt8]
    /// The checksums that came with it and are right, by the names of their fields.
    private(set) var checksums: [String: String] = [:]

    /// Reads the body, and compares it with all that the request says of it.
    init(of call: S3Call, _ signature: S3Signature) throws(S3Failure) {
        var fields = call.request.headers
        bytes = call.request.bytes
        switch signature.payload {
        case "UNSIGNED-PAYLOAD": break
        case "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
            var frames = Frames(bytes, signature: nil)
            let trailer = try frames.read()
            bytes = frames.content
            fields.merge(trailer) { $1 }
        case "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER":
            var frames = Frames(bytes, signature: signature)
            let trailer = try frames.read()
            bytes = frames.content
            fields.merge(trailer) { $1 }
        default:
            guard SHA256.hash(data: bytes).hexadecimal == signature.payload else {
                throw S3Failure(
                    400,
                    "XAmzContentSHA256Mismatch",
                    "The provided 'x-amz-content-sha256' header does not match what was computed."
                )
            }
        }
        if let text = call.header("x-amz-decoded-content-length"), Int(text) != bytes.count {
            throw S3Failure(
                400,
                "IncompleteBody",
                "You did not provide the number of bytes specified by the Content-Length HTTP "
                    + "header"
            )
        }
        checksums = try S3Checksums.check(bytes, fields)
    }
}

/// The chunks of a body of `aws-chunked`: `SIZE[;chunk-signature=…]`, the bytes, and fields at the end.
private struct Frames {
    private var rest: ArraySlice<UInt8>
    private let signature: S3Signature?
    /// The bytes of all chunks.
    private(set) var content: [UInt8] = []

    init(_ bytes: [UInt8], signature: S3Signature?) {
        rest = bytes[...]
        self.signature = signature
        content.reserveCapacity(bytes.count)
    }

    private static let damaged = S3Failure(
        400,
        "IncompleteBody",
        "The request body terminated unexpectedly"
    )

    private static let wrong = S3Failure(
        403,
        "SignatureDoesNotMatch",
        "The chunk signature we calculated does not match the signature you provided."
    )

    private mutating func line() throws(S3Failure) -> String {
        guard let end = rest.firstIndex(of: 0x0D), rest.index(after: end) < rest.endIndex,
            rest[end + 1] == 0x0A
        else { throw Self.damaged }
        defer { rest = rest[(end + 2)...] }
        return String(decoding: rest[..<end], as: UTF8.self)
    }

    /// Reads all chunks.
    ///
    /// - Returns: the fields at the end.
    mutating func read() throws(S3Failure) -> [String: String] {
        var before = signature?.text ?? ""
        while true {
            let head = try line()
            let (digits, extra) = head.cut(atFirst: ";") ?? (head[...], "")
            guard let size = Int(digits, radix: 16), size >= 0, size <= rest.count else {
                throw Self.damaged
            }
            let chunk = rest.prefix(size)
            rest = rest.dropFirst(size)
            if let signature {
                let hash = SHA256.hash(data: Array(chunk)).hexadecimal
                before = signature.signature(ofChunk: hash, after: before)
                guard extra.dropping(beginning: "chunk-signature=").map(String.init) == before
                else { throw Self.wrong }
            }
            content += chunk
            guard size > 0 else { break }
            guard try line().isEmpty else { throw Self.damaged }
        }
        return try trailer(after: before)
    }

    private mutating func trailer(after before: String) throws(S3Failure) -> [String: String] {
        var fields: [String: String] = [:]
        var signed = ""
        var signatureOfTrailer: String?
        // Some clients leave out the last line end of an empty trailer.
        while !rest.isEmpty {
            let text = try line()
            guard !text.isEmpty, let (name, value) = text.cut(atFirst: ":") else { break }
            let plain = String(value.drop { $0 == " " })
            if name.lowercased() == "x-amz-trailer-signature" {
                signatureOfTrailer = plain
            } else {
                fields[name.lowercased()] = plain
                signed += "\(name.lowercased()):\(plain)\n"
            }
        }
        if let signature, !fields.isEmpty {
            let hash = SHA256.hash(data: Array(signed.utf8)).hexadecimal
            guard signatureOfTrailer == signature.signature(ofTrailer: hash, after: before) else {
                throw Self.wrong
            }
        }
        return fields
    }
}
