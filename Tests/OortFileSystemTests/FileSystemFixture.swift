import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import struct OortPlanner.Planner
import struct OortPlanner.PlannerTraits
import Synchronization

/// A file system over a real catalog and real files, with one account whose service is an array.
final class FileSystemFixture {
    let folder: URL
    let service = FakeService()
    let account: Account
    let other: Account
    private(set) var catalog: Catalog
    private(set) var store: ContentStore
    private(set) var system: CloudFileSystem
    let settings: FileSystemSettings
    let storing: ContentStoreSettings

    init(
        settings: FileSystemSettings = FileSystemSettings(),
        storing: ContentStoreSettings = ContentStoreSettings()
    ) throws {
        self.settings = settings
        self.storing = storing
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("oort-fs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        (catalog, store, system) = try Self.open(folder, settings, storing)
        account = try catalog.registerAccount(
            name: "work",
            service: "fake",
            names: FakeService.traits.names
        )
        other = try catalog.registerAccount(
            name: "home",
            service: "fake",
            names: FakeService.traits.names
        )
        connect()
    }

    private static func open(
        _ folder: URL,
        _ settings: FileSystemSettings,
        _ storing: ContentStoreSettings
    ) throws -> (Catalog, ContentStore, CloudFileSystem) {
        let logger = Logger(label: "test")
        let catalog = try Catalog(
            path: folder.appendingPathComponent("catalog.sqlite").path,
            checks: .afterEach,
            logger: logger
        )
        let store = try ContentStore(
            cacheFolder: folder.path + "/cache",
            stateFolder: folder.path + "/state",
            catalog: catalog,
            settings: storing,
            logger: logger
        )
        let system = CloudFileSystem(
            catalog: catalog,
            store: store,
            settings: settings,
            logger: logger
        )
        return (catalog, store, system)
    }

    private func connect() {
        service.catalog.withLock { $0 = catalog }
        for account in [account, other] {
            store.setFetcher(service, for: account.id)
            system.connect(account.id, traits: FakeService.traits, lister: service)
        }
    }

    func restart() async throws {
        await store.stop()
        try catalog.close()
        (catalog, store, system) = try Self.open(folder, settings, storing)
        connect()
        try await store.recover()
    }

    /// Marks an account's top folder as listed, as the engine does.
    func know() async throws {
        for root in [account.root, other.root] {
            _ = try await system.list(root, after: 0, limit: 1).value()
        }
    }

    /// Names the account's root, as its identity does.
    func setRoot(_ id: String = "root") throws -> ItemID {
        let id = ItemID(id)
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: id),
            of: account.id
        )
        return id
    }

    /// Lets the planner look at the account once: what was made and removed again is forgotten.
    func plan() async throws {
        _ = try await catalog.plan(
            account.id,
            with: Planner(traits: PlannerTraits(FakeService.traits)),
            under: PlanningConditions(
                now: Timestamp.now.seconds * 1000,
                settle: 0,
                hash: { ContentHash(algorithm: .sha256, value: String($0.count)) }
            )
        )
    }

    /// Applies the change feed's report of an item.
    func observe(_ item: Item) async throws {
        _ = try await catalog.apply(Observations(changes: [.changed(item)]), to: account.id)
    }

    /// Applies the change feed's report of a file in the top folder: a revision of these bytes.
    @discardableResult
    func observe(_ name: String, _ bytes: [UInt8], revision: String = "1") async throws -> Item {
        let id = "id-\(name)"
        var item = Item(id: ItemID(id), kind: .file, fileName: name, parentID: try setRoot())
        item.size = Int64(bytes.count)
        item.rev = Revision(revision)
        service.contents.withLock { $0[id] = bytes }
        try await observe(item)
        return item
    }

    deinit {
        try? catalog.close()
        try? FileManager.default.removeItem(at: folder)
    }
}

/// A service that gives bytes from memory and lists empty folders.
final class FakeService: ContentFetcher, FolderLister {
    static let traits: ProviderTraits = {
        var traits = ProviderTraits(
            names: NameRules(
                comparison: .caseInsensitive,
                allowsDuplicates: false,
                longestPath: 1000
            ) { name, _, _ in
                if name.contains(":") { return .refused(reason: "colon") }
                return name.utf8.count > 200 ? .tooLong : nil
            },
            hashAlgorithm: .sha256,
            largestSimpleUpload: 1 << 20,
            largestFile: 1 << 40,
            uploadPartMultiple: 1,
            uploadPartSize: 1 << 20
        )
        traits.copiesFiles = true
        traits.setsDescription = true
        return traits
    }()

    let largestRangeRequest: Int64 = 16 << 20
    let rangesAhead = 24
    let contents = Mutex<[String: [UInt8]]>([:])
    /// What a folder's listing brings; none brings nothing.
    let children = Mutex<[Inode: @Sendable () async -> Void]>([:])
    let listings = Mutex<[Inode]>([])
    let looks = Mutex<[Inode]>([])
    /// How often the room was shown.
    let shownRooms = Mutex(0)
    /// What asking for an item brings; none brings nothing.
    let news = Mutex<[Inode: @Sendable () -> Void]>([:])
    let isOffline = Mutex(false)
    /// The revisions that it gives no longer.
    let gone = Mutex<Set<Revision>>([])
    /// Whether folders lie where files did.
    let holdsFolders = Mutex(false)
    /// The folders that may not be listed, and those of them in which names may be asked for.
    let closed = Mutex<Set<Inode>>([])
    let searchable = Mutex<Set<Inode>>([])
    /// The names that were asked for, and what asking for one brings; none brings nothing.
    let asked = Mutex<[String]>([])
    let named = Mutex<[String: @Sendable () async -> Void]>([:])
    let catalog = Mutex<Catalog?>(nil)

