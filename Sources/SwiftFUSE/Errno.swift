import Glibc

/// An error number of the system (`man 3 errno`), as a program sees it.
public struct Errno: Error, RawRepresentable, Hashable, Sendable {
    /// The number; positive.
    public let rawValue: Int32

    /// Wraps a number.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// Operation not permitted.
    public static let notPermitted = Errno(rawValue: EPERM)
    /// No such file or directory.
    public static let noSuchFile = Errno(rawValue: ENOENT)
    /// Interrupted by a signal.
    public static let interrupted = Errno(rawValue: EINTR)
    /// Input or output error.
    public static let inputOutput = Errno(rawValue: EIO)
    /// Bad file descriptor or handle.
    public static let badHandle = Errno(rawValue: EBADF)
    /// Try again.
    public static let tryAgain = Errno(rawValue: EAGAIN)
    /// Out of memory.
    public static let outOfMemory = Errno(rawValue: ENOMEM)
    /// Permission denied.
    public static let permissionDenied = Errno(rawValue: EACCES)
    /// Device or resource busy.
    public static let busy = Errno(rawValue: EBUSY)
    /// File exists.
    public static let fileExists = Errno(rawValue: EEXIST)
    /// Link between file systems.
    public static let crossDevice = Errno(rawValue: EXDEV)
    /// Not a directory.
    public static let notADirectory = Errno(rawValue: ENOTDIR)
    /// Is a directory.
    public static let isADirectory = Errno(rawValue: EISDIR)
    /// Invalid argument.
    public static let invalidArgument = Errno(rawValue: EINVAL)
    /// File too large.
    public static let fileTooLarge = Errno(rawValue: EFBIG)
    /// No space left on the device.
    public static let noSpace = Errno(rawValue: ENOSPC)
    /// Read-only file system.
    public static let readOnlyFileSystem = Errno(rawValue: EROFS)
    /// Result or buffer out of range.
    public static let outOfRange = Errno(rawValue: ERANGE)
    /// Name too long.
    public static let nameTooLong = Errno(rawValue: ENAMETOOLONG)
    /// Function not implemented: for most operations the kernel then never asks again.
    public static let notImplemented = Errno(rawValue: ENOSYS)
    /// Directory not empty.
    public static let notEmpty = Errno(rawValue: ENOTEMPTY)
    /// Too many symbolic links.
    public static let tooManyLinks = Errno(rawValue: ELOOP)
    /// No such extended attribute.
    public static let noData = Errno(rawValue: ENODATA)
    /// Text that is not valid UTF-8.
    public static let invalidText = Errno(rawValue: EILSEQ)
    /// Operation not supported.
    public static let notSupported = Errno(rawValue: EOPNOTSUPP)
    /// The daemon of a mount is gone.
    public static let notConnected = Errno(rawValue: ENOTCONN)
    /// Timed out.
    public static let timedOut = Errno(rawValue: ETIMEDOUT)
    /// No route to the host.
    public static let hostUnreachable = Errno(rawValue: EHOSTUNREACH)
    /// Quota exceeded.
    public static let quotaExceeded = Errno(rawValue: EDQUOT)
    /// Argument too long.
    public static let argumentTooLong = Errno(rawValue: E2BIG)
    /// The handle's file is no longer what it was.
    public static let staleHandle = Errno(rawValue: ESTALE)
    /// No such offset (SEEK_DATA and SEEK_HOLE).
    public static let noSuchOffset = Errno(rawValue: ENXIO)

    /// The last system call's error on this thread.
    static var current: Errno { Errno(rawValue: errno) }
}

extension Errno: CustomStringConvertible {
    /// The system's text and the number, for logs.
    public var description: String {
        guard let text = unsafe strerror(rawValue) else { return "errno \(rawValue)" }
        return unsafe "\(String(cString: text)) (errno \(rawValue))"
    }
}
