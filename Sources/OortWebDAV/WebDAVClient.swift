import Foundation
public import OortModel
public import OortTransport
import Synchronization

/// One account at a server that speaks WebDAV: a plain one, Nextcloud, ownCloud or OpenCloud.
///
/// Isolation: a value whose memory is guarded; every operation may run many times at once.
public struct WebDAVClient: PlaceClient {
    public let traits: PlaceTraits
    let api: WebDAVAPI
    let abilities: WebDAVAbilities
    let entries: WebDAVEntries
    let memory: WebDAVMemory
    let partSize: Int64
    private let clock: any Clock<Duration>
    private let push: CloudPush?

    var dialect: WebDAVDialect { api.dialect }
    var address: WebDAVAddress { api.address }

    /// A client for one account, with what `WebDAVDiscovery` found out at the sign-in.
    ///
    /// `http` adds the proof of the account to authorized requests (`BasicSigner`) and retries what
    /// may be retried by `AnswerRules.webDAV`. `partSize` is of the parts of a large upload to a cloud;
    /// `secondLook` is how long a refused password is not tried again, and `folderYouth` how late an
    /// Infinite Scale's folders show changes below them. `push` gives the server's notices of changes, and
    /// ends with the client.
    public init(
        http: any HTTPClient,
        address: WebDAVAddress,
        dialect: WebDAVDialect,
        abilities: WebDAVAbilities,
        partSize: Int64 = Self.partSize,
        secondLook: Duration = .seconds(60),
        folderYouth: Duration = .seconds(600),
        clock: any Clock<Duration> = ContinuousClock(),
        push: CloudPush? = nil
    ) {
        api = WebDAVAPI(
            client: http,
            address: address,
            dialect: dialect,
            secondLook: secondLook
        )
        self.abilities = abilities
        self.clock = clock
        self.push = push
        self.partSize = max(min(partSize, abilities.cloud?.largestPart ?? .max), 1)
        entries = WebDAVEntries(
            address: address,
            dialect: dialect,
            abilities: abilities,
            folderYouth: folderYouth
        )
        memory = WebDAVMemory(
            wantsDestinationPath: abilities.wantsDestinationPath,
            fingerprint: abilities.cloud?.fingerprint
        )
        traits = Self.traits(
            dialect,
            abilities,
            partSize: self.partSize,
            hasTop: address.folder.isEmpty
        )
    }

    /// The size of the parts of a large upload to a cloud.
    public static let partSize: Int64 = 10 << 20

    /// The largest content that goes up in one request: at an Infinite Scale as large as several parts,
    /// since only content that is sent whole is guarded to its end.
    var largestSimpleUpload: Int64 { traits.provider.largestSimpleUpload }

    private static func wholeParts(_ dialect: WebDAVDialect) -> Int64 {
        dialect == .infinitescale ? 6 : 1
    }

    private static func traits(
        _ dialect: WebDAVDialect,
        _ abilities: WebDAVAbilities,
        partSize: Int64,
        hasTop: Bool
    ) -> PlaceTraits {
        let isCloud = dialect.isCloud
        var provider = ProviderTraits(
            names: WebDAVNames.rules(dialect, abilities, hasTop: hasTop),
            hashAlgorithm: isCloud ? .sha1 : .sha256,
            largestSimpleUpload: isCloud
                ? partSize.multipliedSaturating(by: wholeParts(dialect)) : .max,
            largestFile: .max,
            uploadPartMultiple: 1,
            uploadPartSize: partSize
        )
        provider.tellsHashes = isCloud
        provider.replaceIsAtomic = isCloud || abilities.sendsDirectly
        provider.refusesTakenNames = true
        provider.keepsModifiedTime =
            isCloud || abilities.takesTimeWithUpload || abilities.takesTimeLater
        provider.setsModifiedTime =
            isCloud && dialect != .infinitescale || abilities.takesTimeLater
        provider.timeResolution = .seconds
        provider.moveChangesRevision = !isCloud && abilities.keepsMovedRevisions == false
        provider.copiesFiles = isCloud || abilities.copies
        provider.caseRenameNeedsDetour = !isCloud && abilities.ignoresCase
        let pollSeconds = isCloud ? min(max(abilities.cloud?.pollSeconds ?? 30, 30), 600) : 60
        provider.pollInterval = .seconds(pollSeconds)
        // A cloud writes into its database with each file, and a small one stalls above three writers; a
        // plain server gets as many requests as `RequestBounds.webDAV` has grown to.
        provider.maximumWritesInFlight = isCloud ? 3 : 8
        var traits = PlaceTraits(
            provider: provider,
            scan: isCloud ? .subtreeStamps : .listings,
            // An Infinite Scale does not pass a change on to the folders above when it cannot lock one in
            // time.
            listingFreshness: dialect == .infinitescale ? .seconds(86_400) : nil,
            listingsInFlight: isCloud ? 6 : 8,
            deletesToTrash: isCloud && abilities.cloud?.keepsDeleted != false
        )
        // Where a client chooses the time of which the tag is made, or there is no tag, the same size and
        // second make the same revision.
        traits.hasRevisionsOfTimes =
            !isCloud
            && (abilities.tags != .fine || abilities.takesTimeWithUpload
                || abilities.takesTimeLater)
        return traits
    }

