import OortModel

/// Merges the service's news into the local tree, attribute by attribute.
///
/// `want` is the local tree as it is to become; an item that stands in the way of its own news
/// (busy, open, its folder not there yet) is postponed and keeps its local state.
struct Merge {
    /// What becomes of an item as a whole.
    private enum Fate {
        case stays
        /// Gone at the service, unchanged here.
        case goes
        /// Gone at the service, needed here.
        case detached
    }

    private let trees: Trees
    /// Whether a folder at the service may hold two items of one name.
    private let allowsDuplicates: Bool
    private var want: [Entry?]
    private var fate: [Fate]
    private(set) var postponed: [Bool]
    private var takesContent: [Bool]
    private var takesAttributes: [Bool]
    private var keepsBoth: [Bool]
    private var renumbered: [Bool]
    private var waitsWithContent: [Bool]
    /// Items that are gone at the service, and that are open for writing here or hold something whose news
    /// wait: whether they are still needed shows later, and so does whether their folders are.
    private var waitsToGo: [Bool]
    /// How often the whole tree was looked at, for tests.
    private(set) var passes = 0
    private var adoptions: [LocalStep] = []
    private var adopters: Set<Inode> = []

    init(_ trees: Trees, allowsDuplicates: Bool) {
        self.trees = trees
        self.allowsDuplicates = allowsDuplicates
        let none = [Bool](repeating: false, count: trees.items.count)
        want = []
        want.reserveCapacity(trees.items.count)
        for item in trees.items { want.append(item.local) }
        fate = Array(repeating: .stays, count: trees.items.count)
        postponed = none
        takesContent = none
        takesAttributes = none
        keepsBoth = none
        renumbered = none
        waitsWithContent = none
        waitsToGo = none
    }

    /// The steps that merge all news that can be merged now; empty when there are none.
    mutating func steps() -> [LocalStep] {
        var hasNews = false
        var hasDisplaced = false
        for position in trees.items.indices {
            hasDisplaced = hasDisplaced || trees.items[position].isDisplaced
            guard trees.items[position].hasNews else { continue }
            hasNews = true
            mergeItem(position)
        }
        if hasNews { postponeExpected() }
        forgetNothings()
        if hasNews || hasDisplaced {
            // Each pass only ever postpones, saves or undoes more, so it ends; all that it finds is done
            // in it, so that many of a kind need no more passes than one.
            repeat { passes += 1 } while saveFolders() || undoCycles() || resolveNames()
            if !adoptions.isEmpty { return adoptions }
        }
        return collect()
    }

    /// Lets go of what neither side has any more, unless another item still lies in it at the service.
    private mutating func forgetNothings() {
        let nothings = trees.items.indices.filter { position in
            let item = trees.items[position]
            return item.local == nil && item.synced == nil && item.remote == nil && !item.isBusy
        }
        guard !nothings.isEmpty else { return }
        var named: Set<Inode> = []
        for item in trees.items {
            for entry in [item.remote, item.synced] {
                if let entry { named.insert(entry.place.parent) }
            }
        }
        for position in nothings where !named.contains(trees.items[position].inode) {
            fate[position] = .goes
        }
    }

    // MARK: One item

    private mutating func mergeItem(_ position: Int) {
        let item = trees.items[position]
        guard !item.isBusy else {
            postponed[position] = true
            return
        }
        switch (item.remote, item.synced) {
        case (nil, nil): break
        case (nil, let synced?): mergeGone(position, synced)
        case (let remote?, nil):
            if let local = item.local {
                keepsBoth[position] = !local.hasSameContent(as: remote)
            } else {
                want[position] = item.arrival
            }
        case (let remote?, let synced?): mergeChanged(position, remote, synced)
        }
    }

    private mutating func mergeGone(_ position: Int, _ synced: Entry) {
        let item = trees.items[position]
        guard let local = item.local else {
            fate[position] = .goes
            return
        }
        if !item.isFolder, !local.hasSameContent(as: synced) {
            fate[position] = .detached
        } else if item.isOpen {
            waitsToGo[position] = true
            postpone(position)
        } else {
            fate[position] = .goes
            want[position] = nil
        }
    }

