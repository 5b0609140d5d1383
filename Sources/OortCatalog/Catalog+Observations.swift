import Foundation
import GRDB
public import OortModel
import OortPlanner
import Synchronization

/// What the service reported, to be applied in one transaction.
public struct Observations: Sendable {
    /// The entries, in the service's order.
    public var changes: [Change]
    /// Where the change feed goes on; nil where these are not from the feed.
    public var cursor: OortModel.Cursor?
    /// Whether these are a part of an enumeration, and not changes in their order.
    public var isEnumeration = false
    /// The account's last enumeration when these were asked for; nil for the present one.
    public var enumeration: Int64?
    /// Whether an enumeration ends with these: an item that it did not name is gone.
    public var endsEnumeration = false
    /// Whether the feed's run is over, so that removals by path are meant.
    public var endsRun = true
    /// Items that operations of ours touched after these were asked for: these may be older than that, so
    /// the items must be asked for by themselves.
    public var suspects: Set<ItemID> = []
    /// When these were asked for, in milliseconds since 1970, if they answer a question about many items;
    /// such an answer may not show what we changed shortly before (`setLag`).
    public var asked: Int64?
    /// Items that the service did not let us see in full: the end of the enumeration takes nothing in them
    /// for gone.
    public var untold: Set<ItemID> = []
    /// The folder of which these are the whole content: an item that is not among them is gone from it.
    public var folder: Inode?

    /// Observations of single items.
    public init(changes: [Change]) { self.changes = changes }
}

extension Catalog {
    /// Applies what the service reported: to clean items at once, to items in motion as the newest
    /// observation, for the planner to merge.
    ///
    /// The cursor is stored in the same transaction. In it `touched` gives more suspects: an operation may be
    /// answered until then.
    ///
    /// - Returns: items that must be asked for by themselves; they are among `unsureItems` until they were.
    ///   Nil when an enumeration began after these were asked for, since they may be older: nothing was
    ///   applied, and they must be asked for again.
    public func apply(
        _ observations: Observations,
        to account: AccountID,
        touched: @escaping @Sendable () -> Set<ItemID> = { [] }
    ) async throws(CatalogError) -> Set<ItemID>? {
        let rules = nameRules(of: account)
        var preferred = observations
        if let preference = exports.withLock({ $0[account] }) {
            preferred.changes = observations.changes.map { $0.ordered(by: preference) }
        }
        let reported = preferred
        return try await mutateAsync { transaction in
            var observations = reported
            observations.suspects.formUnion(touched())
            var observer = Observer(transaction, account: account, rules: rules)
            let unsure = try observer.apply(observations)
            transaction = observer.transaction
            return unsure
        }
    }
}

extension Change {
    /// The change with a document's export forms in the preferred order.
    fileprivate func ordered(by preference: ExportPreference) -> Change {
        guard case .changed(var item) = self, item.kind == .nativeDocument else { return self }
        item.exports = preference.ordered(item.exports)
        return .changed(item)
    }
}

/// Applies observations inside a transaction.
struct Observer {
    var transaction: CatalogTransaction
    let account: AccountID
    let rules: AccountNameRules
    private(set) var suspects: Set<ItemID> = []
    var unsure: Set<ItemID> = []
    /// Where those of them were reported to lie that the catalog does not have.
    var unknown: [ItemID: ToldPlace] = [:]
    private var enumeration: Int64 = 0
    private var hasIntents = false
    /// Whether items were to be asked for before these observations came: mostly there are none.
    var hasUnsure = false
    private(set) var isFeed = false
    /// Folders that were looked up while these observations were applied.
    var folders = FoundFolders()
    /// The reported items that the catalog has: a new one need not be looked up.
    ///
    /// Only `appeared` brings an id into the catalog meanwhile.
    private var known: Set<ItemID> = []
    var names: RemoteNames
    private var freeNames: FreeNames

    var database: Database { transaction.database }

    init(_ transaction: CatalogTransaction, account: AccountID, rules: AccountNameRules) {
        self.transaction = transaction
        self.account = account
        self.rules = rules
        names = RemoteNames(rules.comparison)
        freeNames = FreeNames(rules)
    }

