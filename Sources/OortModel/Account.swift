/// Whose account it is, as the service says.
public struct AccountIdentity: Hashable, Sendable {
    /// The service's stable key of the account.
    public var id: String
    /// The person's name, for display.
    public var displayName: String
    /// The e-mail address, where the service reports it.
    public var email: String?
    /// The id of the folder that is the account's root.
    public var rootID: ItemID

    /// An identity with all of its parts.
    public init(id: String, displayName: String, email: String?, rootID: ItemID) {
        self.id = id
        self.displayName = displayName
        self.email = email
        self.rootID = rootID
    }
}

/// An account's room, in bytes; never negative.
public struct Quota: Hashable, Sendable {
    /// Bytes in use, what lies in the trash included.
    public var used: Int64
    /// Bytes that may be used; nil when there is no limit.
    public var total: Int64?

    /// Bytes in use and allowed; a negative number counts as 0.
    public init(used: Int64, total: Int64?) {
        self.used = max(used, 0)
        self.total = total.map { max($0, 0) }
    }

    /// Bytes that are still free; nil when there is no limit.
    public var free: Int64? { total.map { max($0.addingSaturating(-used), 0) } }
}
