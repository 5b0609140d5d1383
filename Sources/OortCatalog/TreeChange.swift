public import OortModel

/// One change of the local tree, as somebody sees it who watches the mount.
public struct TreeChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// It came into the tree.
        case created
        /// It is another one at the same place: its bytes (`content`), or its attributes only.
        case changed(content: Bool)
        /// It lay elsewhere, or was called otherwise.
        case moved(from: [String])
        /// It left the tree.
        case deleted
        /// The service has now what was written here; nothing that is seen of it is another.
        case sent
    }

    /// What happened.
    public var kind: Kind
    /// The item.
    public var inode: Inode
    /// What the item is.
    public var item: NodeKind
    /// The shown names from the mount's top down to where it lies, or lay when it is deleted.
    public var path: [String]
    /// Whether the service told of it; else it was done on this machine.
    public var isNews: Bool

    /// A change with all of its parts.
    public init(kind: Kind, inode: Inode, item: NodeKind, path: [String], isNews: Bool) {
        self.kind = kind
        self.inode = inode
        self.item = item
        self.path = path
        self.isNews = isNews
    }
}

/// What one transaction changed in the local tree.
public enum TreeChanges: Hashable, Sendable {
    /// All that changed: what left the tree first, the deepest before what held it, then what
    /// moved, what came, what is another, what was sent.
    case these([TreeChange])
    /// So much that only looking anew tells.
    case tooMany
}

/// Whoever watches the local tree.
public struct TreeObserver: Sendable {
    /// Hears what a transaction changed, in the order of the transactions, on the thread that
    /// writes; must return at once and not call the catalog.
    public var changed: @Sendable (TreeChanges) -> Void
    /// Called when all other listeners know of it, too.
    public var told: @Sendable () -> Void

    /// An observer.
    public init(
        changed: @escaping @Sendable (TreeChanges) -> Void,
        told: @escaping @Sendable () -> Void
    ) {
        self.changed = changed
        self.told = told
    }
}
