import OortModel

/// Finds the operations that make the remote tree what the local tree is.
///
/// First what each item needs; then what cannot be done yet is taken out, until all that is left
/// can be done (a name that nobody frees, a folder that is not there); then the order.
struct Push {
    let trees: Trees
    let traits: PlannerTraits
    let remotePlaces: [PlaceKey: Int]
    private let postponed: [Bool]
    /// Items to be created or moved.
    private(set) var placing: [Bool]
    /// Items to be moved to the trash, by themselves or with a folder.
    private(set) var deleting: [Bool]
    /// Items above or below one that is busy: they stay where they are.
    private var pinned: [Bool]
    /// Backups made by renaming, and who has the name now.
    private var heirs: [Int: Int] = [:]
    private var isHeir: [Bool]
    /// Items whose name now belongs to a file that will take over their identity, but is still being
    /// written or read: deleted or moved now, they would have none to hand over.
    private var awaitsHeir: [Bool]
    /// Files that will take over the identity of one that is busy or has news.
    ///
    /// Until then their content is sent neither to their own items nor as a new one, not even where the
    /// service would allow both to have one name.
    private var awaitsIdentity: [Bool]
    /// For each item, those whose content is still to be sent and is made of its bytes.
    let borrowers: [Int: [Int]]

    init(_ trees: Trees, traits: PlannerTraits, postponed: [Bool]) {
        self.trees = trees
        self.traits = traits
        self.postponed = postponed
        remotePlaces = trees.remotePlaces()
        let none = [Bool](repeating: false, count: trees.items.count)
        placing = none
        deleting = none
        pinned = none
        isHeir = none
        awaitsHeir = none
        awaitsIdentity = none
        borrowers = trees.borrowers()
    }

    mutating func operations() -> [RemoteOperation] {
        pinBusyChains()
        for position in trees.items.indices where isReady(position) {
            let item = trees.items[position]
            if item.local == nil {
                deleting[position] = item.remote != nil
            } else {
                placing[position] = item.isMisplaced
            }
        }
        findHeirs()
        let children = childrenOfDeleted()
        while dropImpossible(children) {}
        return ordered(children)
    }

    private func isReady(_ position: Int) -> Bool {
        let item = trees.items[position]
        return item.isReadyToMove && !postponed[position]
    }

    /// The positions of the folders above, in the remote tree or (where an item is not there) the
    /// local one, nearest first.
    func chain(above place: Place?) -> [Int] {
        var chain: [Int] = []
        var next = place?.parent
        while let parent = next, let position = trees.index[parent],
            chain.count <= trees.items.count
        {
            chain.append(position)
            let item = trees.items[position]
            next = (item.remote ?? item.local)?.place.parent
        }
        return chain
    }

    private mutating func pinBusyChains() {
        for item in trees.items where item.isBusy {
            for position in chain(above: item.remote?.place) { pinned[position] = true }
            for position in chain(above: item.local?.place) { pinned[position] = true }
            for position in chain(above: item.expected) { pinned[position] = true }
        }
    }

    /// Finds files that were deleted, or renamed within their folder, while another file took their name.
    private mutating func findHeirs() {
        var places: [PlaceKey: Int]?
        for (position, original) in trees.items.enumerated() {
            let mustWait = original.isBusy || original.hasNews
            guard mustWait || deleting[position] || placing[position],
                let heir = trees.heir(of: position, &places)
            else { continue }
            let file = trees.items[heir]
            if mustWait {
                awaitsIdentity[heir] = file.isMisplaced
                continue
            }
            guard !mustSend(heir, beforeMoving: position) else { continue }
            if original.isBackup, file.isReadyToInherit, file.isBornHere {
                heirs[position] = heir
                isHeir[heir] = true
                placing[heir] = false
            } else if !file.isReadyToInherit {
                awaitsHeir[position] = true
            }
        }
    }

    private func childrenOfDeleted() -> [Int: [Int]] {
        var children: [Int: [Int]] = [:]
        guard deleting.contains(true) else { return children }
        for (position, item) in trees.items.enumerated() {
            if let remote = item.remote, let folder = trees.index[remote.place.parent],
                trees.items[folder].local == nil
            {
                children[folder, default: []].append(position)
            }
        }
        return children
    }

