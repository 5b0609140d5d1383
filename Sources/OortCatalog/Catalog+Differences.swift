import GRDB
public import OortModel
public import OortPlanner

/// What decides, beside the rows, whether an item may be pushed now.
public struct PlanningConditions: Sendable {
    /// The moment, milliseconds since 1970.
    public var now: Int64
    /// How long an item must be unchanged, in milliseconds; 0 pushes at once.
    public var settle: Int64
    /// Items of operations that are under way, or whose content is not kept yet: no plan concerns them.
    public var busy: Set<Inode> = []
    /// The hash of a small content, such as a link's target.
    public var hash: @Sendable ([UInt8]) -> ContentHash

    /// Conditions with all of their parts.
    public init(
        now: Int64,
        settle: Int64,
        hash: @escaping @Sendable ([UInt8]) -> ContentHash
    ) {
        self.now = now
        self.settle = settle
        self.hash = hash
    }
}

/// A staged content whose hash is not known.
public struct UnhashedContent: Sendable {
    /// The content.
    public var content: ContentID
    /// Bytes of it, as far as is recorded.
    public var size: Int64
}

/// What is to be done at the service, and when to plan again.
public struct PlannedWork: Sendable {
    /// Operations that can be begun.
    public var operations: [RemoteOperation] = []
    /// All news up to this number was merged before (`Catalog.newsNumber`).
    public var newsNumber: UInt64 = 0
    /// Staged contents whose hash must be known before their files can be planned for.
    public var unhashed: [UnhashedContent] = []
    /// How many items differ from the service.
    public var pending = 0
    /// The next moment at which an item that has to settle, or to wait for its next try, may be planned
    /// for, milliseconds since 1970; nil when there is none.
    public var nextMoment: Int64?
}

extension Catalog {
    /// Merges all news into the local tree and plans what is to be done at the service.
    ///
    /// Reading, planning and merging are one transaction, so that no program comes between; where
    /// there is nothing to merge, no writer waits for it.
    public func plan(
        _ account: AccountID,
        with planner: Planner,
        under conditions: PlanningConditions
    ) async throws(CatalogError) -> PlannedWork {
        let rules = nameRules(of: account)
        // Read before the trees are: news that come meanwhile may be missing from them.
        let newsNumber = newsNumber(of: account)
        let draft = try await readAsync { database -> PlannedWork? in
            var reader = try TreesReader(database, account, conditions, self.writers)
            let items = try reader.read()
            let plan = planner.plan(items)
            guard plan.local.isEmpty, !items.contains(where: { planner.mayRest($0) }),
                try Numbering(account, database, rules, self.writers).findings().isEmpty
            else { return nil }
            var work = reader.work
            work.operations = plan.remote
            work.newsNumber = newsNumber
            return work
        }
        if let draft { return draft }
        return try await mutateAsync { transaction in
            var work = PlannedWork()
            // Each round merges what the one before made possible; a tree's depth bounds them.
            for _ in 0..<1000 {
                var reader = try TreesReader(
                    transaction.database,
                    account,
                    conditions,
                    self.writers
                )
                let items = try reader.read()
                work = reader.work
                let plan = planner.plan(items)
                if plan.local.isEmpty {
                    work.operations = plan.remote
                    work.newsNumber = self.newsNumber(of: account)
                    try transaction.restAll(items.filter { planner.mayRest($0) })
                    if try transaction.settleNumbers(in: account, rules) { continue }
                    break
                }
                var merger = Merger(transaction, rules: rules)
                try merger.apply(plan.local)
                transaction = merger.transaction
            }
            return work
        }
    }
}

extension CatalogTransaction {
    /// Takes items out of motion that have no difference that could be sent.
    mutating func restAll(_ items: [ItemState]) throws {
        for item in items {
            // The service reported what both sides have already.
            if let motion = try Catalog.motion(item.inode, database),
                motion.remoteState == .present, let told = motion.remoteItem,
                let parent = item.remote?.place.parent
            {
                try setBase(of: item.inode, parent: parent, told, content: true, keepsNews: false)
            }
            if let mine = item.local?.content, let theirs = item.remote?.content {
                if mine.revision != theirs.revision {
                    try database.run(
                        """
                        UPDATE node SET staged = NULL, content_item = NULL,
                            revision = (SELECT synced_revision FROM motion
                                WHERE inode = node.inode),
                            hash = (SELECT synced_hash FROM motion WHERE inode = node.inode)
                        WHERE inode = ?
                        """,
                        [item.inode.column]
                    )
                    touch(item.inode)
                }
            }
            try restIfClean(item.inode, keepsAttributes: true)
        }
    }
}

