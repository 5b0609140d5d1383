/// Links that give whoever has them an item of the account, made and withdrawn at the service.
///
/// Isolation, cancellation and repetition are those of `Provider`; a link made twice is never worse
/// than one. A client of places reads the paths of references only.
public protocol LinkSharing: Sendable {
    /// What links of this service can have.
    var abilities: LinkAbilities { get }

    /// Makes a link as wished; the caller has checked that there is none like it.
    ///
    /// A wish asks only for what `abilities` has.
    ///
    /// - Throws: `.notFound`, `.unsupported` when the account's plan or the item does not allow it,
    ///   `.noPermission`, `.nameTaken` where an item has one link and has it already.
    func share(_ wish: LinkWish) async throws(ProviderError) -> SharedLink

    /// One page of links; of one item itself, not of what lies above or below it, or where no item is
    /// given of the whole account; without a token, the first.
    ///
    /// - Throws: `.unsupported` where `abilities` cannot list that.
    func links(
        of item: ItemReference?,
        page: PageToken?
    ) async throws(ProviderError) -> LinkPage

    /// Withdraws a link, which then opens nothing; a link that is already gone is a success.
    ///
    /// - Throws: `.unsupported` where `abilities.withdraws` is false.
    func withdraw(_ link: SharedLink) async throws(ProviderError)
}

/// What the links of a service can have and do.
public struct LinkAbilities: Hashable, Sendable {
    /// Whether a link may let people write.
    public var edits = false
    /// Whether a link may have an end.
    public var expires = false
    /// Whether a link may ask for a password.
    public var takesPasswords = false
    /// Whether folders can be shared by link.
    public var sharesFolders = true
    /// Whether an item has one link at most, whose rights then hold for all who have it.
    public var onePerItem = false
    /// Whether the links of one item can be listed.
    public var lists = true
    /// Whether the links of the whole account can be listed.
    public var listsAll = true
    /// Whether a link can be taken back.
    public var withdraws = true
    /// The longest that a link may last, where the service sets one; such links always end.
    public var longest: Duration?
    /// How much later than wished a link may end: a service may count in days.
    public var endPrecision = Duration.seconds(60)
    /// The scopes without which a sign-in may not share, where a sign-in may lack them.
    public var scopes: [String] = []

    /// Links to read, without an end or a password, that can be listed and taken back.
    public init() {}
}

/// A link to be made.
public struct LinkWish: Hashable, Sendable {
    /// What is shared.
    public var item: ItemReference
    /// Whether it is a folder.
    public var isFolder: Bool
    /// Whether people may write.
    public var mayEdit: Bool
    /// When the link ends; nil for never, or for as late as the service allows.
    public var expires: Timestamp?
    /// What people have to know beside the link; a secret.
    public var password: String?

    /// What people are to be able to do.
    public var access: LinkAccess { mayEdit ? .edit : .read }

    /// A wish with all of its parts.
    public init(
        item: ItemReference,
        isFolder: Bool,
        mayEdit: Bool = false,
        expires: Timestamp? = nil,
        password: String? = nil
    ) {
        self.item = item
        self.isFolder = isFolder
        self.mayEdit = mayEdit
        self.expires = expires
        self.password = password
    }
}

/// What whoever has a link may do.
public enum LinkAccess: Hashable, Sendable {
    /// To see and fetch.
    case read
    /// To see, fetch and comment.
    case comment
    /// To see, fetch and change.
    case edit
    /// Anything else, such as only to upload: more than reading in one way, less in another.
    case other
}

/// A link as it is at the service; its address is for the person only, never for a log.
public struct SharedLink: Hashable, Sendable {
    /// What the provider withdraws it by.
    public var id: String
    /// The address to hand on.
    public var url: String
    /// The item, where the service says it.
    public var item: ItemID?
    /// The item's path in the service's names, where the service says it.
    public var path: RemotePath?
    /// What people may do; `.other` where the service says what this program does not know.
    public var access = LinkAccess.read
    /// When it ends; nil for never.
    public var expires: Timestamp?
    /// Whether a password is asked for.
    public var hasPassword: Bool

    /// A link to read without an end or a password, until its other parts are set.
    public init(id: String, url: String, item: ItemID? = nil, path: RemotePath? = nil) {
        self.id = id
        self.url = url
        self.item = item
        self.path = path
        hasPassword = false
    }

    /// Whether people may write.
    public var mayEdit: Bool { access == .edit }

    /// Whether the link is as wished; the passwords of two links cannot be compared.
    public func fulfils(_ wish: LinkWish) -> Bool {
        access == wish.access && !hasPassword && wish.password == nil
            && expires?.seconds == wish.expires?.seconds
    }

    /// Whether the link gives nobody more than was wished: a service may answer with another link that it
    /// has already, or leave a part of the wish out.
    ///
    /// `precision` is how much later than wished it may end.
    public func keeps(_ wish: LinkWish, precision: Duration) -> Bool {
        guard access == wish.access, hasPassword || wish.password == nil else { return false }
        guard let end = wish.expires else { return true }
        guard let expires else { return false }
        return expires.seconds <= end.seconds.addingSaturating(precision.components.seconds)
    }
}

/// One page of links.
public struct LinkPage: Sendable {
    /// The links, in any order.
    public var links: [SharedLink]
    /// Where to go on; nil on the last page.
    public var next: PageToken?

    /// A page of links.
    public init(links: [SharedLink], next: PageToken?) {
        self.links = links
        self.next = next
    }
}
