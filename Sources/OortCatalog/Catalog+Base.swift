import Foundation
import GRDB
import OortModel
import OortPlanner

/// The synced base and identities of items in motion.
extension CatalogTransaction {
    /// Makes what the service reported the base: both sides agree on it.
    mutating func setBase(
        of inode: Inode,
        parent: Inode,
        _ item: StoredItem,
        content: Bool,
        keepsNews: Bool
    ) throws {
        touch(inode)
        if content, let motion = try Catalog.motion(inode, database),
            let old = motion.syncedRevision, let new = item.revision,
            motion.syncedHash?.provesSameContent(as: item.hash) == true
        {
            try carryContent(of: item.id, at: inode, from: old, to: Revision(new))
        }
        try database.run(
            """
            UPDATE motion SET synced_parent = ?, synced_name = ?, synced_modified_s = ?,
                synced_modified_ns = ?, synced_description = ?
            WHERE inode = ?
            """,
            [
                parent.column, item.fileName, item.modifiedTime?.seconds,
                (item.modifiedTime?.nanoseconds).map { Int64($0) }, item.description, inode.column,
            ]
        )
        if content {
            try database.run(
                """
                UPDATE motion SET synced_revision = ?, synced_hash = ?, synced_size = ?
                WHERE inode = ?
                """,
                [item.revision, item.hash, item.size ?? 0, inode.column]
            )
        }
        if !keepsNews {
            try database.run(
                """
                UPDATE motion SET remote_state = 0, remote_parent_id = NULL, remote_item = NULL
                WHERE inode = ?
                """,
                [inode.column]
            )
        }
        // A push names the revision that it replaces: for staged content that is this one now.
        try database.run(
            """
            UPDATE node SET details = iif(remote_id IS ?, ?, ?), permissions = ?,
                tags = nullif(ifnull(?, tags), ''),
                revision = CASE WHEN staged IS NOT NULL AND ? THEN ? ELSE revision END
            WHERE inode = ?
            """,
            item.detailsArguments(hasName: true, hasHash: content) + [
                Int64(item.permissions), item.tags, content, item.revision, inode.column,
            ]
        )
    }

    /// Makes a node that only this side knew the service's item; `asked` as in `takeRevision`.
    mutating func become(
        _ inode: Inode,
        _ item: StoredItem,
        parentID: String?,
        asked: AskedContent? = nil
    ) throws {
        let node = try node(inode)
        guard let parentID, let parent = try Catalog.folder(parentID, in: node.account, database)
        else { return }
        touch(inode)
        try database.run(
            "UPDATE node SET remote_id = ? WHERE inode = ?",
            [item.id, inode.column]
        )
        if try Catalog.motion(inode, database) == nil { try startMotion(try self.node(inode)) }
        try setBase(of: inode, parent: parent.inode, item, content: true, keepsNews: false)
        try takeRevision(inode, item, asked: asked)
    }

    /// Gives a node the item's revision where the service has exactly the node's content.
    ///
    /// `asked` is the request that `item` answers. If the service reports no hash of a file (as OneDrive
    /// for Business for some), the file has what was sent, by its size. If the hash does not tell contents
    /// apart, the node must still have the staged content that was sent.
    mutating func takeRevision(
        _ inode: Inode,
        _ item: StoredItem,
        asked: AskedContent? = nil
    ) throws {
        let node = try node(inode)
        guard node.kind == .file || node.kind == .symlink, let revision = item.revision else {
            return
        }
        guard try isContent(of: node, asIn: item, asked) else { return }
        if let source = node.borrowedKey, try !isNeeded(source, except: inode) {
            try renameContent(
                source,
                to: ContentKey(
                    account: node.account,
                    item: ItemID(item.id),
                    revision: Revision(revision)
                )
            )
        }
        try database.run(
            """
            UPDATE node SET staged = NULL, content_item = NULL, revision = ?, hash = ?
            WHERE inode = ?
            """,
            [revision, item.hash, inode.column]
        )
    }