/// What the planner needs to know of a node's staged content; empty where it has none.
private struct StagedTraits {
    var hash: ContentHash?
    /// Whose revision it lies over, and which.
    var baseItem: String?
    var baseRevision: String?
}

/// Reads the planner's input: all items in motion, and what they touch.
struct TreesReader {
    private let database: Database
    private let account: AccountID
    private let conditions: PlanningConditions
    private let writers: WriterRegistry
    private(set) var work = PlannedWork()
    private var states: [Inode: ItemState] = [:]
    private var nodes: [Inode: Node] = [:]
    private var foldersByID: [ExactText: Inode] = [:]
    /// Items that were moved to the trash of the desktop.
    private var trashed: Set<Inode> = []
    /// Items that were refused a name, each with the folder in which it wanted that name.
    private var refusedNames: [(item: Inode, folder: Inode)] = []
    private let comparison: NameRules.Comparison
    private let allowsDuplicates: Bool

    init(
        _ database: Database,
        _ account: AccountID,
        _ conditions: PlanningConditions,
        _ writers: WriterRegistry
    ) throws {
        self.writers = writers
        self.database = database
        self.account = account
        self.conditions = conditions
        let name = try database.text(
            "SELECT comparison FROM account WHERE id = ?",
            [account.rawValue]
        )
        comparison = NameRules.Comparison(column: name ?? "exact")
        let duplicates = try database.number(
            "SELECT allows_duplicates FROM account WHERE id = ?",
            [account.rawValue]
        )
        allowsDuplicates = duplicates == 1
    }

    mutating func read() throws -> [ItemState] {
        trashed = Set(
            try database.all("SELECT inode FROM trashed WHERE account = ?", [account.rawValue]) {
                Inode(column: $0[0])
            }
        )
        let start = Node.columnCount
        let motions = try database.all(
            """
            SELECT \(Node.columns.split(separator: ",").map { "node." + $0.drop { $0 == " " } }
                    .joined(separator: ", ")), \(MotionRow.columns), content.hash, content.base_item,
                content.base_revision
            FROM motion JOIN node ON node.inode = motion.inode
                LEFT JOIN content ON content.id = node.staged
            WHERE motion.account = ? AND NOT \(Catalog.isHeldInSQL)
            """,
            [account.rawValue]
        ) { row in
            let staged = StagedTraits(
                hash: (row[start + 17] as String?).flatMap { ContentHash(description: $0) },
                baseItem: row[start + 18],
                baseRevision: row[start + 19]
            )
            return (Node(columns: row), try MotionRow(columns: row, from: start), staged)
        }
        for (node, _, _) in motions { nodes[node.inode] = node }
        let lastDeletion =
            motions.filter { $0.0.parent == nil && $0.1.changed > 0 }
            .map(\.1.changed).max() ?? 0
        var nowhere: Set<Inode> = []
        for (node, motion, staged) in motions {
            states[node.inode] = try state(node, motion, staged, lastDeletion)
            let isGone = node.kind == .folder && motion.remoteState == .gone
            if isGone || states[node.inode] == nil { nowhere.insert(node.inode) }
        }
        try hold(whatLiesIn: nowhere)
        for state in states.values where state.local != state.remote || state.isBeingWritten {
            work.pending += 1
        }
        let heirs = motions.compactMap { $0.1.intent?.heir.map { Inode($0) } }
        for heir in heirs { states[heir]?.isBusy = true }
        try readContext()
        try readHeld()
        if !allowsDuplicates {
            try readDisplaced()
            try readDetours()
        }
        return states.values.sorted { $0.inode < $1.inode }
    }

    // MARK: Items in motion

