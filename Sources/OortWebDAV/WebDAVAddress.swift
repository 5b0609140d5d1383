import OortModel

/// Where an account's files lie at a server, and who asks for them.
public struct WebDAVAddress: Hashable, Sendable, Codable {
    /// Scheme, host and port, such as `https://cloud.example.org:8443`, in lower case.
    public var origin: String
    /// The names in the path of the server's own programs (`status.php` lies there), decoded; empty for
    /// a server at its host's root.
    public var base: [String]
    /// The names in the path of all the person's files, decoded: for `plain` the address as given.
    public var files: [String]
    /// The folder in them where the account begins; empty for all of them.
    public var folder: [String]
    /// Who signs in, for basic authentication; nil where nobody does.
    public var user: String?
    /// The server's own key of the person, where it is another than `user`.
    public var userID: String?
    /// The space in which the files lie, at a server that has such.
    public var space: WebDAVSpace?

    /// An address with all of its parts.
    public init(
        origin: String,
        base: [String] = [],
        files: [String],
        folder: [String] = [],
        user: String? = nil,
        userID: String? = nil
    ) {
        self.origin = origin
        self.base = base
        self.files = files
        self.folder = folder
        self.user = user
        self.userID = userID
    }

    /// The address of one of the server's own programs, such as `["ocs", "v2.php"]`.
    func program(_ parts: [String]) -> String {
        origin + "/" + PercentEncoding.path(base + parts)
    }

    /// The decoded names of an item's whole path at the server.
    func segments(of path: RemotePath) -> [String] { files + folder + path.parts }

    /// The path of an item, percent-encoded; a folder's ends in a slash, without which some servers
    /// redirect or refuse.
    func path(_ path: RemotePath, isFolder: Bool) -> String {
        let names = segments(of: path)
        guard !names.isEmpty else { return "/" }
        return "/" + PercentEncoding.path(names) + (isFolder ? "/" : "")
    }

    /// The whole address of an item.
    func url(_ path: RemotePath, isFolder: Bool) -> String {
        origin + self.path(path, isFolder: isFolder)
    }

    /// For people: where the account begins, without who signs in.
    public var text: String { url(.root, isFolder: true) }
}

/// Percent-encoding of paths (RFC 3986), byte by byte.
enum PercentEncoding {
    /// One name, with everything encoded but the unreserved characters.
    static func segment(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
                UInt8(ascii: "_"), UInt8(ascii: "~"):
                result.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                result += byte < 16 ? "%0" : "%"
                result += String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    /// Several names, with slashes between.
    static func path(_ parts: some Sequence<String>) -> String {
        parts.map(segment).joined(separator: "/")
    }

    /// The names of a percent-encoded path or whole address, decoded; nil where one of them is no name
    /// that could be asked for again.
    ///
    /// The path is split before it is decoded, so that an encoded slash never separates.
    static func names(ofReference text: String) -> [String]? {
        var path = text[...]
        if let scheme = text.firstRange(of: "://"),
            text[..<scheme.lowerBound].utf8.allSatisfy({ $0 != UInt8(ascii: "/") })
        {
            let rest = text[scheme.upperBound...]
            guard let slash = rest.unicodeScalars.firstIndex(of: "/") else { return [] }
            path = rest[slash...]
        }
        guard path.begins(with: "/") else { return nil }
        var names: [String] = []
        for part in path.parts(between: "/") where !part.isEmpty {
            guard let name = decoded(part), !name.isEmpty, name != ".", name != "..",
                !name.has("/"), !name.has("\u{0}")
            else { return nil }
            names.append(name)
        }
        return names
    }

    /// A text with its `%41` replaced; nil where that is not UTF-8, or no hex.
    static func decoded(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            let digits = rest.prefix(2)
            guard digits.count == 2, digits.allSatisfy(\.isHexDigit),
                let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension UInt8 {
    fileprivate var isHexDigit: Bool {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }
}
