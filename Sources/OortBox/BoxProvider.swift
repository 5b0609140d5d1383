public import OortModel
public import OortTransport
import Synchronization

/// Box for one account: canonical operations in terms of its API 2.0.
///
/// Box addresses by id, lists one folder at a time, and reports changes by a stream of events that come at
/// least once and in no order; the facts are in `docs/providers/box.md`.
public final class BoxProvider: Provider {
    public let traits: ProviderTraits

    let api: BoxAPI
    let clock: any Clock<Duration>
    /// The time since the provider was made.
    let elapsed: @Sendable () -> Duration
    /// Box takes 240 uploads a minute.
    let uploadPace: BoxPace
    /// Box answers 1,000 calls a minute, of which a walk over all folders takes six tenths.
    let walkPace: BoxPace
    let memory = BoxMemory()
    /// The folder that is the account's root: Box's own, or the one where a person wants it to begin.
    let top: BoxID
    private let revoke: @Sendable () async throws(ProviderError) -> Void

    /// A provider that sends through `client`, which adds the account's token.
    ///
    /// Contents above `simpleUpload` bytes, at most 50,000,000, go in upload sessions, whose parts are
    /// as long as Box says; `top` is the folder where the account begins, nil for all of it; `clock` is what
    /// it waits by. `revoke` takes the token back at the service,
    /// which only the keeper of the token can do.
    public init(
        client: any HTTPClient,
        endpoints: BoxEndpoints = .live,
        simpleUpload: Int64 = 20_000_000,
        top: AccountFolder? = nil,
        clock: some Clock<Duration> = ContinuousClock(),
        revoke: @escaping @Sendable () async throws(ProviderError) -> Void = {
            () throws(ProviderError) in
            throw ProviderError(.unsupported, detail: "no token is kept here")
        }
    ) {
        self.top =
            top.map { BoxID(kind: .folder, id: String($0.id.rawValue.dropFirst())) } ?? .root
        api = BoxAPI(client: client, endpoints: endpoints, clock: clock)
        self.clock = clock
        let start = clock.now
        elapsed = { start.duration(to: clock.now) }
        self.revoke = revoke
        uploadPace = BoxPace(burst: 40, perMinute: 200, clock: clock)
        walkPace = BoxPace(burst: 100, perMinute: 500, clock: clock)
        traits = Self.traits(simpleUpload: min(max(simpleUpload, 1), 50_000_000))
    }

    public var trash: (any Trash)? { BoxTrash(provider: self) }
    public var undeletion: (any Undeletion)? { BoxTrash(provider: self) }
    public var versions: (any VersionHistory)? { BoxVersions(provider: self) }
    public var links: (any LinkSharing)? { BoxLinks(provider: self) }
    public var webPages: (any WebPages)? { BoxWebPages() }
    public var contentSearch: (any ContentSearching)? { BoxSearch(provider: self) }

    private static func traits(simpleUpload: Int64) -> ProviderTraits {
        var traits = ProviderTraits(
            names: .box,
            hashAlgorithm: .sha1,
            largestSimpleUpload: simpleUpload,
            // The plan decides, and the account reports it (`largestFile`).
            largestFile: ReportedSize.largest,
            uploadPartMultiple: 1,
            // A guess: each session says its own.
            uploadPartSize: 8 << 20
        )
        traits.replaceIsAtomic = true
        traits.setsModifiedTime = true
        traits.setsDescription = true
        traits.copiesFiles = true
        // Whether Box takes a name that differs in case alone beside itself is not documented.
        traits.caseRenameNeedsDetour = true
        traits.feed = .longPoll
        traits.pollInterval = .seconds(60)
        traits.maximumWritesInFlight = 4
        traits.largestRangeRequest = 16 << 20
        return traits
    }

    // MARK: Account

    public func identity() async throws(ProviderError) -> AccountIdentity {
        let user = try await api.user()
        memory.learn(user)
        return AccountIdentity(
            // One person's folders are accounts of their own.
            id: isWhole ? user.id.text : "\(user.id.text)/\(top.id)",
            displayName: user.name ?? user.login ?? user.id.text,
            email: user.login,
            rootID: top.itemID
        )
    }

    public func quota() async throws(ProviderError) -> Quota {
        let user = try await api.user()
        memory.learn(user)
        guard let used = user.space_used else {
            throw ProviderError(.malformedAnswer, detail: "a quota without usage")
        }
        // Plans without a limit have a huge one.
        let total = user.space_amount.flatMap { $0.value >= Self.unlimited ? nil : $0.value }
        return Quota(used: used.value, total: total)
    }

    private static let unlimited: Int64 = 1_000_000_000_000_000

    public func signOut() async throws(ProviderError) { try await revoke() }

    /// The id of the account's person, by which the account's own items are recognised.
    func me() async throws(ProviderError) -> String {
        if let me = memory.me { return me }
        let user = try await api.user()
        memory.learn(user)
        return user.id.text
    }

    /// The largest file that the account's plan takes; nil where it does not say.
    func largestFile() async throws(ProviderError) -> Int64? {
        _ = try await me()
        return memory.largestFile
    }

    // MARK: Items

    /// Whether the account's tree is all that the person has at Box.
    var isWhole: Bool { top == .root }

    /// Whether an item lies in the account's tree; nil where the answer does not say.
    func isInside(_ wire: BoxWire.Item) -> Bool? {
        if isWhole { return true }
        guard let above = wire.path_collection, let folders = above.entries else { return nil }
        if folders.contains(where: { $0.id?.text == top.id }) { return true }
        let isWholeList = above.total_count.map { $0.value == Int64(folders.count) } ?? true
        // A list that is cut says nothing.
        return isWholeList ? false : nil
    }

