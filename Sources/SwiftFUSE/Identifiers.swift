/// A file system's own 64-bit number for a file or folder.
///
/// While the kernel knows a number (its lookup count is above zero) it must mean the same file. A
/// number that is used for another file later needs another `Entry.generation`, or is never reused.
public struct InodeNumber: RawRepresentable, Hashable, Sendable {
    /// The number; zero is not one.
    public let rawValue: UInt64

    /// Wraps a number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Wraps a number.
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The mount's root, which the kernel knows without a lookup.
    public static let root = InodeNumber(1)
}

/// What a file system calls one open file or folder; the kernel hands it back with each operation.
public struct HandleNumber: RawRepresentable, Hashable, Sendable {
    /// The number; any value, zero included.
    public let rawValue: UInt64

    /// Wraps a number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Wraps a number.
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// Who asks.
public struct Caller: Hashable, Sendable {
    /// The user of the calling process.
    public var userID: UInt32
    /// The group of the calling process.
    public var groupID: UInt32
    /// The calling *thread*; zero when the kernel asks for itself (readahead) or when the process lies
    /// in another PID namespace.
    public var threadID: Int32
    /// The permission bits to clear on creation; the kernel has already done so for `mode`.
    public var umask: UInt32
}
