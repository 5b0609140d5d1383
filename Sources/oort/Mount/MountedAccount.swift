import Foundation
import OortCatalog
import OortFileSystem
import OortModel
import OortSync
import OortTransport
import Synchronization

/// One account as long as it is mounted.
final class MountedAccount: Sendable {
    /// The user's name for it.
    let name: String
    /// The service's name.
    let service: String
    /// What keeps it and its service in agreement.
    let engine: SyncEngine
    /// What brings here what is pinned.
    let keeper: PinKeeper
    /// What its service can do; nil of one that keeps no files of the person's.
    var abilities: AccountAbilities? { connection.abilities }
    private let connection: AccountConnection
    /// Runs engine and keeper; owned by this object, ended by `stop`.
    private let running = Mutex<Task<Void, Never>?>(nil)

    /// An account whose folders can be listed; `start` has its changes come and go.
    init(
        name: String,
        service: String,
        engine: SyncEngine,
        keeper: PinKeeper,
        connection: AccountConnection
    ) {
        self.name = name
        self.service = service
        self.engine = engine
        self.keeper = keeper
        self.connection = connection
    }

    /// Its number in the catalog.
    var id: AccountID { engine.account }

    /// What went over the wire for it.
    var meter: TrafficMeter { connection.meter }

    /// Starts engine and keeper; a second call does nothing.
    func start() {
        running.withLock { [engine, keeper] running in
            guard running == nil else { return }
            running = Task {
                await withDiscardingTaskGroup { group in
                    group.addTask { await engine.run() }
                    group.addTask { await keeper.run() }
                }
            }
        }
    }

    /// Stops, or resumes, all sending and all fetching that no program waits for.
    func setPaused(_ isPaused: Bool) async {
        await engine.setPaused(isPaused)
        await keeper.setPaused(isPaused)
    }

    /// Ends engine and keeper; what is pending stays in the catalog.
    func stop() async {
        let running = running.withLock { $0 }
        running?.cancel()
        await running?.value
        await connection.close()
    }
}

extension MountedAccount {
    /// Ends the engine of an account that is signed out or signed in anew; its tokens are no longer this
    /// connection's to store.
    func leave() async {
        await connection.retire()
        await stop()
    }
}

/// An account whose folder is shown and whose changes are kept, but which is not signed in.
struct DetachedAccount: Sendable {
    /// Its number in the catalog; nil while the catalog has nothing of it.
    let id: AccountID?
    /// Whose it is.
    let kept: KeptAccount
    /// Why nothing goes out, and what to do.
    let obstacle: String
}

/// The engine as the file system sees it.
struct EngineLister: FolderLister {
    /// The account's engine.
    let engine: SyncEngine
    /// The strategy that the engine carries its plans out by.
    let provider: any Provider
    let catalog: Catalog

    func list(_ folder: Inode) async throws(ProviderError) { try await engine.list(folder) }

    func find(_ name: String, in folder: Inode) async throws(ProviderError) {
        try await engine.find(name, in: folder)
    }

    func look(at item: Inode) async throws(ProviderError) { try await engine.look(at: item) }

    func roomIsShown() { engine.roomIsShown() }

    var tellsShares: Bool { provider.shares != nil }

    func sharedWith(_ item: Inode) async throws(ProviderError) -> TextList {
        guard let shares = provider.shares, let reference = try await reference(to: item) else {
            return TextList()
        }
        return try await shares.sharedWith(reference)
    }

    private func reference(to item: Inode) async throws(ProviderError) -> ItemReference? {
        do throws(CatalogError) { return try await catalog.reference(to: item) } catch {
            throw ProviderError(.localContent, detail: "catalog: \(error)")
        }
    }

    func makeFolder(_ name: String, in folder: Inode) async throws(ProviderError) {
        guard let parent = try await reference(to: folder) else {
            throw ProviderError(.parentNotFound, detail: "the service does not know the folder")
        }
        _ = try await provider.createFolder(NewFolder(parent: parent, name: name))
        try await engine.list(folder)
    }
}