    private mutating func mergeChanged(_ position: Int, _ remote: Entry, _ synced: Entry) {
        let item = trees.items[position]
        let hasNewContent = !remote.hasSameContent(as: synced)
        guard let local = item.local else {
            // Deleted here, changed there: the change wins. A folder that only moved stays deleted;
            // what is new or changed in it saves it.
            if !item.isFolder, hasNewContent || remote.place != synced.place {
                want[position] = item.arrival
            }
            return
        }
        var merged = local
        if remote.place.parent != synced.place.parent {
            merged.place.parent = remote.place.parent
        }
        if !remote.place.name.isSameText(as: synced.place.name) {
            merged.place.name = remote.place.name
        }
        want[position] = merged
        let isUnchangedHere = local.hasSameContent(as: synced)
        if remote.content != synced.content {
            if item.isOpen && hasNewContent {
                waitsWithContent[position] = true
            } else if isUnchangedHere || local.hasSameContent(as: remote) {
                takesContent[position] = true
            } else if hasNewContent {
                keepsBoth[position] = true
            }
        }
        let hasNewAttributes =
            remote.modified != synced.modified || remote.description != synced.description
        if hasNewAttributes, isUnchangedHere || takesContent[position] || keepsBoth[position] {
            takesAttributes[position] = true
        }
    }

    /// What appeared where an operation of ours may have made it waits for that one's answer.
    private mutating func postponeExpected() {
        var expected: Set<PlaceKey> = []
        for item in trees.items {
            if let place = item.expected { expected.insert(trees.key(place, of: item)) }
        }
        guard !expected.isEmpty else { return }
        for (position, item) in trees.items.enumerated() {
            guard item.isNewcomer, let remote = item.remote else { continue }
            if expected.contains(trees.key(remote.place, of: item)) { postpone(position) }
        }
    }

    /// The item keeps its local state; its news wait.
    private mutating func postpone(_ position: Int) {
        postponed[position] = true
        want[position] = trees.items[position].local
        fate[position] = .stays
        takesContent[position] = false
        takesAttributes[position] = false
        keepsBoth[position] = false
        waitsWithContent[position] = false
    }

    // MARK: The whole tree

    /// Brings back or keeps each folder in which something lies.
    ///
    /// True when something changed.
    private mutating func saveFolders() -> Bool {
        guard trees.items.indices.contains(where: { trees.items[$0].isFolder && want[$0] == nil })
        else { return false }
        var changed = false
        // What certainly stays saves its folders first: those then need not wait for what may yet go.
        let waiting = want.indices.filter { mayLeave($0) }
        for position in want.indices.filter({ !mayLeave($0) }) + waiting {
            guard let entry = want[position] else { continue }
            var parent = entry.place.parent
            var steps = 0
            while let folder = trees.index[parent], steps <= want.count {
                steps += 1
                if let there = want[folder] {
                    parent = there.place.parent
                    continue
                }
                let item = trees.items[folder]
                let saved = item.local ?? item.arrival
                guard let saved, !item.isBusy, !postponed[folder] else {
                    if !postponed[position] {
                        postpone(position)
                        changed = true
                    }
                    break
                }
                if mayLeave(position), item.local != nil {
                    waitsToGo[folder] = true
                    postpone(folder)
                    parent = saved.place.parent
                    changed = true
                    continue
                }
                if item.local != nil { fate[folder] = .detached }
                want[folder] = saved
                parent = saved.place.parent
                changed = true
            }
        }
        return changed
    }

    /// Whether an item is here only until its news are merged: nobody changed it here.
    private func mayLeave(_ position: Int) -> Bool {
        let item = trees.items[position]
        return waitsToGo[position]
            || postponed[position] && item.hasNews && item.local == item.synced
    }

    /// Undoes local moves that the service's moves turned into a circle.
    ///
    /// True when there was one.
    private mutating func undoCycles() -> Bool {
        var changed = false
        for start in want.indices {
            guard let entry = want[start], trees.items[start].isFolder,
                entry.place.parent != trees.items[start].local?.place.parent
            else { continue }
            var circle = [start]
            var parent = entry.place.parent
            while let next = trees.index[parent], let there = want[next], next != start,
                circle.count <= want.count
            {
                circle.append(next)
                parent = there.place.parent
            }
            guard trees.index[parent] == start else { continue }
            if circle.contains(where: { trees.items[$0].isBusy || postponed[$0] }) {
                postpone(start)
                changed = true
                continue
            }
            var undone = false
            for position in circle {
                guard let remote = trees.items[position].remote,
                    want[position]?.place != remote.place
                else { continue }
                want[position]?.place = remote.place
                undone = true
            }
            // The service itself reported a circle: half of a change whose other half the feed has not
            // reported.
            if !undone { postpone(start) }
            changed = true
        }
        return changed
    }

