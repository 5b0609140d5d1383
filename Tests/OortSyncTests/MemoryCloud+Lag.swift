import OortModel
import OortTesting
import OrderedCollections
import Synchronization

/// A service whose feed, listings and searches answer from a replica that some of the newest changes have not
/// reached, while a question for one item is answered by what there is.
///
/// Drive and OneDrive are such services: their documentation promises no time after which a change is in
/// the feed ("seconds usually, minutes at worst").
extension MemoryCloud {
    /// From now on up to so many of the newest changes are missing in each answer of the feed, a listing or a
    /// search, another number each time.
    func lag(upTo count: Int) {
        state.withLock { state in
            state.lag = count
            state.past = []
            state.remember()
        }
    }

    /// From now on answers of the feed, listings and searches are those of this moment.
    func standBehind() {
        lag(upTo: .max - 1)
        state.withLock { $0.isFarBehind = true }
    }

    /// The replica has all from now on.
    func catchUp() {
        state.withLock { state in
            (state.lag, state.isFarBehind, state.past) = (0, false, [])
        }
    }

    struct Replica {
        var entries: OrderedDictionary<ItemID, Entry>
        var logged: Int
        var changedPaths: Int
    }
}

extension MemoryCloud.State {
    /// Keeps what there is now for answers that lag.
    mutating func remember() {
        guard lag > 0 else { return }
        past.append(
            MemoryCloud.Replica(
                entries: entries,
                logged: log.count,
                changedPaths: changedPaths.count
            )
        )
        past.removeFirst(max(0, past.count - lag - 1))
    }

    /// What an answer knows that may lag, but not behind what an earlier one said.
    func replica(notBefore cursor: Cursor? = nil) -> Self {
        guard lag > 0, !past.isEmpty else { return self }
        var numbers = SystemNumbers()
        let earliest = cursor.flatMap(Self.place) ?? 0
        let known = past.filter { $0.feedEnd(tellsPaths) >= earliest }
        let any = isFarBehind ? known.first : known.randomElement(using: &numbers)
        guard let chosen = any else { return self }
        var replica = self
        replica.entries = chosen.entries
        replica.log = Array(log.prefix(chosen.logged))
        replica.changedPaths = Array(changedPaths.prefix(chosen.changedPaths))
        return replica
    }

    /// The place in the feed that a cursor names: `epoch:place`, which pages of an enumeration end with `|`.
    private static func place(_ cursor: Cursor) -> Int? {
        let feed = cursor.rawValue.split(separator: "|").first ?? ""
        return feed.split(separator: ":").last.flatMap { Int($0) }
    }
}

extension MemoryCloud.Replica {
    fileprivate func feedEnd(_ tellsPaths: Bool) -> Int { tellsPaths ? changedPaths : logged }
}
