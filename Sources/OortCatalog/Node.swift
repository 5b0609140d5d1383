public import OortModel

/// Our number of an account; stable, never reused.
public struct AccountID: Hashable, Sendable {
    /// The account's row in the catalog.
    public let rawValue: Int64

    /// Wraps a row number.
    public init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// Our number of a staged or cached content; never reused.
public struct ContentID: Hashable, Sendable {
    /// The content's row in the catalog.
    public let rawValue: Int64

    /// Wraps a row number.
    public init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// What an item is to the file system.
public enum NodeKind: Int64, Hashable, Sendable {
    /// Holds other items.
    case folder = 0
    /// Bytes.
    case file = 1
    /// A symbolic link kept at the service as a small `NAME.rclonelink` file.
    case symlink = 2
    /// A shortcut of the service's own; `Node.target` is the target's item id.
    case shortcut = 3
    /// A document that is read by exporting it.
    case nativeDocument = 4
    /// A named pipe, known to this machine only.
    case fifo = 5
    /// A socket, known to this machine only.
    case socket = 6

    /// Whether the service never hears of it.
    public var isLocalOnly: Bool { self == .fifo || self == .socket }
}

/// Which bytes a file holds.
public enum NodeContent: Hashable, Sendable {
    /// There are none (folders, links), none are known (native documents), or the file is empty and
    /// was never written nor uploaded.
    case none
    /// A revision at the service; `item` is the file's own id, or another's whose content it was
    /// copied from and which the service does not have under the file's own id yet.
    case revision(item: ItemID, Revision)
    /// Bytes that the service does not have yet; `base` is the file's revision that they replace.
    case staged(ContentID, base: Revision?)
}

/// One row of the local tree: an item as the user sees it.
public struct Node: Hashable, Sendable {
    /// Our number.
    public var inode: Inode
    /// The account that it lies in; 0 for the mount's root.
    public var account: AccountID
    /// The folder that holds it; nil when it is not in the local tree (deleted here, or its parent
    /// is not known yet).
    public var parent: Inode?
    /// The name as the user sees it.
    public var name: String
    /// The service's own name, where it differs.
    public var storedServiceName: String?
    /// What it is.
    public var kind: NodeKind
    /// Bytes of content.
    public var size: Int64
    /// The modified time.
    public var modified: Timestamp
    /// The time of the last change to content or attributes, as this machine saw it.
    public var changed: Timestamp
    /// The time of the last read, where one was set.
    public var accessed: Timestamp?
    /// When it was created, where that is known.
    public var created: Timestamp?
    /// Permission bits (07777) where they were set; nil means the mount's default.
    public var mode: UInt16?
    /// The owner where it was set; nil means the mount's.
    public var owner: UInt32?
    /// The group where it was set; nil means the mount's.
    public var group: UInt32?
    /// The service's id; nil when the service does not have it.
    public var remoteID: ItemID?
    /// The revision of the content, or that which the staged content replaces.
    public var revision: Revision?
    /// The item whose content this is, where it is not the node's own (a copy not yet made there).
    public var contentItem: ItemID?
    /// The content's hash by the service's algorithm, where it is known.
    public var hash: ContentHash?
    /// The staged content, when the local content is not at the service yet.
    public var staged: ContentID?
    /// A symbolic link's target, or a shortcut's target id.
    public var target: String?
    /// What the account may do with it.
    public var permissions: Permissions
    /// Whether a folder's children are known.
    public var isListed: Bool
    /// The free text that belongs to it.
    public var itemDescription: String?
    /// The content's media type.
    public var mimeType: String?
    /// When it was created on this mount; nil for what came from the service.
    public var born: Timestamp?
    /// The key of the name that it would be shown under, while it has a number because that name is taken;
    /// nil when it is shown under its own name.
    var plainKey: String?
    /// How often it was removed on this machine and came back.
    ///
    /// To the kernel a removed folder stays dead as long as anything below it is open; the same inode
    /// counts as another folder only in another generation.
    public var generation: UInt64

    /// Whether another person made its content or owns it, as far as is known; only for items from the
    /// service.
    public var isStrangers: Bool

    /// Whether it stays on this machine by the person's rules; only for items that the service does not
    /// have.
    public var isHeld: Bool

    /// The name that the service has or is to have.
    public var serviceName: String { storedServiceName ?? name }

    /// Which bytes it holds.
    public var content: NodeContent {
        if let staged { return .staged(staged, base: revision) }
        guard let revision, let item = contentItem ?? remoteID else { return .none }
        return .revision(item: item, revision)
    }

    /// The key of a content that it has from another item, or from an item that it was; nil for any other
    /// content.
    var borrowedKey: ContentKey? {
        guard let contentItem, let revision else { return nil }
        return ContentKey(account: account, item: contentItem, revision: revision)
    }

    /// The stand-in for the revision of an exported document: documents have none; their modified time
    /// distinguishes their states, and the name the form of the export.
    public var exportRevision: Revision {
        Revision("export \(modified.seconds).\(modified.nanoseconds) \(name)")
    }

    /// The same of a row of `node` in SQL.
    static let exportRevisionColumn =
        "'export ' || node.modified_s || '.' || node.modified_ns || ' ' || node.name"

    /// Whether it is the root of its account.
    public var isAccountRoot: Bool { parent == .root }
}
