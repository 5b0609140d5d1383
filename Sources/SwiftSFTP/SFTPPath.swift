/// A path or a name at a server: bytes without a NUL, in no particular encoding.
public struct SFTPPath: Hashable, Sendable, CustomStringConvertible {
    /// The bytes.
    public let bytes: [UInt8]

    /// A path of these bytes.
    ///
    /// - Throws: `.notSendable` for a NUL byte, which ends OpenSSH's server process.
    public init(_ bytes: some Sequence<UInt8>) throws(SFTPError) {
        let bytes = Array(bytes)
        guard !bytes.contains(0) else {
            throw SFTPError(.notSendable, detail: "a path with a NUL byte")
        }
        self.bytes = bytes
    }

    /// The path of one entry, relative to its folder.
    ///
    /// - Throws: `.notSendable` for a NUL byte, and for what is no name and would lead elsewhere: nothing,
    ///   `.`, `..` and what holds a slash.
    public init(name: some Sequence<UInt8>) throws(SFTPError) {
        try self.init(name)
        guard isName else {
            throw SFTPError(.notSendable, detail: "“\(self)” is not the name of an entry")
        }
    }

    /// Whether it is the name of an entry.
    var isName: Bool {
        !bytes.isEmpty && !bytes.contains(Self.slash) && !bytes.elementsEqual(".".utf8)
            && !bytes.elementsEqual("..".utf8)
    }

    /// The path of a text in UTF-8.
    ///
    /// - Throws: `.notSendable` for a NUL character.
    public init(_ text: String) throws(SFTPError) { try self.init(text.utf8) }

    /// The path of a name in this folder; the name has no slash.
    public func appending(_ name: SFTPPath) -> SFTPPath {
        let separator: [UInt8] = bytes.isEmpty || bytes.last == Self.slash ? [] : [Self.slash]
        return SFTPPath(checked: bytes + separator + name.bytes)
    }

    /// The folder that a path begins at: `.`.
    public static let itself = SFTPPath(checked: Array(".".utf8))

    private init(checked bytes: [UInt8]) { self.bytes = bytes }

    private static let slash = UInt8(ascii: "/")

    /// The path as text, for people: what is no UTF-8 is replaced.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// A file or folder that the server holds open for a session.
public struct SFTPHandle: Hashable, Sendable {
    let bytes: [UInt8]
}
