import OortModel

/// The order in which requests and our own changes began, which says what an answer may not show yet.
///
/// A pure value. Ordinals count from 1 within the engine's life.
struct RequestOrder {
    /// The latest ordinal that was given.
    private var last: UInt64 = 0
    /// When we last changed an item at the service.
    private var touched: [ItemID: UInt64] = [:]
    /// The ordinal of the page of the feed that is awaited or applied now; greater than all while there is
    /// none.
    private var oldestPage = UInt64.max

    /// How many of our changes are remembered before those are forgotten that every answer shows.
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

    /// A page of the feed that was asked for at this ordinal is awaited, then applied.
    mutating func readsPage(_ began: UInt64) { oldestPage = began }

    /// No page of the feed is awaited or applied.
    mutating func readsNoPage() { oldestPage = .max }

    /// The items that we changed after a request began, or are changing: an operation may end before the
    /// request's answer is stored.
    mutating func suspects(since began: UInt64, underWay: Set<ItemID>) -> Set<ItemID> {
        var found = underWay
        for (id, when) in touched where when >= began { found.insert(id) }
        // A change older than any request in flight can be forgotten.
        let oldest = min(began, oldestPage)
        if touched.count > Self.mostTouched {
            touched = touched.filter { $0.value + Self.longestAge > oldest }
        }
        return found
    }
}
