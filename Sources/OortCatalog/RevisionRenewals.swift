public import OortModel
import Synchronization

/// A content that a service has under another revision since it was touched, moved or locked there.
struct RenewedContent: Sendable {
    var account: AccountID
    var item: ItemID
    var old: Revision
    var new: Revision
}

/// The revisions by which a service has contents that are open here under older ones.
///
/// They are kept for as long as the process lives: what is opened after that knows the newest revision.
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
                // One that comes back is the newest again.
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
    /// The revision by which a service has a content now that was opened under an older one; the same one
    /// where nothing else is known.
    public func currentRevision(
        _ revision: Revision,
        of item: ItemID,
        in account: AccountID
    ) -> Revision {
        renewals.current(revision, of: item, in: account)
    }
}
