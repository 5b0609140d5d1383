/// A file system as the kernel sees it: inode numbers, handles and one reply to each request.
///
/// The methods are called on the mount's own threads, several at a time, also for one file or folder.
/// They must not block for longer than a disk takes: what waits for a network keeps its reply
/// (`PendingReply`, `Reply.answer(in:)`) and returns. `RawSpan` arguments live until the method
/// returns. Names are valid UTF-8, without `/`; a name that is not is answered here (ENOENT where it
/// would have to exist, EILSEQ where it would be made).
///
/// Every method has a default that answers ENOSYS; for most operations the kernel then never asks
/// again. The lookup count of a file is the number of times that an answer handed its number out:
/// `lookup`, `create`, `mkdir`, `mknod`, `symlink` and `link` by one, `readdirplus` by one for each
/// entry with attributes. As long as it is above zero the kernel may name the file.
///
/// Source: fuse_lowlevel.h of libfuse 3.14, struct fuse_lowlevel_ops.
public protocol LowLevelFileSystem: Sendable {
    /// The connection stands; called once, before anything else. The notifier may be kept.
    func initialize(_ connection: Connection)

    /// Called once, after the last request. Replies that are still kept may be given later; they go
    /// nowhere.
    func destroy()

    /// Finds a name in a folder, and raises the file's lookup count.
    func lookup(_ name: String, in parent: InodeNumber, reply: consuming EntryReply)

    /// Takes lookups back; at zero the kernel has forgotten the file. Has no answer. Not called for
    /// what the kernel still knows when the mount ends.
    func forget(_ forgotten: [Forgotten])

    /// What `stat` shows; `handle` is there if an open file was asked (`fstat`).
    func getattr(_ inode: InodeNumber, handle: HandleNumber?, reply: consuming AttributesReply)

    /// Changes attributes and answers with all of them: chmod, chown, truncate, utimens.
    ///
    /// Where `Mount.Options.clearsPrivileges` is set (the default), a change of owner or size must
    /// also clear the set-user-ID and set-group-ID bits.
    func setattr(
        _ inode: InodeNumber,
        _ changes: AttributeChanges,
        handle: HandleNumber?,
        reply: consuming AttributesReply
    )

    /// The target of a symbolic link.
    func readlink(_ inode: InodeNumber, reply: consuming ReadlinkReply)

    /// Makes a regular file, a pipe, a socket or a device; raises the new file's lookup count.
    func mknod(
        _ name: String,
        in parent: InodeNumber,
        kind: FileKind,
        permissions: UInt32,
        device: UInt64,
        reply: consuming EntryReply
    )

    /// Makes a folder; raises its lookup count.
    func mkdir(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        reply: consuming EntryReply
    )

    /// Takes a file's name away. The file itself lives until it is closed and forgotten.
    func unlink(_ name: String, in parent: InodeNumber, reply: consuming DoneReply)

    /// Takes an empty folder away; ENOTEMPTY if it is not.
    func rmdir(_ name: String, in parent: InodeNumber, reply: consuming DoneReply)

    /// Makes a symbolic link; raises its lookup count.
    func symlink(
        _ name: String,
        in parent: InodeNumber,
        target: String,
        reply: consuming EntryReply
    )

    /// Moves or renames. Unknown flags are to be answered EINVAL.
    func rename(
        _ name: String,
        in parent: InodeNumber,
        to newName: String,
        in newParent: InodeNumber,
        flags: RenameFlags,
        reply: consuming DoneReply
    )

    /// Makes another name for a file; raises its lookup count.
    func link(
        _ inode: InodeNumber,
        as newName: String,
        in newParent: InodeNumber,
        reply: consuming EntryReply
    )

    /// Opens a file; O_CREAT and O_EXCL never arrive here. With `flags.truncates` the content is to
    /// be dropped.
    ///
    /// ENOSYS means: all files are open always, their cache is kept; O_TRUNC is then lost.
    func open(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply)

    /// Reads `reply.limit` bytes from `offset`, which may lie past the end.
    func read(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DataReply
    )

    /// Writes all of `bytes` at `offset`, which may lie past the end. Where
    /// `Mount.Options.clearsPrivileges` is set it must clear set-user-ID and set-group-ID bits.
    func write(
        _ inode: InodeNumber,
        _ bytes: RawSpan,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming WriteReply
    )

    /// One descriptor of an open file is closed (there may be more); an error is what `close` says.
    func flush(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply)

