import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Synchronization
import Testing

/// One machine with one account: a catalog, a content store and an engine on a cloud in memory.
final class World {
    let cloud: MemoryCloud
    /// What the engine speaks to; the cloud itself unless a test says otherwise.
    private(set) var provider: any Provider
    let folder: String
    private(set) var catalog: Catalog
    private(set) var store: ContentStore
    let account: Account
    private(set) var engine: SyncEngine
    private var task: Task<Void, Never>?
    private var settings = SyncSettings()
    private let logger: Logger
    private let clock: any Clock<Duration>
    /// The life of the process that runs now, in tests that repeat.
    private var life: Life?

    init(
        _ cloud: MemoryCloud = MemoryCloud(),
        provider: (any Provider)? = nil,
        settings: SyncSettings? = nil,
        clock: any Clock<Duration> = ContinuousClock()
    ) throws {
        self.cloud = cloud
        self.clock = clock
        self.provider = provider ?? cloud
        folder = NSTemporaryDirectory() + "oort-sync-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true
        )
        var logger = Logger(label: "test")
        logger.logLevel =
            ProcessInfo.processInfo.environment["OORT_LOG"] == nil ? .critical : .trace
        self.logger = logger
        (catalog, store) = try Self.open(folder, clock, logger)
        account = try catalog.registerAccount(
            name: "work",
            service: "memory",
            names: self.provider.traits.names
        )
        store.setFetcher(
            ProviderContentFetcher(
                account: account.id,
                provider: self.provider,
                catalog: catalog
            ),
            for: account.id
        )
        // Nothing goes out before a test says so (`sync` does not wait for rest).
        self.settings.settle = .seconds(60)
        if let settings { self.settings = settings }
        engine = SyncEngine(
            account: account.id,
            provider: self.provider,
            catalog: catalog,
            store: store,
            settings: self.settings,
            clock: clock,
            logger: logger
        )
        listen()
    }

    private static func open(
        _ folder: String,
        _ clock: any Clock<Duration>,
        _ logger: Logger
    ) throws -> (Catalog, ContentStore) {
        let catalog = try Catalog(
            path: folder + "/catalog.sqlite",
            checks: .afterEach,
            logger: logger
        )
        let store = try ContentStore(
            cacheFolder: folder + "/cache",
            stateFolder: folder + "/state",
            catalog: catalog,
            clock: clock,
            logger: logger
        )
        return (catalog, store)
    }

    private func listen() {
        let engine = engine
        catalog.setListeners(CatalogListeners(localChange: { _ in engine.localChange() }))
        store.writers.setListener { _ in engine.localChange() }
    }

    func start() {
        let engine = engine
        guard let given = SystemInputs.given else {
            task = Task { await engine.run() }
            return
        }
        let life = Life()
        self.life = life
        task = SystemInputs.$given.withValue(life.surroundings(in: given)) {
            Task { await engine.run() }
        }
    }

    /// The engine sends what is pending, and the process dies so many turns later: nothing goes on.
    ///
    /// What it stored is opened anew, as the next process does, and programs may go on before an engine starts
    /// (`restart`). Only in tests that repeat (`SeededExecutor`).
    func crash(after turns: Int) async throws {
        guard let life, let given = SystemInputs.given else { return }
        let engine = engine
        SystemInputs.$given.withValue(life.surroundings(in: given)) {
            _ = Task { await engine.sync(timeout: .seconds(600)) }
        }
        for _ in 0..<turns { await SystemInputs.yield() }
        life.end()
        task = nil
        // What still runs comes to where its life has ended.
        for _ in 0..<100 { await SystemInputs.yield() }
        (catalog, store) = try Self.open(folder, clock, logger)
        _ = try await store.recover()
        setFetcher()
    }

    private func setFetcher() {
        store.setFetcher(
            ProviderContentFetcher(account: account.id, provider: provider, catalog: catalog),
            for: account.id
        )
    }

    /// A machine whose engine runs for as long as `body` does, and that leaves nothing behind.
    static func run(
        _ cloud: MemoryCloud = MemoryCloud(),
        settings: SyncSettings? = nil,
        clock: any Clock<Duration> = ContinuousClock(),
        _ body: (World) async throws -> Void
    ) async throws {
        let world = try World(cloud, settings: settings, clock: clock)
        world.start()
        do { try await body(world) } catch {
            await world.end()
            throw error
        }
        await world.end()
    }

    /// The engine ends, as in an orderly stop; another one begins on the same catalog, with the same
    /// provider or a new one; `isReadOnly` says whether it may change anything from then on.
    func restart(with provider: (any Provider)? = nil, isReadOnly: Bool? = nil) async {
        await stop()
        if let isReadOnly { settings.isReadOnly = isReadOnly }
        if let provider {
            self.provider = provider
            setFetcher()
        }
        engine = SyncEngine(
            account: account.id,
            provider: self.provider,
            catalog: catalog,
            store: store,
            settings: settings,
            clock: clock,
            logger: logger
        )
        listen()
        start()
    }

    func stop() async {
        task?.cancel()
        await task?.value
        task = nil
    }

    /// An engine is started and ends in the midst of one of its calls, as when the process dies.
    ///
    /// `meanwhile` runs while that call is under way.
    ///
    /// - Returns: whether the engine made so many calls; if not, it has pushed everything.
    @discardableResult
    func die(
        at stall: MemoryCloud.Stall,
        meanwhile: () async throws -> Void = {}
    ) async throws -> Bool {
        cloud.stall(stall)
        await restart()
        let engine = engine
        let push = Task { await engine.sync(timeout: .seconds(600)) }
        try await until {
            let pending = try await catalog.pendingCount(account.id)
            return cloud.isStalled || pending == 0
        }
        let isStalled = cloud.isStalled
        if isStalled { try await meanwhile() }
        push.cancel()
        await stop()
        cloud.stall(nil)
        return isStalled
    }

    /// Ends the engine and takes everything away.
    func end() async {
        await stop()
        try? catalog.close()
        try? FileManager.default.removeItem(atPath: folder)
    }

    // MARK: What programs do

    @discardableResult
    func write(_ path: String, _ text: String) throws -> Node {
        let parts = path.split(separator: "/").map(String.init)
        let parent = try node(parts.dropLast().joined(separator: "/"))
        let name = try #require(parts.last)
        let file =
            try catalog.lookup(name, in: parent)
            ?? catalog.create(
                NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
                named: name,
                in: parent.inode
            )
        return try write(to: file, text)
    }

    @discardableResult
    func write(to file: Node, _ text: String) throws -> Node {
        let (content, _) = try store.stage(
            over: nil,
            of: file.inode,
            account: account.id,
            modified: Timestamp.now
        )
        let bytes = [UInt8](text.utf8)
        _ = unsafe try content.write(bytes.span.bytes, at: 0)
        store.close(content)
        return try catalog.recordStaged(
            content.id,
            size: Int64(text.utf8.count),
            modified: Timestamp.now,
            isOpen: false
        )
            ?? file
    }

    /// A new file at the top that a program has open and has not written to.
    func create(_ name: String) throws -> Inode {
        let file = try catalog.create(
            NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
            named: name,
            in: account.root
        )
        beginWriting(file.inode)
        return file.inode
    }

    /// A program opens a file and begins to write.
    func beginWriting(_ inode: Inode) {
        catalog.opened(forWriting: inode)
        store.writers.beganWriting(inode)
    }

    /// The content of the revision that a file has now, as a program that opens it gets it.
    func open(_ path: String) throws -> CachedContent {
        let node = try node(path)
        guard case .revision(let item, let revision) = node.content else {
            throw CatalogError.notFound
        }
        return try store.open(
            ContentKey(account: account.id, item: item, revision: revision),
            size: node.size,
            hash: node.hash
        )
    }

    /// Writes through a handle that was opened on a revision, at its beginning.
    func write(_ path: String, over base: CachedContent, empties: Bool, _ text: String) throws {
        let file = try node(path)
        let (content, _) = try store.stage(
            over: empties ? nil : base,
            origin: base,
            of: file.inode,
            account: account.id,
            modified: .now
        )
        let bytes = [UInt8](text.utf8)
        _ = unsafe try content.write(bytes.span.bytes, at: 0)
        let size = content.size
        store.close(content)
        store.close(base)
        try catalog.recordStaged(content.id, size: size, modified: .now, isOpen: false)
    }

    /// A program that writes over the beginning of what it wrote before: the staged content stays.
    func overwriter(of path: String) throws -> @Sendable (String) throws -> Void {
        let staged = try #require(try node(path).staged)
        return { [store, catalog] text in
            let content = try store.open(staged: staged)
            let bytes = [UInt8](text.utf8)
            _ = unsafe try content.write(bytes.span.bytes, at: 0)
            let size = content.size
            store.close(content)
            try catalog.recordStaged(staged, size: size, modified: .now, isOpen: false)
        }
    }

    func setModified(_ path: String, _ time: Timestamp) throws {
        var change = NodeAttributes()
        change.modified = time
        _ = try catalog.setAttributes(change, of: try node(path).inode)
    }

    func makeLink(_ name: String, to target: String) throws {
        _ = try catalog.create(
            NewNode(kind: .symlink, mode: 0o777, owner: 0, group: 0, target: target),
            named: name,
            in: account.root
        )
    }

    func makeFolder(_ path: String) throws {
        let parts = path.split(separator: "/").map(String.init)
        _ = try catalog.create(
            NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0),
            named: try #require(parts.last),
            in: try node(parts.dropLast().joined(separator: "/")).inode
        )
    }

    func remove(_ path: String) throws {
        let node = try node(path)
        for child in try catalog.children(of: node.inode, after: nil, limit: 100_000) {
            try remove(path + "/" + child.name)
        }
        let parent = try #require(node.parent)
        _ =
            node.kind == .folder
            ? try catalog.removeFolder(node.name, in: parent)
            : try catalog.unlink(node.name, in: parent)
    }

    func rename(_ path: String, to new: String) throws {
        let node = try node(path)
        let parts = new.split(separator: "/").map(String.init)
        _ = try catalog.rename(
            node.name,
            in: try #require(node.parent),
            to: try #require(parts.last),
            in: try self.node(parts.dropLast().joined(separator: "/")).inode,
            mode: .replace
        )
    }

    /// A new file at the top that is to become a copy of another one, whose bytes are not read for it.
    func copy(_ path: String, to name: String) throws {
        let original = try node(path)
        let copy = try catalog.create(
            NewNode(kind: .file, mode: 0o644, owner: 0, group: 0),
            named: name,
            in: account.root
        )
        _ = try catalog.setCopiedContent(
            item: try #require(original.remoteID),
            revision: try #require(original.revision),
            hash: original.hash,
            size: original.size,
            modified: .now,
            of: copy.inode
        )
    }

    /// Two items of one folder change places, as a program that knows no other way does it.
    func exchange(_ path: String, _ other: String) throws {
        try rename(path, to: path + ".between")
        try rename(other, to: path)
        try rename(path + ".between", to: other)
    }

    func node(_ path: String) throws -> Node {
        try #require(
            try catalog.node(atPath: ["work"] + path.split(separator: "/").map(String.init))
        )
    }

    /// The local tree as paths and contents; folders end with a slash.
    func tree() async throws -> [String: String] {
        var tree: [String: String] = [:]
        var queue = [("", account.root)]
        while let (path, folder) = queue.popLast() {
            for node in try catalog.children(of: folder, after: nil, limit: 100_000) {
                if node.kind == .folder {
                    tree[path + node.name + "/"] = ""
                    queue.append((path + node.name + "/", node.inode))
                } else {
                    tree[path + node.name] = try await text(node)
                }
            }
        }
        return tree
    }

    private func text(_ node: Node) async throws -> String {
        switch node.content {
        case .none: return ""
        case .staged(let id, _):
            let content = try store.open(staged: id)
            defer { store.close(content) }
            return String(decoding: try await content.bytes(0..<node.size), as: UTF8.self)
        case .revision(let item, let revision):
            let content = try store.open(
                ContentKey(account: account.id, item: item, revision: revision),
                size: node.size,
                hash: node.hash
            )
            defer { store.close(content) }
            return String(decoding: try await content.bytes(0..<node.size), as: UTF8.self)
        }
    }

    /// Pushes until the service refuses something, and what else is waited for is so; what is pending
    /// then, what was refused first.
    func pushUntilRefused(
        and condition: () throws -> Bool = { true }
    ) async throws -> [PendingItem] {
        let engine = engine
        let push = Task { await engine.sync(timeout: .seconds(600)) }
        var pending: [PendingItem] = []
        try await until {
            // First: what is pending is to be of then or later.
            guard try condition() else { return false }
            pending = await engine.status().pending
            // Of two changes of one millisecond either may be the first.
            return pending.contains { $0.errorKind != nil }
        }
        push.cancel()
        return pending.filter { $0.errorKind != nil } + pending.filter { $0.errorKind == nil }
    }

    /// Pushes everything, and waits until the local tree is the cloud's.
    func settle() async throws {
        let outcome = await engine.sync(timeout: .seconds(600))
        #expect(outcome.isComplete, "\(outcome)")
        try await agree()
    }

    /// Waits until the local tree is the cloud's.
    func agree() async throws {
        for _ in 0..<30_000 {
            if (try? await tree()) == cloud.tree { break }
            try await SystemInputs.sleep(for: .milliseconds(10))
        }
        #expect(try await tree() == cloud.tree)
    }
}

/// The life of a process: after its end, whatever would ask for time, or read or write a database, stands
/// still for ever.
private final class Life: Sendable {
    private let isOver = Mutex(false)

    func end() { isOver.withLock { $0 = true } }

    func surroundings(in given: SystemInputs) -> SystemInputs {
        SystemInputs(time: given.time, number: given.number) { duration in
            await self.standStillAfterEnd()
            try await given.sleep(duration)
            await self.standStillAfterEnd()
        }
    }

    private func standStillAfterEnd() async {
        guard isOver.withLock(\.self) else { return }
        unsafe await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
    }
}

/// Waits until something that another task brings about is so; the suite's time limit ends it.
func until(_ condition: () async throws -> Bool) async throws {
    while !(try await condition()) { try await SystemInputs.sleep(for: .milliseconds(5)) }
}