    /// Whether a content's item is in the tree, another file borrows the content, or unsent content is made
    /// of it.
    private func isNeeded(_ key: ContentKey, except inode: Inode) throws -> Bool {
        try database.has(
            """
            SELECT 1 FROM node WHERE account = ?1 AND remote_id = ?2 AND parent IS NOT NULL
                AND inode <> ?4
            UNION ALL SELECT 1 FROM node WHERE account = ?1 AND content_item = ?2
                AND revision = ?3 AND inode <> ?4
            UNION ALL SELECT 1 FROM content
                WHERE account = ?1 AND base_item = ?2 AND base_revision = ?3
            """,
            [key.account.rawValue, key.item.rawValue, key.revision.rawValue, inode.column]
        )
    }

    private func isContent(
        of node: Node,
        asIn item: StoredItem,
        _ asked: AskedContent?
    ) throws -> Bool {
        if node.kind == .symlink { return true }
        guard node.size == item.size else { return false }
        // Not every service reports the hash of an empty file.
        if node.staged == nil, node.size == 0 { return true }
        let stagedHash = try node.staged.flatMap { staged in
            try database.text("SELECT hash FROM content WHERE id = ?", [staged.rawValue])
        }
        let hash = node.staged == nil ? node.hash?.description : stagedHash
        // No hash is known of a copy whose bytes were never read here: a reported one proves nothing then.
        if let told = item.hash, node.staged != nil || hash != nil {
            guard hash == told else { return false }
            let tellsApart = ContentHash(description: told)?.algorithm.tellsContentsApart ?? false
            guard let staged = node.staged, !tellsApart else { return true }
            return asked?.intent.staged == staged.rawValue
        }
        guard let asked, asked.isAnswered else { return false }
        return asked.intent.isContent(of: node, stagedHash: stagedHash)
    }

    /// Moves everything that lies in the first folder, here or at the service, to the second; a name that
    /// is taken there gets a number.
    mutating func reparent(_ old: Inode, to new: Inode, _ rules: AccountNameRules) throws {
        try database.run(
            "UPDATE motion SET synced_parent = ? WHERE synced_parent = ?",
            [new.column, old.column]
        )
        let children = try database.all(
            "SELECT \(Node.columns) FROM node WHERE parent = ? ORDER BY inode",
            [old.column],
            Node.init(columns:)
        )
        var freeNames = FreeNames(rules)
        for child in children {
            let plain =
                child.plainKey == nil
                ? child.name : try plainName(of: child, calledAtService: child.serviceName)
            try put(
                child,
                at: new,
                name: try freeNames.shown(plain, in: new, database),
                plainName: plain,
                serviceName: child.serviceName,
                rules
            )
        }
        effects.touchesAll = true
    }

    /// Exchanges the identities of two files; with `forgets`, a first file that is then on neither side is
    /// forgotten.
    mutating func swapIdentities(_ one: Inode, _ other: Inode, forgets: Bool = true) throws {
        let first = try node(one)
        let second = try node(other)
        try handOverPin(from: one, to: other)
        try startMotion(first)
        try startMotion(second)
        try keepBytes(of: second)
        let sides = (try takeRemoteSide(of: one), try takeRemoteSide(of: other))
        try give(sides.1, to: one)
        try give(sides.0, to: other)
        // An upload session belongs to the item that it was begun for: it would create the old item, and
        // not replace this one.
        try database.run(
            """
            UPDATE motion SET session_state = NULL, session_hash = NULL WHERE inode IN (?, ?)
            """,
            [one.column, other.column]
        )
        try database.run(
            """
            UPDATE node SET revision =
                (SELECT synced_revision FROM motion WHERE inode = node.inode)
            WHERE inode = ? AND staged IS NOT NULL
            """,
            [other.column]
        )
        guard first.parent == nil else { return }
        try handOverConflicts(from: one, to: other)
        if forgets, second.remoteID == nil { try forget(one) }
    }

