public import OortModel

/// A change of the local tree by news from the service, of which the kernel must be notified.
public enum CatalogChange: Hashable, Sendable {
    /// A name appeared in a folder.
    case entryAdded(parent: Inode, name: String)
    /// A name left a folder; its item lies elsewhere.
    case entryLeft(parent: Inode, name: String, isFolder: Bool)
    /// A name left a folder; `child` had it, and is nowhere any longer.
    case entryRemoved(parent: Inode, name: String, child: Inode, isFolder: Bool)
    /// A file's content changed, and with it size and times.
    case content(Inode)
    /// Only attributes changed.
    case attributes(Inode)
}

/// The listeners to changes of the catalog.
///
/// Called after the transaction, on the thread that wrote; must return at once and not call the
/// catalog.
public struct CatalogListeners: Sendable {
    /// News from the service reached the local tree.
    public var news: @Sendable ([CatalogChange]) -> Void
    /// A local operation put items of this account in motion.
    public var localChange: @Sendable (AccountID) -> Void

    /// Listeners; both do nothing by default.
    public init(
        news: @escaping @Sendable ([CatalogChange]) -> Void = { _ in },
        localChange: @escaping @Sendable (AccountID) -> Void = { _ in }
    ) {
        self.news = news
        self.localChange = localChange
    }
}
