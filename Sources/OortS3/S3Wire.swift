import Foundation
import OortModel
import OortTransport

/// An object as a listing has it.
struct S3Object: Sendable {
    var key: String
    var size: Int64
    var tag: String
    var modified: Timestamp?
    var storageClass: String?
}

/// One page of a listing.
struct S3Page: Sendable {
    var objects: [S3Object]
    /// The beginnings of keys up to the next slash, where they were asked for.
    var prefixes: [String]
    /// Where to go on; nil on the last page.
    var next: String?

    /// Reads a page of either form.
    ///
    /// - Throws: `.malformedAnswer` for anything unclear: nothing may count as gone because a store listed
    ///   it badly.
    init(_ root: S3Element, byTokens: Bool) throws(ProviderError) {
        let isEncoded = root.text(of: "EncodingType") == "url"
        func decoded(_ text: String?, _ what: String) throws(ProviderError) -> String {
            guard let text, let result = isEncoded ? S3Text.formDecoded(text) : text,
                !result.isEmpty
            else { throw S3Page.failure(what) }
            return result
        }
        objects = []
        prefixes = []
        for child in root.children {
            switch child.name {
            case "Contents":
                let key = try decoded(child.text(of: "Key"), "a key")
                let tag = child.text(of: "ETag").map(S3Head.bare) ?? ""
                // A folder's own object needs none, and has none at MinIO's kin.
                guard
                    let size = child.text(of: "Size").flatMap({ ReportedSize(digits: $0)?.bytes }),
                    !tag.isEmpty || size == 0 && key.ends(with: "/")
                else { throw S3Page.failure("an object without size or ETag") }
                objects.append(
                    S3Object(
                        key: key,
                        size: size,
                        tag: tag,
                        modified: child.text(of: "LastModified").flatMap {
                            Timestamp(rfc3339: $0)
                        },
                        storageClass: child.text(of: "StorageClass")
                    )
                )
            case "CommonPrefixes":
                for prefix in child.all("Prefix") {
                    prefixes.append(try decoded(prefix.text, "a prefix"))
                }
            default: continue
            }
        }
        switch root.text(of: "IsTruncated") {
        case "false": next = nil
        case "true":
            let token = root.text(of: byTokens ? "NextContinuationToken" : "NextMarker")
            if let token, !token.isEmpty {
                next = byTokens ? token : try decoded(token, "a marker")
            } else if !byTokens, let last = objects.last?.key {
                next = last
            } else {
                throw S3Page.failure("more is said to follow, but not where")
            }
        default: throw S3Page.failure("it does not say whether it is whole")
        }
    }

    private static func failure(_ words: String) -> ProviderError {
        ProviderError(.malformedAnswer, detail: "a listing of the bucket cannot be read: \(words)")
    }
}

/// An object as the head of an answer has it.
struct S3Head: Sendable {
    var size: Int64
    var tag: String
    var stored: Timestamp?
    /// The modified time that the writer of the object gave it.
    var modified: Timestamp?
    var mimeType: String?
    var storageClass: String?
    /// The MD5 that the writer of the object gave it, in hex.
    var md5: String?
    /// Whether the store encrypts the object so that its ETag says nothing about the bytes.
    var isTagOpaque: Bool
    /// The fields that a copy with other metadata must carry along.
    var carried: [(name: String, value: String)]

    init(_ head: HTTPResponseHead, size: Int64? = nil) throws(ProviderError) {
        guard
            let size = size
                ?? head.header("Content-Length").flatMap({ ReportedSize(digits: $0)?.bytes }),
            let tag = head.header("ETag").map(Self.bare), !tag.isEmpty
        else {
            throw ProviderError(.malformedAnswer, detail: "an object without size or ETag")
        }
        self.size = size
        self.tag = tag
        stored = head.header("Last-Modified").flatMap { HTTPDate.parse($0) }
        modified =
            head.header("x-amz-meta-mtime").flatMap(Self.time(metadata:))
            ?? head.header("x-amz-meta-s3cmd-attrs").flatMap(Self.time(attributes:))
        mimeType = head.header("Content-Type")
        storageClass = head.header("x-amz-storage-class")
        md5 = head.header("x-amz-meta-md5chksum").flatMap { Data(base64Encoded: $0) }
            .flatMap { $0.count == 16 ? S3Text.hex($0) : nil }
        isTagOpaque =
            head.header("x-amz-server-side-encryption")?.begins(with: "aws:") == true
            || head.header("x-amz-server-side-encryption-customer-algorithm") != nil
        carried = head.headers.filter {
            let name = $0.name.lowercased()
            return Self.carriedFields.contains(name) || name.hasPrefix("x-amz-meta-")
        }
    }

    private static let carriedFields: Set<String> = [
        "content-type", "cache-control", "content-disposition", "content-encoding",
        "content-language", "expires", "x-amz-website-redirect-location",
    ]

    /// An ETag without its quotes.
    static func bare(_ tag: String) -> String {
        var text = tag[...]
        if let rest = text.dropping(beginning: "W/") { text = rest }
        if let rest = text.dropping(beginning: "\""), let inner = rest.dropping(ending: "\"") {
            text = inner
        }
        return String(text)
    }

    /// Whether an ETag can be the MD5 of the bytes.
    static func canBeMD5(_ tag: String) -> Bool {
        tag.utf8.count == 32 && S3Text.bytes(hex: tag) != nil
    }

    // MARK: Modified times

    /// A time as rclone writes it; nine digits, since another program reads them as nanoseconds
    /// without filling them up.
    static func metadata(_ time: Timestamp) -> String {
        var (seconds, nanoseconds) = (time.seconds, time.nanoseconds)
        var sign = ""
        if seconds < 0 {
            sign = "-"
            if nanoseconds > 0 {
                seconds += 1
                nanoseconds = 1_000_000_000 - nanoseconds
            }
        }
        let digits = String(nanoseconds)
        return "\(sign)\(seconds.magnitude)."
            + String(repeating: "0", count: 9 - digits.utf8.count) + digits
    }

    /// Seconds since 1970 with or without a fraction.
    static func time(metadata text: String) -> Timestamp? {
        let isNegative = text.begins(with: "-")
        let number = isNegative ? text.dropFirst() : text[...]
        let (whole, fraction) = number.cut(atFirst: ".") ?? (number, "")
        guard let seconds = Int64(whole), seconds >= 0, fraction.utf8.count <= 32,
            fraction.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        let digits = fraction.prefix(9)
        let nanoseconds =
            Int32(digits + String(repeating: "0", count: 9 - digits.utf8.count)) ?? 0
        guard isNegative else { return Timestamp(seconds: seconds, nanoseconds: nanoseconds) }
        return nanoseconds == 0
            ? Timestamp(seconds: -seconds)
            : Timestamp(seconds: -seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds)
    }

    /// s3cmd's attributes: `atime:…/ctime:…/mtime:…`.
    private static func time(attributes text: String) -> Timestamp? {
        text.parts(between: "/").lazy.compactMap { $0.dropping(beginning: "mtime:") }.first
            .flatMap { time(metadata: String($0)) }
    }
}

extension HTTPResponseHead {
    /// The size of the whole content, as an answer with a part of it says.
    var wholeSize: Int64? {
        header("Content-Range")?.cut(atLast: "/")
            .flatMap { ReportedSize(digits: String($0.after))?.bytes }
    }
}

extension ReportedSize {
    /// A size in decimal digits.
    init?(digits: String) {
        guard let bytes = Int64(digits) else { return nil }
        self.init(bytes: bytes)
    }
}
