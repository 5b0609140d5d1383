public import OortModel
import Synchronization

/// A content that got a new revision at the service, where it was touched, moved or locked.
struct RenewedContent: Sendable {
    var account: AccountID
    var item: ItemID
    var old: Revision
    var new: Revision
}

/// The present revisions of contents that may be open here under older ones.
///
/// They are kept for the life of the process: a content that is opened later has the newest revision.
final class RevisionRenewals: Sendable {
    private struct Key: Hashable {
        var account: AccountID
        var item: ItemID
        var revision: Revision
    }

    private let newer = Mutex<[Key: Revision]>([:])

    func note(_ renewed: [RenewedContent]) {
        newer.withLock { newer in
            for content in renewed {
                let (account, item) = (content.account, content.item)
                newer[Key(account: account, item: item, revision: content.old)] = content.new
                // A revision that returns is the newest again.
                newer[Key(account: account, item: item, revision: content.new)] = nil
            }
        }
    }

    /// The newest revision of the same content.
    func current(_ revision: Revision, of item: ItemID, in account: AccountID) -> Revision {
        newer.withLock { newer in
            var revision = revision
            while let next = newer[Key(account: account, item: item, revision: revision)] {
                revision = next
            }
            return revision
        }
    }
}

extension Catalog {
    /// The present revision of a content that was opened under an older one; the same one where no other is
    /// known.
    public func currentRevision(
        _ revision: Revision,
        of item: ItemID,
        in account: AccountID
    ) -> Revision {
        renewals.current(revision, of: item, in: account)
    }
}
