import Foundation
import Logging
import OortCatalog
import OortModel
import OortTesting
import Synchronization

@testable import OortContentStore

/// A catalog and a content store in a folder of their own, taken away with the value.
final class StoreFixture {
    let folder: URL
    let settings: ContentStoreSettings
    let service = FakeService()
    let account: Account
    private(set) var catalog: Catalog
    private(set) var store: ContentStore

    init(
        settings: ContentStoreSettings = ContentStoreSettings(),
        saveInterval: Duration = .milliseconds(1)
    ) throws {
        var settings = settings
        settings.saveInterval = saveInterval
        self.settings = settings
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("oort-store-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        (catalog, store) = try Self.open(folder, settings)
        account = try catalog.registerAccount(
            name: "work",
            service: "fake",
            names: NameRules(comparison: .exact, allowsDuplicates: false) { _, _, _ in nil }
        )
        store.setFetcher(service, for: account.id)
    }

    private static func open(
        _ folder: URL,
        _ settings: ContentStoreSettings
    ) throws -> (Catalog, ContentStore) {
        let catalog = try Catalog(
            path: folder.appendingPathComponent("catalog.sqlite").path,
            checks: .afterEach,
            logger: Logger(label: "test")
        )
        let store = try ContentStore(
            cacheFolder: folder.path + "/cache",
            stateFolder: folder.path + "/state",
            catalog: catalog,
            settings: settings,
            logger: Logger(label: "test")
        )
        return (catalog, store)
    }

    /// What a process that is killed leaves, found by the next one.
    func restart() async throws -> ContentRecovery {
        // A task of a process that died does nothing more.
        await store.endCompletions()
        try catalog.close()
        (catalog, store) = try Self.open(folder, settings)
        store.setFetcher(service, for: account.id)
        return try await store.recover()
    }

    /// What a process that is killed now leaves, with some of the catalog's files lost ("" for the
    /// main one, "-wal", "-shm") or replaced by older ones.
    func crash(
        losing lost: [String] = [],
        replacing older: [String: Data] = [:]
    ) async throws -> ContentRecovery {
        await store.endCompletions()
        let left = try catalogFiles()
        try catalog.close()
        for ending in ["", "-wal", "-shm"] {
            let url = URL(filePath: catalog.path + ending)
            try? FileManager.default.removeItem(at: url)
            let data = older.isEmpty ? left[ending] : older[ending]
            if let data, !lost.contains(ending) { try data.write(to: url) }
        }
        (catalog, store) = try Self.open(folder, settings)
        store.setFetcher(service, for: account.id)
        return try await store.recover()
    }

    /// The catalog's files as they are now, by their names' endings.
    func catalogFiles() throws -> [String: Data] {
        var files: [String: Data] = [:]
        for ending in ["", "-wal", "-shm"] {
            files[ending] = try? Data(contentsOf: URL(filePath: catalog.path + ending))
        }
        return files
    }

    func key(_ item: String, _ revision: String = "1") -> ContentKey {
        ContentKey(account: account.id, item: ItemID(item), revision: Revision(revision))
    }

    /// A content at the service, opened.
    func remote(_ item: String, _ bytes: [UInt8], hash: ContentHash? = nil) throws -> CachedContent
    {
        service.put(item, bytes)
        return try store.open(
            key(item),
            size: Int64(bytes.count),
            hash: hash ?? SumHasher.hash(of: bytes)
        )
    }

    /// Applies the feed's report of a file in the top folder; returns the file's inode.
    func tellOfItem(_ item: String, revision: String, size: Int64) async throws -> Inode {
        let root = ItemID("root")
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: root),
            of: account.id
        )
        var told = Item(id: ItemID(item), kind: .file, fileName: item, parentID: root)
        told.size = size
        told.rev = Revision(revision)
        _ = try await catalog.apply(Observations(changes: [.changed(told)]), to: account.id)
        let node = try catalog.node(remoteID: ItemID(item), account: account.id)
        guard let node else { throw CatalogError.notFound }
        return node.inode
    }

    func file(_ name: String) throws -> Node {
        try catalog.create(
            NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
            named: name,
            in: account.root
        )
    }

    /// What a program writes into a file from now on: over a revision, or from nothing.
    func stage(over base: CachedContent? = nil, of file: Node) throws -> StagedContent {
        try store.stage(over: base, of: file.inode, account: account.id, modified: .now).content
    }

    func files(_ part: String) -> [String] {
        let root = folder.appendingPathComponent(part)
        let all = FileManager.default.enumerator(atPath: root.path)
        return (all?.allObjects as? [String] ?? []).filter { $0.split(separator: "/").count > 2 }
    }

    /// The bytes of the staged files that were moved aside.
    var aside: [[UInt8]] {
        get throws {
            try store.foldersAside.flatMap { folder in
                try store.paths.files(in: folder).filter { !$0.path.hasSuffix(".journal") }
                    .map { try DiskFile.open($0.path).read(at: 0, count: 1 << 20) }
            }
        }
    }

    deinit {
        try? catalog.close()
        try? FileManager.default.removeItem(at: folder)
    }
}

extension ContentStoreSettings {
    /// Nearly without a reserve, on a small disk, where a write waits for room for a moment only.
    static func onDisk(of capacity: Int64) -> ContentStoreSettings {
        var settings = ContentStoreSettings()
        settings.reserve = 1
        settings.roomPatience = .milliseconds(200)
        settings.freeBytes = { SmallDisk(capacity: capacity).freeBytes(below: $0) }
        return settings
    }
}

