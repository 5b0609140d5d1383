/// Speaks the protocol of a service that knows its items by their places only, for one account.
///
/// Such a service has no lasting ids and no change feed; `OortPlaces` makes a `Provider` of a client.
///
/// Paths begin at the account's root and are the service's own names. A client keeps no tree: what
/// it answers is what the service says at this moment.
///
/// Isolation and cancellation are those of `Provider`: any task may call, several at once, and no
/// write whose outcome is unknown is repeated unless the repetition can do no harm.
public protocol PlaceClient: Sendable {
    /// How the service differs from the others; constant while the client lives.
    var traits: PlaceTraits { get }

    // MARK: Account

    /// Whose account it is; the first call of a sign-in, so its errors are what a person reads.
    func owner() async throws(ProviderError) -> PlaceOwner

    /// How much room there is.
    ///
    /// - Throws: `.unsupported` where the service does not say.
    func quota() async throws(ProviderError) -> Quota

    /// Takes the credentials back at the service.
    ///
    /// - Throws: `.unsupported` where the service cannot.
    func signOut() async throws(ProviderError)

    /// Ends the client's own connections and processes; no call follows.
    func close() async

    // MARK: Looking

    /// What lies at a place, the root included.
    ///
    /// - Throws: `.notFound` only when the service positively says so.
    func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry

    /// All that lies in a folder: complete, or an error.
    ///
    /// - Throws: `.notFound` and `.notAFolder` only when the service positively says so.
    func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing

    /// All that lies in each of some folders, in the same order, by one request for all of them; nil for a
    /// folder that has to be listed by itself.
    ///
    /// At most `traits.listingsPerRequest` folders; not called where that is 1.
    func listings(of folders: [RemotePath]) async -> [PlaceListing?]

    /// The stamps of folders, in the same order; one request for many where the protocol has that.
    ///
    /// Not called where `traits.scan` is `.listings` or `.snapshots`.
    func stamps(of folders: [RemotePath]) async -> [Result<FolderStamp?, ProviderError>]

    /// One page of everything in the account in one flat list, in any order; without a token, the
    /// first. Folders in which something lies need not be named.
    ///
    /// Called only where `traits.scan` is `.snapshots`.
    func snapshot(page: PageToken?) async throws(ProviderError) -> SnapshotPage

    /// Waits until the account should be looked at: when `limit` has passed or, where the service gives
    /// notice of changes, when it did, or has not for long.
    ///
    /// - Throws: `.cancelled`.
    func waitForNews(atMost limit: Duration) async throws(ProviderError)

    // MARK: Reading

    /// The bytes of a file, under the rules of `Provider.read`.
    func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream

    // MARK: Writing

    /// Creates a folder.
    ///
    /// - Throws: `.nameTaken`, `.parentNotFound`.
    func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry

    /// Creates a folder with permission bits, 0777, of which the server may take some away, as by its umask.
    ///
    /// - Throws: `.nameTaken`, `.parentNotFound`.
    func createFolder(
        at path: RemotePath,
        mode: UInt16
    ) async throws(ProviderError) -> PlaceEntry

    /// Creates the folder that another one is carried into, open to the same people as that one.
    ///
    /// - Throws: `.nameTaken`, `.parentNotFound`.
    func createFolder(
        at path: RemotePath,
        like old: RemotePath
    ) async throws(ProviderError) -> PlaceEntry

    /// Sends content to a place, where a part of it is never visible.
    ///
    /// The answer's size is `upload.size`, and its hash, where it has one, `upload.hash`.
    ///
    /// - Throws: as `Provider.upload`.
    func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry

    /// Moves and renames in one step, and never replaces what is there.
    ///
    /// Folders are moved only where `traits.movesFolders`.
    ///
    /// - Throws: `.notFound`, `.nameTaken`, `.parentNotFound`; `.unsupported` for a folder that cannot be
    ///   moved in one step, and is then carried piece by piece (`traits.mayHaveDisks`).
    func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry

    /// Removes a file, or a folder with all that it holds, to the service's trash where it has one.
    ///
    /// An entry that is already gone is a success.
    ///
    /// - Throws: `.preconditionFailed` when a file's `revision` is given and another is current;
    ///   `.unsupported` for a folder where there is no trash: what is known of it is then deleted piece
    ///   by piece; `.noPermission` for what the trash cannot take.
    func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError)

    /// The same; `mark` is the `trashMark` that it got, for a trash that is the client's own.
    func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?,
        mark: String?
    ) async throws(ProviderError)

    /// Removes a folder with what is known to lie in it, and nothing else.
    ///
    /// Called in place of `delete` where `traits.deletesKnownOnly`.
    ///
    /// - Throws: `.preconditionFailed` when something else lies in it, or a file has another revision: some
    ///   of what is known may be deleted by then.
    func deleteFolder(
        at path: RemotePath,
        holding contents: PlaceContents,
        mark: String?
    ) async throws(ProviderError)

    /// What tells the entry's deletion from every other in `trash` (`TrashEntry.mark`); nil where nothing
    /// does.
    ///
    /// `id` is the entry's in the core, and is never another entry's.
    func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String?

    /// Removes a folder in which nothing lies any more, and never what came into it meanwhile.
    ///
    /// Called only where a folder is moved or deleted piece by piece; a folder that is already gone is a
    /// success.
    func removeEmptyFolder(at path: RemotePath) async throws(ProviderError)

    /// Copies a file at the service, the modified time with it; no bytes travel.
    ///
    /// Never replaces what is there.
    ///
    /// - Throws: `.unsupported`, `.nameTaken`.
    func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry

    /// Sets the modified time of a file; the answer is the file afterwards.
    ///
    /// With a `revision`, the content is assumed to be that revision's: a service that can compare changes
    /// nothing on another one.
    ///
    /// - Throws: `.unsupported`; `.preconditionFailed` when another revision is current.
    func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry

    /// A small picture of a file, as `Provider.thumbnail`.
    func thumbnail(of path: RemotePath, edge: Int) async throws(ProviderError) -> ByteStream

    /// A new hasher of `traits.provider.hashAlgorithm`.
    func makeHasher() -> any ContentHasher

    // MARK: What some services have

    /// The service's trash; nil where it has none.
    var trash: (any Trash)? { get }

    /// Whether what is deleted now can be restored: a trash may be switched off while the client lives.
    ///
    /// Answered at once, without the service.
    var keepsDeleted: Bool { get }

    /// Earlier contents of files; nil where the service keeps none.
    var versions: (any VersionHistory)? { get }

    /// Links to share by; nil where the service has none.
    var links: (any LinkSharing)? { get }

    /// Pages that show items in a browser; nil where the service has none.
    var webPages: (any WebPages)? { get }
}

/// Rare capabilities: a client without one need not declare it.
extension PlaceClient {
    public func waitForNews(atMost limit: Duration) async throws(ProviderError) {
        guard (try? await SystemInputs.sleep(for: limit)) != nil else {
            throw ProviderError(.cancelled, detail: "waiting for news was cancelled")
        }
    }

    public func listings(of folders: [RemotePath]) async -> [PlaceListing?] {
        folders.map { _ in nil }
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?,
        mark: String?
    ) async throws(ProviderError) {
        try await delete(kind, at: path, revision: revision)
    }

    public func deleteFolder(
        at path: RemotePath,
        holding contents: PlaceContents,
        mark: String?
    ) async throws(ProviderError) {
        try await delete(.folder, at: path, revision: nil, mark: mark)
    }

    public func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String? { nil }

    public var keepsDeleted: Bool { traits.deletesToTrash }

    public var trash: (any Trash)? { nil }
    public var versions: (any VersionHistory)? { nil }
    public var links: (any LinkSharing)? { nil }
    public var webPages: (any WebPages)? { nil }

    public func quota() async throws(ProviderError) -> Quota {
        throw ProviderError(.unsupported, detail: "the service does not say how much room there is")
    }

    public func createFolder(
        at path: RemotePath,
        mode: UInt16
    ) async throws(ProviderError) -> PlaceEntry {
        try await createFolder(at: path)
    }

    public func createFolder(
        at path: RemotePath,
        like old: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await createFolder(at: path)
    }

    public func signOut() async throws(ProviderError) {
        throw ProviderError(.unsupported, detail: "the service cannot take a sign-in back")
    }

    public func close() async {}

    public func stamps(
        of folders: [RemotePath]
    ) async -> [Result<FolderStamp?, ProviderError>] {
        folders.map { _ in .success(nil) }
    }

    public func snapshot(page: PageToken?) async throws(ProviderError) -> SnapshotPage {
        throw ProviderError(.unsupported, detail: "the service has no flat list of everything")
    }

    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        throw ProviderError(.unsupported, detail: "the service removes no folder that is empty")
    }

    public func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        throw ProviderError(.unsupported, detail: "the service copies nothing by itself")
    }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        throw ProviderError(.unsupported, detail: "the service sets the modified time itself")
    }

    public func thumbnail(
        of path: RemotePath,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        throw ProviderError(.unsupported, detail: "the service makes no thumbnails")
    }
}

/// How a service of places differs from the others.
public struct PlaceTraits: Sendable {
    /// How another client's changes are found.
    public enum Scan: Sendable, Hashable, CaseIterable {
        /// A folder's stamp changes with anything below it: only what changed is listed.
        case subtreeStamps
        /// A folder's stamp changes when an entry comes or goes, not when one is rewritten in place:
        /// folders of a new stamp are listed at once, all others now and then.
        case folderStamps
        /// Folders have no stamps: each look lists some folders, those first that were not listed for
        /// longest.
        case listings
        /// The whole account comes in one flat list, which is read again after as many looks as it has
        /// pages: a look costs one page on average.
        case snapshots
    }