    // MARK: What can be done

    private mutating func dropImpossible(_ children: [Int: [Int]]) -> Bool {
        var changed = false
        for position in trees.items.indices {
            if placing[position], !canPlace(position) {
                placing[position] = false
                changed = true
            }
            if deleting[position], !canDelete(position, children) {
                deleting[position] = false
                changed = true
            }
        }
        return changed
    }

    private func canPlace(_ position: Int) -> Bool {
        let item = trees.items[position]
        guard let local = item.local else { return false }
        if item.remote != nil && pinned[position] || awaitsHeir[position] { return false }
        if awaitsIdentity[position] { return false }
        if let parent = trees.index[local.place.parent], trees.items[parent].remote == nil,
            !placing[parent]
        {
            return false
        }
        if hasBusyFolder(above: local.place) || hasBusyFolder(above: item.remote?.place) {
            return false
        }
        if let occupant = occupant(of: local.place, for: position), !frees(occupant) {
            return false
        }
        if item.isFolder, let above = misplacedFolder(above: local.place), !placing[above] {
            return false
        }
        return true
    }

    private func canDelete(_ position: Int, _ children: [Int: [Int]]) -> Bool {
        let item = trees.items[position]
        if pinned[position] || awaitsHeir[position] || hasBusyFolder(above: item.remote?.place) {
            return false
        }
        guard areBorrowersSent(position) else { return false }
        guard item.isFolder else { return !waitsForFolder(position, children) }
        return (children[position] ?? []).allSatisfy { frees($0) }
            && !waitsForFolder(position, children)
    }

    /// Whether the folder that it lies in will soon be deleted as a whole.
    private func waitsForFolder(_ position: Int, _ children: [Int: [Int]]) -> Bool {
        guard let place = trees.items[position].remote?.place,
            let folder = trees.index[place.parent], trees.items[folder].local == nil,
            trees.items[folder].remote != nil, !deleting[folder]
        else { return false }
        return !trees.items[folder].isSettled
            || (children[folder] ?? []).contains {
                !trees.items[$0].isSettled || trees.items[$0].isBusy
            }
    }

    private func hasBusyFolder(above place: Place?) -> Bool {
        chain(above: place).contains { trees.items[$0].isBusy }
    }

    /// The operation by which this plan sends an item's content or attributes; nil where it sends none.
    func contentAction(_ position: Int) -> RemoteOperation.Action? {
        let item = trees.items[position]
        guard isReady(position), !isHeir[position], !awaitsIdentity[position],
            !hasBusyFolder(above: item.remote?.place)
        else { return nil }
        return traits.contentAction(item)
    }

    /// Whether an item leaves its place at the service by this plan.
    private func frees(_ position: Int) -> Bool {
        deleting[position]
            || placing[position] && trees.items[position].remote != nil && heirs[position] == nil
    }

    /// The other item that has the place at the service, where only one can.
    func occupant(of place: Place, for position: Int) -> Int? {
        guard !traits.allowsDuplicates else { return nil }
        let occupant = remotePlaces[trees.key(place, of: trees.items[position])]
        return occupant == position ? nil : occupant
    }

    /// The nearest folder above, in the local tree, that lies elsewhere at the service.
    private func misplacedFolder(above place: Place) -> Int? {
        var next = place.parent
        var steps = 0
        while let position = trees.index[next], steps <= trees.items.count {
            steps += 1
            if trees.items[position].isMisplaced { return position }
            guard let local = trees.items[position].local else { return nil }
            next = local.place.parent
        }
        return nil
    }

    // MARK: Operations

