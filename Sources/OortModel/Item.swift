/// What an item is.
public enum ItemKind: Hashable, Sendable {
    /// Bytes that can be read and replaced.
    case file
    /// Holds other items.
    case folder
    /// Points to another item (`Item.shortcutTarget`).
    case shortcut
    /// A document that lives at the service only and is read by exporting it.
    case nativeDocument
}

/// One file or folder in the canonical schema: what the service says about it, never invented.
public struct Item: Hashable, Sendable {
    /// The service's own id.
    public var id: ItemID
    /// The path from the account's root in the service's own names; nil where the service addresses
    /// by id.
    ///
    /// Where `parentID` is nil, the path alone places the item.
    public var path: RemotePath?
    /// What the item is.
    public var kind: ItemKind
    /// The name as the service has it, before any escaping for the file system; with U+2400 for NUL.
    public var fileName: String { didSet { fileName = fileName.withoutNUL } }
    /// The name at upload, where the service keeps it.
    public var originalFileName: String?
    /// The free text that belongs to the item.
    public var description: String?
    /// When the content was last modified, by the clock of the machine that modified it.
    public var clientModifiedTime: Timestamp?
    /// When the service took the last change.
    public var serverModifiedTime: Timestamp?
    /// When the item was created.
    public var createdTime: Timestamp?
    /// Bytes of content; nil where there are none or the service does not know (native documents).
    public var size: Int64?
    /// The content's media type.
    public var mimeType: String?
    /// The folder that holds the item; nil for the root and where the service gives only a path.
    public var parentID: ItemID?
    /// Whether the service can render a thumbnail; nil when only a request can say.
    public var thumbnail: Bool?
    /// The service's tag of the whole item (etag): changes with any change.
    public var tag: String?
    /// The version of the content; nil for folders, shortcuts and native documents.
    public var rev: Revision?
    /// The service's counter of changes, where it has one.
    public var version: String?
    /// The content's hash as the service computed it.
    public var contentHash: ContentHash?
    /// What this account may do with the item.
    public var permissions: Permissions
    /// Whether this account owns the item and wrote its content, as far as the service reports; false where
    /// it does not.
    public var isOwn: Bool
    /// The owner's name, as the service gives it; nil for the account's own person, and where the service
    /// does not say.
    public var owner: String?
    /// The name of the person who created it, under the same rules as `owner`.
    public var createdBy: String?
    /// The name of the person who last changed it, under the same rules as `owner`.
    public var modifiedBy: String?
    /// Whether other people can reach it through the service, as far as the service reports; false where it
    /// does not.
    public var isShared: Bool
    /// With whom the account's own person shares it: people, groups, links; empty where nobody is reported.
    public var sharedWith: TextList
    /// The tags that people gave it; nil where the service did not say, and what is known of them holds.
    public var tags: TextList?
    /// Whether the item lies in the trash, by itself or under a trashed folder.
    public var isTrashed: Bool
    /// Where a shortcut leads.
    public var shortcutTarget: ItemID?
    /// The media types to which a native document can be exported, the provider's choice first,
    /// each with the file name extension (no dot).
    public var exports: [ExportFormat]

    /// An item of which only the essentials are known.
    public init(
        id: ItemID,
        kind: ItemKind,
        fileName: String,
        parentID: ItemID? = nil,
        path: RemotePath? = nil
    ) {
        self.id = id
        self.kind = kind
        self.fileName = fileName.withoutNUL
        self.parentID = parentID
        self.path = path
        permissions = .all
        isOwn = false
        isShared = false
        sharedWith = TextList()
        isTrashed = false
        exports = []
    }
}

/// One form in which a native document can be read.
public struct ExportFormat: Hashable, Sendable {
    /// The media type to ask for.
    public var mimeType: String
    /// The file name extension, without a dot.
    public var fileExtension: String

    /// A media type and its extension without a dot.
    public init(mimeType: String, fileExtension: String) {
        self.mimeType = mimeType
        self.fileExtension = fileExtension
    }
}

/// What an account may do with an item.
public struct Permissions: OptionSet, Hashable, Sendable {
    /// One bit a permission.
    public let rawValue: UInt8

    /// Wraps the bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The content can be read, the folder listed.
    public static let read = Permissions(rawValue: 1)
    /// The content can be replaced, the item renamed, items put into the folder.
    public static let write = Permissions(rawValue: 2)
    /// The item can be moved to the trash.
    public static let delete = Permissions(rawValue: 4)
    /// The item can be shared with others.
    public static let share = Permissions(rawValue: 8)
    /// Everything.
    public static let all: Permissions = [.read, .write, .delete, .share]
}
