import OortModel
import Synchronization

/// The order in which requests and our own changes began, which says what an answer may not show yet.
///
/// Neither reads nor waits; any isolation may ask, since the transaction that stores an answer does. Ordinals
/// count from 1 within the engine's life.
final class RequestOrder: Sendable {
    private struct State {
        /// The latest ordinal that was given.
        var last: UInt64 = 0
        /// When we last changed an item at the service.
        var touched: [ItemID: UInt64] = [:]
        /// The ordinal of the page of the feed that is awaited or applied now; greater than all while there
        /// is none.
        var oldestPage = UInt64.max

        mutating func next() -> UInt64 {
            last += 1
            return last
        }
    }

    private let state = Mutex(State())

    /// How many of our changes are remembered before those are forgotten that every answer shows.
    private static let mostTouched = 10_000
    /// An answer that was asked for so many ordinals ago has long been applied.
    private static let longestAge: UInt64 = 1000

    /// Something begins.
    func next() -> UInt64 { state.withLock { $0.next() } }

    /// An item is changed at the service by us, or was just now.
    func touch(_ item: ItemID) { state.withLock { $0.touched[item] = $0.next() } }

    /// A page of the feed that was asked for at this ordinal is awaited, then applied.
    func readsPage(_ began: UInt64) { state.withLock { $0.oldestPage = began } }

    /// No page of the feed is awaited or applied.
    func readsNoPage() { state.withLock { $0.oldestPage = .max } }

    /// The items that we changed after a request began, or are changing: an operation may end before the
    /// request's answer is stored.
    func suspects(since began: UInt64, underWay: Set<ItemID>) -> Set<ItemID> {
        state.withLock { state in
            var found = underWay
            for (id, when) in state.touched where when >= began { found.insert(id) }
            // A change older than any request in flight can be forgotten.
            let oldest = min(began, state.oldestPage)
            if state.touched.count > Self.mostTouched {
                state.touched = state.touched.filter { $0.value + Self.longestAge > oldest }
            }
            return found
        }
    }
}
