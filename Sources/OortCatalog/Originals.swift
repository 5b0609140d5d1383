import GRDB
import OortModel
import OortPlanner

// Files that the service copies instead of taking their bytes again.

extension Catalog {
    /// The file that is to be copied at the service to create what a node holds: the item that is backed
    /// up, the one that the node was copied from, or any that has the same content; nil where bytes
    /// are to be sent.
    static func original(
        for action: RemoteOperation.Action,
        of node: Node,
        _ database: Database
    ) throws -> ItemReference? {
        switch action {
        case .duplicate: return try reference(node.inode, database)
        case .upload(_, let content):
            // Without a hash nobody could tell whether the copy is of what was meant.
            guard content.size > 0, let hash = content.hash else { return nil }
            if let source = try source(of: node, database) { return source }
            // Equal hashes must be equal bytes, or the copy takes the place of the only ones there are.
            guard hash.algorithm.tellsContentsApart else { return nil }
            return try anyFile(with: hash, size: content.size, in: node.account, database)
        case .createFolder, .replace, .move, .delete, .setAttributes: return nil
        }
    }

    /// The item of whose revision a node's content is a copy, where it has that at the service still, as
    /// far as is known; in motion or removed here it may be.
    private static func source(of node: Node, _ database: Database) throws -> ItemReference? {
        guard node.staged == nil, let item = node.contentItem, item != node.remoteID,
            let owner = try Self.node(item.rawValue, in: node.account, database)
        else { return nil }
        let motion = try motion(owner.inode, database)
        let revision: Revision? =
            switch motion?.remoteState {
            case nil: owner.revision
            case .asSynced: motion?.syncedRevision
            case .present: motion?.remoteItem?.revision.map { Revision($0) }
            case .gone, .mayBeGone: nil
            }
        guard let revision, revision == node.revision else { return nil }
        return try reference(owner.inode, database)
    }

    /// By `node_by_hash`, which has the end of the hash only.
    ///
    /// Without the plus SQLite would put the whole hash into the expression, which is none of the
    /// index's then.
    static let fileByHash = """
        SELECT inode FROM node INDEXED BY node_by_hash
        WHERE substr(hash, -8) = substr(?, -8) AND +hash = ? AND hash IS NOT NULL
            AND account = ? AND size = ? AND kind = 1
            AND remote_id IS NOT NULL AND parent IS NOT NULL AND staged IS NULL
            AND inode NOT IN (SELECT inode FROM motion) LIMIT 1
        """

    /// A file at the service that has just this content and is itself at rest.
    private static func anyFile(
        with hash: ContentHash,
        size: Int64,
        in account: AccountID,
        _ database: Database
    ) throws -> ItemReference? {
        let inode = try database.number(
            fileByHash,
            [hash.description, hash.description, account.rawValue, size]
        )
        return try inode.flatMap { try reference(Inode(column: $0), database) }
    }
}