    private mutating func state(
        _ node: Node,
        _ motion: MotionRow,
        _ staged: StagedTraits,
        _ lastDeletion: Int64
    ) throws -> ItemState? {
        let synced = motion.syncedParent.map { parent in
            Entry(
                place: Place(parent: parent, name: motion.syncedName),
                content: isContentKind(node.kind)
                    ? ContentIdentity(
                        revision: motion.syncedRevision,
                        hash: motion.syncedHash,
                        size: motion.syncedSize
                    ) : nil,
                modified: motion.syncedModified,
                description: motion.syncedDescription
            )
        }
        var isHeld = false
        let remote: Entry?
        switch motion.remoteState {
        case .asSynced: remote = synced
        case .mayBeGone:
            isHeld = true
            remote = synced
        case .gone: remote = nil
        case .present:
            if let item = motion.remoteItem, let parent = try folder(motion.remoteParentID) {
                remote = entry(item, in: parent)
            } else {
                // Its folder is not known yet.
                guard synced != nil || node.parent != nil else { return nil }
                isHeld = true
                remote = synced
            }
        }
        var state = ItemState(
            inode: node.inode,
            isFolder: node.kind == .folder,
            local: node.parent.map { local(node, in: $0, stagedHash: staged.hash) },
            synced: synced,
            remote: remote
        )
        state.isLink = node.kind == .symlink
        if node.parent == nil { state.formerName = node.serviceName }
        state.isTrashed = node.parent == nil && trashed.contains(node.inode)
        state.isOpen = node.kind == .file && writers.isOpen(node.inode)
        state.isBeingWritten = state.isOpen && writers.isBeingWritten(node.inode)
        state.isBusy = motion.intent != nil || isHeld || conditions.busy.contains(node.inode)
        state.mayBeGone = motion.remoteState == .mayBeGone
        state.expected = motion.intent?.expected
        let now = conditions.now
        let waits = WaitMoment.wait(until: motion.nextTry, now: now) != nil
        state.isPushable = isPushable(node, state) && !waits
        if waits, motion.nextTry != WaitMoment.never { note(moment: motion.nextTry) }
        let changed = node.parent == nil ? lastDeletion : motion.changed
        let rested = changed + conditions.settle
        // A change more than a minute in the future was made before the clock was set back.
        let longest = conditions.settle + 60_000
        if conditions.settle > 0,
            WaitMoment.wait(until: rested, now: now, longest: longest) != nil
        {
            state.isSettled = false
            note(moment: rested)
        }
        if let content = node.staged, node.parent != nil, staged.hash == nil {
            if state.isSettled && !state.isBeingWritten && !waits {
                work.unhashed.append(UnhashedContent(content: content, size: node.size))
            }
            state.isSettled = false
        }
        state.borrowed = try borrowed(node, staged)
        if motion.errorKind == "nameTaken", let folder = node.parent {
            refusedNames.append((node.inode, folder))
        }
        state.isRecent = try isRecent(node)
        return state
    }

    /// Keeps items here as they are that the feed reported in unknown folders, or in a circle of folders.
    ///
    /// They wait for the feed's next reports: such a folder is neither shown nor created for them.
    private mutating func hold(whatLiesIn folders: Set<Inode>) throws {
        var nowhere = folders
        var held: Set<Inode> = []
        var changed = true
        while changed {
            // A held item stays where it was, which may close another circle.
            let circles = try foldersInCircles()
            for inode in circles { hold(inode, &nowhere) }
            changed = !circles.isEmpty
            for (inode, state) in states where !held.contains(inode) {
                guard let remote = state.remote, nowhere.contains(remote.place.parent) else {
                    continue
                }
                changed = true
                held.insert(inode)
                hold(inode, &nowhere)
            }
        }
    }

    private mutating func hold(_ inode: Inode, _ nowhere: inout Set<Inode>) {
        guard let state = states[inode] else { return }
        if state.local == nil, state.synced == nil {
            states[inode] = nil
            nowhere.insert(inode)
            return
        }
        states[inode]?.remote = state.synced
        states[inode]?.isBusy = true
        // Such folders that it lies in here wait with it.
        var above = state.local?.place.parent
        while let folder = above, nowhere.contains(folder), states[folder]?.isBusy == false {
            states[folder]?.isBusy = true
            above = states[folder]?.local?.place.parent
        }
    }

