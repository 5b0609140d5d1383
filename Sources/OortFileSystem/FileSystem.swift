public import OortCatalog
public import OortContentStore
public import OortModel

/// What a read found.
public enum ReadAnswer: Sendable {
    /// The read began at the end of the file, or past it.
    case end
    /// The bytes lie in this local file at this range, in full: to be spliced or copied from
    /// there. The file stays open as long as the value lives.
    case file(DiskFile, Range<Int64>)
    /// The bytes.
    case bytes([UInt8])
}

/// The operations of the mount, on inodes and handles, in Swift types.
///
/// Isolation: every operation may be called from any thread, many at once. None blocks for a
/// network: what must wait is answered `.later`. Local answers cost a lookup in memory or a SQLite
/// statement; write-side ones a SQLite transaction or a write to the local disk.
///
/// Names are given without `/` and NUL, and never `.` nor `..`. The top folder (inode 1) holds the
/// accounts and cannot be written.
public protocol FileSystem: Sendable {
    // MARK: Names and attributes

    /// The item of this name in a folder.
    func lookup(_ name: String, in folder: Inode) -> Outcome<Entry>

    /// Takes back so many of the kernel's lookups of an inode: each `Entry` that it got is one.
    func forget(_ inode: Inode, lookups: UInt64)

    /// How long the kernel may cache that a folder does not have a name.
    func absenceValidity(in folder: Inode) -> Duration

    /// The attributes of an inode; those of an open file while it is written.
    func attributes(of inode: Inode, handle: FileHandle?) -> Outcome<Entry>

    /// Sets attributes; a new size cuts or extends the content.
    func setAttributes(
        _ setting: AttributeSetting,
        of inode: Inode,
        handle: FileHandle?
    ) -> Outcome<Entry>

    /// Whether an item may be written at all; the mode bits are the kernel's to check
    /// (`default_permissions`).
    func checkAccess(of inode: Inode, writes: Bool) -> Outcome<Void>

    /// The folder's next entries after a cookie (0 for the start), at most `limit`; empty at the
    /// end. Entries made or removed meanwhile may be missed, no other is missed or given twice.
    func list(_ folder: Inode, after cookie: UInt64, limit: Int) -> Outcome<[FolderEntry]>

    /// A thread of some program begins to list a folder. Returns at once.
    func listingBegins(_ folder: Inode, thread: Int32)

    /// The folder that holds this one, for `..`; the top folder's is itself.
    func parent(of folder: Inode) -> Outcome<Inode>

    /// The target of a symbolic link.
    func readLink(_ inode: Inode) -> Outcome<String>

    // MARK: Making, moving, removing

    /// Makes a file and opens it. When the name is taken: `.exists` if `isExclusive`, else the file
    /// there is opened.
    func create(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller,
        mode: OpenMode,
        isExclusive: Bool
    ) -> Outcome<(Entry, Opened)>

    /// Makes a folder.
    func makeFolder(
        _ name: String,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry>

    /// Makes a file, pipe or socket.
    func makeSpecial(
        _ name: String,
        kind: SpecialKind,
        in folder: Inode,
        permissions: UInt16,
        caller: Caller
    ) -> Outcome<Entry>

    /// Makes a symbolic link.
    func makeLink(
        _ name: String,
        to target: String,
        in folder: Inode,
        caller: Caller
    ) -> Outcome<Entry>

    /// Removes a name that is no folder's; a file that is open stays readable.
    func unlink(_ name: String, in folder: Inode) -> Outcome<Void>

    /// Removes an empty folder.
    func removeFolder(_ name: String, in folder: Inode) -> Outcome<Void>

    /// Renames and moves within an account.
    func rename(
        _ name: String,
        in folder: Inode,
        to newName: String,
        in newFolder: Inode,
        mode: RenameMode
    ) -> Outcome<Void>

    // MARK: Content

    /// Opens a file.
    func open(_ inode: Inode, mode: OpenMode) -> Outcome<Opened>

    /// At most `count` bytes from `offset`; fewer only at the end of the file.
    func read(_ handle: FileHandle, at offset: Int64, count: Int) -> Outcome<ReadAnswer>

    /// Writes all bytes (the answer is their number) at `offset`, or at the end in append mode. The
    /// bytes are copied before the call returns.
    func write(_ handle: FileHandle, _ bytes: RawSpan, at offset: Int64) -> Outcome<Int>

    /// A descriptor of the open file was closed (there may be others): records what was written.
    func flush(_ handle: FileHandle) -> Outcome<Void>

    /// Makes what was written survive the death of the machine.
    func synchronise(_ handle: FileHandle) -> Outcome<Void>

    /// Makes a folder's changes survive the death of the machine.
    func synchroniseFolder(_ folder: Inode) -> Outcome<Void>

    /// The last descriptor of the open file is closed; the handle is no longer valid.
    func release(_ handle: FileHandle)

    /// Copies within an account: a whole clean file onto a new file is copied by the service
    /// later; all else here. The answer is the number of bytes copied, at most `count`.
    func copyRange(
        from source: FileHandle,
        at sourceOffset: Int64,
        to target: FileHandle,
        at targetOffset: Int64,
        count: Int64
    ) -> Outcome<Int64>

    /// The next data or hole at or after `offset`.
    func seek(_ handle: FileHandle, to target: SeekTarget, from offset: Int64) -> Outcome<Int64>

    /// Makes sure that the range can be written; extends the file where `extends` is set.
    func allocate(
        _ handle: FileHandle,
        range: Range<Int64>,
        extends: Bool
    ) -> Outcome<Void>

    // MARK: Extended attributes, room

    /// The value of an extended attribute; `.notSupported` outside of `user.`.
    func extendedAttribute(_ name: String, of inode: Inode) -> Outcome<[UInt8]>

    /// The names of an item's extended attributes.
    func extendedAttributes(of inode: Inode) -> Outcome<[String]>

    /// Sets an extended attribute; `mustExist` true demands one of the name, false demands none.
    func setExtendedAttribute(
        _ name: String,
        to value: [UInt8],
        of inode: Inode,
        mustExist: Bool?
    ) -> Outcome<Void>

    /// Takes an extended attribute away.
    func removeExtendedAttribute(_ name: String, of inode: Inode) -> Outcome<Void>

    /// The room of the account that an inode lies in, from the catalog.
    func room(of inode: Inode) -> Outcome<FileSystemRoom>
}

/// The defaults of a file system that needs to know neither of `forget` nor of listings.
extension FileSystem {
    public func listingBegins(_ folder: Inode, thread: Int32) {}

    public func forget(_ inode: Inode, lookups: UInt64) {}
}