/// A service that gives bytes in small parts, counts its calls, and can be held back or broken.
final class FakeService: ContentFetcher {
    struct State {
        var contents: [String: [UInt8]] = [:]
        /// What the next exports give, each in its turn.
        var exports: [[UInt8]] = []
        var exportCount = 0
        var requests: [Range<Int64>] = []
        var failures: [ProviderError] = []
        var cutAfter: Int?
        /// Says, later than the first bytes, of which revision they are.
        var confirmation: Task<Result<Void, ProviderError>, Never>?
        /// How often it was asked.
        var confirmations = 0
        var gates: [Gate] = []
        var isHeld = false
        var inFlight = 0
        var mostInFlight = 0
    }

    typealias Gate = CheckedContinuation<Void, Never>

    let largestRangeRequest: Int64 = 16 << 20
    let rangesAhead = 24
    let part = 64 << 10
    private let state = Mutex(State())

    func put(_ item: String, _ bytes: [UInt8]) { state.withLock { $0.contents[item] = bytes } }
    func export(_ bytes: [[UInt8]]) { state.withLock { $0.exports += bytes } }
    var exportCount: Int { state.withLock { $0.exportCount } }
    func fail(_ errors: ProviderError...) { state.withLock { $0.failures += errors } }
    func cutNext(after bytes: Int) { state.withLock { $0.cutAfter = bytes } }
    func confirm(by confirmation: Task<Result<Void, ProviderError>, Never>?) {
        state.withLock { $0.confirmation = confirmation }
    }
    var confirmations: Int { state.withLock { $0.confirmations } }
    var requests: [Range<Int64>] { state.withLock { $0.requests } }
    var mostInFlight: Int { state.withLock { $0.mostInFlight } }
    var inFlight: Int { state.withLock { $0.inFlight } }
    var waiting: Int { state.withLock { $0.gates.count } }

    func hold() { state.withLock { $0.isHeld = true } }

    func letGo() {
        let gates = state.withLock { state in
            state.isHeld = false
            defer { state.gates = [] }
            return state.gates
        }
        for gate in gates { gate.resume() }
    }

    private func gate() async {
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.isHeld { state.gates.append(continuation) }
                return state.isHeld
            }
            if !isHeld { continuation.resume() }
        }
    }

    func fetch(_ key: ContentKey, range: Range<Int64>) async throws(ProviderError) -> ByteStream {
        let (bytes, failure, cut) = state.withLock { state in
            state.requests.append(range)
            let failure = state.failures.isEmpty ? nil : state.failures.removeFirst()
            defer { state.cutAfter = nil }
            state.inFlight += 1
            state.mostInFlight = max(state.mostInFlight, state.inFlight)
            return (state.contents[key.item.rawValue], failure, state.cutAfter)
        }
        let transfer = Transfer { self.state.withLock { $0.inFlight -= 1 } }
        await gate()
        if let failure { throw failure }
        guard let bytes else { throw ProviderError(.notFound, detail: "none") }
        let end = min(Int(range.upperBound), bytes.count)
        let position = Mutex(Int(range.lowerBound))
        let box = Box(position)
        let part = part
        let stream = ByteStream { () async throws(ProviderError) -> [UInt8]? in
            await Task.yield()
            await self.gate()
            let start = box.value.withLock { position in
                defer { position = min(position + part, end) }
                return position
            }
            if let cut, start - Int(range.lowerBound) >= cut {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "cut")
            }
            guard start < end else {
                withExtendedLifetime(transfer) {}
                return nil
            }
            return Array(bytes[start..<min(start + part, end)])
        }
        return state.withLock { $0.confirmation }.map { task in
            stream.confirmed {
                self.state.withLock { $0.confirmations += 1 }
                return await task.value
            }
        } ?? stream
    }

    func export(_ item: ItemID) async throws(ProviderError) -> ByteStream {
        let (name, count) = state.withLock { state in
            state.exportCount += 1
            let name = "\(item) as export \(state.exportCount)"
            let bytes = state.exports.isEmpty ? nil : state.exports.removeFirst()
            state.contents[name] = bytes
            return (name, bytes?.count ?? 0)
        }
        return try await fetch(
            ContentKey(account: AccountID(0), item: ItemID(name), revision: Revision("")),
            range: 0..<Int64(count)
        )
    }

    /// Bytes that went into the service's hashers.
    var hashedBytes: Int { hashed.withLock { $0 } }
    private let hashed = Mutex(0)

    func makeHasher() -> any ContentHasher { CountingHasher(service: self) }

    private struct CountingHasher: ContentHasher {
        let service: FakeService
        var hasher = SumHasher()

        mutating func update(_ bytes: ArraySlice<UInt8>) {
            service.hashed.withLock { $0 += bytes.count }
            hasher.update(bytes)
        }
        func finalize() -> ContentHash { hasher.finalize() }
    }

    /// In flight until its stream is let go, read to the end or not.
    private final class Transfer: Sendable {
        let end: @Sendable () -> Void
        init(end: @escaping @Sendable () -> Void) { self.end = end }
        deinit { end() }
    }

    private final class Box: Sendable {
        let value: Mutex<Int>
        init(_ value: consuming Mutex<Int>) { self.value = value }
    }
}

/// A quick hash that differs for different contents.
struct SumHasher: ContentHasher {
    private var sum: UInt64 = 14_695_981_039_346_656_037
    mutating func update(_ bytes: ArraySlice<UInt8>) {
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 1_099_511_628_211 }
    }
    func finalize() -> ContentHash {
        ContentHash(algorithm: .sha256, value: String(sum, radix: 16))
    }
    static func hash(of bytes: [UInt8]) -> ContentHash {
        var hasher = SumHasher()
        hasher.update(bytes[...])
        return hasher.finalize()
    }
}

/// Waits until something that another task brings about is so.
func until(_ condition: () throws -> Bool) async throws {
    while !(try condition()) {
        try Task.checkCancellation()
        await Task.yield()
    }
}
