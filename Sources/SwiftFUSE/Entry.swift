internal import CFUSE

/// A name's file, with how long the kernel may believe it without asking.
public struct Entry: Hashable, Sendable {
    /// The file's number; nil is a negative entry: the kernel may believe for `entryTimeout` that the
    /// name does not exist.
    public var inode: InodeNumber?
    /// Distinguishes two uses of one number.
    public var generation: UInt64
    /// What `stat` shows; meaningless for a negative entry.
    public var attributes: Attributes?
    /// How long the attributes may be cached.
    ///
    /// A day, where `Notifier` reports every change.
    public var attributesTimeout: Duration
    /// How long the name may be believed.
    public var entryTimeout: Duration

    /// An entry for an existing file.
    public init(
        attributes: Attributes,
        generation: UInt64 = 0,
        attributesTimeout: Duration,
        entryTimeout: Duration
    ) {
        inode = attributes.inode
        self.generation = generation
        self.attributes = attributes
        self.attributesTimeout = attributesTimeout
        self.entryTimeout = entryTimeout
    }

    /// The name does not exist, and the kernel may believe so for a while.
    public static func absent(for timeout: Duration) -> Entry { Entry(absentFor: timeout) }

    private init(absentFor timeout: Duration) {
        generation = 0
        attributesTimeout = .zero
        entryTimeout = timeout
    }

    var parameters: fuse_entry_param {
        var result = fuse_entry_param()
        result.ino = inode?.rawValue ?? 0
        result.generation = generation
        if let attributes { result.attr = attributes.stat }
        result.attr_timeout = attributesTimeout.inSeconds
        result.entry_timeout = entryTimeout.inSeconds
        return result
    }
}

extension Duration {
    /// Seconds with their fraction, as libfuse takes timeouts.
    var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

/// The size and use of a file system, as `statvfs` shows it.
public struct FileSystemStatistics: Hashable, Sendable {
    /// Bytes in a block; the unit of the counts below.
    public var blockSize: UInt64
    /// Blocks in all.
    public var blocks: UInt64
    /// Blocks not in use.
    public var freeBlocks: UInt64
    /// Blocks that a plain user may still fill.
    public var availableBlocks: UInt64
    /// Files in all; zero where it means nothing.
    public var files: UInt64
    /// Files that may still be made.
    public var freeFiles: UInt64
    /// Bytes in the longest name.
    public var longestName: UInt64

    /// Statistics with all of their parts.
    public init(
        blockSize: UInt64,
        blocks: UInt64,
        freeBlocks: UInt64,
        availableBlocks: UInt64,
        files: UInt64,
        freeFiles: UInt64,
        longestName: UInt64
    ) {
        self.blockSize = blockSize
        self.blocks = blocks
        self.freeBlocks = freeBlocks
        self.availableBlocks = availableBlocks
        self.files = files
        self.freeFiles = freeFiles
        self.longestName = longestName
    }
}
