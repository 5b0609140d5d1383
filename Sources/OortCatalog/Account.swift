public import OortModel

/// Whose account it is, as the sign-in reported.
public struct AccountOwner: Hashable, Sendable {
    /// The service's stable key of the account.
    public var identity: String
    /// The person's name at the service.
    public var displayName: String?
    /// The e-mail address at the service.
    public var email: String?

    /// An owner with what is known of one.
    public init(identity: String, displayName: String? = nil, email: String? = nil) {
        self.identity = identity
        self.displayName = displayName
        self.email = email
    }
}

/// One account as the catalog knows it.
public struct Account: Hashable, Sendable {
    /// Our number of it.
    public var id: AccountID
    /// The user's name for it, which is its folder under the mount point.
    public var name: String
    /// The kind of cloud.
    public var service: String
    /// The inode of its folder.
    public var root: Inode
    /// The service's id of its root folder, once it is known.
    public var rootID: ItemID?
    /// The service's stable key of the account, once it is known.
    public var identity: String?
    /// The person's name at the service.
    public var displayName: String?
    /// The e-mail address at the service.
    public var email: String?
    /// Where the change feed goes on; nil before the first enumeration.
    public var cursor: Cursor?
    /// Whether the whole tree is known.
    public var isEnumerated: Bool
    /// The number of the enumeration that runs or ran last.
    public var enumeration: Int64
    /// The room as last reported.
    public var quota: Quota?
    /// What keeps the account from working, in words for people (signed out, refused).
    public var trouble: String?
    /// How many requests at a time the service last allowed.
    public var requestLimit: Int?
}
