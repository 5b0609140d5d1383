public import OortModel

/// Where an item lies: in which folder, under which name in the service's spelling.
///
/// Names are compared byte for byte: `é` in one scalar and in two are two names.
public struct Place: Hashable, Sendable {
    /// The folder that holds the item.
    public var parent: Inode
    /// The item's name in the service's spelling.
    public var name: String

    /// The place of `name` in `parent`.
    public init(parent: Inode, name: String) {
        self.parent = parent
        self.name = name
    }

    public static func == (one: Place, other: Place) -> Bool {
        one.parent == other.parent && one.name.isSameText(as: other.name)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(parent)
        for byte in name.utf8 { hasher.combine(byte) }
    }
}

/// Which bytes a file has, as far as it is known.
public struct ContentIdentity: Hashable, Sendable {
    /// The service's revision; nil while the content is only here.
    public var revision: Revision?
    /// The catalog's number of a staged content; nil when the service has it.
    public var staged: Int64?
    /// The content's hash by the service's algorithm, where it is known.
    public var hash: ContentHash?
    /// Bytes of content.
    public var size: Int64

    /// An identity of what is known.
    public init(
        revision: Revision? = nil,
        staged: Int64? = nil,
        hash: ContentHash? = nil,
        size: Int64 = 0
    ) {
        self.revision = revision
        self.staged = staged
        self.hash = hash
        self.size = size
    }

    /// Whether both are certainly the same bytes.
    ///
    /// Hashes decide where both are known, since at some services a revision changes without the content
    /// (by a move). A hash that does not tell contents apart decides only for empty ones.
    public func isSame(as other: ContentIdentity) -> Bool {
        if let revision, revision == other.revision { return true }
        if let staged, staged == other.staged { return true }
        guard let hash, let otherHash = other.hash else { return false }
        return size == other.size && hash == otherHash
            && (hash.algorithm.tellsContentsApart || size == 0)
    }
}

/// An item in one of the three trees.
public struct Entry: Hashable, Sendable {
    /// Where it lies.
    public var place: Place
    /// A file's content; nil for whatever has none.
    public var content: ContentIdentity?
    /// When the content was last modified.
    public var modified: Timestamp?
    /// The free text that belongs to the item.
    public var description: String?

    /// An item at a place.
    public init(
        place: Place,
        content: ContentIdentity? = nil,
        modified: Timestamp? = nil,
        description: String? = nil
    ) {
        self.place = place
        self.content = content
        self.modified = modified
        self.description = description
    }

    /// Whether both certainly have the same bytes, or none.
    func hasSameContent(as other: Entry) -> Bool {
        switch (content, other.content) {
        case (nil, nil): true
        case (let mine?, let others?): mine.isSame(as: others)
        default: false
        }
    }
}

/// The revision of another item that a content is made of.
public struct BorrowedContent: Hashable, Sendable {
    /// The other item.
    public var owner: Inode
    /// Its revision; what it has after that is not needed.
    public var revision: Revision

    /// What is borrowed of an item.
    public init(owner: Inode, revision: Revision) {
        self.owner = owner
        self.revision = revision
    }
}

/// What the planner knows of one item: its state in the three trees, and what holds it back.
public struct ItemState: Sendable {
    /// The item.
    public var inode: Inode
    /// Whether it holds other items.
    public var isFolder: Bool
    /// Whether it shows as a symbolic link, the name at the service being `NAME.rclonelink`.
    public var isLink = false
    /// What the user sees; nil when it is not there (deleted, or not yet here).
    public var local: Entry?
    /// What both sides last agreed on; nil when they never did.
    public var synced: Entry?
    /// What the service last said; nil when it is not there.
    public var remote: Entry?
    /// The name of an item that is no longer in the local tree; nil where it never was.
    public var formerName: String?
    /// Whether the last local change is old enough to be pushed, its content's hash known.
    public var isSettled = true
    /// Whether the item was moved to the trash and must be found there as it was: no other file takes over
    /// its identity.
    public var isTrashed = false
    /// Whether a program has the item open for writing: its content must not be replaced or taken away.
    public var isOpen = false
    /// Whether that program has written to it: it is not sent before it is closed.
    public var isBeingWritten = false
    /// Whether an operation on it is under way at the service: it is left alone altogether.
    public var isBusy = false
    /// Whether the service said that it does not have the item, but the feed has not confirmed it: the item
    /// is busy, and whatever has its place at the service waits.
    public var mayBeGone = false
    /// Where an operation under way makes it appear at the service: what the feed shows there may be
    /// this very item.
    public var expected: Place?
    /// Whether it may be pushed at all (not read-only, not local by kind, not waiting for its
    /// next try).
    public var isPushable = true
    /// Whether the item is shown with a number because another one has its name here, at a service where a
    /// name is unique in its folder: the other one cannot have that name there.
    public var isDisplaced = false
    /// The item whose bytes at the service this one's content is made of, wholly or in part: that item must
    /// keep them until this content is sent.
    public var borrowed: BorrowedContent?
    /// Whether we created it at the service a short while ago and its content is all here: then it
    /// may be a program's temporary file, and its identity can be given away.
    public var isRecent = false

    /// An item in the three trees.
    public init(inode: Inode, isFolder: Bool, local: Entry?, synced: Entry?, remote: Entry?) {
        self.inode = inode
        self.isFolder = isFolder
        self.local = local
        self.synced = synced
        self.remote = remote
    }

    /// The item as it enters the local tree: as the service has it, but without a name that only breaks a
    /// circle of moves.
    var arrival: Entry? {
        guard var entry = remote else { return nil }
        if let formerName, Planner.isDetour(entry.place.name) {
            entry.place.name = formerName
        }
        return entry
    }
    /// Whether the service said something that is not merged yet.
    var hasNews: Bool { remote != synced }
    /// Whether only this side knows it.
    var isBornHere: Bool { remote == nil && synced == nil && local != nil }
    /// Whether only the service knows it.
    var isNewcomer: Bool { local == nil && synced == nil && remote != nil }
    /// Whether it lies elsewhere than at the service, or not at the service at all.
    var isMisplaced: Bool {
        guard let local else { return false }
        return local.place != remote?.place
    }
}
