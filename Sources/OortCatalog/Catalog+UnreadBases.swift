import GRDB
public import OortModel

/// Staged contents over a base of which nothing was read: which revision they lie over is not settled yet.
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
                guard let told = motion.remoteItem, let revision = told.revision,
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
    ///   - old: the base that it has as far as the caller knows.
    ///   - new: the revision in its place.
    /// - Returns: false where it has another base by now; nothing is changed then.
    /// - Throws: `.diskFull`, `.storage`.
    public func setBase(
        ofStaged id: ContentID,
        from old: ContentKey,
        to new: ContentOrigin
    ) throws(CatalogError) -> Bool {
        try mutate { transaction in
            try transaction.database.run(
                """
                UPDATE content SET base_item = ?, base_revision = ?, base_size = ?
                WHERE id = ? AND is_staged = 1 AND base_item = ? AND base_revision = ?
                """,
                [
                    new.item.rawValue, new.revision.rawValue, new.size, id.rawValue,
                    old.item.rawValue, old.revision.rawValue,
                ]
            )
            return transaction.database.changesCount > 0
        }
    }
}
