import GRDB
public import OortModel

/// Staged contents over a base of which nothing was read: they are not bound to its revision yet.
extension Catalog {
    /// The revision of a file that the service reported last, merged or not, with its size and hash.
    ///
    /// - Returns: nil where the service has no such file, as far as it reported.
    /// - Throws: `.storage`.
    public func newestRevision(
        of item: ItemID,
        account: AccountID
    ) throws(CatalogError) -> ContentOrigin? {
        try read { database in
            guard let node = try Self.node(item.rawValue, in: account, database),
                node.kind == .file
            else { return nil }
            guard let motion = try Self.motion(node.inode, database) else {
                return node.revision.map {
                    ContentOrigin(item: item, revision: $0, size: node.size, hash: node.hash)
                }
            }
            switch motion.remoteState {
            case .gone, .mayBeGone: return nil
            case .asSynced:
                return motion.syncedRevision.map {
                    ContentOrigin(
                        item: item,
                        revision: $0,
                        size: motion.syncedSize,
                        hash: motion.syncedHash
                    )
                }
            case .present:
                guard let told = motion.remoteItem, told.nodeKind == .file,
                    let revision = told.revision,
                    let size = told.size
                else { return nil }
                return ContentOrigin(
                    item: item,
                    revision: Revision(revision),
                    size: size,
                    hash: told.hash.flatMap { ContentHash(description: $0) }
                )
            }
        }
    }

    /// Has staged content lie over another revision of its base's item.
    ///
    /// - Parameters:
    ///   - id: the staged content.
    ///   - new: the revision.
    ///   - size: its size in bytes.
    ///   - isCurrent: whether its base is the one that the caller knows, asked inside the transaction: that
    ///     one may have another key by then.
    /// - Returns: false where it is not; nothing is changed then.
    /// - Throws: `.diskFull`, `.storage`.
    public func setBase(
        ofStaged id: ContentID,
        to new: ContentKey,
        size: Int64,
        if isCurrent: () -> Bool
    ) throws(CatalogError) -> Bool {
        try mutate { transaction in
            guard isCurrent() else { return false }
            try transaction.database.run(
                """
                UPDATE content SET base_item = ?, base_revision = ?, base_size = ?
                WHERE id = ? AND is_staged = 1
                """,
                [new.item.rawValue, new.revision.rawValue, size, id.rawValue]
            )
            return transaction.database.changesCount > 0
        }
    }
}