    /// Folders whose new place at the service is below themselves.
    private func foldersInCircles() throws -> [Inode] {
        try states.values.filter { state in
            guard state.isFolder, let place = state.remote?.place, place != state.synced?.place
            else { return false }
            var seen: Set<Inode> = []
            var next: Inode? = place.parent
            while let inode = next, inode != state.inode, seen.insert(inode).inserted {
                next =
                    if let above = states[inode] {
                        above.remote?.place.parent
                    } else {
                        try Catalog.fetch(inode, database)?.parent
                    }
            }
            return next == state.inode
        }.map(\.inode)
    }

    private mutating func borrowed(
        _ node: Node,
        _ staged: StagedTraits
    ) throws -> BorrowedContent? {
        let isStaged = node.staged != nil
        let item = isStaged ? staged.baseItem : node.contentItem?.rawValue
        let revision = isStaged ? staged.baseRevision.map { Revision($0) } : node.revision
        guard let revision, item != node.remoteID?.rawValue, let item,
            let owner = try Catalog.node(item, in: account, database)
        else { return nil }
        return BorrowedContent(owner: owner.inode, revision: revision)
    }

    private mutating func note(moment: Int64) {
        work.nextMoment = min(work.nextMoment ?? .max, moment)
    }

    private func isContentKind(_ kind: NodeKind) -> Bool { kind == .file || kind == .symlink }

    private func isPushable(_ node: Node, _ state: ItemState) -> Bool {
        if node.kind.isLocalOnly { return false }
        if state.remote == nil { return node.kind != .shortcut && node.kind != .nativeDocument }
        return node.permissions.contains(state.local == nil ? .delete : .write)
    }

    /// Whether we created the item at the service in the last ten minutes and have all of its content.
    private func isRecent(_ node: Node) throws -> Bool {
        guard let born = node.born, node.remoteID != nil, node.kind == .file,
            born.inMilliseconds + 600_000 > conditions.now
        else { return false }
        if node.staged != nil { return true }
        // The store is taking over the item's content; the planner waits for that.
        if conditions.busy.contains(node.inode) { return true }
        guard let id = node.remoteID, let revision = node.revision else { return false }
        return try database.has(
            """
            SELECT 1 FROM content
            WHERE account = ? AND item = ? AND revision = ? AND is_complete = 1
            """,
            [account.rawValue, id.rawValue, revision.rawValue]
        )
    }

    private func local(_ node: Node, in parent: Inode, stagedHash: ContentHash?) -> Entry {
        Entry(
            place: Place(parent: parent, name: node.serviceName),
            content: content(of: node, stagedHash: stagedHash),
            modified: node.modified,
            description: node.itemDescription
        )
    }

    private func content(of node: Node, stagedHash: ContentHash?) -> ContentIdentity? {
        guard isContentKind(node.kind) else { return nil }
        if let staged = node.staged {
            return ContentIdentity(staged: staged.rawValue, hash: stagedHash, size: node.size)
        }
        if node.contentItem == nil, let revision = node.revision {
            return ContentIdentity(revision: revision, hash: node.hash, size: node.size)
        }
        if node.contentItem != nil {
            return ContentIdentity(
                staged: -node.inode.column,
                hash: node.hash,
                size: node.size
            )
        }
        // A link's target, or a file that was never written: it has no staged content.
        let bytes = [UInt8]((node.target ?? "").utf8)
        return ContentIdentity(
            staged: -node.inode.column,
            hash: conditions.hash(bytes),
            size: Int64(bytes.count)
        )
    }

    private func entry(_ item: StoredItem, in parent: Inode) -> Entry {
        Entry(
            place: Place(parent: parent, name: item.fileName),
            content: isContentKind(item.nodeKind)
                ? ContentIdentity(
                    revision: item.revision.map { Revision($0) },
                    hash: item.hash.flatMap { ContentHash(description: $0) },
                    size: item.size ?? 0
                ) : nil,
            modified: item.modifiedTime,
            description: item.description
        )
    }

    private mutating func folder(_ id: String?) throws -> Inode? {
        guard let id else { return nil }
        if let known = foldersByID[ExactText(id)] { return known }
        let inode = try Catalog.folder(id, in: account, database)?.inode
        foldersByID[ExactText(id)] = inode
        return inode
    }

