public import OortModel

/// What is to be kept on this machine: a file, or a folder with all that lies in it, now and later.
public struct Pin: Hashable, Sendable {
    /// Sums of bytes and files.
    public struct Sums: Hashable, Sendable {
        /// Files that have bytes, and documents that are exported.
        public var files = 0
        /// Bytes of them; a document counts once it was exported.
        public var bytes: Int64 = 0
        /// Files of which all bytes are here.
        public var filesHere = 0
        /// Bytes that are here, those of files that are on their way among them.
        public var bytesHere: Int64 = 0
        /// Bytes that take room in the cache, or will; bytes that programs wrote do not, before they are
        /// sent.
        public var cachedBytes: Int64 = 0

        /// Nothing.
        public init() {}

        /// Files that are still to be fetched.
        public var filesMissing: Int { files - filesHere }
        /// Bytes that are still to be fetched.
        public var bytesMissing: Int64 { max(bytes - bytesHere, 0) }
    }

    /// What is kept.
    public var inode: Inode
    /// Its account; 0 for the mount's top folder.
    public var account: AccountID
    /// When it was pinned, milliseconds since 1970.
    public var made: Int64
    /// When that ends, milliseconds since 1970; nil for when somebody ends it.
    public var until: Int64?
}

/// A file that is to be kept here, as the service has it now.
public struct KeptFile: Hashable, Sendable {
    /// The file.
    public var inode: Inode
    /// The item whose bytes it has: its own at the service, or the one that it is a copy of; of a file into
    /// which programs wrote, the one of which the rest is.
    public var item: ItemID
    /// Their revision, or what stands for it where the file is a document that is exported.
    public var revision: Revision
    /// Bytes in all; for a document, those of the last export.
    public var size: Int64
    /// The service's hash of them, where it has one.
    public var hash: ContentHash?
    /// Whether it is read by exporting it.
    public var isExported: Bool
    /// Whether the account may read it.
    public var isReadable: Bool
}

/// What is to be kept of an account, and what of that is missing.
public struct KeepSurvey: Sendable {
    /// All of it.
    public var sums = Pin.Sums()
    /// Some of the wanted files whose bytes are missing.
    public var missing: [KeptFile] = []
    /// Whether there are more of those.
    public var isCut = false
}

/// How much of an item's bytes is on this machine.
public enum Availability: String, Hashable, Sendable {
    /// Nothing: it is fetched when it is read.
    case online
    /// Some of it.
    case partly
    /// All of it, as long as nothing else needs the room.
    case cached
    /// All of it, and it stays.
    case pinned
}