    /// What the core needs to know; `OortPlaces` sets `feed`.
    public var provider: ProviderTraits
    /// How another client's changes are found.
    public var scan: Scan
    /// How long a listing is trusted while the folder's stamp stays the same; nil where stamps show each
    /// change, or there are none.
    public var listingFreshness: Duration?
    /// How many listings may be asked for at once.
    public var listingsInFlight: Int
    /// How many folders one request lists, at most; 1 where the protocol lists one by one.
    public var listingsPerRequest = 1
    /// How many listings are read, at most, before what they say is passed on.
    public var listingsPerPage = 128
    /// Whether a folder is moved in one step; else it is made anew and its files are moved.
    public var movesFolders: Bool
    /// Whether deleted items can be restored.
    public var deletesToTrash: Bool
    /// Whether the service deletes no folder in one step, but each entry for itself, which may take long:
    /// only what is known by then may go (`PlaceClient.deleteFolder`).
    public var deletesKnownOnly = false
    /// Whether the account may lie on several disks: a folder that cannot be moved from one to another in
    /// one step (`.unsupported`) is moved piece by piece and, where there is no trash, deleted piece by
    /// piece.
    public var mayHaveDisks = false
    /// Whether the revision is made of a file's size and second only: other content with the same of both
    /// has the same revision, and a machine that knows the former content does not see it.
    public var hasRevisionsOfTimes = false

    /// Traits of a service whose stamps show each change, that lists 4 folders at once, moves folders and
    /// deletes for good.
    public init(
        provider: ProviderTraits,
        scan: Scan,
        listingFreshness: Duration? = nil,
        listingsInFlight: Int = 4,
        movesFolders: Bool = true,
        deletesToTrash: Bool = false
    ) {
        self.provider = provider
        self.scan = scan
        self.listingFreshness = listingFreshness
        self.listingsInFlight = listingsInFlight
        self.movesFolders = movesFolders
        self.deletesToTrash = deletesToTrash
    }
}

/// What is known to lie in a folder and below.
public struct PlaceContents: Sendable {
    /// The files, each with the revision that is known.
    public var files: [(path: RemotePath, revision: Revision)] = []
    /// The folders, that one among them.
    public var folders: [RemotePath] = []

    /// Nothing is known.
    public init() {}
}

/// Whose account it is, as far as a service of places says.
public struct PlaceOwner: Hashable, Sendable {
    /// The stable key of the account: the server, the person and the folder where the account begins.
    public var id: String
    /// For display.
    public var displayName: String
    /// The e-mail address, where the service has it.
    public var email: String?

    /// An owner with all parts.
    public init(id: String, displayName: String, email: String? = nil) {
        self.id = id
        self.displayName = displayName
        self.email = email
    }
}

/// A text that changes when a folder changes: an etag, a modified time.
public struct FolderStamp: Hashable, Sendable {
    /// The stamp as the client wrote it.
    public let rawValue: String

    /// Wraps a stamp as the client wrote it.
    public init(_ rawValue: String) { self.rawValue = rawValue }

    public static func == (one: FolderStamp, other: FolderStamp) -> Bool {
        one.rawValue.isSameText(as: other.rawValue)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(rawValue) }
}

/// One file or folder at its place.
public struct PlaceEntry: Hashable, Sendable {
    /// What lies there; links and other kinds are shown as files or left out.
    public enum Kind: Hashable, Sendable {
        /// Bytes.
        case file
        /// Holds other entries.
        case folder
    }

    /// What begins at a folder that lies elsewhere than the folder around it; its number is kept.
    public enum Mount: Int64, Hashable, Sendable {
        /// What others gave: not named any more, it counts as withdrawn after a while.
        case share = 1
        /// A storage of its own: not named any more, it is away.
        case storage = 2
    }

