import Foundation
import OortCatalog
import OortFileSystem
import OortModel
import OortSync

/// One account as long as it is mounted.
struct MountedAccount: Sendable {
    /// The user's name for it.
    let name: String
    /// The service's name.
    let service: String
    /// What keeps it and its service in agreement.
    let engine: SyncEngine
    /// Runs the engine; owned by this value, ended by `stop`.
    private let running: Task<Void, Never>

    /// Starts the engine.
    init(name: String, service: String, engine: SyncEngine) {
        self.name = name
        self.service = service
        self.engine = engine
        running = Task { await engine.run() }
    }

    /// Its number in the catalog.
    var id: AccountID { engine.account }

    /// Ends the engine; what is pending stays in the catalog.
    func stop() async {
        running.cancel()
        await running.value
    }
}

/// An account whose folder is shown and whose changes are kept, but which nobody signed in to.
struct DetachedAccount: Sendable {
    /// Its number in the catalog.
    let id: AccountID
    /// Whose it is.
    let kept: KeptAccount
    /// Why nothing goes out, and what to do.
    let obstacle: String
}

/// The engine as the file system sees it.
struct EngineLister: FolderLister {
    /// The account's engine.
    let engine: SyncEngine

    func list(_ folder: Inode) async throws(ProviderError) { try await engine.list(folder) }

    func look(at item: Inode) async throws(ProviderError) { try await engine.look(at: item) }
}