    /// Gives every name to one item.
    ///
    /// True when something changed that must be looked at again.
    private mutating func resolveNames() -> Bool {
        var changed = false
        var owners: [PlaceKey: Int] = Dictionary(minimumCapacity: want.count)
        for position in want.indices {
            guard let entry = want[position], !renumbered[position] else { continue }
            let key = trees.key(entry.place, of: trees.items[position])
            guard let other = owners[key] else {
                owners[key] = position
                continue
            }
            // If one of the two is postponed, the other has the name; the name that the postponed one falls
            // back to may be taken, which the next pass finds.
            switch (isFixed(position), isFixed(other)) {
            case (true, true):
                if waitsForPlace(position, of: other) {
                    changed = true
                } else if waitsForPlace(other, of: position) {
                    owners[key] = position
                    changed = true
                }
            // Where neither waits, both have this name at the service: they are shown with numbers.
            case (true, false):
                if resolve(other, against: position) {
                    changed = true
                } else {
                    owners[key] = position
                }
            case (false, _):
                if resolve(position, against: other) {
                    owners[key] = position
                    changed = true
                }
            }
        }
        return changed
    }

    /// Postpones an item that would take the place of one that may be gone; true when it was not postponed
    /// before.
    private mutating func waitsForPlace(_ position: Int, of other: Int) -> Bool {
        guard trees.items[other].mayBeGone, !postponed[position],
            want[position]?.place != trees.items[position].local?.place
        else { return false }
        postpone(position)
        return true
    }

    /// Whether it lies where the service has it.
    private func isFixed(_ position: Int) -> Bool {
        let item = trees.items[position]
        guard let entry = want[position], let remote = item.remote else { return false }
        return trees.key(entry.place, of: item) == trees.key(remote.place, of: item)
    }

    /// `loser` wants a name that `owner` has.
    private mutating func resolve(_ loser: Int, against owner: Int) -> Bool {
        let mine = trees.items[loser]
        let other = trees.items[owner]
        if mine.isBusy || postponed[loser] && mine.hasNews {
            // Perhaps the newcomer is our own item, whose answer is still to come.
            guard other.local?.place != want[owner]?.place else { return false }
            postpone(owner)
            return true
        }
        if mine.isFolder, fate[loser] == .detached, other.isNewcomer, other.isFolder {
            // The folder stays for what lies in it: detached now, it adopts the newcomer in the next plan.
            if adopters.insert(mine.inode).inserted { adoptions.append(.detach(mine.inode)) }
            postpone(owner)
            return true
        }
        if mine.isBornHere, other.isNewcomer, mine.isFolder == other.isFolder,
            trees.areOfOneKind(mine, other)
        {
            if !mine.isFolder, !mine.isSettled, !mine.isOpen {
                // The hash, once known, says whether both are the same.
                postpone(owner)
                return true
            }
            if let local = mine.local, let remote = other.remote,
                mine.isFolder
                    || !mine.isOpen && local.content != nil && local.hasSameContent(as: remote)
            {
                // Of two newcomers of one name (where that is allowed) the first is adopted.
                if adopters.insert(mine.inode).inserted {
                    adoptions.append(.adopt(mine.inode, from: other.inode))
                }
                postpone(owner)
                return true
            }
        }
        // Two folders that have this name at the service, or will have it: they are shown with numbers, or
        // become one.
        if allowsDuplicates, mine.isFolder, other.isFolder, other.remote != nil,
            let wanted = want[loser]?.place.name,
            mine.remote.map({ wanted.isSameText(as: $0.place.name) }) ?? true
        {
            return false
        }
        renumbered[loser] = true
        return false
    }

    // MARK: Steps

    private func collect() -> [LocalStep] {
        var steps: [LocalStep] = []
        for position in trees.items.indices {
            let item = trees.items[position]
            switch fate[position] {
            case .goes:
                steps.append(.forget(item.inode))
                continue
            case .detached: steps.append(.detach(item.inode))
            case .stays: break
            }
            if let entry = want[position], entry.place != item.local?.place {
                steps.append(.place(item.inode, entry.place))
            }
            if keepsBoth[position] { steps.append(.keepBoth(item.inode)) }
            if renumbered[position] { steps.append(.renumber(item.inode)) }
            if takesContent[position] { steps.append(.takeContent(item.inode)) }
            if takesAttributes[position] { steps.append(.takeAttributes(item.inode)) }
            guard item.hasNews, !postponed[position], fate[position] == .stays else { continue }
            if !waitsWithContent[position] {
                steps.append(.agree(item.inode, content: true))
            } else if item.remote?.place != item.synced?.place {
                steps.append(.agree(item.inode, content: false))
            }
        }
        return steps
    }
}
