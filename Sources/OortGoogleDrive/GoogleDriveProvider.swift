public import OortModel
public import OortTransport
import Synchronization

/// Google Drive for one account: canonical operations in terms of Drive v3.
///
/// Drive addresses by id only, allows any name and any number of items of one name, and has neither
/// a long poll nor (in v3) preconditions; the facts are in `docs/providers/googledrive.md`.
public final class GoogleDriveProvider: Provider {
    public let traits: ProviderTraits

    let api: GoogleDriveAPI
    let clock: any Clock<Duration>
    private let revoke: @Sendable () async throws(ProviderError) -> Void
    private let known = Mutex(Known())

    /// What was asked once and stays true.
    private struct Known {
        var rootID: ItemID?
        /// Ids from `generateIds` that nothing has been created with yet; they keep for good.
        var unusedIDs: [ItemID] = []
    }

    /// A provider that sends through `client`, which adds the account's token.
    ///
    /// `partSize` is of the parts of an upload where one request cannot carry all of it, and is cut to
    /// a multiple of what an upload session takes; `clock` is what it waits by.
    /// `revoke` takes the token back at the service, which only the keeper of the token can do.
    public init(
        client: any HTTPClient,
        endpoints: GoogleDriveEndpoints = .live,
        partSize: Int64 = 16 << 20,
        clock: any Clock<Duration> = ContinuousClock(),
        revoke: @escaping @Sendable () async throws(ProviderError) -> Void = {
            () throws(ProviderError) in
            throw ProviderError(.unsupported, detail: "no token is kept here")
        }
    ) {
        api = GoogleDriveAPI(client: client, endpoints: endpoints)
        self.clock = clock
        self.revoke = revoke
        traits = Self.traits(partSize: max(partSize / Self.partMultiple, 1) * Self.partMultiple)
    }

    public var trash: (any Trash)? { GoogleDriveTrash(provider: self) }
    public var versions: (any VersionHistory)? { GoogleDriveVersions(provider: self) }
    public var links: (any LinkSharing)? { GoogleDriveLinks(provider: self) }
    public var shares: (any ShareReporting)? { GoogleDriveShares(provider: self) }
    public var webPages: (any WebPages)? { GoogleDriveWebPages(provider: self) }

    private static let partMultiple: Int64 = 256 << 10

    private static func traits(partSize: Int64) -> ProviderTraits {
        let names = NameRules(
            comparison: .exact,
            allowsDuplicates: true,
            allowsSlash: true
        ) { name, _, depth in
            if name.isEmpty { return .refused(reason: "Drive calls an empty name \"Untitled\"") }
            // 100 levels of folders, and an undocumented length.
            return name.utf8.count > 32767 || depth >= 100 ? .tooLong : nil
        }
        var traits = ProviderTraits(
            names: names,
            hashAlgorithm: .md5,
            largestSimpleUpload: 5_000_000,
            largestFile: 5 << 40,
            uploadPartMultiple: partMultiple,
            uploadPartSize: partSize
        )
        traits.batchSizes.createFolder = 100
        traits.batchSizes.move = 100
        traits.batchSizes.delete = 100
        traits.replaceIsAtomic = true
        traits.refusesTakenNames = false
        traits.takesClientIDs = true
        traits.setsModifiedTime = true
        traits.setsFolderModifiedTime = true
        traits.timeResolution = .milliseconds
        // Google promises no time; seconds are usual.
        traits.lag = .seconds(120)
        traits.setsDescription = true
        traits.copiesFiles = true
        traits.feed = .poll
        traits.pollInterval = .seconds(10)
        // Contents do not go into a batch.
        traits.maximumWritesInFlight = 32
        // A download costs 200 units whatever its length.
        traits.largestRangeRequest = 32 << 20
        return traits
    }

    // MARK: Account

    public func identity() async throws(ProviderError) -> AccountIdentity {
        let about: DriveAbout = try await api.get(
            "/drive/v3/about",
            [("fields", "user(displayName,emailAddress,permissionId)")]
        )
        guard let user = about.user, let id = user.permissionId ?? user.emailAddress else {
            throw ProviderError(.malformedAnswer, detail: "an account without a user")
        }
        return AccountIdentity(
            id: id,
            displayName: user.displayName ?? user.emailAddress ?? id,
            email: user.emailAddress,
            rootID: try await rootID()
        )
    }

    public func quota() async throws(ProviderError) -> Quota {
        let about: DriveAbout = try await api.get(
            "/drive/v3/about",
            [("fields", "storageQuota(limit,usage)")]
        )
        guard let used = about.storageQuota?.usage.flatMap({ Int64($0) }) else {
            throw ProviderError(.malformedAnswer, detail: "a quota without usage")
        }
        return Quota(used: used, total: about.storageQuota?.limit.flatMap { Int64($0) })
    }

    public func signOut() async throws(ProviderError) { try await revoke() }

    /// The real id behind the alias `root`.
    func rootID() async throws(ProviderError) -> ItemID {
        if let id = known.withLock({ $0.rootID }) { return id }
        struct OnlyID: Decodable { var id: String }
        let root: OnlyID = try await api.get(
            api.file(ItemID("root")),
            [("supportsAllDrives", "true"), ("fields", "id")]
        )
        let id = ItemID(root.id)
        known.withLock { $0.rootID = id }
        return id
    }

    public func reserveIDs(_ count: Int) async throws(ProviderError) -> [ItemID] {
        guard count > 0 else { return [] }
        let kept = known.withLock { known -> [ItemID] in
            let taken = Array(known.unusedIDs.suffix(count))
            known.unusedIDs.removeLast(taken.count)
            return taken
        }
        guard kept.count < count else { return kept }
        var ids = kept
        while ids.count < count {
            let answer: DriveGeneratedIDs = try await api.get(
                "/drive/v3/files/generateIds",
                [("count", "1000"), ("fields", "ids")]
            )
            guard !answer.ids.isEmpty, !answer.ids.contains("") else {
                throw ProviderError(.malformedAnswer, detail: "no ids were generated")
            }
            ids += answer.ids.map { ItemID($0) }
        }
        let spare = ids[count...]
        known.withLock { $0.unusedIDs += spare }
        return Array(ids[..<count])
    }

    /// The caller's id, or one of ours: with an id, a create can be repeated without harm.
    func idForCreation(_ reserved: ItemID?) async throws(ProviderError) -> ItemID {
        if let reserved { return reserved }
        guard let id = try await reserveIDs(1).first else {
            throw ProviderError(.malformedAnswer, detail: "no ids were generated")
        }
        return id
    }

    /// Each content that the file ever had is a revision, of which Drive keeps a hundred.
    public func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool {
        struct Revisions: Decodable {
            struct Revision: Decodable { var md5Checksum: String? }
            var revisions: [Revision]?
        }
        let list: Revisions = try await api.get(
            api.file(item.id, "/revisions"),
            [("fields", "revisions(md5Checksum)"), ("pageSize", "1000")]
        )
        return list.revisions?.contains { $0.md5Checksum == upload.hash.value } ?? false
    }

    // MARK: Content

    public func makeHasher() -> any ContentHasher { MD5Hasher() }
}

extension RequestBounds {
    /// Drive grants 6,500 changes a minute, and says so when its servers want fewer.
    public static let googleDrive = RequestBounds(first: 16, most: 32)
}