    // MARK: What a cloud has

    public var trash: (any Trash)? {
        switch dialect {
        case .nextcloud: traits.deletesToTrash ? NextcloudTrash(client: self) : nil
        case .infinitescale: InfiniteScaleTrash(client: self)
        case .owncloud10, .plain: nil
        }
    }

    public func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String? {
        // An Infinite Scale's trash says nothing of the ids (OpenCloud gives the entries keys of their own).
        dialect == .nextcloud ? entry.key.flatMap { CloudItem.number(ofKey: $0) } : nil
    }

    public var versions: (any VersionHistory)? {
        switch dialect {
        case .nextcloud: NextcloudVersions(client: self)
        case .infinitescale: InfiniteScaleVersions(client: self)
        case .owncloud10, .plain: nil
        }
    }
    public var links: (any LinkSharing)? {
        switch dialect {
        case .nextcloud: NextcloudLinks(client: self)
        case .infinitescale: InfiniteScaleLinks(client: self)
        case .owncloud10, .plain: nil
        }
    }
    public var webPages: (any WebPages)? {
        [.nextcloud, .infinitescale].contains(dialect) ? CloudWebPages(client: self) : nil
    }

    public func close() async { push?.close() }

    // MARK: News

    public func waitForNews(atMost limit: Duration) async throws(ProviderError) {
        guard let push else { return try await pause(limit) }
        try await push.wait(atMost: limit) { [api] () async throws(ProviderError) in
            try await CloudPrograms(api: api).pushAddress()
        }
    }

    // MARK: Account

    public func owner() async throws(ProviderError) -> PlaceOwner {
        // At a sign-in, for which a person waits, a refused password ends it at once; a mount that begins looks twice.
        let isSignIn = RequestPriority.current == .interactive
        if dialect.isCloud {
            let owner = try await cloudOwner(isSignIn: isSignIn)
            // Before anything is sent, this shows whether the server's data were restored.
            if dialect == .nextcloud {
                _ = try await ownEntry(of: .root, depth: 0, isFolder: true)
            }
            return owner
        }
        _ = try await ownEntry(of: .root, depth: 0, isFolder: true, isSignIn: isSignIn)
        return Self.owner(of: address)
    }

    static func owner(of address: WebDAVAddress) -> PlaceOwner {
        PlaceOwner(
            id: address.text + "|" + (address.user ?? ""),
            displayName: address.user ?? address.text
        )
    }

    public func quota() async throws(ProviderError) -> Quota {
        guard dialect.isCloud || abilities.saysQuota else {
            throw ProviderError(
                .unsupported,
                detail: "the server does not say how much room there is"
            )
        }
        let (responses, _) = try await api.look(
            at: address.url(.root, isFolder: true),
            depth: 0,
            properties: [.dav("quota-used-bytes"), .dav("quota-available-bytes")]
        )
        guard let own = entries.sorted(responses, of: .root).own,
            let used = own.text(.dav("quota-used-bytes")).flatMap({ Int64($0) })
        else {
            throw ProviderError(
                .unsupported,
                detail: "the server does not say how much room there is"
            )
        }
        let available = own.text(.dav("quota-available-bytes")).flatMap { Int64($0) }
        // Negative figures stand for: not computed, unknown, without limit.
        return Quota(
            used: used,
            total: available.flatMap { $0 >= 0 ? max(used, 0).addingSaturating($0) : nil }
        )
    }

