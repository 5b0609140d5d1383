/// The service's own, opaque name of an item; kept over rename and move where the service keeps it.
///
/// Compared byte for byte, as are revisions, cursors, hashes and paths.
///
/// Where ids are unique per drive only (OneDrive), the provider composes drive id and item id.
public struct ItemID: Hashable, Sendable, CustomStringConvertible {
    /// The id as the provider wrote it.
    public let rawValue: String

    /// Wraps an id as the provider wrote it.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The raw id, for logs.
    public var description: String { rawValue }

    public static func == (one: ItemID, other: ItemID) -> Bool {
        one.rawValue.isSameText(as: other.rawValue)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

/// The version of a file's *content* (rev, head revision, cTag): compared for equality only.
public struct Revision: Hashable, Sendable, CustomStringConvertible {
    /// The revision as the provider wrote it.
    public let rawValue: String

    /// Wraps a revision as the provider wrote it.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    /// The raw revision, for logs.
    public var description: String { rawValue }

    /// A stand-in for the revision of the bytes that were sent, where the service stores others under this
    /// revision.
    ///
    /// The service never reports the stand-in, so the revision that it does report counts as news.
    public var asSent: Revision { Revision("\(rawValue) as sent") }

    public static func == (one: Revision, other: Revision) -> Bool {
        one.rawValue.isSameText(as: other.rawValue)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

/// An opaque place in a service's change feed ("delta link", "page token").
public struct Cursor: Hashable, Sendable {
    /// The cursor as the provider wrote it; may hold several of the service's tokens.
    public let rawValue: String

    /// Wraps a cursor as the provider wrote it.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    public static func == (one: Cursor, other: Cursor) -> Bool {
        one.rawValue.isSameText(as: other.rawValue)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

/// An opaque place in the listing of one folder; lives for minutes, never stored.
public struct PageToken: Hashable, Sendable {
    /// The token as the provider wrote it.
    public let rawValue: String

    /// Wraps a token as the provider wrote it.
    public init(_ rawValue: String) { self.rawValue = rawValue }
}

/// The hash algorithms by which services name a file's content.
public enum HashAlgorithm: String, Hashable, Sendable, CaseIterable {
    /// SHA-256 over the SHA-256 digests of blocks of 4 MiB, in lower-case hex.
    case dropboxContentHash = "dropbox"
    /// MD5, in lower-case hex.
    case md5
    /// SHA-1, in lower-case hex.
    case sha1
    /// SHA-256, in lower-case hex.
    case sha256
    /// Microsoft's QuickXorHash, in Base64. Not cryptographic: it tells whether bytes arrived as they
    /// were sent, but contents that repeat themselves have the same one at the same size.
    case quickXor

    /// Whether contents of equal size and hash can be taken for equal, however they came about.
    public var tellsContentsApart: Bool {
        switch self {
        case .dropboxContentHash, .md5, .sha1, .sha256: true
        case .quickXor: false
        }
    }
}

/// A content's hash and the algorithm that made it.
public struct ContentHash: Hashable, Sendable, CustomStringConvertible {
    /// The algorithm that made `value`.
    public let algorithm: HashAlgorithm
    /// The digest in the algorithm's own spelling (hex or Base64).
    public let value: String

    /// A hash in the algorithm's own spelling.
    public init(algorithm: HashAlgorithm, value: String) {
        self.algorithm = algorithm
        self.value = value
    }

    /// Whether another hash, by the same algorithm, is of other bytes for certain.
    public func contradicts(_ other: ContentHash?) -> Bool {
        guard let other, other.algorithm == algorithm else { return false }
        return self != other
    }

    public static func == (one: ContentHash, other: ContentHash) -> Bool {
        one.algorithm == other.algorithm && one.value.isSameText(as: other.value)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(value) }

    /// `algorithm:value`, as stored and shown.
    public var description: String { "\(algorithm.rawValue):\(value)" }

    /// Reads back `description`; nil when it is not one.
    public init?(description: String) {
        guard let (name, value) = description.cut(atFirst: ":"),
            let algorithm = HashAlgorithm(rawValue: String(name))
        else { return nil }
        self.init(algorithm: algorithm, value: String(value))
    }
}
