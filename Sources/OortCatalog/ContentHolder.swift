import GRDB
import OortModel
import Synchronization

/// Who has cached contents open, by their keys.
///
/// The service has the bytes of a content under another key when the file was touched, moved or locked, or
/// took over another item's identity.
///
/// Isolation: called on the thread of a transaction; takes no other one.
public protocol ContentHolder: AnyObject, Sendable {
    /// Files what is open under one key under another, which has no content in the catalog, until
    /// `renamesEnd` for the transaction alone.
    ///
    /// - Returns: false where another content is open under the new key: then only the service's name of
    ///   the old one changes, as with `follow`.
    func rename(_ old: ContentKey, to new: ContentKey) -> Bool

    /// Notes that the service has what is open under one key under another, of which the catalog has a
    /// content, too.
    func follow(_ old: ContentKey, to new: ContentKey)

    /// Notes that the transaction of the last renames is over.
    func renamesEnd()
}

extension Catalog {
    /// Sets who has contents of this catalog open, which is not kept alive.
    public func setContentHolder(_ holder: any ContentHolder) {
        contentHolder.withLock { $0 = WeakHolder(holder) }
    }

    /// Who has contents open.
    final class WeakHolder: Sendable {
        weak let value: (any ContentHolder)?

        init(_ value: any ContentHolder) { self.value = value }
    }
}

extension CatalogTransaction {
    /// A content that another key has since this transaction began.
    struct Rename: Sendable {
        var old: ContentKey
        var new: ContentKey
    }

    /// Gives a cached content, of which no file has the old key any longer, the key under which the service
    /// has the same bytes now.
    ///
    /// Where the new key has a content already, that one is read from now on.
    mutating func renameContent(_ old: ContentKey, to new: ContentKey) throws {
        guard old != new else { return }
        let isTaken = try database.has(
            "SELECT 1 FROM content WHERE account = ? AND item = ? AND revision = ?",
            [new.account.rawValue, new.item.rawValue, new.revision.rawValue]
        )
        if isTaken {
            holder?.follow(old, to: new)
            return
        }
        guard holder?.rename(old, to: new) ?? true else { return }
        effects.renamed.append(Rename(old: old, new: new))
        try database.run(
            """
            UPDATE content SET item = ?, revision = ?
            WHERE account = ? AND item = ? AND revision = ?
            """,
            [
                new.item.rawValue, new.revision.rawValue, old.account.rawValue,
                old.item.rawValue, old.revision.rawValue,
            ]
        )
    }

    /// Undoes, for who has contents open, the renames of a transaction that failed.
    func undoRenames() {
        for rename in effects.renamed.reversed() { _ = holder?.rename(rename.new, to: rename.old) }
    }
}
