/// The strategy that speaks one service's protocol in canonical terms, for one account.
///
/// Isolation: every operation may be called from any task, several at once; none blocks a thread.
/// Cancellation of the calling task ends the request and throws `.cancelled`. A provider repeats
/// what may be repeated (see `OortTransport`) and never repeats a write whose outcome is unknown
/// unless the repetition can do no harm; it throws `.outcomeUnknown` instead, and the caller asks what was
/// done before it tries again.
public protocol Provider: Sendable {
    /// How the service differs from the others; constant.
    var traits: ProviderTraits { get }

    // MARK: Account

    /// Whose account it is.
    func identity() async throws(ProviderError) -> AccountIdentity

    /// How much room the account has.
    func quota() async throws(ProviderError) -> Quota

    /// Whether the service keeps this item when it is deleted, where it keeps others (`trash`); true where
    /// that is not known.
    ///
    /// Answered at once, without the service; may block for a read of the disk.
    func keepsDeleted(_ id: ItemID) -> Bool

    /// What tells this item's entry in the trash (`TrashEntry.mark`) from every other, once it is deleted as
    /// it is now; nil where its id does (`TrashEntry.item`), or nothing.
    ///
    /// Answered as `keepsDeleted` is.
    func trashMark(of id: ItemID) -> String?

    /// Revokes the token at the service, where the service can; `.unsupported` where it cannot.
    func signOut() async throws(ProviderError)

    /// What a person should know of what was done lately, in sentences without a stop; the newest first.
    ///
    /// Answered at once, without the service; forgotten with the process.
    var remarks: [String] { get }

    // MARK: Change feed

    /// The next page of the change feed after `cursor`; without one, the first page of an
    /// enumeration of the whole account in the fewest calls that the service allows, whose last
    /// cursor continues as the change feed without a gap.
    ///
    /// The account's root itself is never among the changes.
    ///
    /// - Throws: `.cursorLost` when the service no longer knows the cursor.
    func changes(since cursor: Cursor?) async throws(ProviderError) -> ChangePage

    /// Notes that all pages up to a cursor have been stored; pages may be asked for before that.
    ///
    /// A provider that looks through folders before it deletes them deletes nothing that was not reported
    /// and stored.
    func hasStored(upTo cursor: Cursor)

    /// Returns when the feed has news after `cursor`, or `limit` has passed.
    ///
    /// - Throws: `.cursorLost`.
    func waitForChanges(
        since cursor: Cursor,
        atMost limit: Duration
    ) async throws(ProviderError) -> FeedNews

    /// One page of a folder's children, without trashed ones.
    ///
    /// - Throws: `.notFound`, `.notAFolder`.
    func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage

    /// The item as it is now; asked by id where the service has ids.
    ///
    /// - Throws: `.notFound` only when the service positively says so, or has it in its trash.
    func item(_ reference: ItemReference) async throws(ProviderError) -> Item

