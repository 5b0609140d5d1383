import GRDB
import OortModel
import OortPlanner

/// Changes of the local tree that come from the service.
extension CatalogTransaction {
    /// Puts an item in motion without a local change: its present state becomes the base.
    mutating func startMotion(_ node: Node) throws {
        touch(node.inode)
        guard try Catalog.motion(node.inode, database) == nil else { return }
        try database.run(
            """
            INSERT INTO motion (inode, account, changed_ms, synced_parent, synced_name,
                synced_revision, synced_hash, synced_size, synced_modified_s,
                synced_modified_ns, synced_description)
            VALUES (?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            [
                node.inode.column, node.account.rawValue, node.parent?.column, node.serviceName,
                node.revision?.rawValue, node.hash?.description, node.size, node.modified.seconds,
                Int64(node.modified.nanoseconds), node.itemDescription,
            ]
        )
    }

    /// A name that nothing has in a folder: the name itself, or with the first free number.
    func freeName(_ name: String, in parent: Inode, _ rules: AccountNameRules) throws -> String {
        var candidate = name
        var number = 2
        while try isTaken(candidate, in: parent, rules) {
            candidate = ShownName.numbered(name, number)
            number += 1
        }
        return candidate
    }

    /// Gives names that news freed to those that have them at the service.
    mutating func giveBackNames(_ rules: AccountNameRules) throws {
        for case .entryRemoved(let parent, let name, _) in effects.news {
            try giveBack(name, in: parent, rules)
        }
    }

    /// Gives a name that may be free now to what has it at the service and was shown with a number
    /// meanwhile.
    mutating func giveBack(_ name: String, in parent: Inode, _ rules: AccountNameRules) throws {
        guard try Catalog.fetch(key: rules.comparison.key(name), in: parent, database) == nil
        else { return }
        var number = 2
        while let node = try Catalog.fetch(
            key: rules.comparison.key(ShownName.numbered(name, number)),
            in: parent,
            database
        ) {
            if try isNumbered(node, name) {
                return try put(
                    node,
                    at: parent,
                    name: name,
                    serviceName: node.serviceName,
                    rules
                )
            }
            number += 1
        }
    }

    /// Whether an item is called `name` at the service and shown with a number.
    private func isNumbered(_ node: Node, _ name: String) throws -> Bool {
        guard node.remoteID != nil, !node.serviceName.isSameText(as: node.name) else {
            return false
        }
        let details = try database.text(
            "SELECT details FROM node WHERE inode = ?",
            [node.inode.column]
        )
        return try details.map { try StoredItem(json: $0) }?.shownName.isSameText(as: name) ?? false
    }

    /// Whether something has or had the name, here or at the service.
    private func isTaken(_ name: String, in parent: Inode, _ rules: AccountNameRules) throws -> Bool
    {
        let key = rules.comparison.key(name)
        if try Catalog.fetch(key: key, in: parent, database) != nil { return true }
        guard let folder = try Catalog.fetch(parent, database), folder.remoteID != nil else {
            return false
        }
        let names = try database.all(
            """
            SELECT synced_name FROM motion WHERE synced_parent = ? AND remote_state IN (0, 3)
            """,
            [parent.column]
        ) { $0[0] as String }
        if names.contains(where: { rules.comparison.key($0).isSameText(as: key) }) { return true }
        let items = try database.all(
            """
            SELECT remote_item FROM motion
            WHERE account = ? AND remote_parent_id = ? AND remote_state = 1
            """,
            [folder.account.rawValue, folder.remoteID?.rawValue]
        ) { $0[0] as String }
        return try items.contains {
            rules.comparison.key(try StoredItem(json: $0).shownName).isSameText(as: key)
        }
    }

    /// Puts a node at a place of the local tree and tells the kernel.
    mutating func put(
        _ node: Node,
        at parent: Inode,
        name: String,
        serviceName: String,
        _ rules: AccountNameRules
    ) throws {
        touch(node.inode)
        if let old = node.parent {
            effects.news.append(.entryRemoved(parent: old, name: node.name, child: node.inode))
        }
        effects.news.append(.entryAdded(parent: parent, name: name))
        try database.run(
            """
            UPDATE node SET parent = ?, name = ?, name_key = ?, service_name = ?
            WHERE inode = ?
            """,
            [
                parent.column, name, rules.comparison.key(name),
                serviceName.isSameText(as: name) ? nil : serviceName, node.inode.column,
            ]
        )
    }

    /// When the service said last that an item was modified; nil when it never did.
    func modifiedTimeAsTold(of inode: Inode) throws -> Timestamp? {
        try database.text("SELECT details FROM node WHERE inode = ?", [inode.column])
            .flatMap { try StoredItem(json: $0).modifiedTime }
    }

    /// Gives a node the content and attributes that the service has.
    mutating func takeOver(_ item: StoredItem, of node: Node) throws {
        touch(node.inode)
        let isNewContent = node.revision?.rawValue != item.revision
        // What the service only keeps more coarsely is no other time.
        var modified = item.modifiedTime ?? node.modified
        if modified == node.modified.truncated(to: .seconds)
            || modified == node.modified.truncated(to: .milliseconds)
        {
            modified = node.modified
        }
        // Nor is what was told before news: a copy may have its original's time at a service that
        // takes none for it.
        if !isNewContent || node.hash != nil && node.hash?.description == item.hash,
            try item.modifiedTime == modifiedTimeAsTold(of: node.inode)
        {
            modified = node.modified
        }
        let size = item.size ?? (node.kind == .nativeDocument ? node.size : 0)
        try database.run(
            """
            UPDATE node SET kind = ?, size = ?, modified_s = ?, modified_ns = ?, revision = ?,
                content_item = NULL, hash = ?, staged = NULL,
                target = CASE WHEN kind = 2 AND revision IS ? THEN target ELSE ? END,
                permissions = ?, description = ?, mime_type = ?, details = ?
            WHERE inode = ?
            """,
            [
                item.kind, size,
                modified.seconds, Int64(modified.nanoseconds), item.revision, item.hash,
                item.revision, item.target, Int64(item.permissions), item.description,
                item.mimeType, try item.json(), node.inode.column,
            ]
        )
        if isNewContent || node.staged != nil {
            effects.news.append(.content(node.inode))
        } else {
            effects.news.append(.attributes(node.inode))
        }
    }
}