    mutating func apply(_ observations: Observations) throws -> Set<ItemID>? {
        enumeration = try Catalog.enumeration(of: account, database)
        guard observations.enumeration ?? enumeration == enumeration else { return nil }
        suspects = observations.suspects
        isFeed = observations.cursor != nil
        let isInOrder = isFeed && !observations.isEnumeration
        if let asked = observations.asked {
            suspects.formUnion(try lagging(askedFor: asked, isInOrder: isInOrder))
        }
        if isInOrder || observations.asked == nil { try rememberAnswers(observations.changes) }
        hasIntents =
            try database.has(
                "SELECT 1 FROM motion WHERE account = ? AND intent IS NOT NULL LIMIT 1",
                [account.rawValue]
            )
        hasUnsure = try database.has(
            "SELECT 1 FROM unsure WHERE account = ? LIMIT 1",
            [account.rawValue]
        )
        if observations.endsEnumeration { noteNews() }
        known = try known(of: observations.changes)
        for change in observations.changes {
            switch change {
            case .changed(let item):
                if item.isTrashed { try removed(item.id) } else { try changed(item) }
            case .removed(let id): try removed(id)
            case .removedPath(let path): try removed(path)
            }
        }
        if let folder = observations.folder { try listed(folder, observations.changes) }
        for id in observations.untold { try keep(id) }
        try end(observations)
        // Not for each of an enumeration's many pages, which would number everything again; the plan does
        // it, too.
        if observations.endsRun || observations.endsEnumeration || observations.folder != nil {
            try transaction.settleNumbers(in: account, rules)
        }
        try rememberUnsure(observations.changes)
        if let cursor = observations.cursor {
            try database.run(
                "UPDATE account SET cursor = ? WHERE id = ?",
                [cursor.rawValue, account.rawValue]
            )
        }
        return unsure
    }

    /// The reported items that the catalog has, by one query; may include some that it does not have.
    private func known(of changes: [Change]) throws -> Set<ItemID> {
        var ids: [String] = []
        for case .changed(let item) in changes { ids.append(item.id.rawValue) }
        guard ids.count > 1 else { return Set(ids.map { ItemID($0) }) }
        let found = try database.all(
            """
            SELECT remote_id FROM node
            WHERE account = ? AND remote_id IN (SELECT value FROM json_each(?))
            """,
            [account.rawValue, String(decoding: try JSONEncoder().encode(ids), as: UTF8.self)]
        ) { ItemID($0[0]) }
        // SQLite's text may end at a zero: such ids are looked up one by one.
        return Set(found).union(ids.filter { $0.utf8.contains(0) }.map { ItemID($0) })
    }

    /// Counts what is known of an item and of everything below it as named by the enumeration.
    private func keep(_ id: ItemID) throws {
        guard let node = try Catalog.node(id.rawValue, in: account, database) else { return }
        let tree = try RemoteSubtree(of: node, database)
        try tree.setEnumeration(enumeration, database)
    }

    /// At the end of a run of the feed, decides everything that the run left open.
    private mutating func end(_ observations: Observations) throws {
        guard observations.endsRun || observations.endsEnumeration else { return }
        // What only lags is asked for when it is reported, and what is answered then counts.
        var end = RunEnd(
            transaction,
            account: account,
            touched: observations.suspects,
            unsure: unsure
        )
        if observations.endsRun {
            try end.decideWhatMayBeGone()
            try end.doubtMisplaced()
        }
        if observations.endsEnumeration {
            let lagging = try observations.asked.map { try laggingInEnumeration(askedFor: $0) }
            try end.takeOutUnnamed(in: enumeration, lagging: lagging ?? [])
        }
        transaction = end.transaction
        unsure = end.unsure
    }

    // MARK: Something is there