    /// Notes that a content has another revision: unsent contents made of it are made of the new one.
    ///
    /// A program that has it open goes on with the new one.
    mutating func carryContent(
        of item: String,
        at inode: Inode,
        from old: Revision,
        to new: Revision
    ) throws {
        guard old != new else { return }
        let account = try node(inode).account
        let borrowers = try database.all(
            """
            SELECT inode FROM node WHERE account = ?1 AND content_item = ?2 AND revision = ?3
            UNION SELECT inode FROM node JOIN content ON content.id = node.staged
                WHERE content.account = ?1 AND base_item = ?2 AND base_revision = ?3
            """,
            [account.rawValue, item, old.rawValue]
        ) { Inode(column: $0[0]) }
        for borrower in borrowers { touch(borrower) }
        try database.run(
            "UPDATE node SET revision = ? WHERE account = ? AND content_item = ? AND revision = ?",
            [new.rawValue, account.rawValue, item, old.rawValue]
        )
        try database.run(
            """
            UPDATE content SET base_revision = ?
            WHERE account = ? AND base_item = ? AND base_revision = ?
            """,
            [new.rawValue, account.rawValue, item, old.rawValue]
        )
        try renameContent(
            ContentKey(account: account, item: ItemID(item), revision: old),
            to: ContentKey(account: account, item: ItemID(item), revision: new)
        )
    }

    /// Keeps a file's bytes, as another item's content, when it gives its identity away.
    mutating func keepBytes(of node: Node) throws {
        guard node.staged == nil, node.contentItem == nil, let id = node.remoteID,
            node.revision != nil
        else { return }
        try database.run(
            "UPDATE node SET content_item = ? WHERE inode = ?",
            [id.rawValue, node.inode.column]
        )
    }

    /// Makes an item in motion, of which the service has nothing any longer, as newly made; an upload
    /// session for it is dropped, too.
    mutating func detach(_ inode: Inode) throws {
        try keepBytes(of: node(inode))
        try takeRemoteSide(of: inode)
        try database.run(
            """
            UPDATE motion SET reserved_id = NULL, session_state = NULL, session_hash = NULL
            WHERE inode = ?
            """,
            [inode.column]
        )
        try database.run(
            "UPDATE node SET revision = NULL WHERE inode = ? AND staged IS NOT NULL",
            [inode.column]
        )
    }

    /// Takes an item out of motion when it has no difference any longer.
    ///
    /// An item in a folder that is gone at the service stays in motion: the planner, which decides about
    /// the folder, sees only items in motion.
    ///
    /// `keepsAttributes` allows differences in times and description, which the service does not take.
    mutating func restIfClean(_ inode: Inode, keepsAttributes: Bool = false) throws {
        guard let motion = try Catalog.motion(inode, database), motion.intent == nil,
            motion.remoteState == .asSynced, let node = try Catalog.fetch(inode, database),
            let parent = node.parent, node.remoteID != nil, node.staged == nil,
            node.contentItem == nil, motion.syncedParent == parent,
            motion.syncedName.isSameText(as: node.serviceName),
            node.revision == motion.syncedRevision,
            keepsAttributes
                || (node.kind == .folder
                    || motion.syncedModified.map { $0 == node.modified } ?? true)
                    && node.itemDescription ?? "" == motion.syncedDescription ?? "",
            try Catalog.motion(parent, database)?.remoteState != .gone
        else { return }
        touch(inode)
        try database.run("DELETE FROM motion WHERE inode = ?", [inode.column])
    }
}

/// The request in which a content was sent.
struct AskedContent {
    var intent: Intent
    /// Whether the service confirmed that bytes arrived; it did not for a copy, or for an item that was
    /// found after a lost answer.
    var isAnswered: Bool
}

extension Intent {
    /// Whether the content that was sent is still the node's, which may have been written to since.
    fileprivate func isContent(of node: Node, stagedHash: String?) -> Bool {
        guard size == node.size else { return false }
        guard node.staged == nil else { return stagedHash != nil && stagedHash == hash }
        guard let item = node.contentItem, let revision = node.revision else { return false }
        return source == [item.rawValue, revision.rawValue]
    }
}
