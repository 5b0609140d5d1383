import Crypto
public import Logging
public import OortModel
public import OortTransport
import Synchronization

/// An account of S3 or one of its kin, as places: a bucket, or what begins with a prefix in one.
///
/// Folders are the beginnings of keys up to a slash, and empty objects `name/` where a folder is to
/// stay without anything in it. A revision is an ETag.
public final class S3Client: PlaceClient {
    /// Sizes that tests make smaller.
    public struct Settings: Sendable {
        /// Bytes of the largest upload in one piece.
        public var largestSimpleUpload: Int64 = 64 << 20
        /// Bytes of the largest upload in one piece where the store heeds no condition: the look before it
        /// must not be older than a short upload takes.
        public var largestUnguardedUpload: Int64 = 5 << 20
        /// Bytes of a part, as long as 10,000 of them are enough.
        public var partSize: Int64 = 16 << 20
        /// Bytes of the largest copy in one piece.
        public var largestSimpleCopy: Int64 = 5 << 30
        /// Bytes of a part of a copy.
        public var copyPartSize: Int64 = 512 << 20
        /// Keys on a page of a listing.
        public var pageSize = 1000
        /// How long a run looks for no leftovers of earlier ones.
        public var cleaningRest = Duration.seconds(3600)
        /// How long an object is assumed to be archived still: a restore takes minutes at least.
        public var archivedRest = Duration.seconds(300)

        /// The sizes that S3 wants.
        public init() {}
    }

    let api: S3API
    let abilities: S3Abilities
    let space: S3KeySpace
    let settings: Settings
    let memory = Mutex(Memory())
    let begun: S3BegunUploads
    /// The keys that links are signed with; nil where there are none.
    private let linkKeys: (any AccessTokens)?

    public let traits: PlaceTraits

    /// What was seen or done in this run, all of it dispensable.
    struct Memory {
        /// Prefixes whose marker was put or seen, and when.
        var marked: [ExactText: ContinuousClock.Instant] = [:]
        /// The upload in parts of a key that was begun and not ended.
        var sessions: [ExactText: String] = [:]
        /// Objects of which the store said that they are archived, and since when.
        var archived: [ExactText: (tag: String, since: ContinuousClock.Instant)] = [:]
        /// When the client was made.
        let begun = ContinuousClock.now
        /// When leftovers were last looked for.
        var lastCleaning: ContinuousClock.Instant?
        /// Whether the bucket, which kept versions at the sign-in, keeps none of what is written now.
        var isSuspended = false
    }

    /// A client over a stack that signs with `signer` and judges answers by `AnswerRules.s3`.
    ///
    /// `linkKeys` gives the key files that links are signed with; without them there are none. The file
    /// `begunUploads` has what this client begins in parts, so that what is left of it can be given up.
    public init(
        client: any HTTPClient,
        account: S3Account,
        signer: S3Signer,
        linkKeys: (any AccessTokens)? = nil,
        begunUploads: String? = nil,
        settings: Settings = Settings()
    ) {
        self.linkKeys = linkKeys
        begun = S3BegunUploads(path: begunUploads)
        api = S3API(client: client, place: account.place, signer: signer)
        abilities = account.abilities
        space = S3KeySpace(prefix: account.place.prefix)
        self.settings = settings
        traits = Self.traits(account, settings)
    }

    /// A client with its whole stack over `wire`; `tokens` gives key files (`S3Keys.secret`).
    public static func make(
        account: S3Account,
        wire: any HTTPClient,
        tokens: any AccessTokens,
        logger: Logger,
        requests: RequestLimit = RequestLimit(.s3),
        begunUploads: String? = nil,
        settings: Settings = Settings(),
        policy: RetryPolicy = RetryPolicy()
    ) -> S3Client {
        let signer = S3Signer(region: account.place.region)
        let client = AccountClient.make(
            wire: wire,
            tokens: tokens,
            signer: signer,
            rules: .s3,
            requests: requests,
            policy: policy,
            logger: logger
        )
        return S3Client(
            client: client,
            account: account,
            signer: signer,
            linkKeys: tokens,
            begunUploads: begunUploads,
            settings: settings
        )
    }

    /// The largest file: what 10,000 parts of the largest size could hold is more than any store
    /// takes.
    private static let largestFile: Int64 = 5 << 40