    /// The name in its folder; empty for the root.
    public var name: String
    /// What it is.
    public var kind: Kind
    /// Bytes of a file; nil of a folder.
    public var size: Int64?
    /// The version of a file's content, never nil of a file; nil of a folder.
    public var revision: Revision?
    /// Whether the revision may stay the same if the content changes again at once (its time is in seconds,
    /// and that second is not over): it is looked at once more, later.
    public var isYoung = false
    /// When the content was last modified.
    public var modifiedTime: Timestamp?
    /// When the service stored the entry, where it reports that besides the modified time, or instead of
    /// it.
    ///
    /// A listing that has this time of a file and no `modifiedTime` says nothing about the modified time:
    /// that of the same revision stays as known, and only `entry(at:)` gives it.
    public var storedTime: Timestamp?
    /// When the entry was created, where the service keeps that.
    public var createdTime: Timestamp?
    /// The content's media type.
    public var mimeType: String?
    /// The content's hash, where the service knows it.
    public var hash: ContentHash?
    /// What an entry keeps when somebody moves it (a file id, an inode); nil where there is no such thing.
    public var key: String?
    /// What begins at it that its folder may not name while the service cannot reach it; nil of all else.
    public var mount: Mount?
    /// A folder's stamp; nil of a file, and where the service has none.
    public var stamp: FolderStamp?
    /// What this account may do with it.
    public var permissions: Permissions = .all
    /// Whether this account owns it, as far as the service says.
    public var isOwn = false
    /// The owner's name, where that is not the account's own person; nil where the service does not say.
    public var owner: String?
    /// Whether other people share it with the account's person, as far as the service reports.
    public var isShared = false
    /// With whom the account's person shares it; empty where nobody is reported.
    public var sharedWith = TextList()
    /// The tags that people gave it; nil where the service has none.
    public var tags: TextList?
    /// Whether the service can render a thumbnail; nil when only a request can say.
    public var hasThumbnail: Bool?

    /// A file.
    public static func file(
        _ name: String,
        size: Int64,
        revision: Revision,
        modifiedTime: Timestamp?
    ) -> PlaceEntry {
        var entry = PlaceEntry(name: name, kind: .file)
        entry.size = size
        entry.revision = revision
        entry.modifiedTime = modifiedTime
        return entry
    }

    /// A folder.
    public static func folder(_ name: String, stamp: FolderStamp? = nil) -> PlaceEntry {
        var entry = PlaceEntry(name: name, kind: .folder)
        entry.stamp = stamp
        return entry
    }

    private init(name: String, kind: Kind) {
        self.name = name
        self.kind = kind
    }
}

/// All that lies in a folder at one moment.
public struct PlaceListing: Sendable {
    /// The entries, in any order, no name twice.
    public var entries: [PlaceEntry]
    /// The folder's stamp at the listing's beginning or before, never later: a change in between shows
    /// as a new stamp the next time.
    public var stamp: FolderStamp?
    /// Whether the stamp may stay although something below changed: the folder is listed once more, later.
    public var isYoung = false
    /// Places in the folder of which the service could not say what lies there (a storage that is down):
    /// whatever is known of them stays.
    public var unknown: [String]
    /// Whether the folder holds something without a usable name, which is not shown.
    public var holdsUnnamed = false
    /// The disk on which the folder lies, by a text that stays the same for the same disk; nil where the
    /// service does not say.
    public var disk: String?

    /// A listing; nothing in it is unknown unless it says so.
    public init(entries: [PlaceEntry], stamp: FolderStamp? = nil, unknown: [String] = []) {
        self.entries = entries
        self.stamp = stamp
        self.unknown = unknown
    }
}

/// One page of everything.
public struct SnapshotPage: Sendable {
    /// The entries with the folders in which they lie.
    public var entries: [(folder: RemotePath, entry: PlaceEntry)]
    /// Where to go on; nil on the last page.
    public var next: PageToken?

    /// A page of entries.
    public init(entries: [(folder: RemotePath, entry: PlaceEntry)], next: PageToken?) {
        self.entries = entries
        self.next = next
    }
}

/// An upload to a place, without its bytes.
public struct PlaceUpload: Sendable {
    /// What must be at the place before.
    public enum Before: Hashable, Sendable {
        /// Nothing: fails with `.nameTaken`.
        case nothing
        /// A file of exactly this revision: fails with `.preconditionFailed`. Nil is any revision.
        case file(Revision?)
    }

    /// Where the content goes.
    public var path: RemotePath
    /// What must be there before.
    public var before: Before
    /// Bytes of content.
    public var size: Int64
    /// The content's hash by `traits.provider.hashAlgorithm`.
    public var hash: ContentHash
    /// The modified time to give the file.
    public var modifiedTime: Timestamp?
    /// The media type, where it is known.
    public var mimeType: String?
    /// Permission bits for a new file, 0777, where a program gave it some.
    ///
    /// The server may take more away, as by its umask. A file that is replaced keeps its own.
    public var mode: UInt16?
    /// The content.
    public var content: any ContentSource
    /// The session that an earlier, interrupted try of this same upload left; nil to begin anew.
    public var session: UploadSession?

    /// An upload of `content` to `path`.
    public init(
        path: RemotePath,
        before: Before,
        size: Int64,
        hash: ContentHash,
        modifiedTime: Timestamp?,
        mimeType: String?,
        mode: UInt16? = nil,
        content: any ContentSource,
        session: UploadSession? = nil
    ) {
        self.path = path
        self.before = before
        self.size = size
        self.hash = hash
        self.modifiedTime = modifiedTime
        self.mimeType = mimeType
        self.mode = mode
        self.content = content
        self.session = session
    }
}
