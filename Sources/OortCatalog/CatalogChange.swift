public import OortModel

/// What changed in the local tree by news from the service, so that the kernel can be told.
public enum CatalogChange: Hashable, Sendable {
    /// A name appeared in a folder.
    case entryAdded(parent: Inode, name: String)
    /// A name went from a folder; what had it lies elsewhere.
    case entryLeft(parent: Inode, name: String, isFolder: Bool)
    /// A name went from a folder; `child` had it, and is nowhere any longer.
    case entryRemoved(parent: Inode, name: String, child: Inode, isFolder: Bool)
    /// A file's content, and with it size and times, is another.
    case content(Inode)
    /// Attributes alone are others.
    case attributes(Inode)
}

/// Whoever must hear what happens in the catalog.
///
/// Called after the transaction, on the thread that wrote; must return at once and not call the
/// catalog.
public struct CatalogListeners: Sendable {
    /// News from the service reached the local tree.
    public var news: @Sendable ([CatalogChange]) -> Void
    /// A local operation put items of this account in motion.
    public var localChange: @Sendable (AccountID) -> Void

    /// Listeners; both hear nothing by default.
    public init(
        news: @escaping @Sendable ([CatalogChange]) -> Void = { _ in },
        localChange: @escaping @Sendable (AccountID) -> Void = { _ in }
    ) {
        self.news = news
        self.localChange = localChange
    }
}
