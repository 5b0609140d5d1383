import OortModel

/// Requests and own changes in the order in which they began, to tell what an answer may not have seen
/// yet.
///
/// A pure value. An ordinal is of the engine's life: the first is 1.
struct RequestOrder {
    /// The latest ordinal that was given.
    private var last: UInt64 = 0
    /// When we last changed an item at the service.
    private var touched: [ItemID: UInt64] = [:]
    /// When the page of the feed was asked for that is awaited, or applied now; while there is none,
    /// later than everything.
    private var oldestPage = UInt64.max

    /// How many changes of ours are remembered before those are forgotten that no answer can miss.
    private static let mostTouched = 10_000
    /// An answer that was asked for so many ordinals ago has long been applied.
    private static let longestAge: UInt64 = 1000

    /// Something begins.
    mutating func next() -> UInt64 {
        last += 1
        return last
    }

    /// An item is changed at the service by us, or was just now.
    mutating func touch(_ item: ItemID) { touched[item] = next() }

    /// A page of the feed is awaited and applied that was asked for then.
    mutating func readsPage(_ began: UInt64) { oldestPage = began }

    /// No page of the feed is awaited or applied.
    mutating func readsNoPage() { oldestPage = .max }

    /// The items that we changed after a request began, or are changing: an operation may end before
    /// what the request told is stored.
    mutating func suspects(since began: UInt64, underWay: Set<ItemID>) -> Set<ItemID> {
        var found = underWay
        for (id, when) in touched where when >= began { found.insert(id) }
        // What is older than any request in flight can be forgotten.
        let oldest = min(began, oldestPage)
        if touched.count > Self.mostTouched {
            touched = touched.filter { $0.value + Self.longestAge > oldest }
        }
        return found
    }
}
