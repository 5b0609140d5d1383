import Foundation
public import OortModel
public import OortTransport

/// Microsoft OneDrive, personal and for business, through Microsoft Graph.
///
/// Isolation: a value whose memory is guarded; every operation may run many times at once.
public struct OneDriveProvider: Provider {
    public let traits: ProviderTraits
    let api: OneDriveAPI
    let memory = OneDriveMemory()
    let partSize: Int64
    private let clock: any Clock<Duration>
    let now: @Sendable () -> Timestamp

    /// A provider for one account.
    ///
    /// `client` adds the account's token to authorized requests, and retries what may be retried.
    /// `partSize` is of the first parts of an upload, and is cut to the service's multiple and range;
    /// `clock` is what it waits by.
    public init(
        client: any HTTPClient,
        endpoints: OneDriveEndpoints = .live,
        partSize: Int64 = 32 * Self.partMultiple,
        clock: any Clock<Duration> = ContinuousClock(),
        now: @escaping @Sendable () -> Timestamp = { .now }
    ) {
        api = OneDriveAPI(client: client, endpoints: endpoints)
        let parts = max(partSize / Self.partMultiple, 1)
        self.partSize = min(parts * Self.partMultiple, Self.largestPart)
        self.clock = clock
        self.now = now
        traits = Self.traits(partSize: self.partSize)
    }

    /// Parts of an upload that are not multiples of this fail, and only at the very end.
    public static let partMultiple: Int64 = 327_680
    /// The largest part: 60 MiB are too much already.
    static let largestPart: Int64 = ((60 << 20) / partMultiple - 1) * partMultiple

    private static func traits(partSize: Int64) -> ProviderTraits {
        var traits = ProviderTraits(
            names: OneDriveNames.rules,
            hashAlgorithm: .quickXor,
            // A simple upload cannot carry the modified time; a session can, at one call more.
            largestSimpleUpload: 0,
            largestFile: 250 << 30,
            uploadPartMultiple: partMultiple,
            uploadPartSize: partSize
        )
        traits.batchSizes.createFolder = OneDriveBatch.size
        traits.batchSizes.upload = OneDriveBatch.size
        traits.batchSizes.move = OneDriveBatch.size
        traits.batchSizes.delete = OneDriveBatch.size
        traits.replaceIsAtomic = true
        traits.refusesTakenNames = true
        traits.setsModifiedTime = true
        traits.setsFolderModifiedTime = true
        traits.timeResolution = .seconds
        // Microsoft promises no time; seconds are usual.
        traits.lag = .seconds(120)
        traits.setsDescription = true
        traits.copiesFiles = true
        traits.feed = .poll
        traits.pollInterval = .seconds(45)
        // Batches, of which each is as many requests at a time as the transport lets through.
        traits.maximumWritesInFlight = 8
        return traits
    }

    // MARK: Account

    /// The account's own drive, asked once.
    ///
    /// Never the first of `/me/drives`: that may be a hidden library of albums.
    func drive() async throws(ProviderError) -> OneDriveMemory.Drive {
        if let drive = memory.drive { return drive }
        let answer = try await api.send(
            api.request("GET", "/me/drive", query: [("$select", "id,driveType,owner")]),
            for: DriveWire.self,
            about: .item
        )
        guard let id = answer.id else {
            throw ProviderError(.malformedAnswer, detail: "a drive without an id")
        }
        let root = try await api.send(
            api.request(
                "GET",
                "/drives/\(PercentEncoding.segment(OneDriveSpelling.drive(id)))/root",
                query: [("$select", "id")]
            ),
            for: DriveItemWire.self,
            about: .item
        )
        guard let rootID = root.id else {
            throw ProviderError(.malformedAnswer, detail: "a root without an id")
        }
        let drive = OneDriveMemory.Drive(
            id: OneDriveSpelling.drive(id),
            type: answer.driveType ?? "",
            rootItem: OneDriveSpelling.item(rootID),
            ownerID: answer.owner?.user?.id,
            ownerName: answer.owner?.user?.displayName ?? "",
            ownerEmail: answer.owner?.user?.email
        )
        memory.drive = drive
        return drive
    }