    public func signOut() async throws(ProviderError) {
        guard dialect.isCloud else {
            throw ProviderError(.unsupported, detail: "the server keeps no sign-ins")
        }
        guard dialect != .infinitescale else {
            throw ProviderError(
                .unsupported,
                detail: "an app token is taken back on the server's web page"
            )
        }
        try await removeAppPassword()
    }

    // MARK: Looking

    /// The response for one place, which positively exists.
    func ownEntry(
        of path: RemotePath,
        depth: Int,
        isFolder: Bool,
        isSignIn: Bool = false
    ) async throws(ProviderError) -> (DAVResponse, HTTPResponseHead, WebDAVEntries.Sorted) {
        let saysFingerprint = path == .root && dialect == .nextcloud
        let saysPeople = path != .root || depth > 0
        let (responses, head) = try await api.look(
            at: address.url(path, isFolder: isFolder || path == .root),
            depth: depth,
            properties: entries.listingProperties
                + (saysPeople ? entries.propertiesOfPeople : [])
                + (saysFingerprint ? [WebDAVEntries.fingerprint] : []),
            isSignIn: isSignIn
        )
        let sorted = entries.sorted(responses, of: path)
        guard let own = sorted.own else {
            guard !entries.isOfAnotherName(responses, than: path) else {
                throw ProviderError(
                    .nameRefused,
                    detail: "the server takes the name for another one"
                )
            }
            throw ProviderError(.malformedAnswer, detail: "the answer is about something else")
        }
        if saysFingerprint { try await checkFingerprint(own) }
        return (own, head, sorted)
    }

    /// Refuses to go on if the server's data were restored from a backup since the sign-in: items that they
    /// lack, or have older, are no news before a person has seen to it and signs in again.
    private func checkFingerprint(_ own: DAVResponse) async throws(ProviderError) {
        var own = own
        if !address.folder.isEmpty {
            // Only the root of all files has it.
            var all = address
            all.folder = []
            let (responses, _) = try await api.look(
                at: all.text,
                depth: 0,
                properties: [WebDAVEntries.fingerprint]
            )
            guard let root = responses.first else { return }
            own = root
        }
        guard memory.isKnown(own.text(WebDAVEntries.fingerprint) ?? "") else {
            throw ProviderError(
                .signedOut,
                detail:
                    "the server's data were restored from a backup, which may lack what is here "
                    + "or have it older; copy what you need out of the mount, and sign in again to "
                    + "take over what the server has now"
            )
        }
    }

    public func entry(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try await entry(at: path, .file)
    }

    /// The entry at a place; the expected kind spares a redirect to a folder's address.
    func entry(
        at path: RemotePath,
        _ kind: PlaceEntry.Kind
    ) async throws(ProviderError) -> PlaceEntry {
        do throws(ProviderError) {
            return try await unconfirmedEntry(at: path, kind)
        } catch  where error.kind == .notFound {
            try await confirmGone(path)
            throw error
        }
    }

