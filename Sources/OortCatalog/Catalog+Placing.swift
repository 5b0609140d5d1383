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

    /// Puts a node at a place of the local tree and notifies the kernel.
    ///
    /// `plainName` is the name that it would be shown under if it were alone.
    mutating func put(
        _ node: Node,
        at parent: Inode,
        name: String,
        plainName: String,
        serviceName: String,
        _ rules: AccountNameRules
    ) throws {
        touch(node.inode)
        if node.kind == .folder { effects.movedFolders.insert(node.inode) }
        if let old = node.parent {
            effects.news.append(
                .entryLeft(parent: old, name: node.name, isFolder: node.kind == .folder)
            )
        }
        effects.news.append(.entryAdded(parent: parent, name: name))
        try conflictsFollow(node.inode, to: parent, key: rules.comparison.key(name))
        try database.run(
            """
            UPDATE node SET parent = ?, name = ?, name_key = ?, service_name = ?, plain_key = ?
            WHERE inode = ?
            """,
            [
                parent.column, name, rules.comparison.key(name),
                serviceName.isSameText(as: name) ? nil : serviceName,
                plainName.isSameText(as: name) ? nil : rules.comparison.key(plainName),
                node.inode.column,
            ]
        )
    }

    /// The modified time that the service last reported of an item; nil when it reported none.
    func modifiedTimeAsTold(of inode: Inode) throws -> Timestamp? {
        try database.text("SELECT details FROM node WHERE inode = ?", [inode.column])
            .flatMap { try StoredItem(details: $0, of: nil).modifiedTime }
    }

    /// Gives a node the content and attributes that the service has.
    mutating func takeOver(
        _ item: StoredItem,
        of node: Node,
        _ rules: AccountNameRules
    ) throws {
        touch(node.inode)
        var item = item
        item.decideKind(beside: node, rules.links)
        let isNewContent = node.revision?.rawValue != item.revision
        // A time that is the same, only kept more coarsely by the service, is no news.
        var modified = item.modifiedTime ?? node.modified
        if modified == node.modified.truncated(to: .seconds)
            || modified == node.modified.truncated(to: .milliseconds)
        {
            modified = node.modified
        }
        // Nor is a time that was reported before: a copy may have its original's time, at a service that
        // does not let it be set.
        if !isNewContent || node.hash != nil && node.hash?.description == item.hash,
            try item.modifiedTime == modifiedTimeAsTold(of: node.inode)
        {
            modified = node.modified
        }
        if isNewContent, node.staged == nil, node.contentItem == nil, let old = node.revision,
            let new = item.revision, node.hash?.provesSameContent(as: item.hash) == true
        {
            try carryContent(of: item.id, at: node.inode, from: old, to: Revision(new))
        }
        let size = item.size ?? (node.kind == .nativeDocument ? node.size : 0)
        try database.run(
            """
            UPDATE node SET kind = ?, size = ?, modified_s = ?, modified_ns = ?, revision = ?,
                content_item = NULL, hash = ?, staged = NULL,
                target = CASE WHEN kind IN (1, 2) AND revision IS ? THEN target ELSE ? END,
                is_strangers = ?, permissions = ?, description = ?, mime_type = ?,
                tags = nullif(ifnull(?, tags), ''),
                details = iif(remote_id IS ?, ?, ?)
            WHERE inode = ?
            """,
            [
                item.kind, size,
                modified.seconds, Int64(modified.nanoseconds), item.revision, item.hash,
                item.revision, item.target, item.isStrangers(beside: node),
                Int64(item.permissions), item.description, item.mimeType, item.tags,
            ] + item.detailsArguments(hasName: true, hasHash: true) + [node.inode.column]
        )
        if isNewContent || node.staged != nil {
            effects.news.append(.content(node.inode))
        } else {
            effects.news.append(.attributes(node.inode))
        }
    }
}
