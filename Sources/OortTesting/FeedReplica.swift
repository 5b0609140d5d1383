public import OortModel

/// What a client knows that has only read the change feed: a small model of the catalog's side.
public struct FeedReplica: Sendable {
    /// The items by id.
    public private(set) var items: [ItemID: Item] = [:]
    /// Where the feed goes on.
    public private(set) var cursor: Cursor?
    /// What the enumeration under way named, over calls of `catchUp` that failed.
    private var enumerated: Set<ItemID> = []
    private let comparison: NameRules.Comparison

    /// A replica that has read nothing.
    public init(of provider: any Provider) { comparison = provider.traits.names.comparison }

    /// Reads the feed to its end.
    public mutating func catchUp(with provider: any Provider) async throws {
        while true {
            let page = try await provider.changes(since: cursor)
            if cursor == nil { enumerated = [] }
            for change in page.changes {
                apply(change)
                if case .changed(let item) = change { enumerated.insert(item.id) }
            }
            for id in page.untold { keep(id) }
            cursor = page.cursor
            provider.hasStored(upTo: page.cursor)
            guard !page.hasMore else { continue }
            if page.isEnumeration { items = items.filter { enumerated.contains($0.key) } }
            return
        }
    }

    /// The feed's place is lost: the next look enumerates.
    public mutating func loseCursor() { cursor = nil }

    private mutating func apply(_ change: Change) {
        switch change {
        case .changed(let item):
            if item.isTrashed { remove(item.id) } else { items[item.id] = item }
        case .removed(let id): remove(id)
        case .removedPath(let path):
            let key = path.parts.map(comparison.key)
            items = items.filter { _, item in
                guard let parts = item.path?.parts else { return true }
                return !parts.map(comparison.key).starts(with: key)
            }
        }
    }

    /// What is known of an item and of what lies below it counts as named.
    private mutating func keep(_ id: ItemID) {
        enumerated.insert(id)
        for child in items.values where child.parentID == id { keep(child.id) }
    }

    private mutating func remove(_ id: ItemID) {
        items[id] = nil
        for child in items.values where child.parentID == id { remove(child.id) }
    }

    /// The items of one name.
    public func named(_ name: String) -> [Item] {
        items.values.filter { $0.fileName == name }
    }
}
