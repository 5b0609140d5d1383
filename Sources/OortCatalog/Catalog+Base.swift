import Foundation
import GRDB
import OortModel
import OortPlanner

/// The synced base and identities of items in motion.
extension CatalogTransaction {
    /// Makes what the service said what both sides agree on.
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
        // Staged content lies over this revision now, as far as a push has to name one.
        try database.run(
            """
            UPDATE node SET details = iif(remote_id IS ?, ?, ?), permissions = ?,
                revision = CASE WHEN staged IS NOT NULL AND ? THEN ? ELSE revision END
            WHERE inode = ?
            """,
            item.detailsArguments(hasName: true, hasHash: content) + [
                Int64(item.permissions), content, item.revision, inode.column,
            ]
        )
    }

    /// A node that only this side knew is the service's item from now on; `asked` as in
    /// `takeRevision`.
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

    /// When the service has exactly the content that the node has, the node has its revision.
    ///
    /// `asked` is what was asked where `item` came of it: of a file whose hash the service does not
    /// tell (OneDrive for Business of some), it has what was sent, by its size; and where the hash does
    /// not tell contents apart, no other staged content of that hash.
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
        try database.run(
            """
            UPDATE node SET staged = NULL, content_item = NULL, revision = ?, hash = ?
            WHERE inode = ?
            """,
            [revision, item.hash, inode.column]
        )
    }

    private func isContent(
        of node: Node,
        asIn item: StoredItem,
        _ asked: AskedContent?
    ) throws -> Bool {
        if node.kind == .symlink { return true }
        guard node.size == item.size else { return false }
        // Not every service tells the hash of what is empty.
        if node.staged == nil, node.size == 0 { return true }
        let stagedHash = try node.staged.flatMap { staged in
            try database.text("SELECT hash FROM content WHERE id = ?", [staged.rawValue])
        }
        let hash = node.staged == nil ? node.hash?.description : stagedHash
        // Of a copy whose bytes nobody here has read no hash is known: what is told then says nothing.
        if let told = item.hash, node.staged != nil || hash != nil {
            guard hash == told else { return false }
            let tellsApart = ContentHash(description: told)?.algorithm.tellsContentsApart ?? false
            guard let staged = node.staged, !tellsApart else { return true }
            return asked?.intent.staged == staged.rawValue
        }
        guard let asked, asked.isAnswered else { return false }
        return asked.intent.isContent(of: node, stagedHash: stagedHash)
    }

    /// Everything that lies in the first folder, here or at the service, lies in the second from now on;
    /// where that has its name, under a number.
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

    /// Two files exchange their identities at the service; with `forgets`, a first one that is then
    /// on neither side is forgotten.
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
        // A session goes on where it was begun: it would make the old item, and not replace this one.
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

    /// A content has another revision from now on: what is still to be made of it is made of that.
    ///
    /// Who has it open goes on with the revision that it knows (`Catalog.currentRevision`).
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
        let isOpen = try database.has(
            """
            SELECT 1 FROM content
            WHERE account = ? AND item = ? AND revision = ? AND is_complete = 0
            """,
            [account.rawValue, item, old.rawValue]
        )
        guard isOpen || !borrowers.isEmpty else { return }
        effects.renewed.append(
            RenewedContent(account: account, item: ItemID(item), old: old, new: new)
        )
    }

    /// A file that gives its identity away keeps its bytes as content of the other item's.
    mutating func keepBytes(of node: Node) throws {
        guard node.staged == nil, node.contentItem == nil, let id = node.remoteID,
            node.revision != nil
        else { return }
        try database.run(
            "UPDATE node SET content_item = ? WHERE inode = ?",
            [id.rawValue, node.inode.column]
        )
    }

    /// The service has nothing of an item in motion any longer: it is as newly made, and an upload's
    /// session would go on with what is gone.
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

    /// Takes an item out of motion when nothing of it differs any longer.
    ///
    /// What lies in a folder that is gone at the service does not rest: the planner, which decides of the
    /// folder, knows what is in motion only.
    ///
    /// `keepsAttributes` says whether times and description that differ stay as they are, as the
    /// service does not take them.
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

/// What was asked of the service with a content.
struct AskedContent {
    var intent: Intent
    /// Whether the service answered that bytes arrived: what was copied, or found without an answer, is no
    /// such answer.
    var isAnswered: Bool
}

extension Intent {
    /// Whether what was sent is what a node has; it may have been written to since.
    fileprivate func isContent(of node: Node, stagedHash: String?) -> Bool {
        guard size == node.size else { return false }
        guard node.staged == nil else { return stagedHash != nil && stagedHash == hash }
        guard let item = node.contentItem, let revision = node.revision else { return false }
        return source == [item.rawValue, revision.rawValue]
    }
}
