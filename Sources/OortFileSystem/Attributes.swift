public import OortModel

/// What `stat` shows of an item.
public struct FileAttributes: Hashable, Sendable {
    /// Our number.
    public var inode: Inode
    /// What it is.
    public var kind: FileKind
    /// Bytes; while a program writes, the size so far.
    public var size: Int64
    /// Blocks of 512 bytes: never 0 for a file that has bytes, wherever they are.
    public var blocks: Int64
    /// The modified time.
    public var modified: Timestamp
    /// The time of the last change to content or attributes.
    public var changed: Timestamp
    /// The time of the last read, or the modified time where none was set.
    public var accessed: Timestamp
    /// Permission bits, 07777.
    public var mode: UInt16
    /// The owner.
    public var owner: UInt32
    /// The group.
    public var group: UInt32
    /// Names of the inode: 1, or 0 once unlinked.
    ///
    /// 1 for folders, too, as Btrfs has it: from 2 on, `fts(3)` takes the number for two more than
    /// there are folders in it, and looks into none where it is 2.
    public var linkCount: UInt32

    /// The blocks of 512 bytes that a file of so many bytes takes.
    static func blocks(ofSize size: Int64) -> Int64 { size / 512 + (size % 512 > 0 ? 1 : 0) }
}

/// What an item is to `stat`.
public enum FileKind: Hashable, Sendable {
    /// A folder.
    case folder
    /// A regular file.
    case file
    /// A symbolic link.
    case symlink
    /// A named pipe.
    case fifo
    /// A socket.
    case socket
}

/// How long the kernel may cache an answer.
public struct Validity: Hashable, Sendable {
    /// How long it may cache the name.
    public var entry: Duration
    /// How long it may cache the attributes.
    public var attributes: Duration

    /// A day: the feed invalidates what changes.
    public static let day = Validity(entry: .seconds(86_400), attributes: .seconds(86_400))
    /// The name may be cached; the size is known only once the document was exported, and a shortcut's
    /// changes when its target moves.
    public static let sizeUnknown = Validity(entry: .seconds(86_400), attributes: .zero)
}

/// A name that was found or made.
///
/// The kernel's lookup count goes up by one with each.
public struct Entry: Hashable, Sendable {
    /// Its attributes, the inode among them.
    public var attributes: FileAttributes
    /// Tells a folder that came back from the one of this inode that was removed.
    public var generation: UInt64 = 0
    /// How long the kernel may cache it.
    public var validity: Validity
}

/// One name of a folder's listing.
public struct FolderEntry: Hashable, Sendable {
    /// The name as shown.
    public var name: String
    /// Where the listing goes on after this entry; never 0.
    public var cookie: UInt64
    /// Attributes and validity, for `readdirplus`; `.` and `..` are left to the caller.
    public var entry: Entry
}

/// A file that was opened.
public struct Opened: Hashable, Sendable {
    /// To be given back with each operation on the open file, and to `release`.
    public var handle: FileHandle
    /// Whether the pages that the kernel has of an earlier open are still right.
    public var keepsCache: Bool
    /// Whether the kernel must not cache nor trust the size (native documents).
    public var isDirect: Bool
}

/// One `open`, by number.
public struct FileHandle: Hashable, Sendable {
    /// The number, unique in the life of the mount; never 0.
    public let rawValue: UInt64

    /// Wraps a number that `open` or `create` gave.
    public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// How a file is opened: the flags of `open` that mean something here.
public struct OpenMode: Hashable, Sendable {
    /// Whether the handle may read.
    public var reads: Bool
    /// Whether the handle may write.
    public var writes: Bool
    /// Whether the file is emptied.
    public var truncates: Bool
    /// Whether each write goes to the end.
    public var appends: Bool
    /// Whether the program bypasses the kernel's cache (O_DIRECT): it may ask for more than there is.
    public var bypassesCache = false
    /// The thread that opens the file; 0 where that is not known.
    public var thread: Int32 = 0

    /// A mode; reading only by default.
    public init(
        reads: Bool = true,
        writes: Bool = false,
        truncates: Bool = false,
        appends: Bool = false
    ) {
        self.reads = reads
        self.writes = writes
        self.truncates = truncates
        self.appends = appends
    }
}

/// What of a file's attributes is to change; nil leaves an attribute alone.
public struct AttributeSetting: Hashable, Sendable {
    /// A point in time, or the moment of the call.
    public enum Time: Hashable, Sendable {
        /// The moment of the call.
        case now
        /// This time.
        case at(Timestamp)
    }

    /// Permission bits, 07777.
    public var mode: UInt16?
    /// The owner.
    public var owner: UInt32?
    /// The group.
    public var group: UInt32?
    /// The size: cuts or extends.
    public var size: Int64?
    /// The modified time.
    public var modified: Time?
    /// The time of the last read.
    public var accessed: Time?

    /// Nothing to change.
    public init() {}
}

/// Who makes something.
public struct Caller: Hashable, Sendable {
    /// The user that will own it.
    public var owner: UInt32
    /// The group that will own it.
    public var group: UInt32

    /// A caller; `group` is the process's.
    public init(owner: UInt32, group: UInt32) {
        self.owner = owner
        self.group = group
    }
}

/// What can be made with `mknod`.
public enum SpecialKind: Hashable, Sendable {
    /// A regular, empty file.
    case file
    /// A named pipe; known to this machine only.
    case fifo
    /// A socket; known to this machine only.
    case socket
    /// A device: not permitted.
    case device
}

/// The room of the account that an inode lies in.
public struct FileSystemRoom: Hashable, Sendable {
    /// Bytes in all.
    public var total: Int64
    /// Bytes that are free.
    public var free: Int64
    /// The longest name, in bytes.
    public var longestName: Int
}

/// Where `lseek` looks for the next data or hole.
public enum SeekTarget: Hashable, Sendable {
    /// The next byte that is data.
    case data
    /// The next byte that lies in a hole; the end of the file is one.
    case hole
}
