/// One entry of a change feed.
public enum Change: Hashable, Sendable {
    /// The item's present state, whatever happened to it.
    case changed(Item)
    /// The item is gone from the account, with all below it (deleted, or no longer visible).
    case removed(ItemID)
    /// What lies at this path is gone, with all below it (services that report removals by path).
    case removedPath(RemotePath)
}

/// One page of a change feed.
public struct ChangePage: Sendable {
    /// The entries, in the feed's order.
    public var changes: [Change]
    /// Where to go on; to be stored with the changes' effect, in one transaction.
    public var cursor: Cursor
    /// Whether another page can be had at once.
    public var hasMore: Bool
    /// Whether this page belongs to an enumeration of the whole account (no cursor was given, or
    /// the cursor was one inside such an enumeration).
    ///
    /// When an enumeration's last page is applied, an item that it did not name is gone.
    public var isEnumeration: Bool
    /// Items that the service did not let us see in full: what is known of each, and of what lies below it,
    /// stays, although the enumeration does not name it.
    public var untold: Set<ItemID> = []

    /// A page with all of its parts, without items that could not be seen in full.
    public init(changes: [Change], cursor: Cursor, hasMore: Bool, isEnumeration: Bool) {
        self.changes = changes
        self.cursor = cursor
        self.hasMore = hasMore
        self.isEnumeration = isEnumeration
    }
}

/// The result of waiting for the change feed.
public enum FeedNews: Hashable, Sendable {
    /// The feed has something, or may have: read it.
    case changed
    /// Nothing within the time; ask again, not before `backoff` has passed where one is given.
    case quiet(backoff: Duration?)
}

/// One page of a folder's listing.
public struct ListingPage: Sendable {
    /// The folder's items, trashed ones left out.
    public var items: [Item]
    /// Where to go on; nil on the last page.
    public var next: PageToken?

    /// A page of items.
    public init(items: [Item], next: PageToken?) {
        self.items = items
        self.next = next
    }
}