    func fetch(_ key: ContentKey, range: Range<Int64>) async throws(ProviderError) -> ByteStream {
        if isOffline.withLock({ $0 }) { throw ProviderError(.offline, detail: "test") }
        if holdsFolders.withLock({ $0 }) { throw ProviderError(.notAFile, detail: "test") }
        if gone.withLock({ $0.contains(key.revision) }) {
            throw ProviderError(.preconditionFailed, detail: "test")
        }
        guard let bytes = contents.withLock({ $0[key.item.rawValue] }) else {
            throw ProviderError(.notFound, detail: "test")
        }
        guard range.lowerBound <= bytes.count else {
            throw ProviderError(.preconditionFailed, detail: "test")
        }
        let part = Array(bytes[Int(range.lowerBound)..<min(Int(range.upperBound), bytes.count)])
        let parts = Parts([part])
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in parts.next() }
    }

    func export(_ item: ItemID) async throws(ProviderError) -> ByteStream {
        if isOffline.withLock({ $0 }) { throw ProviderError(.offline, detail: "test") }
        let parts = Parts([contents.withLock { $0[item.rawValue] ?? [] }])
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in parts.next() }
    }

    func makeHasher() -> any ContentHasher { NoHasher() }

    func list(_ folder: Inode) async throws(ProviderError) {
        if isOffline.withLock({ $0 }) { throw ProviderError(.offline, detail: "test") }
        listings.withLock { $0.append(folder) }
        if closed.withLock({ $0.contains(folder) }) {
            throw ProviderError(.noPermission, detail: "test")
        }
        await children.withLock { $0[folder] }?()
        await Task.yield()
    }

    func find(_ name: String, in folder: Inode) async throws(ProviderError) {
        if isOffline.withLock({ $0 }) { throw ProviderError(.offline, detail: "test") }
        asked.withLock { $0.append(name) }
        guard searchable.withLock({ $0.contains(folder) }) else {
            throw ProviderError(.noPermission, detail: "test")
        }
        await named.withLock { $0[name] }?()
    }

    func look(at item: Inode) async throws(ProviderError) {
        looks.withLock { $0.append(item) }
        news.withLock { $0[item] }?()
    }

    /// With whom items are shared, for a service that says it when it is asked; nil for another.
    let shares = Mutex<[Inode: TextList]?>(nil)
    let askedShares = Mutex<[Inode]>([])

    var tellsShares: Bool { shares.withLock { $0 != nil } }

    func sharedWith(_ item: Inode) async throws(ProviderError) -> TextList {
        if isOffline.withLock({ $0 }) { throw ProviderError(.offline, detail: "test") }
        askedShares.withLock { $0.append(item) }
        guard let told = shares.withLock({ $0?[item] }) else {
            throw ProviderError(.noPermission, detail: "test")
        }
        return told
    }

    func roomIsShown() { shownRooms.withLock { $0 += 1 } }

    private final class Parts: Sendable {
        private let parts: Mutex<[[UInt8]]>
        init(_ parts: [[UInt8]]) { self.parts = Mutex(parts.filter { !$0.isEmpty }) }
        func next() -> [UInt8]? { parts.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
    }
}

struct NoHasher: ContentHasher {
    mutating func update(_ bytes: ArraySlice<UInt8>) {}
    func finalize() -> ContentHash { ContentHash(algorithm: .md5, value: "") }
}

extension CloudFileSystem {
    static let caller = Caller(owner: 1000, group: 1000)
    static let readWrite = OpenMode(reads: true, writes: true)

    func bytes(_ handle: OortFileSystem.FileHandle, _ offset: Int64, _ count: Int) async throws
        -> [UInt8]
    {
        switch try await read(handle, at: offset, count: count).value() {
        case .end: return []
        case .bytes(let bytes): return bytes
        case .file(let file, let range):
            return try file.read(
                at: range.lowerBound,
                count: Int(range.upperBound - range.lowerBound)
            )
        }
    }

    func put(_ handle: OortFileSystem.FileHandle, _ bytes: [UInt8], at offset: Int64) async throws
        -> Int
    {
        try await unsafe write(handle, bytes.span.bytes, at: offset).value()
    }

    func make(_ name: String, in folder: Inode, mode: OpenMode = readWrite) async throws
        -> (Entry, Opened)
    {
        try await create(
            name,
            in: folder,
            permissions: 0o644,
            caller: Self.caller,
            mode: mode,
            isExclusive: false
        ).value()
    }

    func names(_ folder: Inode) async throws -> [String] {
        try await list(folder, after: 0, limit: 10_000).value().map(\.name)
    }
}
