import OortModel

/// All keys of a bucket in the order of their bytes, as they were after one change of the tree.
struct S3Index: Sendable {
    /// A key, and the items that have it or, in a history, had it.
    struct Entry: Sendable {
        var key: String
        var bytes: [UInt8]
        var itemIDs: [String]
    }

    /// The number of the tree's last change.
    let sequence: Int
    /// The keys that there are now.
    let live: [Entry]
    /// The keys that there are or were.
    let all: [Entry]

    init(_ tree: SimulatedTree) {
        sequence = tree.sequence
        var live: [Entry] = []
        var all: [ExactText: Entry] = [:]
        for item in tree.allItems where item.parentID != nil {
            let isGone = tree.isTrashed(item.id)
            if item.isFolder {
                guard !isGone, tree.isEmpty(item.id) else { continue }
            }
            guard let key = tree.key(ofObject: item) else { continue }
            let entry = Entry(key: key, bytes: Array(key.utf8), itemIDs: [item.id])
            if !isGone { live.append(entry) }
            all[ExactText(key), default: Entry(key: key, bytes: entry.bytes, itemIDs: [])]
                .itemIDs.append(item.id)
        }
        self.live = live.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
        self.all = all.values.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// The items that have or had a key.
    func itemIDs(of key: String) -> [String] {
        let bytes = Array(key.utf8)
        let place = Self.first(in: all) { !$0.lexicographicallyPrecedes(bytes) }
        return place < all.count && all[place].bytes == bytes ? all[place].itemIDs : []
    }

    /// The first entry for which a condition holds that holds for all after it, too.
    static func first(
        in entries: [Entry],
        from start: Int = 0,
        where holds: ([UInt8]) -> Bool
    ) -> Int {
        var (low, high) = (start, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if holds(entries[middle].bytes) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}

/// What a listing is to give.
struct S3Listing: Sendable {
    /// What was found: a key, or the common beginning of several.
    enum Found: Sendable {
        case entry(S3Index.Entry)
        case prefix(String)
    }

    var prefix: String
    var delimiter: String?
    /// What is not after this is left out.
    var after: String?

    /// Hands on what is listed, in order, until `body` says that it is enough.
    func forEach(in entries: [S3Index.Entry], _ body: (Found) -> Bool) {
        let beginning = Array(prefix.utf8)
        let bound = after.map { Array($0.utf8) }
        var place = S3Index.first(in: entries) { !$0.lexicographicallyPrecedes(beginning) }
        if let bound {
            place = S3Index.first(in: entries, from: place) {
                bound.lexicographicallyPrecedes($0)
            }
        }
        while place < entries.count, entries[place].bytes.starts(with: beginning) {
            let entry = entries[place]
            guard let end = end(ofCommonPrefix: entry.bytes, beginning.count) else {
                guard body(.entry(entry)) else { return }
                place += 1
                continue
            }
            let common = Array(entry.bytes[..<end])
            place = S3Index.first(in: entries, from: place) {
                !$0.starts(with: common) && common.lexicographicallyPrecedes($0)
            }
            // Beginnings that a marker is beyond were listed before.
            if let bound, !bound.lexicographicallyPrecedes(common) { continue }
            guard body(.prefix(String(decoding: common, as: UTF8.self))) else { return }
        }
    }

    private func end(ofCommonPrefix bytes: [UInt8], _ start: Int) -> Int? {
        guard let delimiter, !delimiter.isEmpty else { return nil }
        let wanted = Array(delimiter.utf8)
        guard bytes.count >= start + wanted.count else { return nil }
        return (start...(bytes.count - wanted.count))
            .first { bytes[$0..<($0 + wanted.count)].elementsEqual(wanted) }
            .map { $0 + wanted.count }
    }
}
