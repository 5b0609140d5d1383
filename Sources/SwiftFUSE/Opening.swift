internal import CFUSE
import Glibc

/// How a file is opened: the flags of `man 2 open`.
public struct OpenFlags: RawRepresentable, Hashable, Sendable {
    /// The bits.
    public let rawValue: Int32

    /// Wraps the bits.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// Whether the caller will read.
    public var mayRead: Bool { rawValue & O_ACCMODE != O_WRONLY }
    /// Whether the caller will write.
    public var mayWrite: Bool { rawValue & O_ACCMODE != O_RDONLY }
    /// Whether the content is to be dropped; comes with `open` itself because SwiftFUSE asks for
    /// atomic O_TRUNC.
    public var truncates: Bool { rawValue & O_TRUNC != 0 }
    /// Whether each write goes to the end.
    ///
    /// The kernel has already put the offset there.
    public var appends: Bool { rawValue & O_APPEND != 0 }
    /// Whether the kernel's cache is bypassed.
    public var bypassesCache: Bool { rawValue & Self.direct != 0 }
    /// O_DIRECT, which the Glibc module leaves out.
    ///
    /// Source: arch/arm64/include/uapi/asm/fcntl.h, include/uapi/asm-generic/fcntl.h.
    private static var direct: Int32 {
        #if arch(arm64) || arch(arm)
        0o200000
        #else
        0o40000
        #endif
    }
    /// Whether the name must be new (`create` only).
    public var isExclusive: Bool { rawValue & O_EXCL != 0 }
}

/// What a file system says of a file that it has opened.
public struct OpenFile: Hashable, Sendable {
    /// How the kernel treats an open file (`struct fuse_file_info`).
    public struct Options: OptionSet, Hashable, Sendable {
        /// One bit an option.
        public let rawValue: UInt8

        /// Wraps the bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Reads and writes go past the kernel's cache; for content whose size is not known.
        public static let directIO = Options(rawValue: 1)
        /// The kernel's cached content is still good; without this `open` drops it.
        public static let keepCache = Options(rawValue: 2)
        /// The file cannot be seeked in.
        public static let notSeekable = Options(rawValue: 4)
        /// `close` needs no `flush`.
        public static let noFlush = Options(rawValue: 8)
        /// The kernel may cache the folder's listing (`opendir` only).
        public static let cacheDirectory = Options(rawValue: 16)
    }

    /// What the kernel hands back with each operation on the open file.
    public var handle: HandleNumber
    /// How the kernel treats the open file.
    public var options: Options

    /// An open file.
    public init(handle: HandleNumber, options: Options = []) {
        self.handle = handle
        self.options = options
    }

    var fileInfo: fuse_file_info {
        var result = fuse_file_info()
        result.fh = handle.rawValue
        result.direct_io = options.contains(.directIO) ? 1 : 0
        result.keep_cache = options.contains(.keepCache) ? 1 : 0
        result.nonseekable = options.contains(.notSeekable) ? 1 : 0
        result.noflush = options.contains(.noFlush) ? 1 : 0
        result.cache_readdir = options.contains(.cacheDirectory) ? 1 : 0
        return result
    }
}

/// How a rename treats what already has the new name (`man 2 rename`).
public struct RenameFlags: OptionSet, Hashable, Sendable {
    /// One bit a flag, as the system call has them.
    public let rawValue: UInt32

    /// Wraps the bits.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The new name must be free, else EEXIST.
    ///
    /// `mv` asks for this first.
    public static let noReplace = RenameFlags(rawValue: 1)
    /// The two names swap their files; both must exist.
    public static let exchange = RenameFlags(rawValue: 2)
}

/// How an extended attribute is set (`man 2 setxattr`).
public enum XattrMode: Hashable, Sendable {
    /// Make it or replace it.
    case any
    /// It must be new, else EEXIST.
    case create
    /// It must exist, else ENODATA.
    case replace
}

/// From where `lseek` looks.
public enum SeekTarget: Hashable, Sendable {
    /// The next data at or after the offset.
    case data
    /// The next hole at or after the offset; the end of the file is one.
    case hole
}

/// A name's lookup count that the kernel gives back.
public struct Forgotten: Hashable, Sendable {
    /// The file.
    public var inode: InodeNumber
    /// How many lookups are taken back.
    public var lookups: UInt64

    /// A file and how many lookups are taken back.
    public init(inode: InodeNumber, lookups: UInt64) {
        self.inode = inode
        self.lookups = lookups
    }
}