    /// The folder where the account begins.
    ///
    /// - Throws: what says that it cannot be found, `.offline` where Box has it in its trash or not at all.
    @discardableResult
    func requireTop() async throws(ProviderError) -> BoxWire.Item {
        do throws(ProviderError) {
            let wire = try await api.item(top)
            guard !wire.isGone else {
                throw ProviderError(.notFound, detail: "Box has it in its trash")
            }
            return wire
        } catch { throw error.asOfAccountFolder }
    }

    /// An error of a request for something in the account's tree: that it is not there says something only
    /// while the folder is there where the tree begins.
    ///
    /// - Throws: as `requireTop`.
    func inTree(_ error: ProviderError) async throws(ProviderError) -> ProviderError {
        if !isWhole, error.kind == .notFound || error.kind == .parentNotFound {
            try await requireTop()
        }
        return error
    }

    /// An answer as an item.
    ///
    /// - Throws: `.malformedAnswer` where it is none.
    func item(_ wire: BoxWire.Item) async throws(ProviderError) -> Item {
        guard let item = wire.item(me: try await me()) else {
            throw ProviderError(.malformedAnswer, detail: "an item without its fields")
        }
        return item
    }

    // MARK: Content

    public func makeHasher() -> any ContentHasher { SHA1Hasher() }
}

/// What a provider keeps in mind: nothing of it is needed, and all of it may be old.
final class BoxMemory: Sendable {
    /// The address of a version's bytes, which is a permission by itself.
    struct Download: Sendable {
        var url: String
        var until: Timestamp
    }

    private struct State {
        var me: String?
        var largestFile: Int64?
        var downloads: [String: Download] = [:]
        var poll: (server: BoxWire.Servers.Server, left: Int)?
        /// Whether events came that others may follow.
        var mayHaveMore = false
        /// When the stream of events was read last, by the provider's own time.
        var streamRead = Duration.zero
        /// The ends of the newest events' ids when a cursor was lost.
        var seen: [String] = []
        /// The folders that were moved from here, each as the answer described it.
        var moved: [BoxID: String] = [:]
        /// Polls in a row that ended soon, since events came last.
        var shortPolls = 0
    }

    private static let mostDownloads = 500
    private static let mostMoved = 500
    private static let longestPause = 60
    private let state = Mutex(State())

    var me: String? { state.withLock { $0.me } }
    var largestFile: Int64? { state.withLock { $0.largestFile } }

    func learn(_ user: BoxWire.User) {
        state.withLock { state in
            state.me = user.id.text
            state.largestFile = user.max_upload_size.flatMap { $0.value > 0 ? $0.value : nil }
        }
    }

    func download(_ key: String) -> String? {
        state.withLock { state in
            guard let known = state.downloads[key], known.until > .now else { return nil }
            return known.url
        }
    }

    /// Addresses last some 15 minutes, of which ten are used.
    func learn(download url: String, of key: String) {
        state.withLock { state in
            if state.downloads.count >= Self.mostDownloads { state.downloads = [:] }
            let until = Timestamp(seconds: Timestamp.now.seconds.addingSaturating(600))
            state.downloads[key] = Download(url: url, until: until)
        }
    }

    func forgetDownload(_ key: String) {
        state.withLock { _ = $0.downloads.removeValue(forKey: key) }
    }

    /// The server to wait at, for one time more.
    func pollServer() -> BoxWire.Servers.Server? {
        state.withLock { state in
            guard let poll = state.poll, poll.left > 0 else { return nil }
            state.poll?.left -= 1
            return poll.server
        }
    }

    func learn(_ server: BoxWire.Servers.Server) {
        let times = server.max_retries.flatMap { Int($0.text) } ?? 10
        state.withLock { $0.poll = (server, min(max(times, 1), 100)) }
    }

    func forgetPollServer() { state.withLock { $0.poll = nil } }

    // MARK: Events

    var seenBefore: [String] { state.withLock { $0.seen } }

    func remember(seen: [String]) { state.withLock { $0.seen = seen } }

    var streamRead: Duration { state.withLock { $0.streamRead } }

    func readStream(at time: Duration) { state.withLock { $0.streamRead = time } }

    /// Events came that were not seen before.
    func heardEvents() {
        state.withLock { state in
            state.mayHaveMore = true
            state.shortPolls = 0
        }
    }

    func learn(moved folder: BoxID, to sequence: String) {
        state.withLock { state in
            if state.moved.count >= Self.mostMoved { state.moved = [:] }
            state.moved[folder] = sequence
        }
    }

    /// Whether a folder is as a move from here left it.
    func moved(_ folder: BoxID, to sequence: String?) -> Bool {
        guard let sequence else { return false }
        return state.withLock { $0.moved[folder] == sequence }
    }

    /// How long to wait after a poll, which grows while polls end soon and no events come; nil for not
    /// at all.
    func pause(afterPollOf length: Duration) -> Duration? {
        state.withLock { state in
            guard length < .seconds(Self.longestPause) else {
                state.shortPolls = 0
                return nil
            }
            state.shortPolls = min(state.shortPolls + 1, 16)
            guard state.shortPolls > 1 else { return nil }
            return .seconds(min(1 << (state.shortPolls - 2), Self.longestPause))
        }
    }

    var mayHaveMore: Bool {
        get { state.withLock { $0.mayHaveMore } }
        set { state.withLock { $0.mayHaveMore = newValue } }
    }
}