    public func identity() async throws(ProviderError) -> AccountIdentity {
        let drive = try await drive()
        var identity = AccountIdentity(
            id: drive.id,
            displayName: drive.ownerName,
            email: drive.ownerEmail,
            rootID: OneDriveItemID(drive.root).itemID
        )
        // Needs a permission (User.Read) that the person may not have given: the drive's owner is
        // enough then.
        do throws(ProviderError) {
            let user = try await api.send(
                api.request(
                    "GET",
                    "/me",
                    query: [("$select", "displayName,mail,userPrincipalName")]
                ),
                for: UserWire.self,
                about: .item
            )
            if let name = user.displayName, !name.isEmpty { identity.displayName = name }
            identity.email = user.mail ?? identity.email ?? user.userPrincipalName
        } catch  where error.kind == .noPermission || error.kind == .notFound {}
        return identity
    }

    public func quota() async throws(ProviderError) -> Quota {
        let drive = try await api.send(
            api.request("GET", "/me/drive", query: [("$select", "id,quota")]),
            for: DriveWire.self,
            about: .item
        )
        guard let quota = drive.quota, let used = quota.used else {
            throw ProviderError(.malformedAnswer, detail: "a drive without a quota")
        }
        return Quota(used: used, total: quota.total.flatMap { $0 > 0 ? $0 : nil })
    }

    /// The service has no way to revoke one application's tokens; forgetting them must do.
    public func signOut() async throws(ProviderError) {
        throw ProviderError(
            .unsupported,
            detail: "Microsoft offers no way to revoke a token; the person removes the application "
                + "at account.live.com/consent/Manage"
        )
    }

    public var undeletion: (any Undeletion)? { OneDriveUndeletion(provider: self) }
    public var versions: (any VersionHistory)? { OneDriveVersions(provider: self) }
    public var links: (any LinkSharing)? { OneDriveLinks(provider: self) }
    public var shares: (any ShareReporting)? { OneDriveShares(provider: self) }
    public var webPages: (any WebPages)? { OneDriveWebPages(provider: self) }

    // MARK: Listing

    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let id = try OneDriveItemID(folder.id)
        memory.learn(id)
        let request =
            if let page {
                try api.request(following: page.rawValue, headers: [OneDriveAPI.sharedFolders])
            } else {
                api.request(
                    "GET",
                    "\(id.target.path)/children",
                    query: [("$top", "1000"), ("$select", OneDriveAPI.itemFields)],
                    headers: [OneDriveAPI.sharedFolders]
                )
            }
        let answer = try await api.send(request, for: ItemPageWire.self, about: .item)
        // A file is answered like an empty folder.
        if page == nil, answer.value.isEmpty {
            guard !OneDriveItems.isFile(try await api.item(at: id.target)) else {
                throw ProviderError(.notAFolder, detail: "a file has no children")
            }
        }
        let items = answer.value.compactMap { wire in
            canonical(wire, drive: id.target.drive)
        }
        return ListingPage(items: items, next: answer.nextLink.map { PageToken($0) })
    }

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        let id = try OneDriveItemID(reference.id)
        memory.learn(id)
        return try known(try await api.item(at: id.entry), drive: id.entry.drive)
    }

    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        let id = try OneDriveItemID(folder.id)
        memory.learn(id)
        // What cannot be a name would address something else.
        guard OneDriveNames.refusal(of: name, kind: .file, depth: 1) == nil else { return [] }
        guard let wire = try await api.item(named: name, in: id.target) else { return [] }
        return [try known(wire, drive: id.target.drive)]
    }

    /// The canonical item of an answer, its download address remembered.
    func canonical(_ wire: DriveItemWire, drive: String) -> Item? {
        guard let item = OneDriveItems.item(wire, drive: drive, memory: memory) else { return nil }
        if item.kind == .file, wire.remoteItem == nil, let id = try? OneDriveItemID(item.id) {
            memory.learnDownload(wire, at: id.target, isShortcut: false)
        }
        return item
    }

    /// The canonical item of an answer that must be one.
    func known(_ wire: DriveItemWire, drive: String) throws(ProviderError) -> Item {
        guard let item = canonical(wire, drive: drive) else {
            throw ProviderError(.malformedAnswer, detail: "an item without id or name")
        }
        return item
    }

    // MARK: Content

    public func makeHasher() -> any ContentHasher { QuickXorHasher() }

    /// Waits; cancellation ends it.
    func pause(_ duration: Duration) async throws(ProviderError) {
        do {
            try await clock.sleep(for: duration, tolerance: nil)
        } catch {
            throw ProviderError(.cancelled, detail: "cancelled while waiting")
        }
    }
}

extension RequestBounds {
    /// Graph grants 3,000 requests in five minutes to a user of an organization, however many at a time,
    /// and says by 429 when there were too many.
    public static let oneDrive = RequestBounds(first: 16, most: 32)
}
