import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortFileSystem
import OortModel
import OortSync
import OortTransport
import Synchronization

extension CloudMount {
    /// Connects every account on the user's list; the engines are started later.
    ///
    /// An account that is not on the list, or is there as another person's, is shown as it is stored: its
    /// files are there, and nothing is sent.
    func connectAll() async throws(Failure) {
        let list = try AccountRegistry(folders: options.folders).list()
        let stored = try storedAccounts()
        for account in stored {
            let entry = list.accounts.first { $0.name == account.name }
            let unusable = list.unusable.first { $0.name == account.name }
            let kept = KeptAccount(account)
            guard
                let obstacle = unusable?.trouble ?? kept.obstacle(onList: entry)
                    ?? unknownService(of: kept)
            else { continue }
            // A sign-out forgets the account at once; this one holds nothing, and has no owner.
            if entry == nil, list.unusable.isEmpty, account.identity == nil,
                try forget(account, losingAtMost: 0)
            {
                continue
            }
            try detach(kept, account.id, because: obstacle)
        }
        for entry in list.unusable where !stored.contains(where: { $0.name == entry.name }) {
            try detach(KeptAccount(entry), nil, because: entry.trouble)
        }
        for account in list.accounts where detached.withLock({ $0[account.name] == nil }) {
            let id = stored.first { $0.name == account.name }?.id
            if let obstacle = unknownService(of: KeptAccount(account)) {
                try detach(KeptAccount(account), id, because: obstacle)
                continue
            }
            let link: Link
            // A fault of one account must not keep the others from being mounted.
            do throws(Failure) { link = try self.link(account, stored) } catch {
                try detach(KeptAccount(account), id, because: error.description)
                continue
            }
            try await connect(account, by: link)
        }
    }

    /// Shows an account as it is kept: nothing goes out.
    private func detach(
        _ kept: KeptAccount,
        _ id: AccountID?,
        because obstacle: String
    ) throws(Failure) {
        if let id {
            files.setReadOnly(isReadOnly(kept.name), id)
            catalog.setLeftOut(options.settings.leftOut[kept.name] ?? [], of: id)
            do {
                try catalog.keepIgnoreRules(of: id)
            } catch {
                throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
            }
        }
        logger.warning(
            "nothing of an account goes out",
            metadata: ["account": "\(kept.name)", "reason": "\(obstacle)"]
        )
        detached.withLock {
            $0[kept.name] = DetachedAccount(id: id, kept: kept, obstacle: obstacle)
        }
    }

    /// Whether nothing in an account may be changed.
    func isReadOnly(_ account: String) -> Bool {
        options.isReadOnly || options.settings.readOnlyAccounts.contains(account)
    }

    /// Refuses to have a service change what may not be changed here.
    func refuseReadOnly(_ account: MountedAccount) throws(Failure) {
        guard account.engine.isReadOnly else { return }
        throw Failure(
            "\(account.name) is read-only here: nothing was changed.",
            advice: options.isReadOnly
                ? "Mount without --read-only."
                : "Take read_only out of [accounts.\(account.name)] in the settings, and mount again."
        )
    }

    /// Why an account cannot work, where only another version of Oort knows its service.
    private func unknownService(of account: KeptAccount) -> String? {
        guard Services.named(account.service) == nil else { return nil }
        return "This Oort does not know the service \"\(account.service)\": install a newer one, "
            + "or sign the account out: oort logout " + Shell.quoted(account.name)
    }

    func keptAccounts() throws(Failure) -> [KeptAccount] {
        try storedAccounts().map { KeptAccount($0) }
    }

    func addAccount(named name: String) async throws(Failure) {
        let account = try AccountRegistry(folders: options.folders).account(named: name)
        if let kept = try keptAccounts().first(where: { $0.name == name }),
            let obstacle = kept.obstacle(onList: account)
        {
            throw Failure("\"\(name)\" is another account's folder.", advice: obstacle)
        }
        let link = try link(account, try storedAccounts())
        // After a new sign-in the engine begins anew, with the new tokens.
        let old = accounts.withLock { $0.removeValue(forKey: name) }
        await old?.leave()
        try await connect(account, by: link)
        accounts.withLock { $0[name] }?.start()
        detached.withLock { $0[name] = nil }
    }

    func removeAccount(named name: String, givingUp most: Int) async throws(Failure) {
        guard let account = try storedAccounts().first(where: { $0.name == name }) else { return }
        let mounted = accounts.withLock { $0[name] }
        func refusal() async throws(Failure) -> Failure? {
            let (pending, held) = (try await pending(account.id), try await held(account.id))
            guard pending + held > most else { return nil }
            return RestingState.refusal(pending, held, givingUp: most, of: name, isMounted: true)
        }
        if let refusal = try await refusal() { throw refusal }
        accounts.withLock { $0[name] = nil }
        detached.withLock { $0[name] = nil }
        await mounted?.leave()
        files.disconnect(account.id)
        store.setFetcher(nil, for: account.id)
        guard try forget(account, losingAtMost: most) else {
            // A program wrote something meanwhile.
            do throws(Failure) { try await addAccount(named: name) } catch {
                logger.info("an account is not mounted", metadata: ["cause": "\(error)"])
            }
            if let refusal = try await refusal() { throw refusal }
            throw Failure("\"\(name)\" changed while it was signed out: nothing of it is lost.")
        }
    }

