internal import CFUSE
import Glibc

/// The answer that is owed to one request; `Answer` says of which sort.
///
/// Any thread may give it, later too: put it into a `PendingReply` to keep it, or hand it to a task
/// with `answer(in:)`. It is given exactly once; dropped, it answers EIO.
public struct Reply<Answer>: ~Copyable, Sendable {
    var request: Request
    /// The room that the caller has, in bytes, where the answer has a variable length.
    public let limit: Int

    init(_ request: consuming Request, limit: Int = 0) {
        self.request = request
        self.limit = limit
    }

    /// Who asks.
    public var caller: Caller { request.caller }

    /// Has `handler` called if the caller is interrupted while it waits; see `Request.onInterrupt`.
    public mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
        request.onInterrupt(handler)
    }

    /// The operation failed.
    public consuming func fail(_ error: Errno) { request.fail(error) }
}

/// The sorts of answers, as tags of `Reply`.
public enum Answers {
    /// Nothing but success.
    public enum Done {}
    /// A name's file.
    public enum Name {}
    /// A new file, open.
    public enum Created {}
    /// Attributes.
    public enum Attributes {}
    /// A symbolic link's target.
    public enum Target {}
    /// An open file.
    public enum Opened {}
    /// Bytes of a file.
    public enum Data {}
    /// How many bytes were written.
    public enum Count {}
    /// Entries of a folder.
    public enum Directory {}
    /// Entries of a folder with their attributes.
    public enum DirectoryPlus {}
    /// The size and use of the file system.
    public enum Statistics {}
    /// An extended attribute's value, or the list of their names.
    public enum Xattr {}
    /// An offset in a file.
    public enum Offset {}
}

/// Answers that an operation is done.
public typealias DoneReply = Reply<Answers.Done>
/// Answers with a name's file.
public typealias EntryReply = Reply<Answers.Name>
/// Answers with a new, open file.
public typealias CreateReply = Reply<Answers.Created>
/// Answers with attributes.
public typealias AttributesReply = Reply<Answers.Attributes>
/// Answers with a symbolic link's target.
public typealias ReadlinkReply = Reply<Answers.Target>
/// Answers with an open file.
public typealias OpenReply = Reply<Answers.Opened>
/// Answers with bytes.
public typealias DataReply = Reply<Answers.Data>
/// Answers with how many bytes were written.
public typealias WriteReply = Reply<Answers.Count>
/// Answers with entries of a folder.
public typealias DirectoryReply = Reply<Answers.Directory>
/// Answers with entries of a folder and their attributes.
public typealias DirectoryPlusReply = Reply<Answers.DirectoryPlus>
/// Answers with the size and use of the file system.
public typealias StatisticsReply = Reply<Answers.Statistics>
/// Answers with an extended attribute's value, or with the list of their names.
public typealias XattrReply = Reply<Answers.Xattr>
/// Answers with an offset.
public typealias SeekReply = Reply<Answers.Offset>

extension Reply where Answer == Answers.Done {
    /// The operation is done.
    public consuming func succeed() {
        unsafe request.answer { unsafe fuse_reply_err($0, 0) }
    }
}

extension Reply where Answer == Answers.Name {
    /// The name's file.
    ///
    /// Raises its lookup count by one, if the kernel took the answer and the entry is not negative.
    ///
    /// - Returns: whether the kernel took it.
    @discardableResult
    public consuming func send(_ entry: Entry) -> Bool {
        unsafe request.answer { raw in
            var parameters = entry.parameters
            return unsafe fuse_reply_entry(raw, &parameters)
        }
    }
}

extension Reply where Answer == Answers.Created {
    /// The new file and its handle.
    ///
    /// Raises the file's lookup count by one, if the kernel took the answer.
    ///
    /// - Returns: whether the kernel took it; else no `release` will come for the handle.
    @discardableResult
    public consuming func send(_ entry: Entry, _ file: OpenFile) -> Bool {
        unsafe request.answer { raw in
            var parameters = entry.parameters
            var info = file.fileInfo
            return unsafe fuse_reply_create(raw, &parameters, &info)
        }
    }
}

extension Reply where Answer == Answers.Attributes {
    /// The attributes and how long the kernel may believe them.
    public consuming func send(_ attributes: Attributes, timeout: Duration) {
        unsafe request.answer { raw in
            var stat = attributes.stat
            return unsafe fuse_reply_attr(raw, &stat, timeout.inSeconds)
        }
    }
}

extension Reply where Answer == Answers.Target {
    /// The link's target, any text; at most 4,095 bytes of it can be used.
    public consuming func send(_ target: String) {
        unsafe request.answer { unsafe fuse_reply_readlink($0, target) }
    }
}

extension Reply where Answer == Answers.Opened {
    /// The open file.
    ///
    /// - Returns: whether the kernel took it; else no `release` will come for the handle.
    @discardableResult
    public consuming func send(_ file: OpenFile) -> Bool {
        unsafe request.answer { raw in
            var info = file.fileInfo
            return unsafe fuse_reply_open(raw, &info)
        }
    }
}

extension Reply where Answer == Answers.Count {
    /// So many bytes were written.
    public consuming func send(_ count: Int) {
        unsafe request.answer { unsafe fuse_reply_write($0, count) }
    }
}

extension Reply where Answer == Answers.Statistics {
    /// The size and use of the file system.
    public consuming func send(_ statistics: FileSystemStatistics) {
        unsafe request.answer { raw in
            var result = statvfs()
            result.f_bsize = UInt(statistics.blockSize)
            result.f_frsize = UInt(statistics.blockSize)
            result.f_blocks = UInt(statistics.blocks)
            result.f_bfree = UInt(statistics.freeBlocks)
            result.f_bavail = UInt(statistics.availableBlocks)
            result.f_files = UInt(statistics.files)
            result.f_ffree = UInt(statistics.freeFiles)
            result.f_favail = UInt(statistics.freeFiles)
            result.f_namemax = UInt(statistics.longestName)
            return unsafe fuse_reply_statfs(raw, &result)
        }
    }
}

extension Reply where Answer == Answers.Xattr {
    /// The attribute's value.
    ///
    /// A caller that only asks for the size gets that, one without room ERANGE.
    public consuming func send(_ value: [UInt8]) {
        if limit == 0 {
            unsafe request.answer { unsafe fuse_reply_xattr($0, value.count) }
        } else if value.count > limit {
            request.fail(.outOfRange)
        } else {
            unsafe request.answer { raw in unsafe reply(raw, with: value.span.bytes) }
        }
    }

    /// The names of all extended attributes, each with its namespace (`user.…`).
    public consuming func send(names: [String]) {
        send(names.flatMap { Array($0.utf8) + [0] })
    }
}

extension Reply where Answer == Answers.Offset {
    /// The offset that was looked for, from the file's start.
    public consuming func send(_ offset: Int64) {
        unsafe request.answer { unsafe fuse_reply_lseek($0, Int(offset)) }
    }
}

/// Sends bytes as they are.
func reply(_ raw: fuse_req_t, with bytes: RawSpan) -> CInt {
    unsafe bytes.withUnsafeBytes { bytes in
        unsafe fuse_reply_buf(
            raw,
            bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
            bytes.count
        )
    }
}
