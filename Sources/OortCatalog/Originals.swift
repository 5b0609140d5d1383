import GRDB
import OortModel
import OortPlanner

// Files that the service is asked to copy, instead of receiving their bytes again.

extension Catalog {
    /// The file to be copied at the service to create a node's item: the item that is backed up, the one
    /// that the node was copied from, or any with the same content; nil where bytes are to be sent.
    static func original(
        for action: RemoteOperation.Action,
        of node: Node,
        _ database: Database
    ) throws -> ItemReference? {
        switch action {
        case .duplicate: return try reference(node.inode, database)
        case .upload(_, let content):
            // Without a hash it cannot be known whether the copy has the right bytes.
            guard content.size > 0, let hash = content.hash else { return nil }
            if let source = try source(of: node, database) { return source }
            // Equal hashes must mean equal bytes, or a wrong copy takes the place of the only right bytes.
            guard hash.algorithm.provesBytes else { return nil }
            return try anyFile(with: hash, size: content.size, in: node.account, database)
        case .createFolder, .replace, .move, .delete, .setAttributes: return nil
        }
    }

    /// The item whose revision a node's content is a copy of, if the service still has that revision as far
    /// as is known; the item may be in motion or removed here.
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

    /// Uses `node_by_hash`, which has only the end of each hash.
    ///
    /// Without the plus SQLite would use the whole hash in the expression, which the index does not have.
    static let fileByHash = """
        SELECT inode FROM node INDEXED BY node_by_hash
        WHERE substr(hash, -8) = substr(?, -8) AND +hash = ? AND hash IS NOT NULL
            AND account = ? AND size = ? AND kind = 1
            AND remote_id IS NOT NULL AND parent IS NOT NULL AND staged IS NULL
            AND inode NOT IN (SELECT inode FROM motion) LIMIT 1
        """

    /// A file at the service that has exactly this content and is clean.
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

extension HashAlgorithm {
    /// Whether nobody can make two contents of one hash: of MD5 and SHA-1 such pairs are public.
    fileprivate var provesBytes: Bool {
        switch self {
        case .dropboxContentHash, .sha256: true
        case .md5, .sha1, .quickXor: false
        }
    }
}