    private mutating func changed(_ item: Item) throws {
        var known =
            self.known.contains(item.id)
            ? try Catalog.node(item.id.rawValue, in: account, database) : nil
        if let node = known {
            if node.isAccountRoot { return }
            if (node.kind == .folder) != (item.kind == .folder) {
                noteNews()
                guard try takeOutOther(node, for: item) else { return }
                known = nil
            }
        }
        let parent = try self.parent(of: item)
        guard let known else {
            noteNews()
            if suspects.contains(item.id) {
                doubtUnknown(item, in: parentMark(of: item, in: parent))
            } else {
                try displace(for: item, in: parent)
                try appeared(item, in: parent)
            }
            return
        }
        try database.run(
            "UPDATE node SET enumeration = ? WHERE inode = ?",
            [enumeration, known.inode.column]
        )
        if item.kind == .folder { folders.forget() }
        // What was looked up meanwhile is outdated, too.
        defer { if item.kind == .folder { folders.forget() } }
        let motion = try Catalog.motion(known.inode, database)
        if item.kind == .folder, item.parentID == nil { try doubtMoved(known, item, in: parent) }
        let mayBeOld = motion?.intent != nil || suspects.contains(item.id)
        if mayBeOld || !transaction.effects.heard.contains(account),
            try !isKnown(item, of: known, motion, parent)
        {
            noteNews()
            if mayBeOld {
                unsure.insert(item.id)
                return
            }
        }
        // A known state is not older than what is known: it brings what it says besides, as with whom the item
        // is shared. Which operation is under way it does not say, and that operation's answer brings all.
        if motion?.intent != nil { return try takeDetails(item, of: known) }
        if !mayBeOld { unsure.remove(item.id) }
        try displace(for: item, in: parent)
        let isApplied =
            try motion == nil && parent.map { try updateClean(known, item, $0) } ?? false
        if !isApplied { try observe(item, of: known, parent) }
        if let parent { names.add(known.inode, name: item.fileName, in: parent.inode) }
        if item.kind == .folder { try placeWaiting(for: item) }
    }

    /// Notes that the service reports a state that was not known, and that a plan made before cannot know.
    ///
    /// The service reports our own operations, too: a state that an operation's answer gave is no news.
    mutating func noteNews() { transaction.effects.heard.insert(account) }

    /// Removes a node whose id now belongs to an item of another kind: no folder becomes a file, nor a file
    /// a folder, so the old item is gone with all below it.
    ///
    /// - Returns: whether the id is free; if not, the item must be asked for.
    private mutating func takeOutOther(_ node: Node, for item: Item) throws -> Bool {
        let motion = try Catalog.motion(node.inode, database)
        guard !suspects.contains(item.id), motion?.intent == nil else {
            unsure.insert(item.id)
            return false
        }
        guard try gone(node) else {
            unsure.insert(item.id)
            return false
        }
        guard let rest = try Catalog.fetch(node.inode, database) else { return true }
        let hasOwnBytes = rest.staged != nil || rest.contentItem != nil
        if node.kind == .folder {
            // The planner decides whether it is needed here, as for any folder that is gone.
            transaction.touch(node.inode)
            try database.run(
                "UPDATE node SET remote_id = NULL, details = NULL, tags = NULL WHERE inode = ?",
                [node.inode.column]
            )
        } else if hasOwnBytes || transaction.writers.isOpen(node.inode) {
            try transaction.detach(node.inode)
        } else {
            try transaction.remove(rest)
        }
        return true
    }

    /// Whether the item is as the service last reported it: its place, its content, and what else a person
    /// changes, which need not give it another revision.
    private func isKnown(
        _ item: Item,
        of node: Node,
        _ motion: MotionRow?,
        _ parent: Node?
    ) throws -> Bool {
        if motion?.remoteState == .mayBeGone { return false }
        let place = try Catalog.remotePlace(of: node, database)
        let revision: Revision?
        let modified: Timestamp?
        let description: String?
        if let motion, let present = motion.remoteItem, motion.remoteState == .present {
            revision = present.revision.map { Revision($0) }
            (modified, description) = (present.modifiedTime, present.description)
        } else if let motion {
            revision = motion.syncedRevision
            (modified, description) = (motion.syncedModified, motion.syncedDescription)
        } else {
            revision = node.revision
            (modified, description) = (node.modified, node.itemDescription)
        }
        return place?.parent == parent?.inode && place?.name.isSameText(as: item.fileName) == true
            && revision == item.rev && description ?? "" == item.description ?? ""
            && (item.kind == .folder || isKept(modified, as: item.clientModifiedTime))
    }

    /// Whether a time is what the service reports, if it reports one.
    private func isKept(_ modified: Timestamp?, as told: Timestamp?) -> Bool {
        guard let modified, let told else { return true }
        return modified.isKept(as: told)
    }