    /// The last descriptor of an open file is closed: one call for each `open` or `create`. An error goes
    /// nowhere.
    func release(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply)

    /// Makes what was written durable; `dataOnly` leaves out what is not needed to read it.
    func fsync(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    )

    /// Opens a folder. The default's ENOSYS is the best answer where `Notifier` reports every change: the
    /// kernel then opens by itself, for ever, and keeps listings in its cache.
    func opendir(_ inode: InodeNumber, flags: OpenFlags, reply: consuming OpenReply)

    /// Lists a folder from `offset` (0, or what an entry named as its next offset) without
    /// attributes. Asked only if `readdirplus` answers ENOSYS. `.` and `..` need not be there.
    func readdir(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryReply
    )

    /// Lists a folder from `offset` with attributes; raises the lookup count of each entry that has
    /// them. `.` and `..` need not be there.
    func readdirplus(
        _ inode: InodeNumber,
        offset: Int64,
        handle: HandleNumber,
        reply: consuming DirectoryPlusReply
    )

    /// An open folder is closed: one call for each `opendir`.
    func releasedir(_ inode: InodeNumber, handle: HandleNumber, reply: consuming DoneReply)

    /// Makes a folder's entries durable.
    func fsyncdir(
        _ inode: InodeNumber,
        dataOnly: Bool,
        handle: HandleNumber,
        reply: consuming DoneReply
    )

    /// The size and use of the file system, asked with the path's file: parts of a mount may differ.
    func statfs(_ inode: InodeNumber, reply: consuming StatisticsReply)

    /// Sets an extended attribute; its name has its namespace (`user.…`).
    func setxattr(
        _ inode: InodeNumber,
        name: String,
        value: [UInt8],
        mode: XattrMode,
        reply: consuming DoneReply
    )

    /// An extended attribute's value; ENODATA where there is none.
    ///
    /// Names of other namespaces than `Mount.Options.xattrNamespaces` do not arrive here: they are
    /// answered EOPNOTSUPP, which the programs take as final; ENODATA costs `ls -l` two requests a file.
    func getxattr(_ inode: InodeNumber, name: String, reply: consuming XattrReply)

    /// The names of all extended attributes.
    func listxattr(_ inode: InodeNumber, reply: consuming XattrReply)

    /// Takes an extended attribute away; ENODATA where there is none.
    func removexattr(_ inode: InodeNumber, name: String, reply: consuming DoneReply)

    /// Whether the caller may do `mask` (`man 2 access`); not asked with
    /// `Mount.Options.checksPermissions`.
    func access(_ inode: InodeNumber, mask: Int32, reply: consuming DoneReply)

    /// Makes a regular file and opens it; raises its lookup count. Without O_EXCL the name may turn out
    /// to exist: then it is opened.
    func create(
        _ name: String,
        in parent: InodeNumber,
        permissions: UInt32,
        flags: OpenFlags,
        reply: consuming CreateReply
    )

    /// Gives room to a file, or takes it (`man 2 fallocate`, `mode` as there); EOPNOTSUPP for modes
    /// that are not known.
    func fallocate(
        _ inode: InodeNumber,
        mode: Int32,
        offset: Int64,
        length: Int64,
        handle: HandleNumber,
        reply: consuming DoneReply
    )

    /// Copies bytes between two open files of this mount; the answer may be fewer than `length`, and is
    /// at most 4 GiB - 1. EXDEV or EOPNOTSUPP lets programs read and write instead.
    func copyFileRange(
        from source: InodeNumber,
        offset sourceOffset: Int64,
        handle sourceHandle: HandleNumber,
        to target: InodeNumber,
        offset targetOffset: Int64,
        handle targetHandle: HandleNumber,
        length: Int,
        reply: consuming WriteReply
    )

    /// Looks for data or a hole (the kernel answers the other kinds of `lseek`); ENXIO past the end.
    func lseek(
        _ inode: InodeNumber,
        offset: Int64,
        to target: SeekTarget,
        handle: HandleNumber,
        reply: consuming SeekReply
    )
}

/// What is known when the connection stands.
public struct Connection: Sendable {
    /// The version of the kernel's protocol.
    public var protocolVersion: (major: UInt32, minor: UInt32)
    /// The most bytes of one write.
    public var largestWrite: Int
    /// Notifies the kernel of changes behind its back.
    public var notifier: Notifier
}
