import Foundation
import GRDB
import OortModel
import OortPlanner

/// Applies the planner's local steps inside a transaction.
struct Merger {
    var transaction: CatalogTransaction
    private let rules: AccountNameRules
    private var freeNames: FreeNames
    private var database: Database { transaction.database }

    init(_ transaction: CatalogTransaction, rules: AccountNameRules) {
        self.transaction = transaction
        self.rules = rules
        freeNames = FreeNames(rules)
    }

    mutating func apply(_ plan: [LocalStep]) throws {
        var returning = ReturningFiles()
        let steps = try returning.renumber(plan, in: &transaction)
        try clearTheWay(steps)
        for step in steps {
            switch step {
            case .forget(let inode):
                if let node = try Catalog.fetch(inode, database) { try transaction.remove(node) }
            case .detach(let inode): try transaction.detach(inode)
            case .place(let inode, let target): try place(inode, at: target)
            case .takeContent(let inode): try takeContent(inode)
            case .takeAttributes(let inode): try takeAttributes(inode)
            case .keepBoth(let inode): try keepBoth(inode)
            case .renumber: continue
            case .adopt(let inode, let other): try adopt(inode, other)
            case .handOver(let original, let heir): try handOver(original, heir)
            case .renounce(let inode): try renounce(inode)
            case .agree(let inode, let content): try agree(inode, content: content)
            }
        }
        // Last, since a number must be free among all names that the other steps bring.
        for case .renumber(let inode) in steps { try renumber(inode) }
        for step in steps { try settle(step) }
    }

    /// Takes out of their folders all items that will lie elsewhere, since names must be unique at every
    /// step; the kernel is notified of that here.
    private mutating func clearTheWay(_ steps: [LocalStep]) throws {
        for step in steps {
            let inode: Inode
            switch step {
            case .place(let placed, _): inode = placed
            case .renumber(let renumbered): inode = renumbered
            default: continue
            }
            guard let node = try Catalog.fetch(inode, database), let parent = node.parent else {
                continue
            }
            transaction.effects.news.append(
                .entryLeft(parent: parent, name: node.name, isFolder: node.kind == .folder)
            )
            waiting[inode] = parent
            try setParent(nil, of: inode)
        }
    }

    /// The folders of items that were taken out for a moment.
    private var waiting: [Inode: Inode] = [:]

    private func setParent(_ parent: Inode?, of inode: Inode) throws {
        try database.run(
            "UPDATE node SET parent = ? WHERE inode = ?",
            [parent?.column, inode.column]
        )
    }

    /// The item as the service last reported it; nil when that is the base.
    private func news(of inode: Inode) throws -> StoredItem? {
        guard let motion = try Catalog.motion(inode, database), motion.remoteState == .present
        else { return nil }
        return motion.remoteItem
    }

    private mutating func place(_ inode: Inode, at place: Place) throws {
        guard let node = try Catalog.fetch(inode, database) else { return }
        let wasHere = waiting.removeValue(forKey: inode) != nil
        let item = try news(of: inode)
        if !wasHere {
            // It enters the tree as the service has it.
            if let item {
                try transaction.takeOver(item, of: node, rules)
            } else {
                try restoreBase(node)
            }
        }
        let shown: String
        if let item {
            var told = item
            told.fileName = place.name
            shown = told.shownName
        } else if node.plainKey == nil, node.serviceName.isSameText(as: place.name) {
            shown = node.name
        } else {
            shown = try transaction.plainName(of: node, calledAtService: place.name)
        }
        let name = try freeNames.shown(shown, in: place.parent, database)
        try transaction.put(
            node.withoutParent,
            at: place.parent,
            name: name,
            plainName: shown,
            serviceName: place.name,
            rules
        )
    }

    /// Brings a deleted item back as it was when both sides last agreed.
    private mutating func restoreBase(_ node: Node) throws {
        try database.run(
            """
            UPDATE node SET staged = NULL, content_item = NULL,
                revision = synced_revision, hash = synced_hash,
                size = coalesce(synced_size, size),
                modified_s = coalesce(synced_modified_s, modified_s),
                modified_ns = coalesce(synced_modified_ns, modified_ns),
                description = synced_description
            FROM motion WHERE motion.inode = node.inode AND node.inode = ?
            """,
            [node.inode.column]
        )
    }

    private mutating func takeContent(_ inode: Inode) throws {
        guard let node = try Catalog.fetch(inode, database), let item = try news(of: inode) else {
            return
        }
        let attributes = node
        try transaction.takeOver(item, of: node, rules)
        guard node.hash?.description == item.hash, node.size == item.size else { return }
        // Only the revision changed: the times stay the person's.
        var same = try transaction.node(inode)
        same.modified = attributes.modified
        same.itemDescription = attributes.itemDescription
        try transaction.writeAttributes(of: same)
    }

    private mutating func takeAttributes(_ inode: Inode) throws {
        guard var node = try Catalog.fetch(inode, database), let item = try news(of: inode),
            let motion = try Catalog.motion(inode, database)
        else { return }
        // Each attribute by itself: one that only this side changed is still to be sent.
        if !motion.isModified(asIn: item),
            try item.modifiedTime != transaction.modifiedTimeAsTold(of: inode)
        {
            node.modified = item.modifiedTime ?? node.modified
        }
        if item.description ?? "" != motion.syncedDescription ?? "" {
            node.itemDescription = item.description
        }
        try transaction.writeAttributes(of: node)
        transaction.touch(inode)
        transaction.effects.news.append(.attributes(inode))
    }