    private static func traits(_ account: S3Account, _ settings: Settings) -> PlaceTraits {
        let prefix = account.place.prefix
        let abilities = account.abilities
        var provider = ProviderTraits(
            names: NameRules(comparison: .exact, allowsDuplicates: false) { name, _, _ in
                if !abilities.keepsBackslashes, name.has("\\") {
                    return .refused(reason: "the store makes a slash of a backslash")
                }
                return S3Names.refusal(of: name, prefix: prefix)
            },
            hashAlgorithm: .md5,
            largestSimpleUpload: settings.largestSimpleUpload,
            largestFile: largestFile,
            uploadPartMultiple: 1,
            uploadPartSize: settings.partSize
        )
        provider.replaceIsAtomic = abilities.refusesStaleUploads
        provider.refusesTakenNames = abilities.refusesTakenKeys && abilities.refusesTakenCopies
        provider.setsModifiedTime = abilities.rewritesMetadata
        provider.timeResolution = .nanoseconds
        provider.copiesFiles = abilities.copies
        provider.moveChangesRevision = true
        provider.makesMissingFolders = true
        provider.maximumWritesInFlight = 32
        provider.largestRangeRequest = 16 << 20
        var places = PlaceTraits(
            provider: provider,
            scan: .snapshots,
            listingsInFlight: 4,
            movesFolders: false,
            deletesToTrash: abilities.keepsVersions
        )
        places.deletesKnownOnly = true
        return places
    }

    public func makeHasher() -> any ContentHasher { S3Hasher() }

    public var trash: (any Trash)? { abilities.keepsVersions ? S3Trash(client: self) : nil }

    public var keepsDeleted: Bool {
        abilities.keepsVersions && !memory.withLock(\.isSuspended)
    }

    /// Learns from the answer to an upload whether the bucket still keeps versions: while that is
    /// suspended, an object's version has no id but "null", and a deletion leaves nothing of it.
    func learnVersion(_ head: HTTPResponseHead) {
        guard abilities.keepsVersions else { return }
        let id = head.header("x-amz-version-id") ?? "null"
        memory.withLock { $0.isSuspended = id.isSameText(as: "null") }
    }

    public func trashMark(of entry: PlaceEntry, at path: RemotePath, id: ItemID) -> String? {
        guard abilities.keepsVersions, let revision = entry.revision,
            let key = try? space.key(of: path)
        else { return nil }
        return S3Trash.mark(revision, key)
    }

    public var versions: (any VersionHistory)? {
        abilities.keepsVersions ? S3History(client: self) : nil
    }

    public var links: (any LinkSharing)? {
        linkKeys.map { S3Links(client: self, tokens: $0) }
    }

    /// The address of a file, without a signature: for links, which `S3Signer.presigned` makes of it.
    ///
    /// - Throws: `.nameTooLong`, `.nameRefused`.
    public func address(of file: RemotePath) throws(ProviderError) -> String {
        api.place.url(of: try space.key(of: file), region: api.signer.region)
    }

    // MARK: Account

    public func owner() async throws(ProviderError) -> PlaceOwner {
        _ = try await page(of: space.prefix, delimiter: nil, after: nil, atMost: 1)
        if abilities.keepsVersions, let keepsVersions = await api.keepsVersions() {
            memory.withLock { $0.isSuspended = !keepsVersions }
        }
        return PlaceOwner(id: api.place.accountID, displayName: api.place.title)
    }

    // MARK: Entries

    private var permissions: Permissions { abilities.writes ? .all : .read }

    /// A folder, of which the bucket knows nothing but its name.
    func folder(_ name: String) -> PlaceEntry {
        var entry = PlaceEntry.folder(name)
        entry.permissions = permissions
        return entry
    }

    /// A file as its head shows it.
    func entry(_ name: String, _ head: S3Head) -> PlaceEntry {
        var entry = PlaceEntry.file(
            name,
            size: head.size,
            revision: Revision(head.tag),
            modifiedTime: head.modified ?? head.stored
        )
        entry.storedTime = head.stored
        entry.permissions = permissions
        entry.mimeType = head.mimeType
        let isHash = abilities.tagsAreMD5 && !head.isTagOpaque && S3Head.canBeMD5(head.tag)
        if let md5 = isHash ? head.tag.lowercased() : head.md5 {
            entry.hash = ContentHash(algorithm: .md5, value: md5)
        }
        return entry
    }