    /// The entry at a place; `.notFound` may mean that a storage is away.
    func unconfirmedEntry(
        at path: RemotePath,
        _ kind: PlaceEntry.Kind = .file
    ) async throws(ProviderError) -> PlaceEntry {
        let (own, head, _) = try await ownEntry(of: path, depth: 0, isFolder: kind == .folder)
        if own.status == 404 {
            throw ProviderError(.notFound, detail: "the server has nothing there")
        }
        if own.refused.values.contains(425) {
            throw ProviderError(.locked, detail: "the server still looks over what came there")
        }
        guard let entry = entries.entry(own, name: path.name ?? "", head: head) else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the server cannot say at present what lies there"
            )
        }
        return entry
    }

    /// Returns if an item is positively gone: the nearest existing folder above is sound.
    ///
    /// A 404 alone proves nothing: a storage that is not mounted gives one, and so does a half-configured
    /// server.
    private func confirmGone(_ path: RemotePath) async throws(ProviderError) {
        var folder = path
        while let parent = folder.parent {
            folder = parent
            do throws(ProviderError) {
                let entry = try await unconfirmedEntry(at: folder, .folder)
                if lacksTime(entry) { _ = try await listing(of: folder) }
            } catch  where error.kind == .notFound { continue }
            if folder == path.parent { try await wantUnlisted(path, in: folder) }
            return
        }
        throw ProviderError(
            .outcomeUnknown(retryAfter: nil),
            detail: "the folder where the account begins is not there"
        )
    }

    /// - Throws: `.noPermission` where a folder lists a name under which the server finds nothing: some do
    ///   not read a name beyond ASCII as they write it.
    private func wantUnlisted(
        _ path: RemotePath,
        in folder: RemotePath
    ) async throws(ProviderError) {
        guard dialect == .plain, let name = path.name, !name.utf8.allSatisfy({ $0 < 0x80 })
        else { return }
        let (_, _, sorted) = try await ownEntry(of: folder, depth: 1, isFolder: true)
        guard sorted.children.contains(where: { $0.name.isSameText(as: name) }) else { return }
        throw ProviderError(
            .noPermission,
            detail: "the server lists the name, and does not find it when it is asked for"
        )
    }

    /// Whether there is positively no folder at a place.
    func isMissing(_ folder: RemotePath) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            return try await entry(at: folder, .folder).kind != .folder
        } catch  where error.kind == .notFound {
            return true
        }
    }

    public func listing(of folder: RemotePath) async throws(ProviderError) -> PlaceListing {
        let own: DAVResponse
        let head: HTTPResponseHead
        let sorted: WebDAVEntries.Sorted
        do throws(ProviderError) {
            (own, head, sorted) = try await ownEntry(of: folder, depth: 1, isFolder: true)
        } catch {
            // It may be a file, whose address must not end in a slash at some servers.
            switch error.kind {
            case .notFound where folder == .root:
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "the folder where the account begins is not there"
                )
            case .notFound, .unsupported, .noPermission, .badRequest, .malformedAnswer:
                guard folder != .root else { throw error }
                guard try await entry(at: folder).kind == .folder else {
                    throw ProviderError(.notAFolder, detail: "a file has no children")
                }
                // It exists, and holds something that the server cannot find (a link that leads nowhere).
                throw error.kind == .notFound ? error.asKind(.noPermission) : error
            default: throw error
            }
        }
        guard own.isSound, let isFolder = WebDAVEntries.isFolder(own) else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the server cannot say at present what the folder holds"
            )
        }
        guard isFolder else {
            throw ProviderError(.notAFolder, detail: "a file has no children")
        }
        guard let entry = entries.entry(own, name: "", head: head),
            !lacksTime(entry) || !sorted.children.isEmpty
        else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: .seconds(120)),
                detail: "the storage behind the folder is down"
            )
        }
        // Only the official programs can read its contents, and writing there would damage them.
        guard !dialect.isCloud || !CloudItem(own).isEncrypted else {
            throw ProviderError(.noPermission, detail: "the folder is end-to-end encrypted")
        }
        return listing(sorted, entry: entry, head: head, of: folder)
    }

    /// Whether a folder has no time at a server that gives all folders one: a server that finds nothing on
    /// its disk may answer with such a folder, which is empty.
    private func lacksTime(_ folder: PlaceEntry) -> Bool {
        abilities.datesFolders == true && folder.modifiedTime == nil
    }

    private func listing(
        _ sorted: WebDAVEntries.Sorted,
        entry: PlaceEntry,
        head: HTTPResponseHead,
        of folder: RemotePath
    ) -> PlaceListing {
        var listing = PlaceListing(entries: [], stamp: entry.stamp)
        listing.isYoung = entries.isYoung(entry, head: head)
        listing.holdsUnnamed = sorted.holdsUnnamed
        for (name, response) in sorted.children {
            if WebDAVNames.isTemporary(name) {
                memory.noteLeftover(folder.appending(name), response, now: head.date)
                continue
            }
            if let child = entries.entry(response, name: name, head: head) {
                listing.entries.append(child)
            } else {
                listing.unknown.append(name)
                // The entry appears once the server has checked it.
                if response.refused.values.contains(425) { listing.isYoung = true }
            }
        }
        return listing
    }

    public func stamps(
        of folders: [RemotePath]
    ) async -> [Result<FolderStamp?, ProviderError>] {
        guard dialect.isCloud else { return folders.map { _ in .success(nil) } }
        return await withTaskGroup(
            of: (Int, Result<FolderStamp?, ProviderError>).self
        ) { group in
            var results = [Result<FolderStamp?, ProviderError>](
                repeating: .success(nil),
                count: folders.count
            )
            var waiting = folders.enumerated().makeIterator()
            func addNext() {
                guard let (index, folder) = waiting.next() else { return }
                group.addTask { (index, await stamp(of: folder)) }
            }
            for _ in 0..<traits.listingsInFlight { addNext() }
            while let (index, result) = await group.next() {
                results[index] = result
                addNext()
            }
            return results
        }
    }

    private func stamp(of folder: RemotePath) async -> Result<FolderStamp?, ProviderError> {
        do throws(ProviderError) {
            let entry = try await entry(at: folder, .folder)
            guard entry.kind == .folder else {
                return .failure(ProviderError(.notAFolder, detail: "a file has no stamp"))
            }
            return .success(entry.stamp)
        } catch {
            return .failure(error)
        }
    }

    // MARK: Content

    public func makeHasher() -> any ContentHasher {
        dialect.isCloud ? SHA1Hasher() : SHA256Hasher()
    }

    /// Waits; cancellation ends it.
    func pause(_ duration: Duration) async throws(ProviderError) {
        do {
            try await clock.sleep(for: duration, tolerance: nil)
        } catch {
            throw ProviderError(.cancelled, detail: "cancelled while waiting")
        }
    }
}

