public import OortModel

/// One step of merging the service's news into the local side; all steps of a plan are applied in
/// one transaction, and then the planner is asked again.
public enum LocalStep: Hashable, Sendable {
    /// The item is gone on both sides, or gone there and unchanged here: its node goes, too.
    case forget(Inode)
    /// The item is gone there and changed here: it becomes one that only this side knows.
    case detach(Inode)
    /// The item lies here from now on; one that was not in the local tree enters it as the service
    /// has it.
    case place(Inode, Place)
    /// The item has the service's content from now on.
    case takeContent(Inode)
    /// The item has the service's modified time and description from now on.
    case takeAttributes(Inode)
    /// The item changed on both sides: the local content becomes a new item beside it (a conflict copy),
    /// and the item has the service's content from now on.
    case keepBoth(Inode)
    /// Another item has its name at the service: this one gets a number.
    case renumber(Inode)
    /// Both sides created the same: the first takes over the second's identity at the service, and
    /// the second vanishes.
    case adopt(Inode, from: Inode)
    /// A program saved by replacing: the second takes over the first's identity at the service, and
    /// the first gets the second's (or none).
    case handOver(from: Inode, to: Inode)
    /// A program's temporary file that was sent a while ago is to take over the identity of a file that
    /// stays as a backup: it gives up the item that the service made for it, and counts as newly made here.
    case renounce(Inode)
    /// Both sides agree on what the service reported; `content` is false while the news of the content
    /// wait.
    case agree(Inode, content: Bool)
}

/// One operation at the service.
public struct RemoteOperation: Hashable, Sendable {
    /// What is to be done.
    public enum Action: Hashable, Sendable {
        /// Create the folder.
        case createFolder(at: Place)
        /// Upload a new file.
        case upload(at: Place, ContentIdentity)
        /// Upload a new revision in place of exactly this one.
        case replace(Revision?, with: ContentIdentity)
        /// Move, rename or both; a detour leads to a temporary name.
        case move(to: Place, isDetour: Bool)
        /// Move to the trash, with all below.
        case delete
        /// Set those that are not nil.
        case setAttributes(modified: Timestamp?, description: String?)
        /// A backup was made by renaming: create a copy for the item at its new place; then the
        /// heir, which has the old name now, takes over its identity.
        case duplicate(at: Place, heir: Inode)
    }

    /// The item that it is done to.
    public var inode: Inode
    /// What is to be done.
    public var action: Action
    /// The operations of this plan, by index, that must have succeeded before.
    public var after: [Int]

    /// An operation with the indices of those before it.
    public init(inode: Inode, action: Action, after: [Int] = []) {
        self.inode = inode
        self.action = action
        self.after = after
    }
}

/// What to do next: merge news, or, when there are none, push.
public struct Plan: Hashable, Sendable {
    /// Steps on the local side; when there are any, `remote` is empty: apply them and plan again.
    public var local: [LocalStep] = []
    /// Operations at the service, in an order in which they could be done one by one.
    public var remote: [RemoteOperation] = []

    /// A plan to do nothing.
    public init() {}
}

/// Those of a service's traits that decide about plans.
public struct PlannerTraits: Sendable {
    /// How names are compared.
    public var comparison: NameRules.Comparison
    /// Whether one folder may hold two items of one name.
    public var allowsDuplicates: Bool
    /// What the revision of a link begins with at a service that keeps links as links: there a link and a
    /// file cannot share a name.
    public var linkMark: String?
    /// Whether a rename that only changes case needs a temporary name between.
    public var caseRenameNeedsDetour: Bool
    /// Whether a file's modified time can be set without its content.
    public var setsModifiedTime: Bool
    /// Whether a folder's modified time can be set.
    public var setsFolderModifiedTime: Bool
    /// How finely modified times are kept.
    public var timeResolution: TimeResolution
    /// Whether the description can be written.
    public var setsDescription: Bool

    /// The traits that decide about plans, of a provider's.
    public init(_ traits: ProviderTraits) {
        comparison = traits.names.comparison
        allowsDuplicates = traits.names.allowsDuplicates
        linkMark = traits.linkMark
        caseRenameNeedsDetour = traits.caseRenameNeedsDetour
        setsModifiedTime = traits.setsModifiedTime
        setsFolderModifiedTime = traits.setsFolderModifiedTime
        timeResolution = traits.timeResolution
        setsDescription = traits.setsDescription
    }

    /// Traits of a service that compares names in this way and can set no attribute.
    public init(
        comparison: NameRules.Comparison,
        allowsDuplicates: Bool,
        linkMark: String? = nil
    ) {
        self.comparison = comparison
        self.allowsDuplicates = allowsDuplicates
        self.linkMark = linkMark
        caseRenameNeedsDetour = false
        setsModifiedTime = false
        setsFolderModifiedTime = false
        timeResolution = .seconds
        setsDescription = false
    }
}
