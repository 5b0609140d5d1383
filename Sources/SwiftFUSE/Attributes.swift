internal import CFUSE
import Glibc

/// What a directory entry is.
public enum FileKind: UInt32, Hashable, Sendable, CaseIterable {
    /// A named pipe.
    case pipe = 0o010000
    /// A character device.
    case characterDevice = 0o020000
    /// A folder.
    case folder = 0o040000
    /// A block device.
    case blockDevice = 0o060000
    /// A regular file.
    case file = 0o100000
    /// A symbolic link.
    case symbolicLink = 0o120000
    /// A socket.
    case socket = 0o140000

    /// The kind in a mode of `man 7 inode`; nil when there is none in it.
    public init?(mode: UInt32) { self.init(rawValue: mode & 0o170000) }
}

/// A point in time as file systems count it.
public struct FileTime: Hashable, Sendable {
    /// Seconds since 1970-01-01T00:00:00Z.
    public var seconds: Int64
    /// Nanoseconds after `seconds`, 0 ..< 1,000,000,000.
    public var nanoseconds: Int64

    /// A point in time.
    public init(seconds: Int64, nanoseconds: Int64 = 0) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    /// The present time of the system's real-time clock.
    public static var now: FileTime {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        return FileTime(time)
    }

    init(_ time: timespec) {
        self.init(seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec))
    }

    var specification: timespec {
        timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
    }
}

/// What `stat` shows of a file.
public struct Attributes: Hashable, Sendable {
    /// The file's number, shown as `st_ino`.
    public var inode: InodeNumber
    /// What the file is.
    public var kind: FileKind
    /// The lower twelve bits of the mode.
    public var permissions: UInt32
    /// How many names the file has.
    public var linkCount: UInt32
    /// The owner.
    public var userID: UInt32
    /// The group.
    public var groupID: UInt32
    /// The device, for device files.
    public var device: UInt64
    /// Bytes of content.
    public var size: Int64
    /// Blocks of 512 bytes.
    ///
    /// Programs take fewer than the size needs for holes and skip them: a file whose bytes are
    /// elsewhere must still count them (with 0, `tar -S` stores zeros).
    public var blocks: Int64
    /// The size of I/O that is best.
    public var preferredBlockSize: Int32
    /// When the content was last read.
    public var accessTime: FileTime
    /// When the content was last changed.
    public var modificationTime: FileTime
    /// When anything about the file was last changed.
    public var changeTime: FileTime

    /// Attributes with one name, blocks for the whole size, and all three times the same.
    public init(
        inode: InodeNumber,
        kind: FileKind,
        permissions: UInt32,
        size: Int64 = 0,
        userID: UInt32,
        groupID: UInt32,
        time: FileTime
    ) {
        self.inode = inode
        self.kind = kind
        self.permissions = permissions & 0o7777
        linkCount = 1
        self.userID = userID
        self.groupID = groupID
        device = 0
        self.size = size
        blocks = size / 512 + (size % 512 > 0 ? 1 : 0)
        preferredBlockSize = 4096
        accessTime = time
        modificationTime = time
        changeTime = time
    }

    /// Kind and permissions in one number, as `st_mode` has them.
    public var mode: UInt32 { kind.rawValue | (permissions & 0o7777) }

    var stat: stat {
        var result = Glibc.stat()
        result.st_ino = UInt(inode.rawValue)
        result.st_mode = mode
        result.st_nlink = UInt(linkCount)
        result.st_uid = userID
        result.st_gid = groupID
        result.st_rdev = UInt(device)
        result.st_size = Int(size)
        result.st_blocks = Int(blocks)
        result.st_blksize = Int(preferredBlockSize)
        result.st_atim = accessTime.specification
        result.st_mtim = modificationTime.specification
        result.st_ctim = changeTime.specification
        return result
    }
}

/// What of a file's attributes is to change; nil leaves one alone.
public struct AttributeChanges: Hashable, Sendable {
    /// A new time.
    public enum Time: Hashable, Sendable {
        /// The time at which the file system carries the change out.
        case now
        /// A time that the caller names.
        case at(FileTime)

        /// The time itself, with `.now` resolved by the system's clock.
        public var resolved: FileTime {
            switch self {
            case .now: .now
            case .at(let time): time
            }
        }
    }

    /// The lower twelve bits of the mode.
    public var permissions: UInt32?
    /// The owner.
    public var userID: UInt32?
    /// The group.
    public var groupID: UInt32?
    /// The new size: a truncation or a hole at the end.
    public var size: Int64?
    /// The access time.
    public var accessTime: Time?
    /// The modification time.
    public var modificationTime: Time?
    /// The change time, which only a kernel with write-back cache sends.
    public var changeTime: FileTime?

    /// Whether nothing is to change.
    public var isEmpty: Bool { self == AttributeChanges() }

    /// Changes nothing until a field is set.
    public init() {}

    // `bits` are `FUSE_SET_ATTR_*` (fuse_lowlevel.h); the `_NOW` bits come together with those that
    // they refine.
    init(_ stat: stat, bits: Int32) {
        if bits & FUSE_SET_ATTR_MODE != 0 { permissions = stat.st_mode & 0o7777 }
        if bits & FUSE_SET_ATTR_UID != 0 { userID = stat.st_uid }
        if bits & FUSE_SET_ATTR_GID != 0 { groupID = stat.st_gid }
        if bits & FUSE_SET_ATTR_SIZE != 0 { size = Int64(stat.st_size) }
        if bits & FUSE_SET_ATTR_ATIME_NOW != 0 {
            accessTime = .now
        } else if bits & FUSE_SET_ATTR_ATIME != 0 {
            accessTime = .at(FileTime(stat.st_atim))
        }
        if bits & FUSE_SET_ATTR_MTIME_NOW != 0 {
            modificationTime = .now
        } else if bits & FUSE_SET_ATTR_MTIME != 0 {
            modificationTime = .at(FileTime(stat.st_mtim))
        }
        if bits & FUSE_SET_ATTR_CTIME != 0 { changeTime = FileTime(stat.st_ctim) }
    }
}
