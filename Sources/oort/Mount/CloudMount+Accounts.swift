import Logging
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import Synchronization

/// One account as long as it is mounted.
struct MountedAccount: Sendable {
    /// Its number in the catalog.
    let id: AccountID
    /// What keeps it and its service in agreement.
    let engine: any AccountEngine
    /// Runs the engine; owned by this value, ended by `stop`.
    private let running: Task<Void, Never>

    /// Starts the engine.
    init(id: AccountID, engine: any AccountEngine) {
        self.id = id
        self.engine = engine
        running = Task { await RequestPriority.$current.withValue(.background) { await engine.run() } }
    }

    /// Ends the engine; what is pending stays in the catalog.
    func stop() async {
        running.cancel()
        await running.value
    }
}

extension CloudMount {
    /// Connects every account on the user's list, and lets go of those that are no longer on it.
    func connectAll() async throws(Failure) {
        let registered = try AccountRegistry(folders: options.folders).accounts()
        for account in try knownAccounts() {
            guard !registered.contains(where: { $0.name == account.name }) else { continue }
            try forget(account)
        }
        for account in registered { try await connect(account) }
    }

    func addAccount(named name: String) async throws(Failure) {
        let account = try AccountRegistry(folders: options.folders).account(named: name)
        // After a new sign-in the engine begins anew, with the new tokens.
        let old = accounts.withLock { $0.removeValue(forKey: name) }
        await old?.stop()
        try await connect(account)
    }

    func removeAccount(named name: String) async throws(Failure) {
        guard let account = try knownAccounts().first(where: { $0.name == name }) else { return }
        let mounted = accounts.withLock { $0[name] }
        let pending = await mounted?.engine.pending(below: nil).count ?? 0
        guard pending == 0 else {
            throw Failure(
                "\"\(name)\" has \(pending) changes that the cloud does not have yet.",
                advice: "Let them go out first (oort sync), or copy them elsewhere; "
                    + "oort status lists them.")
        }
        accounts.withLock { $0[name] = nil }
        await mounted?.stop()
        files.disconnect(account.id)
        store.setFetcher(nil, for: account.id)
        try forget(account)
    }

    private func connect(_ registered: RegisteredAccount) async throws(Failure) {
        guard let service = Services.named(registered.service) else {
            throw Failure(
                "The account \"\(registered.name)\" is of the service \"\(registered.service)\", "
                    + "which this Oort does not know.",
                advice: "Install a newer Oort, or sign it out: oort logout "
                    + Shell.quoted(registered.name))
        }
        var logger = logger
        logger[metadataKey: "account"] = "\(registered.name)"
        let connection = AccountConnection(
            account: registered.name, service: service, settings: options.settings, store: tokens,
            wire: wire, logger: logger)
        let traits = connection.provider.traits
        let account: Account
        do {
            account = try catalog.registerAccount(
                name: registered.name, service: service.name, names: traits.names)
        } catch {
            throw Failure(
                "The account \"\(registered.name)\" cannot be mounted: \(error)",
                advice: "Sign it out and in again under another name.")
        }
        let engine = OfflineEngine(provider: connection.provider)
        store.setFetcher(engine, for: account.id)
        files.connect(account.id, traits: traits, lister: engine)
        let mounted = MountedAccount(id: account.id, engine: engine)
        accounts.withLock { $0[registered.name] = mounted }
    }

    private func knownAccounts() throws(Failure) -> [Account] {
        do {
            return try catalog.accounts()
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// Takes an account out of the catalog that was signed out.
    private func forget(_ account: Account) throws(Failure) {
        do {
            try catalog.removeAccount(account.id)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }
}
