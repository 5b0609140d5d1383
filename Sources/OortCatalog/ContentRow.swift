import GRDB
public import OortModel

/// One staged or cached content as the catalog knows it.
public struct ContentRow: Hashable, Sendable {
    /// Its number, which is also its file's name.
    public var id: ContentID
    /// The account.
    public var account: AccountID
    /// Cached content: whose; nil for staged content.
    public var item: ItemID?
    /// Cached content: which revision.
    public var revision: Revision?
    /// Staged content: the item whose revision it lies over; nil when it stands alone.
    public var baseItem: ItemID?
    /// Staged content: the revision that it lies over.
    public var baseRevision: Revision?
    /// Bytes of the base.
    public var baseSize: Int64
    /// Bytes in all; for staged content that is open, the file on the disk knows better.
    public var size: Int64
    /// The hash by the service's algorithm, where it is known.
    public var hash: ContentHash?
    /// Whether it is staged.
    public var isStaged: Bool
    /// Whether a program had it open for writing when this was last stored.
    public var isOpen: Bool
    /// Whether all bytes are here and verified.
    public var isComplete: Bool
    /// Which ranges are here, as the content store writes it.
    public var present: [UInt8]?
    /// Bytes that it takes on the disk.
    public var bytesOnDisk: Int64
    /// Staged content: what of it was lost, in words; nil when nothing was.
    public var damage: String?

    static let columns = """
        id, account, item, revision, base_item, base_revision, base_size, size, hash, is_staged, \
        is_open, is_complete, present, bytes_on_disk, damage
        """

    init(columns row: Columns) {
        id = ContentID(row[0])
        account = AccountID(row[1])
        item = (row[2] as String?).map { ItemID($0) }
        revision = (row[3] as String?).map { Revision($0) }
        baseItem = (row[4] as String?).map { ItemID($0) }
        baseRevision = (row[5] as String?).map { Revision($0) }
        baseSize = row[6]
        size = row[7]
        hash = (row[8] as String?).flatMap { ContentHash(description: $0) }
        isStaged = row[9] as Int64 != 0
        isOpen = row[10] as Int64 != 0
        isComplete = row[11] as Int64 != 0
        present = row[12]
        bytesOnDisk = row[13]
        damage = row[14]
    }
}

/// The revision that a program read before it changed a file.
public struct ContentOrigin: Hashable, Sendable {
    /// Whose revision.
    public var item: ItemID
    /// Which revision.
    public var revision: Revision
    /// Bytes of it.
    public var size: Int64
    /// The hash of its content, where it is known.
    public var hash: ContentHash?
    /// The number of its cached content, where there is one: that has the revision's present key.
    public var content: ContentID?

    /// A revision with its size and hash.
    public init(
        item: ItemID,
        revision: Revision,
        size: Int64,
        hash: ContentHash?,
        content: ContentID? = nil
    ) {
        self.content = content
        self.item = item
        self.revision = revision
        self.size = size
        self.hash = hash
    }
}

/// Staged content that is about to be made.
public struct NewStagedContent: Hashable, Sendable {
    /// The item whose revision it lies over; nil when it stands alone.
    public var baseItem: ItemID?
    /// The revision that it lies over.
    public var baseRevision: Revision?
    /// The number of that revision's cached content, where there is one: that has its present key.
    public var baseContent: ContentID?
    /// Bytes of the base.
    public var baseSize: Int64
    /// Bytes in all.
    public var size: Int64
    /// What of it was lost, in words, where it is a clone of a damaged one; nil when nothing was.
    public var damage: String?
    /// The revision that its writer read: another one that the file has by now is news.
    public var origin: ContentOrigin?
    /// The staged content that it is a clone of: if its file has other bytes by now, those are news.
    public var original: ContentID?

    /// A content of `size` bytes, over a base where one is given.
    public init(
        baseItem: ItemID? = nil,
        baseRevision: Revision? = nil,
        baseContent: ContentID? = nil,
        baseSize: Int64 = 0,
        size: Int64,
        damage: String? = nil,
        origin: ContentOrigin? = nil,
        original: ContentID? = nil
    ) {
        self.damage = damage
        self.origin = origin
        self.original = original
        self.baseItem = baseItem
        self.baseRevision = baseRevision
        self.baseContent = baseContent
        self.baseSize = baseSize
        self.size = size
    }
}

/// What changed in the cache for one of its contents.
public struct CacheRecord: Hashable, Sendable {
    /// The content.
    public var id: ContentID
    /// Which ranges are here.
    public var present: [UInt8]
    /// Whether all bytes are here and verified.
    public var isComplete: Bool
    /// Bytes that it takes on the disk.
    public var bytesOnDisk: Int64

    /// A record with all of its parts.
    public init(id: ContentID, present: [UInt8], isComplete: Bool, bytesOnDisk: Int64) {
        self.id = id
        self.present = present
        self.isComplete = isComplete
        self.bytesOnDisk = bytesOnDisk
    }
}