    // MARK: What they touch

    /// Reads the folders above in each tree, and the items whose names the news want.
    private mutating func readContext() throws {
        var queue: [Inode] = []
        for state in states.values {
            for entry in [state.local, state.synced, state.remote] {
                if let entry { queue.append(entry.place.parent) }
            }
            if let remote = state.remote, remote.place != state.local?.place {
                let shown = ShownName.escaped(remote.place.name)
                if let other = try Catalog.fetch(
                    key: comparison.key(shown),
                    in: remote.place.parent,
                    database
                ),
                    states[other.inode] == nil
                {
                    states[other.inode] = clean(other)
                }
            }
        }
        while let inode = queue.popLast() {
            guard states[inode] == nil, inode != .root,
                let node = try Catalog.fetch(inode, database), !node.isAccountRoot,
                let parent = node.parent
            else { continue }
            states[inode] = clean(node)
            queue.append(parent)
        }
    }

    /// Reads the items that stay here by rules, if a folder that may hold them is gone at the service: they
    /// must not be lost with it.
    private mutating func readHeld() throws {
        let isGone = states.values.contains { state in
            state.isFolder && state.local != nil && state.synced != nil && state.remote == nil
        }
        guard isGone else { return }
        let held = try database.all(
            """
            SELECT \(Node.columns) FROM node
            WHERE account = ? AND held = 1 AND remote_id IS NULL AND parent IS NOT NULL
            """,
            [account.rawValue],
            Node.init(columns:)
        )
        for node in held where states[node.inode] == nil { states[node.inode] = clean(node) }
    }

    /// Reads items that are shown with a number because another item has their name here, with that other
    /// item, where one of the two is in motion.
    private mutating func readDisplaced() throws {
        let pairs = try database.all(
            """
            SELECT node.inode, other.inode FROM node JOIN node AS other
                ON other.parent = node.parent AND other.name_key = node.plain_key
            WHERE node.account = ? AND node.plain_key IS NOT NULL AND EXISTS
                (SELECT 1 FROM motion WHERE motion.inode IN (node.inode, other.inode))
            """,
            [account.rawValue]
        ) { (Inode(column: $0[0]), Inode(column: $0[1])) }
        for (displaced, owner) in pairs {
            for inode in [displaced, owner] where states[inode] == nil {
                states[inode] = try Catalog.fetch(inode, database).map(clean)
            }
            states[displaced]?.isDisplaced = true
        }
    }

    /// Reads the items that have the temporary names which refused items would get.
    ///
    /// Those in motion are read already, and may lie elsewhere here than at the service. All others lie in
    /// the same folder on both sides.
    private mutating func readDetours() throws {
        let folders = Set(refusedNames.map(\.folder))
        guard !folders.isEmpty else { return }
        // The places' names are keys.
        var taken: Set<Place> = []
        for state in states.values {
            guard let place = state.remote?.place, folders.contains(place.parent) else { continue }
            taken.insert(Place(parent: place.parent, name: comparison.key(place.name)))
        }
        for (item, folder) in refusedNames {
            let state = states[item]
            let own = (state?.remote ?? state?.local)?.place.name
            for number in 0... {
                let name = Planner.detourName(of: item, named: own, number: number)
                let key = comparison.key(name)
                if taken.contains(Place(parent: folder, name: key)) { continue }
                // A link is shown without its ending.
                let shown = comparison.key(LinkName.link(name) ?? name)
                let other =
                    try Catalog.fetch(key: shown, in: folder, database)
                    ?? Catalog.fetch(key: key, in: folder, database)
                guard let other, states[other.inode] == nil else { break }
                states[other.inode] = clean(other)
            }
        }
    }

    private func clean(_ node: Node) -> ItemState {
        let entry = node.parent.map { local(node, in: $0, stagedHash: nil) }
        let isThere = !node.kind.isLocalOnly && !node.isHeld
        var state = ItemState(
            inode: node.inode,
            isFolder: node.kind == .folder,
            local: entry,
            synced: isThere ? entry : nil,
            remote: isThere ? entry : nil
        )
        state.isLink = node.kind == .symlink
        state.isPushable = false
        return state
    }
}