    /// A file as a listing shows it: without the modified time, which listings do not have, and without a
    /// hash, since a listing does not tell how an object is encrypted, and so whether its ETag is one.
    func entry(_ name: String, _ object: S3Object) -> PlaceEntry {
        var entry = PlaceEntry.file(
            name,
            size: object.size,
            revision: Revision(object.tag),
            modifiedTime: nil
        )
        entry.storedTime = object.modified
        entry.permissions = permissions
        return entry
    }

    // MARK: Objects

    /// An object's head; nil when there is positively none.
    func head(_ key: String) async throws(ProviderError) -> S3Head? {
        let answer = try await api.exchange(S3Request("HEAD", key))
        switch answer.head.status {
        case 200..<300: return try S3Head(answer.head)
        case 404:
            // A bucket that is gone answers the same to a request for its object's head.
            guard S3Errors.words(in: answer.body)?.code != "NoSuchBucket" else { fallthrough }
            return nil
        case 400, 401, 403: return try await headByReading(key)
        default: throw S3Errors.error(answer, about: .object)
        }
    }

    /// An object's head from the answer to a request for its first byte.
    ///
    /// An answer to HEAD has no body, so its 400 or 403 does not tell keys that have ended from an object
    /// that may not be looked at. Once a body has told, keys are read anew and the request is repeated.
    private func headByReading(_ key: String) async throws(ProviderError) -> S3Head? {
        var request = S3Request("GET", key)
        request.headers = [("Range", "bytes=0-0")]
        // Not collected: a store that does not know ranges gives all of it.
        let answer: HTTPResponse
        switch try await api.stream(request) {
        case .success(let streamed):
            return try S3Head(streamed.head, size: streamed.head.wholeSize)
        case .failure(let refusal): answer = refusal.answer
        }
        switch answer.head.status {
        case 404 where S3Errors.words(in: answer.body)?.code != "NoSuchBucket": return nil
        case 416:
            // An empty object has no first byte; the keys are those that this request was let in with.
            let again = try await api.exchange(S3Request("HEAD", key))
            guard (200..<300).contains(again.head.status) else {
                throw S3Errors.error(again, about: .object)
            }
            return try S3Head(again.head)
        default: throw S3Errors.error(answer, about: .object)
        }
    }

    /// The file that a key is; nil when there is none, or only a folder's marker.
    func file(_ key: String) async throws(ProviderError) -> S3Head? {
        guard let head = try await head(key) else { return nil }
        return key.ends(with: "/") && head.size == 0 ? nil : head
    }

    /// One page of the keys that begin with `prefix`.
    func page(
        of prefix: String,
        delimiter: String?,
        after token: String?,
        atMost count: Int? = nil
    ) async throws(ProviderError) -> S3Page {
        let byTokens = abilities.listsByTokens
        var request = S3Request("GET")
        if byTokens { request.query.append(("list-type", "2")) }
        request.query += [
            ("encoding-type", "url"), ("prefix", prefix),
            ("max-keys", "\(count ?? settings.pageSize)"),
        ]
        if let delimiter { request.query.append(("delimiter", delimiter)) }
        if let token { request.query.append((byTokens ? "continuation-token" : "marker", token)) }
        let root = try await api.element(request, named: "ListBucketResult", about: .bucket)
        return try S3Page(root, byTokens: byTokens)
    }

    /// Whether any key begins with a prefix.
    func isAnything(below prefix: String) async throws(ProviderError) -> Bool {
        try await first(below: prefix) != nil
    }

    /// The first of the keys that begin with a prefix: the prefix itself where that is a key and the store
    /// lists in the order of bytes.
    func first(below prefix: String) async throws(ProviderError) -> S3Object? {
        var token: String?
        // A page may be empty and not the last.
        for _ in 0..<Self.mostEmptyPages {
            let page = try await page(of: prefix, delimiter: nil, after: token, atMost: 1)
            if let object = page.objects.first(where: { $0.key.begins(with: prefix) }) {
                return object
            }
            guard let next = page.next else { return nil }
            token = next
        }
        throw ProviderError(.malformedAnswer, detail: "the bucket lists empty pages without end")
    }

    static let mostEmptyPages = 10_000
}

/// MD5, which stores compute of what is sent in one piece.
struct S3Hasher: ContentHasher {
    private var state = Insecure.MD5()

    mutating func update(_ bytes: ArraySlice<UInt8>) { state.update(data: bytes) }

    func finalize() -> ContentHash {
        ContentHash(algorithm: .md5, value: S3Text.hex(state.finalize()))
    }
}
