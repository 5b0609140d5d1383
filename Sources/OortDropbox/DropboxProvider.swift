public import OortModel
public import OortTransport

/// Dropbox for one account: canonical operations in terms of API v2.
///
/// Dropbox addresses by path and by id; here an id is used wherever there is one, so that a rename by
/// another client in between does no harm. The facts are in `docs/providers/dropbox.md`.
public final class DropboxProvider: Provider {
    public let traits: ProviderTraits

    let api: DropboxAPI
    let clock: any Clock<Duration>

    /// The root has no id of its own at Dropbox.
    static let rootID = ItemID("oort:root")

    /// A provider that sends through `client`, which adds the account's token.
    ///
    /// `simpleUpload` and `partSize` are cut to a multiple of 4 MiB, and to what one request takes;
    /// `clock` is what it waits by.
    public init(
        client: any HTTPClient,
        endpoints: DropboxEndpoints = .live,
        simpleUpload: Int64 = 32 << 20,
        partSize: Int64 = 4 << 20,
        clock: any Clock<Duration> = ContinuousClock()
    ) {
        api = DropboxAPI(client: client, endpoints: endpoints)
        self.clock = clock
        traits = Self.traits(simpleUpload: simpleUpload, partSize: partSize)
    }

    private static func traits(simpleUpload: Int64, partSize: Int64) -> ProviderTraits {
        let block = Int64(DropboxContentHasher.blockSize)
        let largestRequest: Int64 = 144 << 20
        var traits = ProviderTraits(
            names: .dropbox,
            hashAlgorithm: .dropboxContentHash,
            largestSimpleUpload: min(max(simpleUpload / block, 1) * block, largestRequest),
            largestFile: (1 << 41) - (1 << 22),
            uploadPartMultiple: block,
            uploadPartSize: min(max(partSize / block, 1) * block, largestRequest)
        )
        traits.batchSizes.createFolder = 1000
        traits.batchSizes.upload = 1000
        traits.batchSizes.largestUpload = 4 << 20
        traits.batchSizes.move = 1000
        traits.batchSizes.delete = 1000
        traits.replaceIsAtomic = true
        traits.copiesFiles = true
        traits.caseRenameNeedsDetour = true
        traits.moveChangesRevision = true
        traits.makesMissingFolders = true
        traits.feed = .longPoll
        // While one commits, the bytes of others are on their way.
        traits.maximumWritesInFlight = 3
        return traits
    }

    // MARK: Account

    public func identity() async throws(ProviderError) -> AccountIdentity {
        let account: DropboxWire.Account = try await api.call("users/get_current_account")
        api.pathRoot.learn(account.root_info)
        return AccountIdentity(
            id: account.account_id,
            displayName: account.name.display_name,
            email: account.email,
            rootID: Self.rootID
        )
    }

    public func quota() async throws(ProviderError) -> Quota {
        let usage: DropboxWire.SpaceUsage = try await api.call("users/get_space_usage")
        return Quota(
            used: usage.allocation.used ?? usage.used,
            total: usage.allocation.allocated.flatMap { $0 > 0 ? $0 : nil }
        )
    }

    public func signOut() async throws(ProviderError) {
        let _: DropboxWire.Nothing = try await api.call("auth/token/revoke")
    }

    // MARK: Addresses

    /// How an existing item is named in a request.
    func address(_ item: ItemReference) -> String {
        item.id == Self.rootID ? "" : item.id.rawValue
    }

    /// How a name in a folder is named in a request.
    func address(of name: String, in folder: ItemReference) -> String {
        address(folder) + "/" + name
    }

    /// The item of an answer.
    func item(_ metadata: DropboxWire.Metadata) throws(ProviderError) -> Item {
        guard let item = Item(metadata) else {
            throw ProviderError(.malformedAnswer, detail: "metadata without id or path")
        }
        return item
    }

    // MARK: Looking

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        guard reference.id != Self.rootID else { return .dropboxRoot }
        let metadata: DropboxWire.Metadata = try await api.call(
            "files/get_metadata",
            DropboxWire.PathArgument(path: address(reference))
        )
        guard metadata.tag != "deleted" else {
            throw ProviderError(.notFound, detail: "deleted")
        }
        return try item(metadata)
    }

    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        do throws(ProviderError) {
            let metadata: DropboxWire.Metadata = try await api.call(
                "files/get_metadata",
                DropboxWire.PathArgument(path: address(of: name, in: folder))
            )
            return metadata.tag == "deleted" ? [] : [try item(metadata)]
        } catch {
            guard error.kind == .notFound else { throw error }
            try await requireFolder(folder)
            return []
        }
    }

    /// Throws `.parentNotFound` or `.notAFolder` when the folder is not there to take anything.
    func requireFolder(_ folder: ItemReference) async throws(ProviderError) {
        let found: Item
        do throws(ProviderError) {
            found = try await item(folder)
        } catch {
            guard error.kind == .notFound else { throw error }
            throw ProviderError(.parentNotFound, detail: error.detail)
        }
        guard found.kind == .folder else {
            throw ProviderError(.notAFolder, detail: "the parent is a file")
        }
    }

    /// The revisions of a path stay known when its file is moved away; they give the file's id.
    public func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool {
        let path = upload.folder.path.appending(upload.name).description
        do throws(ProviderError) {
            let revisions: DropboxWire.Revisions = try await api.call(
                "files/list_revisions",
                DropboxWire.ListRevisions(path: path)
            )
            return revisions.entries.contains {
                $0.id == item.id.rawValue && $0.content_hash == upload.hash.value
            }
        } catch {
            guard error.kind == .notFound || error.kind == .notAFile else { throw error }
            return false
        }
    }

    public func makeHasher() -> any ContentHasher { DropboxContentHasher() }

    // MARK: What else there is

    public var trash: (any Trash)? { DropboxTrash(provider: self) }
    public var undeletion: (any Undeletion)? { DropboxTrash(provider: self) }
    public var versions: (any VersionHistory)? { DropboxVersions(provider: self) }
    public var links: (any LinkSharing)? { DropboxLinks(provider: self) }
    public var webPages: (any WebPages)? { DropboxWebPages() }
}

extension RequestBounds {
    /// What Dropbox bears is written nowhere; its clients are known to read and to fill sessions by some
    /// requests at a time.
    public static let dropbox = RequestBounds(first: 16, most: 24)
}