    /// The items of exactly this name (as the service compares) in a folder, oldest first; empty
    /// when the service positively has none. Current, not from a search index.
    ///
    /// - Throws: `.parentNotFound`.
    func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item]

    // MARK: Reading

    /// The bytes of a revision; `range` in bytes from the start, cut at the end of the content
    /// (an empty stream when it begins there).
    ///
    /// - Throws: `.preconditionFailed` when the service can no longer give this revision;
    ///   `.contentBlocked`; `.notFound`.
    func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream

    /// A native document in the given form, whole.
    ///
    /// - Throws: `.unsupported` when the document has no such form, `.tooLarge`.
    func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream

    /// A small picture of the item, JPEG or PNG, its longer edge near `edge` pixels.
    ///
    /// - Throws: `.unsupported` when the service has none of this item.
    func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream

    // MARK: Writing

    /// Ids that the client may give to what it creates; empty where the service chooses.
    func reserveIDs(_ count: Int) async throws(ProviderError) -> [ItemID]

    /// Creates a folder.
    ///
    /// - Throws: `.nameTaken` where the service sees that the name is taken; with `reservedID`
    ///   given, an earlier try that succeeded is a success.
    func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item

    /// Sends content as a new item or a new revision, simply or by a resumable session; the answer
    /// is verified against `upload.hash`.
    ///
    /// The answer's hash is another only where the service is known to rewrite such content.
    ///
    /// - Throws: `.preconditionFailed`, `.nameTaken`, `.quotaExceeded`, `.sessionLost` (begin
    ///   anew), `.contentDamaged` with the item that has other bytes now.
    func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item

    /// Whether a file is what an upload without an answer created, wherever somebody moved it since.
    ///
    /// Asked where nothing is found at the upload's own place and, where the client chose the id, for a
    /// file with other content.
    ///
    /// For a file whose hash the service does not report, the provider may go by its other attributes: the
    /// engine then compares the bytes.
    ///
    /// - Returns: false, too, where the service keeps nothing that could prove it.
    func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool

    /// Moves and renames in one step; the id stays. Never replaces what is there.
    ///
    /// - Throws: `.nameTaken`, `.parentNotFound`, `.moveIntoItself`.
    func move(_ move: Move) async throws(ProviderError) -> Item

    /// Moves an item to the service's trash, a folder with all it holds.
    ///
    /// An item that is already gone is a success. Throws `.preconditionFailed` when `revision` is given and
    /// stale and, with `expectsNothing`, when a folder holds something, where the service can check.
    func delete(_ deletion: Deletion) async throws(ProviderError)

    /// Copies a file at the service; no bytes travel. The answer is complete: an asynchronous copy
    /// is awaited.
    func copy(_ copy: Copy) async throws(ProviderError) -> Item

    /// Sets attributes; the answer is the item afterwards.
    ///
    /// - Throws: `.unsupported` for what the traits say cannot be set.
    func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item

    // MARK: Many at once

    /// `createFolder` for many folders of which none lies in another, at most
    /// `traits.batchSizes.createFolder`; answers in the same order.
    func createFolders(_ folders: [NewFolder]) async -> [Result<Item, ProviderError>]

    /// `upload` for many small contents, each at most `traits.batchSizes.largestUpload` bytes, at
    /// most `traits.batchSizes.upload`; answers in the same order.
    func upload(_ uploads: [Upload]) async -> [Result<Item, ProviderError>]

    /// `move` for many items, at most `traits.batchSizes.move`; answers in the same order.
    func move(_ moves: [Move]) async -> [Result<Item, ProviderError>]

    /// `delete` for many items, at most `traits.batchSizes.delete`; answers in the same order.
    func delete(_ deletions: [Deletion]) async -> [Result<Void, ProviderError>]

    // MARK: Content

    /// A new hasher of `traits.hashAlgorithm`.
    func makeHasher() -> any ContentHasher

    // MARK: What some services have

    /// The service's trash; nil where it has none, or none that can be listed.
    var trash: (any Trash)? { get }

    /// Restores deleted items without a look at the trash; nil where that cannot be done.
    var undeletion: (any Undeletion)? { get }

    /// Earlier contents of files; nil where the service keeps none.
    var versions: (any VersionHistory)? { get }

    /// Links to share by; nil where the service has none.
    var links: (any LinkSharing)? { get }

    /// With whom single items are shared; nil where that is reported with each item, or not at all.
    var shares: (any ShareReporting)? { get }

    /// Pages that show items in a browser; nil where the service has none.
    var webPages: (any WebPages)? { get }

    /// The search inside files; nil where the service has none.
    var contentSearch: (any ContentSearching)? { get }
}

/// An observer that ignores everything.
public struct SilentUploadObserver: UploadObserver {
    /// An observer for uploads that nobody follows.
    public init() {}
    public func sessionChanged(_ session: UploadSession?) async {}
    public func sent(_ bytes: Int64) {}
}

/// The defaults of a service without any of these.
extension Provider {
    public func hasStored(upTo cursor: Cursor) {}

    public var remarks: [String] { [] }
    public var trash: (any Trash)? { nil }
    public var undeletion: (any Undeletion)? { nil }
    public var versions: (any VersionHistory)? { nil }
    public var links: (any LinkSharing)? { nil }
    public var shares: (any ShareReporting)? { nil }
    public var webPages: (any WebPages)? { nil }
    public var contentSearch: (any ContentSearching)? { nil }
}

/// The defaults of a service without batch calls: one after the other.
extension Provider {
    public func createFolders(_ folders: [NewFolder]) async -> [Result<Item, ProviderError>] {
        var results: [Result<Item, ProviderError>] = []
        for folder in folders {
            do throws(ProviderError) {
                results.append(.success(try await createFolder(folder)))
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    public func upload(_ uploads: [Upload]) async -> [Result<Item, ProviderError>] {
        var results: [Result<Item, ProviderError>] = []
        for entry in uploads {
            do throws(ProviderError) {
                results.append(
                    .success(try await upload(entry, observer: SilentUploadObserver()))
                )
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    public func move(_ moves: [Move]) async -> [Result<Item, ProviderError>] {
        var results: [Result<Item, ProviderError>] = []
        for entry in moves {
            do throws(ProviderError) {
                results.append(.success(try await move(entry)))
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    public func delete(_ deletions: [Deletion]) async -> [Result<Void, ProviderError>] {
        var results: [Result<Void, ProviderError>] = []
        for entry in deletions {
            do throws(ProviderError) {
                try await delete(entry)
                results.append(.success(()))
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    public func reserveIDs(_ count: Int) async throws(ProviderError) -> [ItemID] { [] }

    public func keepsDeleted(_ id: ItemID) -> Bool { true }

    public func trashMark(of id: ItemID) -> String? { nil }

    public func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool { false }
}