    /// Keeps the local content as a new file beside; the item gets the service's content.
    private mutating func keepBoth(_ inode: Inode) throws {
        guard let node = try Catalog.fetch(inode, database), let item = try news(of: inode),
            let parent = node.parent ?? waiting[inode]
        else { return }
        try transaction.keepBytes(of: node)
        let now = Timestamp.now
        let date = String(now.date.formatted(.iso8601.year().month().day()))
        let name = try freeNames.new(
            ShownName.conflictCopy(
                node.name,
                date: date,
                host: ProcessInfo.processInfo.hostName
            ),
            in: parent,
            database
        )
        let service = ShownName.service(
            shown: name,
            kind: node.kind,
            exportExtension: nil,
            rules: rules
        )
        try database.run(
            """
            INSERT INTO node (account, parent, name, name_key, service_name, kind, size,
                modified_s, modified_ns, changed_s, changed_ns, created_s, created_ns, mode,
                owner, grp, staged, revision, content_item, hash, target, listed, born_s)
            SELECT account, ?, ?, ?, ?, kind, size, modified_s, modified_ns, ?, ?, ?, ?, mode,
                owner, grp, staged, CASE WHEN staged IS NULL THEN revision END, content_item,
                hash, target, 1, ?
            FROM node WHERE inode = ?
            """,
            [
                parent.column, name, rules.comparison.key(name),
                service.isSameText(as: name) ? nil : service, now.seconds, now.nanoseconds,
                now.seconds, now.nanoseconds, now.seconds, inode.column,
            ]
        )
        let copy = Inode(column: database.lastInsertedRowID)
        try transaction.setInMotion(try transaction.node(copy), at: now)
        try transaction.addConflict(
            copy,
            of: node,
            parent: parent,
            key: rules.comparison.key(name)
        )
        transaction.effects.news.append(.entryAdded(parent: parent, name: name))
        try database.run("UPDATE node SET staged = NULL WHERE inode = ?", [inode.column])
        // The time here is the copy's, even where the item's is of the same second.
        var bare = node
        bare.modified = item.modifiedTime ?? node.modified
        try transaction.takeOver(item, of: bare, rules)
    }

    private mutating func renumber(_ inode: Inode) throws {
        guard let node = try Catalog.fetch(inode, database),
            let parent = node.parent ?? waiting.removeValue(forKey: inode)
        else { return }
        try setParent(nil, of: inode)
        let name = try numberedName(of: node, in: parent)
        let service = ShownName.service(
            shown: name,
            kind: node.kind,
            exportExtension: nil,
            rules: rules
        )
        try transaction.put(
            node.withoutParent,
            at: parent,
            name: name,
            plainName: name,
            serviceName: service,
            rules
        )
    }

    /// Keeps the number that an item is shown with, unless another item got that in these steps.
    private mutating func numberedName(of node: Node, in parent: Inode) throws -> String {
        var plain = node.name
        if node.plainKey != nil {
            let shown = try freeNames.new(node.name, in: parent, database)
            if shown.isSameText(as: node.name) { return shown }
            plain = try transaction.plainName(of: node, calledAtService: node.serviceName)
        }
        return try freeNames.new(plain, in: parent, isNumbered: true, database)
    }

    // MARK: Identities

    /// The first node becomes the service's item that the second is; the second vanishes.
    private mutating func adopt(_ inode: Inode, _ other: Inode) throws {
        guard let item = try news(of: other) else { return }
        let motion = try Catalog.motion(other, database)
        let side = try transaction.takeRemoteSide(of: other)
        try transaction.forget(other)
        try transaction.give(side, to: inode)
        try transaction.become(inode, item, parentID: motion?.remoteParentID)
        try transaction.reparent(other, to: inode, rules)
    }

    /// The heir takes over the original's identity, the original the heir's.
    private mutating func handOver(_ original: Inode, _ heir: Inode) throws {
        try transaction.swapIdentities(original, heir)
    }

    /// Separates a temporary file from what the service has of it; the file is as newly made.
    private mutating func renounce(_ inode: Inode) throws {
        guard let node = try Catalog.fetch(inode, database), node.remoteID != nil else { return }
        try transaction.keepBytes(of: node)
        try transaction.leaveIdentity(of: node)
        try transaction.detach(inode)
    }

    private mutating func agree(_ inode: Inode, content: Bool) throws {
        guard let motion = try Catalog.motion(inode, database), motion.remoteState == .present,
            let item = motion.remoteItem, let id = motion.remoteParentID,
            let node = try Catalog.fetch(inode, database),
            let parent = try Catalog.folder(id, in: node.account, database)
        else { return }
        try transaction.setBase(
            of: inode,
            parent: parent.inode,
            item,
            content: content,
            keepsNews: !content
        )
    }

    // MARK: The end

    /// Takes an item out of motion that has no difference left.
    private mutating func settle(_ step: LocalStep) throws {
        switch step {
        case .place(let inode, _), .takeContent(let inode), .takeAttributes(let inode),
            .agree(let inode, _), .adopt(let inode, _), .handOver(_, let inode),
            .keepBoth(let inode),
            .renumber(let inode):
            try transaction.restIfClean(inode)
        case .forget, .detach, .renounce: break
        }
    }
}

extension Node {
    /// The node as one in no folder: that it left its folder is announced already.
    var withoutParent: Node {
        var node = self
        node.parent = nil
        return node
    }
}