/// What a client learns while it lives.
final class WebDAVMemory: Sendable {
    private struct State {
        var wantsDestinationPath: Bool
        var leftovers: [RemotePath] = []
        var fingerprint: String?
    }

    private let state: Mutex<State>

    init(wantsDestinationPath: Bool, fingerprint: String?) {
        state = Mutex(
            State(wantsDestinationPath: wantsDestinationPath, fingerprint: fingerprint)
        )
    }

    /// The server's fingerprint at the sign-in, or the first one that was seen; nil before.
    var fingerprint: String? { state.withLock(\.fingerprint) }

    /// Whether a fingerprint is the known one; true where a server gives none.
    func isKnown(_ fingerprint: String) -> Bool {
        state.withLock { state in
            let known = state.fingerprint ?? fingerprint
            state.fingerprint = known
            return fingerprint.isEmpty || fingerprint.isSameText(as: known)
        }
    }

    /// Whether the server takes a destination as a path only.
    var wantsDestinationPath: Bool {
        get { state.withLock { $0.wantsDestinationPath } }
        set { state.withLock { $0.wantsDestinationPath = newValue } }
    }

    /// Notes content that was on its way and never arrived, a week after its beginning: by its name, and by
    /// the server's time, which alone may be the one that the file is to have.
    func noteLeftover(_ path: RemotePath, _ response: DAVResponse, now: Timestamp?) {
        guard let now, let time = response.text(.dav("getlastmodified")),
            let begun = HTTPDate.parse(time),
            Self.isOld(begun.seconds, now.seconds),
            Self.isOld(WebDAVNames.begun(path.name ?? "") ?? begun.seconds, Timestamp.now.seconds)
        else { return }
        state.withLock { state in
            if state.leftovers.count < 64, !state.leftovers.contains(path) {
                state.leftovers.append(path)
            }
        }
    }

    private static func isOld(_ then: Int64, _ now: Int64) -> Bool {
        let (age, overflows) = now.subtractingReportingOverflow(then)
        return !overflows && age > 7 * 86_400
    }

    /// Takes one of the noted files; nil when there is none.
    func takeLeftover() -> RemotePath? { state.withLock { $0.leftovers.popLast() } }
}

extension RequestBounds {
    /// Small servers stall above a few requests at a time.
    public static let webDAV = RequestBounds(first: 4, most: 8)
}
