public import OortModel

/// One change of the local tree, as a watcher of the mount sees it.
public struct TreeChange: Hashable, Sendable {
    /// What happened.
    public enum Kind: Hashable, Sendable {
        /// The item came into the tree.
        case created
        /// The item changed at its place: its bytes (`content`), or only its attributes.
        case changed(content: Bool)
        /// The item moved, or was renamed.
        case moved(from: [String])
        /// The item left the tree.
        case deleted
        /// The service now has what was written here; nothing visible changed.
        case sent
    }

    /// What happened.
    public var kind: Kind
    /// The item.
    public var inode: Inode
    /// What the item is.
    public var item: NodeKind
    /// The shown names from the mount's root down to the item's place, or former place if it is deleted.
    public var path: [String]
    /// Whether the service reported it; if not, it was done on this machine.
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
    /// All changes: items that left the tree first, the deepest before its folder, then those that moved,
    /// came, changed, were sent.
    case these([TreeChange])
    /// Too many: only a new look shows them.
    case tooMany
}

/// A watcher of the local tree.
public struct TreeObserver: Sendable {
    /// Gets what a transaction changed, in the order of the transactions, on the thread that writes; must
    /// return at once and not call the catalog.
    public var changed: @Sendable (TreeChanges) -> Void
    /// Called when all other listeners have been notified, too.
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
