/// Why a request has no good answer.
public struct SFTPError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Kind: Hashable, Sendable {
        /// The server answered with a status other than OK.
        case status(SFTPStatus)
        /// The connection ended. `mayHaveBeenDone` is false where no byte of the request had left.
        case connectionLost(mayHaveBeenDone: Bool)
        /// The server sent what is not of the protocol; the session is over.
        case malformedAnswer
        /// The task was cancelled; the server may have done what was asked.
        case cancelled
        /// The request cannot be sent: a NUL byte in a path, more bytes than the server takes.
        case notSendable
        /// The server does not offer the extension that the request needs.
        case unsupported
    }

    /// What went wrong.
    public let kind: Kind
    /// The server's own words or ours, for people and for the log; may hold any character.
    public let detail: String

    /// An error of a kind, with words for people.
    public init(_ kind: Kind, detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// Kind and detail.
    public var description: String { "\(kind): \(detail)" }
}

/// A status code; servers send more of them than version 3 knows (ProFTPD sends 11 for "exists").
public struct SFTPStatus: RawRepresentable, Hashable, Sendable {
    /// The code as it was sent.
    public let rawValue: UInt32

    /// A code as it was sent.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// It was done.
    public static let ok = SFTPStatus(rawValue: 0)
    /// The end of a file or of a folder's names.
    public static let endOfFile = SFTPStatus(rawValue: 1)
    /// Nothing is there, or something on the way is no folder: look at the path itself before anything
    /// is taken for gone.
    public static let noSuchFile = SFTPStatus(rawValue: 2)
    /// The login may not do this.
    public static let permissionDenied = SFTPStatus(rawValue: 3)
    /// Everything that has no code of its own: the name is taken, the folder is not empty, the disk is
    /// full, another device.
    public static let failure = SFTPStatus(rawValue: 4)
    /// The request was not understood, or its path is too long.
    public static let badMessage = SFTPStatus(rawValue: 5)
    /// The server does not know this request.
    public static let unsupported = SFTPStatus(rawValue: 8)
}
