/// A folder to be created.
public struct NewFolder: Hashable, Sendable {
    /// The folder that will hold it.
    public var parent: ItemReference
    /// Its name, as the service is to have it.
    public var name: String
    /// The id to give it, from `Provider.reserveIDs`; nil where the service chooses.
    public var reservedID: ItemID?
    /// Its modified time, where the service keeps one.
    public var modifiedTime: Timestamp?
    /// Permission bits, 0777, its owner's all set, where a program gave it some; services without modes
    /// ignore them.
    public var mode: UInt16?

    /// A folder named `name` in `parent`.
    public init(
        parent: ItemReference,
        name: String,
        reservedID: ItemID? = nil,
        modifiedTime: Timestamp? = nil,
        mode: UInt16? = nil
    ) {
        self.parent = parent
        self.name = name
        self.reservedID = reservedID
        self.modifiedTime = modifiedTime
        self.mode = mode
    }
}

/// Where an upload's content goes.
public enum UploadTarget: Hashable, Sendable {
    /// A new item of this name; fails with `.nameTaken` where the service can tell.
    case create(parent: ItemReference, name: String, reservedID: ItemID?)
    /// A new revision of an item, in place of exactly this one; fails with `.preconditionFailed`
    /// when another is current. Nil where the service knows no revision of the item yet.
    case replace(ItemReference, revision: Revision?)
}

/// An upload without its bytes.
public struct Upload: Sendable {
    /// Where the content goes.
    public var target: UploadTarget
    /// Bytes of content.
    public var size: Int64
    /// The content's hash by the provider's own algorithm.
    public var hash: ContentHash
    /// The modified time to give the item.
    public var modifiedTime: Timestamp?
    /// The created time to give a new item, where the service takes one.
    public var createdTime: Timestamp?
    /// The media type, where it is known.
    public var mimeType: String?
    /// Permission bits for a new item, 0777, its owner's to read and write set, where a program gave it
    /// some; services without modes ignore them.
    public var mode: UInt16?
    /// The content.
    public var content: any ContentSource
    /// The session that an earlier, interrupted try of this same upload left; nil to begin anew.
    public var session: UploadSession?

    /// An upload of `content` to `target`.
    public init(
        target: UploadTarget,
        size: Int64,
        hash: ContentHash,
        modifiedTime: Timestamp?,
        createdTime: Timestamp? = nil,
        mimeType: String?,
        mode: UInt16? = nil,
        content: any ContentSource,
        session: UploadSession? = nil
    ) {
        self.target = target
        self.size = size
        self.hash = hash
        self.modifiedTime = modifiedTime
        self.createdTime = createdTime
        self.mimeType = mimeType
        self.mode = mode
        self.content = content
        self.session = session
    }
}

/// An upload of a new file whose answer never came.
public struct LostUpload: Sendable {
    /// The folder that it was sent to, as it was addressed then.
    public var folder: ItemReference
    /// The name that the file was to have.
    public var name: String
    /// The content's hash by the provider's own algorithm.
    public var hash: ContentHash
    /// The modified time that was sent.
    public var modifiedTime: Timestamp?
    /// The created time that was sent.
    public var createdTime: Timestamp?

    /// An upload with all of its parts.
    public init(
        folder: ItemReference,
        name: String,
        hash: ContentHash,
        modifiedTime: Timestamp?,
        createdTime: Timestamp?
    ) {
        self.folder = folder
        self.name = name
        self.hash = hash
        self.modifiedTime = modifiedTime
        self.createdTime = createdTime
    }
}

/// An upload in parts that lives at the service before the revision does.
public struct UploadSession: Hashable, Sendable {
    /// What the provider needs to go on; a secret at most services: never logged.
    public var state: String
    /// Bytes that the service has confirmed.
    public var confirmedBytes: Int64
    /// After this the service has forgotten the session; nil when unknown.
    public var expires: Timestamp?

    /// A session in the provider's own words.
    public init(state: String, confirmedBytes: Int64, expires: Timestamp?) {
        self.state = state
        self.confirmedBytes = confirmedBytes
        self.expires = expires
    }
}

/// Follows an upload, so that it can be resumed after a restart.
public protocol UploadObserver: Sendable {
    /// The session was opened, moved on or (nil) is over; returns when that is stored durably.
    func sessionChanged(_ session: UploadSession?) async
    /// So many bytes of the content were sent; may be called often and must be quick.
    func sent(_ bytes: Int64)
}

/// A move, a rename or both in one.
public struct Move: Hashable, Sendable {
    /// What is moved.
    public var item: ItemReference
    /// The folder that it leaves.
    public var oldParent: ItemReference
    /// The folder that will hold it; the same as `oldParent` for a plain rename.
    public var parent: ItemReference
    /// Its name afterwards, as the service is to have it.
    public var name: String
    /// The item's modified time, which some services would otherwise set to now.
    public var modifiedTime: Timestamp?

    /// A move of `item` out of `oldParent` to `name` in `parent`.
    public init(
        item: ItemReference,
        oldParent: ItemReference,
        parent: ItemReference,
        name: String,
        modifiedTime: Timestamp?
    ) {
        self.item = item
        self.oldParent = oldParent
        self.parent = parent
        self.name = name
        self.modifiedTime = modifiedTime
    }
}

/// A deletion into the service's trash.
public struct Deletion: Hashable, Sendable {
    /// What is deleted, with all below it.
    public var item: ItemReference
    /// For a file: only if this revision is current, where the service can check.
    public var revision: Revision?
    /// For a folder: only if nothing lies in it, where the service can check.
    public var expectsNothing: Bool

    /// A deletion of `item`, of exactly `revision` where one is given.
    public init(item: ItemReference, revision: Revision? = nil, expectsNothing: Bool = false) {
        self.item = item
        self.revision = revision
        self.expectsNothing = expectsNothing
    }
}

/// A copy made at the service.
public struct Copy: Hashable, Sendable {
    /// The file or native document to copy.
    public var item: ItemReference
    /// The folder that will hold the copy.
    public var parent: ItemReference
    /// The copy's name, as the service is to have it.
    public var name: String
    /// The id to give it, from `Provider.reserveIDs`; nil where the service chooses.
    public var reservedID: ItemID?
    /// The copy's modified time; nil keeps what the service gives.
    public var modifiedTime: Timestamp?

    /// A copy of `item` as `name` in `parent`.
    public init(
        item: ItemReference,
        parent: ItemReference,
        name: String,
        reservedID: ItemID? = nil,
        modifiedTime: Timestamp? = nil
    ) {
        self.item = item
        self.parent = parent
        self.name = name
        self.reservedID = reservedID
        self.modifiedTime = modifiedTime
    }
}

/// What of an item's attributes is to change; nil leaves an attribute alone.
public struct AttributeChange: Hashable, Sendable {
    /// The new modified time.
    public var modifiedTime: Timestamp?
    /// The new description; the empty text removes it.
    public var description: String?
    /// The revision that the file is known to have, nil of a folder: where a time makes another one, and
    /// nothing but the two proves that the content is the same, the change of any other one fails with
    /// `.preconditionFailed`.
    public var revision: Revision?

    /// A change of what is not nil.
    public init(
        modifiedTime: Timestamp? = nil,
        description: String? = nil,
        revision: Revision? = nil
    ) {
        self.modifiedTime = modifiedTime
        self.description = description
        self.revision = revision
    }
}
