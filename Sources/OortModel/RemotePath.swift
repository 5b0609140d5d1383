/// A path from an account's root, in the service's own names: parts, not text, since some services
/// allow `/` in a name.
///
/// The empty path is the root.
public struct RemotePath: Hashable, Sendable, CustomStringConvertible {
    /// The names from the root down; none is empty.
    public var parts: [String]

    /// A path of the given names.
    public init(_ parts: [String]) { self.parts = parts }

    /// The account's root.
    public static let root = RemotePath([])

    /// The path of `name` in this folder.
    public func appending(_ name: String) -> RemotePath { RemotePath(parts + [name]) }

    /// The folder above; nil for the root.
    public var parent: RemotePath? {
        parts.isEmpty ? nil : RemotePath(Array(parts.dropLast()))
    }

    /// The last name; nil for the root.
    public var name: String? { parts.last }

    /// Names are compared byte for byte.
    public static func == (one: RemotePath, other: RemotePath) -> Bool {
        one.parts.count == other.parts.count
            && zip(one.parts, other.parts).allSatisfy { $0.isSameText(as: $1) }
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(parts) }

    /// `/a/b`, or the empty string for the root: Dropbox's spelling, and for logs.
    public var description: String { parts.map { "/" + $0 }.joined() }

    /// The same in a sentence, where the root has a name, too.
    public var words: String { parts.isEmpty ? "the account's folder" : description }
}

/// An item addressed in both ways, so that a provider uses the one that its service takes.
public struct ItemReference: Hashable, Sendable {
    /// The service's id.
    public var id: ItemID
    /// The path in the service's own names, from the ancestors as last observed at the service.
    public var path: RemotePath

    /// An item by id and path.
    public init(id: ItemID, path: RemotePath) {
        self.id = id
        self.path = path
    }
}
