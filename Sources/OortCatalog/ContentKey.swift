public import OortModel

/// Names the bytes of one revision of one item.
///
/// Immutable: what it names never changes.
public struct ContentKey: Hashable, Sendable {
    /// The account.
    public var account: AccountID
    /// The item at the service.
    public var item: ItemID
    /// Its revision.
    public var revision: Revision

    /// The content of an item's revision.
    public init(account: AccountID, item: ItemID, revision: Revision) {
        self.account = account
        self.item = item
        self.revision = revision
    }
}
