/// What a server proved to do when it was tried at the sign-in; stored with the account.
///
/// Header fields are not trusted: proxies add and remove them. Of a cloud, only what its capabilities say
/// is used.
public struct WebDAVAbilities: Hashable, Sendable, Codable {
    /// How well the tag of a file names its content.
    public enum Tags: String, Hashable, Sendable, Codable {
        /// A listing has none: size and time stand in.
        case none
        /// Two contents of one second and one size may have the same.
        case coarse
        /// Contents written at once after each other were told apart.
        case fine
    }

    /// The field `Server` of the answers, for people, and to notice another server.
    public var server: String?
    /// Nothing can be written: everything else was not tried then.
    public var isReadOnly = false
    /// A file is not replaced by an upload that asks for nothing to be there.
    public var guardsCreation = false
    /// A file is replaced only while it has the tag that was named.
    public var guardsReplacement = false
    /// An upload that is cut off leaves what was there before.
    public var survivesCutUploads = false
    /// A file is removed only while it has the tag that was named.
    public var guardsDeletion = false
    /// A move onto what is there is refused when asked to be.
    public var guardsMoves = false
    /// A move into a folder that is not there is refused.
    public var wantsParentOfMove = false
    /// A file can be moved onto another in one step.
    public var movesOntoFiles = false
    /// The time in an upload's field `X-OC-MTime` is taken.
    public var takesTimeWithUpload = false
    /// The time can be set later, by the property `lastmodified`.
    public var takesTimeLater = false
    /// How well the tag of a file in a listing names its content.
    public var tags = Tags.none
    /// A file's content is answered with the same tag as in a listing.
    public var sendsTags = false
    /// A part of a file can be read.
    public var sendsRanges = false
    /// Names that begin with a dot are listed.
    public var listsDotNames = true
    /// Each folder has a modified time, so that one without has lost its storage; nil in accounts that are
    /// older than this trial.
    public var datesFolders: Bool?
    /// A file keeps its revision when it is moved to another folder, and not copied there; nil in accounts
    /// that are older than this trial.
    public var keepsMovedRevisions: Bool?
    /// Names that differ in case only are the same name.
    public var ignoresCase = false
    /// Names that differ in their normal form only are the same name.
    public var composesNames = false
    /// A file can be copied at the server.
    public var copies = false
    /// The server reports how much room there is.
    public var saysQuota = false
    /// The destination of a move is cut at a `;` or `?` in a name, encoded or not: the content would go
    /// to another name, perhaps onto another file.
    public var cutsDestinations = false
    /// The destination of a move is taken as a path only (behind proxies that hide scheme or host).
    public var wantsDestinationPath = false

    /// What a cloud's own capabilities say; nil for other servers.
    public var cloud: CloudCapabilities?

    /// The abilities of a server of which nothing is known: only what works everywhere is used.
    public init() {}

    /// Whether content is sent to its place directly; else beside it, and moved there when it is whole.
    var sendsDirectly: Bool {
        guardsCreation && guardsReplacement && survivesCutUploads && tags != .none
    }
}

/// What Nextcloud and ownCloud say of themselves (`/ocs/v2.php/cloud/capabilities`).
public struct CloudCapabilities: Hashable, Sendable, Codable {
    /// The version as a text, such as `34.0.1`.
    public var version: String?
    /// How often to ask for news, in seconds.
    public var pollSeconds: Int64?
    /// The size of the largest part of an upload, in bytes.
    public var largestPart: Int64?
    /// Names that are refused, in lower case.
    public var refusedNames: [String] = []
    /// What a name may not be up to its first dot, in lower case.
    public var refusedBaseNames: [String] = []
    /// Characters that a name may not have.
    public var refusedCharacters: [String] = []
    /// What a name may not end in, in lower case.
    public var refusedEndings: [String] = []
    /// Whether what is deleted goes to a trash, which an administrator can switch off; nil in accounts that
    /// are older than this question.
    public var keepsDeleted: Bool?
    /// The root's fingerprint of the server's data at the sign-in; nil where it was not asked for.
    ///
    /// Empty as a rule, and different once an administrator restored a backup.
    public var fingerprint: String?

    /// A cloud that says nothing of itself.
    public init() {}
}