    /// Adds an item that the catalog did not know.
    private mutating func appeared(_ item: Item, in parent: Node?) throws {
        let stored = StoredItem(item, beside: nil, rules.links)
        let shown = stored.shownName
        let kind = stored.nodeKind
        let place = try parent.flatMap { parent in
            try nameToShow(shown, in: parent).map { (parent: parent, name: $0) }
        }
        let name = place?.name ?? shown
        let modified = stored.modifiedTime ?? Timestamp.now
        let created = stored.createdTime
        try database.run(
            """
            INSERT INTO node (account, parent, name, name_key, service_name, plain_key, kind, size,
                modified_s, modified_ns, changed_s, changed_ns, created_s, created_ns,
                remote_id, revision, hash, target, permissions, description, mime_type,
                details, is_strangers, enumeration, tags)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                nullif(?, ''))
            """,
            [
                account.rawValue, place?.parent.inode.column, name, rules.comparison.key(name),
                name.isSameText(as: item.fileName) ? nil : item.fileName,
                name.isSameText(as: shown) ? nil : rules.comparison.key(shown), kind.rawValue,
                stored.size ?? 0, modified.seconds, Int64(modified.nanoseconds), modified.seconds,
                Int64(modified.nanoseconds), created?.seconds,
                created.map { Int64($0.nanoseconds) }, item.id.rawValue, item.rev?.rawValue,
                item.contentHash?.description, item.shortcutTarget?.rawValue,
                Int64(item.permissions.rawValue), item.description, item.mimeType,
                stored.details(hasName: true, hasHash: true), stored.isStrangers(beside: nil),
                enumeration, stored.tags,
            ]
        )
        let inode = Inode(column: database.lastInsertedRowID)
        known.insert(item.id)
        transaction.touch(inode)
        if let parent { names.add(inode, name: item.fileName, in: parent.inode) }
        if let place {
            transaction.effects.news.append(
                .entryAdded(parent: place.parent.inode, name: place.name)
            )
        } else {
            try database.run(
                """
                INSERT INTO motion (inode, account, changed_ms, remote_state,
                    remote_parent_id, remote_item)
                VALUES (?, ?, 0, 1, ?, ?)
                """,
                [
                    inode.column, account.rawValue, parentMark(of: item, in: parent),
                    try stored.json(),
                ]
            )
        }
        if kind == .folder { try placeWaiting(for: item) }
    }

    /// The name under which a new item is shown in a folder until numbers are given; nil where the planner
    /// decides that.
    mutating func nameToShow(_ shown: String, in parent: Node) throws -> String? {
        guard try isShown(parent), !hasIntents else { return nil }
        let other = try Catalog.fetch(
            key: rules.comparison.key(shown),
            in: parent.inode,
            database
        )
        guard let other else { return shown }
        guard rules.allowsDuplicates, other.remoteID != nil,
            try Catalog.motion(other.inode, database) == nil
        else { return nil }
        return try freeNames.shown(shown, in: parent.inode, database)
    }

    /// Whether a folder is in the local tree and will stay there, since the service has not lost it.
    mutating func isShown(_ folder: Node) throws -> Bool {
        guard folder.parent != nil else { return false }
        if let known = folders.isThere[folder.inode] { return known }
        let isThere = try Catalog.motion(folder.inode, database)?.remoteState != .gone
        folders.isThere[folder.inode] = isThere
        return isThere
    }

    // MARK: What is known already

    /// Applies news of a clean item at once; false where the planner has to decide about its new place.
    private mutating func updateClean(_ node: Node, _ item: Item, _ parent: Node) throws -> Bool {
        guard let oldParent = node.parent else { return false }
        let stored = StoredItem(item, beside: node, rules.links)
        // An item that was a link and shows as a file now, or the reverse, gets another name here.
        let isSamePlace =
            parent.inode == oldParent && node.serviceName.isSameText(as: item.fileName)
            && node.kind == stored.nodeKind
        if !isSamePlace {
            let shown = stored.shownName
            guard try isShown(parent), !hasIntents,
                try Catalog.fetch(key: rules.comparison.key(shown), in: parent.inode, database)
                    .map({ $0.inode == node.inode }) ?? true,
                node.kind != .folder || oldParent == parent.inode
            else { return false }
            try transaction.put(
                node,
                at: parent.inode,
                name: shown,
                plainName: shown,
                serviceName: item.fileName,
                rules
            )
        }
        try transaction.takeOver(stored, of: node, rules)
        return true
    }