    /// How the mount reaches an account's service.
    private struct Link {
        let service: CloudService
        let connection: AccountConnection
        let provider: any Provider
        let logger: Logger
    }

    /// The way to an account's service; nothing is asked of it yet.
    private func link(
        _ registered: RegisteredAccount,
        _ stored: [Account]
    ) throws(Failure) -> Link {
        guard let service = Services.named(registered.service) else {
            throw Failure(
                "The account \"\(registered.name)\" is of the service \"\(registered.service)\", "
                    + "which this Oort does not know.",
                advice: "Install a newer Oort, or sign it out: oort logout "
                    + Shell.quoted(registered.name)
            )
        }
        var logger = logger
        logger[metadataKey: "account"] = "\(registered.name)"
        let known = stored.first { $0.name == registered.name }
        do throws(ProviderError) {
            let connection = try AccountConnection(
                registered,
                service: service,
                AccountConnection.Surroundings(
                    settings: options.settings,
                    folders: options.folders,
                    store: tokens,
                    wire: ThrottlingClient(wire, bandwidth: bandwidth),
                    bandwidth: bandwidth,
                    logger: logger
                ),
                knownRequests: known?.requestLimit,
                remember: { [catalog, logger] limit in
                    // Ends by itself; what is not kept is found out again.
                    Task {
                        do throws(CatalogError) {
                            try await catalog.setRequestLimit(
                                limit,
                                ofAccountNamed: registered.name
                            )
                        } catch {
                            logger.info("a limit was not kept", metadata: ["cause": "\(error)"])
                        }
                    }
                }
            )
            return Link(
                service: service,
                connection: connection,
                provider: try connection.provider(
                    map: options.folders.placesFile(ofAccount: registered.name)
                ),
                logger: logger
            )
        } catch {
            throw Failure(
                "The account \"\(registered.name)\" cannot be mounted: \(error.detail)",
                advice: "Sign in again: oort login \(service.name) --name "
                    + Shell.quoted(registered.name)
            )
        }
    }

    private func connect(_ registered: RegisteredAccount, by link: Link) async throws(Failure) {
        let (service, connection, provider) = (link.service, link.connection, link.provider)
        let logger = link.logger
        let traits = provider.traits
        let account: Account
        do {
            account = try catalog.registerAccount(
                name: registered.name,
                service: service.name,
                names: traits.names,
                owner: registered.identity.map {
                    AccountOwner(
                        identity: $0,
                        displayName: registered.displayName,
                        email: registered.email
                    )
                }
            )
        } catch {
            throw Failure(
                "The account \"\(registered.name)\" cannot be mounted: \(error)",
                advice: "Sign it out and in again under another name."
            )
        }
        do {
            try catalog.setLinkPolicy(options.settings.links, of: account.id)
            try catalog.setIgnoreRules(
                options.settings.ignoreRules(of: registered.name, after: traits.names),
                of: account.id
            )
        } catch {
            throw Failure("The account \"\(registered.name)\" cannot be mounted: \(error)")
        }
        catalog.setLeftOut(options.settings.leftOut[registered.name] ?? [], of: account.id)
        catalog.setExportPreference(options.settings.documentFormats.preference, of: account.id)
        var settings = SyncSettings()
        settings.settle = options.settings.settle.duration
        settings.pollInterval = options.settings.pollInterval?.duration
        settings.isReadOnly = isReadOnly(registered.name)
        files.setReadOnly(settings.isReadOnly, account.id)
        let engine = SyncEngine(
            account: account.id,
            provider: provider,
            catalog: catalog,
            store: store,
            settings: settings,
            logger: logger
        )
        store.setFetcher(
            ProviderContentFetcher(
                account: account.id,
                provider: provider,
                catalog: catalog
            ),
            for: account.id
        )
        files.connect(
            account.id,
            traits: traits,
            lister: EngineLister(engine: engine, provider: provider, catalog: catalog)
        )
        let mounted = MountedAccount(
            name: registered.name,
            service: service.name,
            engine: engine,
            keeper: PinKeeper(
                account: account.id,
                catalog: catalog,
                store: store,
                look: { [logger] inode in
                    // Where it is not answered, the feed brings the news.
                    do throws(ProviderError) { try await engine.look(at: inode) } catch {
                        logger.info("an item was not asked for", metadata: ["error": "\(error)"])
                    }
                },
                settings: settings,
                logger: logger
            ),
            connection: connection
        )
        let isPaused = pace.withLock { $0.pause(of: registered.name, at: Date()) != nil }
        await mounted.setPaused(isPaused)
        accounts.withLock { $0[registered.name] = mounted }
    }

    private func pending(_ id: AccountID) async throws(Failure) -> Int {
        do {
            return try await catalog.pendingCount(id)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    private func held(_ id: AccountID) async throws(Failure) -> Int {
        do {
            return try await catalog.heldCount(id)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    private func storedAccounts() throws(Failure) -> [Account] {
        do {
            return try catalog.accounts()
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// Takes an account out of the catalog that was signed out.
    private func forget(_ account: Account, losingAtMost most: Int) throws(Failure) -> Bool {
        do {
            return try catalog.removeAccount(account.id, losingAtMost: most)
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }
}