    private func ordered(_ children: [Int: [Int]]) -> [RemoteOperation] {
        var order = OperationOrder()
        var placed: [Int: Int] = [:]
        var deleted: [Int: Int] = [:]
        for (position, item) in trees.items.enumerated() {
            if placing[position], let local = item.local {
                placed[position] = order.add(
                    item.inode,
                    placement(position, item, local),
                    at: position
                )
            }
            if deleting[position], let place = item.remote?.place {
                if let folder = trees.index[place.parent], deleting[folder] { continue }
                deleted[position] = order.add(item.inode, .delete, at: position)
            }
        }
        var changed: [Int: Int] = [:]
        for (position, item) in trees.items.enumerated() {
            guard let action = contentAction(position),
                !action.sendsContent || areBorrowersSent(position)
            else { continue }
            let operation = order.add(item.inode, action, at: position)
            if action.sendsContent { changed[position] = operation }
            if let first = placed[position] { order.require(first, before: operation) }
        }
        requireBorrowers(before: changed, deleted, placed: placed, in: &order)
        for (position, operation) in placed.sorted(by: { $0.key < $1.key }) {
            guard let place = trees.items[position].local?.place else { continue }
            if let parent = trees.index[place.parent], trees.items[parent].remote == nil,
                let first = placed[parent]
            {
                order.require(first, before: operation)
            }
            if trees.items[position].isFolder, let above = misplacedFolder(above: place),
                let first = placed[above]
            {
                order.require(first, before: operation)
            }
            if let occupant = occupant(of: place, for: position),
                let first = placed[occupant] ?? deleted[occupant]
            {
                order.require(first, before: operation, forName: true)
            }
            // Out of a folder before the folder goes.
            var folder = trees.items[position].remote.flatMap { trees.index[$0.place.parent] }
            while let above = folder, deleting[above] {
                if let deletion = deleted[above] { order.require(operation, before: deletion) }
                folder = trees.items[above].remote.flatMap { trees.index[$0.place.parent] }
            }
        }
        return order.operations(
            detour: { detour(of: $0, in: $1) },
            exclusions: { operation in
                // The move of a folder above changes the path by which this operation finds its item.
                let item = trees.items[operation]
                let above = chain(above: item.remote?.place) + chain(above: item.local?.place)
                return above.compactMap { trees.items[$0].remote == nil ? nil : placed[$0] }
            }
        )
    }

    /// A temporary place in a folder; no other item has it.
    private func detour(of position: Int, in folder: Inode) -> Place {
        let item = trees.items[position]
        var number = 0
        while true {
            let name = Planner.detourName(
                of: item.inode,
                named: (item.remote ?? item.local)?.place.name,
                number: number
            )
            let place = Place(parent: folder, name: name)
            if occupant(of: place, for: position) == nil { return place }
            number += 1
        }
    }

    private func placement(
        _ position: Int,
        _ item: ItemState,
        _ local: Entry
    ) -> RemoteOperation.Action {
        guard let remote = item.remote else {
            guard let content = local.content, !item.isFolder else {
                return .createFolder(at: local.place)
            }
            return .upload(at: local.place, content)
        }
        if let heir = heirs[position] {
            return .duplicate(at: local.place, heir: trees.items[heir].inode)
        }
        if traits.caseRenameNeedsDetour,
            trees.key(local.place, of: item) == trees.key(remote.place, of: item)
        {
            return .move(to: detour(of: position, in: local.place.parent), isDetour: true)
        }
        return .move(to: local.place, isDetour: false)
    }
}

extension PlannerTraits {
    /// A new revision or attributes of an item that the service has; nil when nothing of them
    /// differs that could be sent.
    func contentAction(_ item: ItemState) -> RemoteOperation.Action? {
        guard let local = item.local, let remote = item.remote else { return nil }
        if !local.hasSameContent(as: remote) {
            guard let content = local.content, !item.isFolder else { return nil }
            return .replace(remote.content?.revision, with: content)
        }
        var modified: Timestamp?
        var description: String?
        let setsTime = item.isFolder ? setsFolderModifiedTime : setsModifiedTime
        if setsTime, let time = local.modified,
            time.truncated(to: timeResolution)
                != remote.modified?.truncated(to: timeResolution)
        {
            modified = time
        }
        if setsDescription, local.description ?? "" != remote.description ?? "" {
            description = local.description ?? ""
        }
        guard modified != nil || description != nil else { return nil }
        return .setAttributes(modified: modified, description: description)
    }
}

extension RemoteOperation.Action {
    /// Whether a new revision takes the place of what the item has.
    var sendsContent: Bool { if case .replace = self { true } else { false } }
}
