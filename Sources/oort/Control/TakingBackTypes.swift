import Foundation

/// What the client asks when it wants to see what was deleted.
struct TrashRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path under the mount point; nil for all accounts.
    var path: String?
}

/// What was deleted and can come back.
struct TrashReport: Codable, Hashable, Sendable {
    /// The entries, the newest first.
    var entries: [TrashedItem]
    /// Accounts of which nothing can be listed, and why, in words.
    var notes: [String]
    /// Whether there are more than were read.
    var isCut: Bool
    /// How many accounts were listed; nil for none.
    var listed: Int?
}

/// One entry of a trash.
struct TrashedItem: Codable, Hashable, Sendable {
    /// By what `oort restore` takes it: `ACCOUNT:ID`.
    var id: String
    /// The account's name.
    var account: String
    /// The name that it had.
    var name: String
    /// The path under the mount point where it lay; nil where that is not known.
    var path: String?
    /// What it is: file, folder, shortcut or document; nil where the service does not say.
    var kind: String?
    /// Bytes of a file.
    var size: Int64?
    /// When it was deleted.
    var deleted: Date?
}

/// What the client asks when something is to come back.
struct RestoreRequest: ControlRequest, Hashable {
    static let fields: Set = ["target", "path", "to"]

    /// What the person named: perhaps an `ACCOUNT:ID`.
    var target: String
    /// The same taken for a path, absolute.
    var path: String
    /// Where it is to be, an absolute path under the mount point; nil for where it lay.
    var to: String?
}

/// What became of a `RestoreRequest`.
struct RestoreReport: Codable, Hashable, Sendable {
    /// The path under the mount point where it is now.
    var path: String
    /// Whether the mount shows it already.
    var isShown: Bool
    /// How many older entries of the same path there are.
    var others: Int
    /// Whether it came back file by file, those of its deletion only; nil where it is one thing.
    var isByFiles: Bool?
}

/// What the client asks about the versions of a file.
struct VersionsRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "version"]

    /// An absolute path under the mount point.
    var path: String
    /// The version that is meant; nil for all.
    var version: String?
}

/// The versions of a file.
struct VersionsReport: Codable, Hashable, Sendable {
    /// One content that the file has or had.
    struct Version: Codable, Hashable, Sendable {
        /// By what `oort restore --version` takes it.
        var id: String
        /// Bytes of content.
        var size: Int64?
        /// When the content was modified.
        var modified: Date?
        /// Who wrote it, in the service's words.
        var author: String?
        /// Whether it is what the file has now.
        var isCurrent: Bool
    }

    /// The path under the mount point.
    var path: String
    /// The versions, the newest first.
    var versions: [Version]
    /// What reading an earlier one does beyond reading, in words.
    var cost: String?
}

/// An earlier content of a file, fetched.
struct FetchedVersion: Codable, Hashable, Sendable {
    /// A file of the cache with the content, which the client must delete.
    var file: String
    /// Bytes of content.
    var size: Int64
    /// When the content was modified.
    var modified: Date?
}

/// What became of a version that was to be current again.
struct RestoredVersion: Codable, Hashable, Sendable {
    /// The path under the mount point.
    var path: String
    /// The content where the service cannot make it current by itself: it is to be written into the
    /// file.
    var content: FetchedVersion?
}

/// What the client asks when a link is to be made.
struct ShareRequest: ControlRequest, Hashable {
    static let fields: Set = ["path", "edit", "expires", "password"]

    /// An absolute path under the mount point.
    var path: String
    /// Whether people may write.
    var edit: Bool?
    /// When the link ends.
    var expires: Date?
    /// What people have to know beside the link.
    var password: String?
}

/// What the client asks about links that there are.
struct LinksRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path under the mount point; nil for all accounts.
    var path: String?
}

/// Links that there are.
struct LinksReport: Codable, Hashable, Sendable {
    /// The links, by path.
    var links: [LinkReport]
    /// Accounts of which not all can be listed, and why, in words.
    var notes: [String]
    /// Where else there may be links that the question was about, in words.
    var hints: [String]?
    /// How many accounts were listed; nil for none.
    var listed: Int?
}

/// One link.
struct LinkReport: Codable, Hashable, Sendable {
    /// The account's name.
    var account: String
    /// The path under the mount point; nil where what is shared is not in the tree.
    var path: String?
    /// The address to hand on.
    var url: String
    /// Whether people may write.
    var mayEdit: Bool
    /// Whether people who may not write may comment; nil where they may not.
    var mayComment: Bool?
    /// Whether people may do something else than to read, comment or write, such as only to upload; nil
    /// where they may not.
    var hasOtherRights: Bool?
    /// When it ends; nil for never.
    var expires: Date?
    /// Whether a password is asked for.
    var hasPassword: Bool
    /// Whether it was there before it was asked for; nil in lists.
    var existed: Bool?
}

/// What the client asks about the page of something.
struct PageRequest: ControlRequest, Hashable {
    static let fields: Set = ["path"]

    /// An absolute path under the mount point.
    var path: String
}

/// The page that shows something in a browser.
struct PageReport: Codable, Hashable, Sendable {
    /// The path under the mount point.
    var path: String
    /// The page's address.
    var url: String
}

/// What the client asks when links are to be taken back.
struct UnshareRequest: ControlRequest, Hashable {
    static let fields: Set = ["link", "path"]

    /// The link's address; nil where a path is meant.
    var link: String?
    /// An absolute path under the mount point, all of whose links are meant.
    var path: String?
}
