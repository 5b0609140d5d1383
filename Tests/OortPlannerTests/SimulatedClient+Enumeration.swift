import OortModel
import OortPlanner

/// Enumerations of the whole account, page by page, with anything between two pages.
extension SimulatedClient {
    /// A place in an enumeration of what there was when it began.
    struct Enumeration {
        /// What is still to be named, each as it is when its page is read.
        var left: ArraySlice<Int>
        /// Where the feed goes on behind it.
        var end: Int
    }

    mutating func beginEnumeration() {
        enumeration += 1
        enumerating = Enumeration(left: service.items.keys.sorted()[...], end: service.log.count)
    }

    /// Reads a page of an enumeration that names so many items.
    mutating func enumerate(_ count: Int) {
        guard var place = enumerating else { return }
        clock += 1
        withholdDeletions()
        for id in place.left.prefix(count) {
            guard let item = service.items[id] else { continue }
            observe(item, service.items, began: clock, isFeed: true)
        }
        place.left = place.left.dropFirst(count)
        enumerating = place
        guard place.left.isEmpty else { return }
        enumerating = nil
        cursor = place.end
        endRun(began: clock)
        for inode in rows.keys.sorted() { takeOutUnnamed(inode) }
    }

    /// What the enumeration did not name is gone.
    private mutating func takeOutUnnamed(_ inode: Inode) {
        guard let row = rows[inode], let id = row.id, row.enumeration < enumeration,
            row.state.remote != nil
        else { return }
        guard !row.state.isBusy, row.attempt == nil, !row.mustLook else {
            rows[inode]?.mustLook = true
            return
        }
        let below = rows.values.filter { isKnown($0, below: inode) }
        if below.contains(where: { $0.enumeration >= enumeration }) { return miss(inode) }
        if !below.contains(where: \.state.isBusy),
            let there = ([id] + below.compactMap(\.id)).first(where: { service.items[$0] != nil })
        {
            failure = failure ?? "an enumeration took out \(there), which is there"
        }
        takeOut(inode, began: clock)
    }
}
