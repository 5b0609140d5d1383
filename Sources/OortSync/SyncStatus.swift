public import OortCatalog
public import OortModel

/// How an account is doing.
public struct SyncStatus: Sendable {
    /// What keeps the account from working at all.
    public enum Trouble: Hashable, Sendable {
        /// The service cannot be reached, for this reason in words; it is tried again.
        case offline(String)
        /// The person must sign in again.
        case signedOut(String)
        /// The service refuses the program's registration; the person must mend it and sign in
        /// again.
        case clientRefused(String)
        /// Something on this machine keeps the account from being read, such as a locked keyring, for this
        /// reason in words; it is tried again.
        case local(String)
        /// What is kept of the account on this machine could not be read; nothing is known of it.
        case unreadable(CatalogError)

        /// Whether nothing can be sent until the person does something.
        public var needsPerson: Bool {
            switch self {
            case .offline, .local, .unreadable: false
            case .signedOut, .clientRefused: true
            }
        }
    }

    /// A content that is being uploaded, or read at the service to be compared with what was sent.
    public struct Transfer: Hashable, Sendable {
        /// The file.
        public var inode: Inode
        /// Bytes sent so far, or read.
        public var sent: Int64
        /// Bytes in all.
        public var size: Int64
        /// Whether it is being uploaded.
        public var isUpload = true
    }

    /// What keeps the account from working; nil when nothing does.
    public var trouble: Trouble?
    /// Whether the whole tree is known.
    public var isEnumerated = false
    /// What the service does not have as it is here, oldest first; at most the first thousand.
    public var pending: [PendingItem] = []
    /// How many there are in all.
    public var pendingCount = 0
    /// How many items are known while the tree is being read; nil once it is.
    public var knownItems: Int64?
    /// Contents that are being uploaded, or read to be compared.
    public var transfers: [Transfer] = []
    /// Conflict copies that nobody has put away yet.
    public var conflicts: [Conflict] = []
    /// The account's room as last heard.
    public var quota: Quota?
    /// What else a person should know now: what was not deleted, and why.
    public var remarks: [String] = []
}

/// What waiting for the service achieved.
public struct SyncOutcome: Sendable {
    /// What the service does not have; empty when it has everything, as its hashes say.
    public var missing: [PendingItem]
    /// Why the service could not be asked; nil when it could.
    public var trouble: SyncStatus.Trouble?

    /// Whether the service has everything.
    public var isComplete: Bool { missing.isEmpty && trouble == nil }
}
