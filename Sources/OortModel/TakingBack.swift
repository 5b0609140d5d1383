/// The service's trash of deleted items, for one account.
///
/// Isolation, cancellation and repetition are those of `Provider`. A client of places reads the paths
/// of references only.
public protocol Trash: Sendable {
    /// One page of what was deleted at or below `folder`; without a token, the first.
    ///
    /// A service that cannot list a part answers with the whole trash, so the caller checks the entries'
    /// places itself. What lay in a deleted folder is no entry of its own where the folder is one. A page
    /// may be empty without being the last.
    ///
    /// - Throws: `.notFound` when the folder is positively not there.
    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage

    /// Puts an entry of `entries` back into the tree, at `place`; a folder with all that lay in it.
    ///
    /// Never replaces another item, as far as the service can refuse that; the caller has checked just
    /// before.
    ///
    /// - Throws: `.notFound` when it is no longer in the trash, `.nameTaken`, `.parentNotFound`,
    ///   `.unsupported` where this kind of account cannot.
    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError)

    /// The same with a progress that all tries share: where it has begun, what an earlier try brought
    /// back stays, and only the rest is restored.
    ///
    /// A trash that brings an entry back in one step leaves the progress as it is.
    func restore(
        _ entry: TrashEntry,
        to place: Placement,
        _ progress: RestoreProgress
    ) async throws(ProviderError)

    /// The entry of a deleted item that `Provider.trashMark` gave this mark; nil where it is not in the
    /// trash.
    func entry(marked mark: String) async throws(ProviderError) -> TrashEntry?
}

extension Trash {
    public func entry(marked mark: String) async throws(ProviderError) -> TrashEntry? {
        var page: PageToken?
        var walk = PageWalk()
        repeat {
            if let page { try walk.goOn(to: page.rawValue) }
            let root = ItemReference(id: ItemID(""), path: .root)
            let answer = try await entries(below: root, page: page)
            let found = answer.entries.first { $0.mark.map { $0.isSameText(as: mark) } ?? false }
            if let found { return found }
            page = answer.next
        } while page != nil
        return nil
    }

    public func restore(
        _ entry: TrashEntry,
        to place: Placement,
        _ progress: RestoreProgress
    ) async throws(ProviderError) {
        try await restore(entry, to: place)
    }
}

/// Restores deleted items that are known by id and revision, without a look at the trash.
///
/// Isolation, cancellation and repetition are those of `Provider`.
public protocol Undeletion: Sendable {
    /// Whether folders come back so, with all that lay in them; else only files.
    var restoresFolders: Bool { get }

    /// Puts a deleted item back into the tree, at `place`.
    ///
    /// - Parameters:
    ///   - item: the id that it had.
    ///   - revision: the content that a file had.
    ///   - place: where it is to be; the caller has checked that nothing is there.
    /// - Throws: `.notFound` when it is no longer in the trash, `.nameTaken`, `.unsupported` where this
    ///   kind of account cannot.
    func restore(
        _ item: ItemID,
        revision: Revision?,
        to place: Placement
    ) async throws(ProviderError)
}

/// Where something is to be.
public struct Placement: Hashable, Sendable {
    /// The folder that will hold it.
    public var folder: ItemReference
    /// Its name there, as the service is to have it.
    public var name: String

    /// A name in a folder.
    public init(folder: ItemReference, name: String) {
        self.folder = folder
        self.name = name
    }
}

/// Something that was deleted and can come back.
public struct TrashEntry: Hashable, Sendable {
    /// The service's name of the entry within the trash of this account.
    public var id: String
    /// The name that it had.
    public var name: String
    /// Where it lay, in the service's own names; nil where the service does not say.
    public var path: RemotePath?
    /// The folder that it lay in, where the service says that and no path.
    public var folder: ItemID?
    /// What it is; nil where the service does not say.
    public var kind: ItemKind?
    /// Bytes of a file.
    public var size: Int64?
    /// When it was deleted.
    public var deletedTime: Timestamp?
    /// The id that it had in the tree, where the service keeps that.
    public var item: ItemID?
    /// What `Provider.trashMark` said of it, where the service keeps no id.
    public var mark: String?

    /// An entry of which only the essentials are known.
    public init(id: String, name: String, path: RemotePath? = nil) {
        self.id = id
        self.name = name
        self.path = path
    }
}

/// One page of a trash.
public struct TrashPage: Sendable {
    /// The entries, in any order.
    public var entries: [TrashEntry]
    /// Where to go on; nil on the last page.
    public var next: PageToken?

    /// A page of entries.
    public init(entries: [TrashEntry], next: PageToken?) {
        self.entries = entries
        self.next = next
    }
}

/// The earlier contents of files that a service keeps, for one account.
public protocol VersionHistory: Sendable {
    /// Whether `restore` works; if not, an earlier content is read and written again.
    var restoresAtService: Bool { get }

    /// What reading an earlier version does at the service besides, in words for people; nil where it does
    /// nothing else.
    var readingCost: String? { get }

    /// One page of a file's versions, the newest first, the current one among them; without a token,
    /// the first page.
    ///
    /// - Throws: `.notFound`, `.notAFile`, `.unsupported` for what has no content of its own.
    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage

    /// The bytes of a version, whole.
    ///
    /// - Throws: `.notFound` when the service no longer keeps it, `.contentBlocked`.
    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream

    /// Makes the content of an earlier version the newest one; what was current becomes an earlier
    /// one itself.
    ///
    /// - Throws: `.preconditionFailed` where the service sees that `current` is no longer current,
    ///   `.notFound`, `.unsupported`.
    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError)
}

extension VersionHistory {
    public var restoresAtService: Bool { true }
    public var readingCost: String? { nil }
}

/// One content that a file has or had.
public struct ItemVersion: Hashable, Sendable {
    /// The service's name of the version.
    public var id: String
    /// Bytes of content.
    public var size: Int64?
    /// When the content was modified, or taken by the service where that is all it says.
    public var modifiedTime: Timestamp?
    /// Who wrote it, in the service's words.
    public var author: String?
    /// Whether it is the content that the file has now.
    public var isCurrent: Bool

    /// A version with all of its parts.
    public init(
        id: String,
        size: Int64?,
        modifiedTime: Timestamp?,
        author: String? = nil,
        isCurrent: Bool
    ) {
        self.id = id
        self.size = size
        self.modifiedTime = modifiedTime
        self.author = author
        self.isCurrent = isCurrent
    }
}

/// One page of a file's versions.
public struct VersionPage: Sendable {
    /// The versions, the newest first.
    public var versions: [ItemVersion]
    /// Where to go on; nil on the last page.
    public var next: PageToken?

    /// A page of versions.
    public init(versions: [ItemVersion], next: PageToken?) {
        self.versions = versions
        self.next = next
    }
}