    /// Stores what the service says of an item besides its place, its content, its time and its description.
    private mutating func takeDetails(_ item: Item, of node: Node) throws {
        let stored = StoredItem(item, beside: node, rules.links)
        transaction.touch(node.inode)
        try database.run(
            """
            UPDATE node SET details = iif(remote_id IS ?, ?, ?), permissions = ?, is_strangers = ?,
                mime_type = ?, tags = nullif(ifnull(?, tags), '')
            WHERE inode = ?
            """,
            stored.detailsArguments(hasName: false, hasHash: false) + [
                Int64(stored.permissions), stored.isStrangers(beside: node), stored.mimeType,
                stored.tags, node.inode.column,
            ]
        )
        transaction.effects.news.append(.attributes(node.inode))
    }

    /// Stores what was reported of an item in motion, or puts it in motion.
    private mutating func observe(
        _ item: Item,
        of node: Node,
        _ parent: Node?
    ) throws {
        try transaction.startMotion(node)
        try database.run(
            """
            UPDATE motion SET remote_state = 1, remote_parent_id = ?, remote_item = ?
            WHERE inode = ?
            """,
            [
                parentMark(of: item, in: parent),
                try StoredItem(item, beside: node, rules.links).json(), node.inode.column,
            ]
        )
    }

    // MARK: Something is gone

    private mutating func removed(_ id: ItemID) throws {
        guard let node = try Catalog.node(id.rawValue, in: account, database),
            !node.isAccountRoot
        else { return }
        noteNews()
        if try suspects.contains(id) || Catalog.motion(node.inode, database)?.intent != nil {
            unsure.insert(id)
            return
        }
        guard node.kind == .folder else {
            try gone(node)
            return
        }
        // A folder that is gone says nothing about its contents: an item may have been moved out before, or made
        // in a new folder that has the path by now. The feed reports that until its run ends, in any order.
        if !suspects.isEmpty {
            unsure.formUnion(
                try RemoteSubtree(of: node, database).ids(database).intersection(suspects)
            )
        }
        try database.run(
            "DELETE FROM unsure WHERE account = ? AND remote_id = ?",
            [account.rawValue, id.rawValue]
        )
        try setMayBeGone(node, id)
    }

    mutating func setMayBeGone(_ node: Node, _ id: ItemID) throws {
        noteNews()
        folders.forget()
        if try suspects.contains(id) || Catalog.motion(node.inode, database)?.intent != nil {
            unsure.insert(id)
            return
        }
        try transaction.setMayBeGone(node)
        if let place = try Catalog.remotePlace(of: node, database) {
            names.add(node.inode, name: place.name, in: place.parent)
        }
    }

    /// Asks for the items that a complete listing of their folder did not name.
    private mutating func listed(_ folder: Inode, _ changes: [Change]) throws {
        guard let node = try Catalog.fetch(folder, database) else { return }
        var named: Set<ItemID> = []
        for case .changed(let item) in changes { named.insert(item.id) }
        for child in try Catalog.remoteChildren(of: node, database) {
            guard let id = child.remoteID, !named.contains(id) else { continue }
            // It may have moved elsewhere, so the service is asked for it.
            noteNews()
            unsure.insert(id)
        }
        try database.run("UPDATE node SET listed = 1 WHERE inode = ?", [folder.column])
        transaction.touch(folder)
    }

    /// - Returns: whether the item is certainly gone.
    @discardableResult
    private mutating func gone(_ node: Node) throws -> Bool {
        folders.forget()
        switch try transaction.takeOutGone(node, suspects) {
        case .takenOut(let ids):
            unsure.subtract(ids)
            return true
        case .doubtful(let ids):
            unsure.formUnion(ids)
            return false
        }
    }
}

/// The folders of the observations of one transaction, which many items share; valid as long as no folder
/// changes.
struct FoundFolders {
    var byPath: [RemotePath: Node] = [:]
    var byID: [ItemID: Node] = [:]
    /// Whether the service still has a folder, as far as it reported.
    var isThere: [Inode: Bool] = [:]

    mutating func forget() { self = FoundFolders() }
}

extension MotionRow {
    /// Whether only the service's reports put the item in motion.
    var isOnlyObserved: Bool { changed == 0 && intent == nil }
}
