import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortFUSE
import OortFileSystem
import OortModel
import OortSignIn
import OortSync
import OortTransport
import ServiceLifecycle
import SwiftFUSE
import Synchronization

/// All of a person's clouds, mounted: where the columns of the house meet.
///
/// It is mounted when it is made; `run` serves until a stop, unmounts and closes everything.
final class CloudMount: MountedClouds {
    let options: MountOptions
    let logger: Logger
    let since = Date()
    let catalog: Catalog
    let store: ContentStore
    let files: CloudFileSystem
    let wire: CurlClient
    let tokens: any TokenStore
    /// What the kernel asks; nil until `mount`.
    private let fuse = Mutex<FileSystemMount?>(nil)
    /// Owned by the mount, which ends it when it closes.
    private let upkeep = Mutex<Task<Void, Never>?>(nil)
    /// Has the desktop's watch look; the stream is its.
    private let changed = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    /// The watchers of the mount.
    let watchers = Watchers()
    /// What notifies programs that watch a folder, through the kernel.
    let kernelEvents: KernelEvents
    /// What brings thumbnails; nil until `mount`, and where the settings want none.
    private let pictures = Mutex<FolderPictures?>(nil)
    /// What comes back from trashes.
    let restores = Restores()
    /// The limits of all transfers.
    let bandwidth = Bandwidth()
    /// What a person wants of limits and pauses.
    let pace = Mutex(Pace())
    /// Counts how often that was applied.
    let paceChanges = Atomic<Int>(0)
    /// The accounts that are connected, by name.
    let accounts = Mutex<[String: MountedAccount]>([:])
    /// The accounts that are shown without being connected, by name.
    let detached = Mutex<[String: DetachedAccount]>([:])

    var mountPoint: String { fuse.withLock { $0?.path } ?? options.mountPoint.path }

    /// With `OORT_CHECK_CATALOG=1` in the environment, as tests set it, the process ends as soon as
    /// the catalog has become something that it must never be.
    private static func checks(_ logger: Logger) -> CatalogChecks? {
        guard ProcessInfo.processInfo.environment["OORT_CHECK_CATALOG"] == "1" else { return nil }
        return .sparing { broken in
            logger.critical(
                "the catalog is broken",
                metadata: ["invariants": "\(broken.joined(separator: "; "))"]
            )
            // At once, before the broken transaction fails and is tried again.
            exit(70)
        }
    }

    /// Opens the state, connects the accounts and mounts.
    ///
    /// - Throws: `Failure` in words for people; nothing is then mounted.
    static func make(
        _ options: MountOptions,
        _ logger: Logger
    ) async throws(Failure) -> CloudMount {
        try MountRequirements().check(
            path: options.mountPoint.path,
            allowsOtherUsers: options.allowsOtherUsers
        )
        let catalog: Catalog
        do {
            catalog = try Catalog(
                path: options.folders.catalogFile,
                checks: checks(logger),
                logger: logger
            )
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        let store = try await openStore(options, catalog, logger)
        var behaviour = FileSystemSettings()
        behaviour.isReadOnly = options.isReadOnly
        behaviour.umask = options.umask
        behaviour.links = options.settings.links
        behaviour.onlookers = options.settings.onlookers
        behaviour.pictureViewers = options.settings.pictureViewers
        behaviour.owner = getuid()
        behaviour.group = getgid()
        let files = CloudFileSystem(
            catalog: catalog,
            store: store,
            settings: behaviour,
            logger: logger
        )
        let wire = try Wire.make(options.settings)
        let tokens = await options.folders.tokenStore()
        let mount = CloudMount(
            options: options,
            logger: logger,
            catalog: catalog,
            store: store,
            files: files,
            wire: wire,
            tokens: tokens
        )
        let notifier = KernelNotifier()
        mount.listen(telling: notifier)
        do {
            mount.readPace()
            // Complete before the kernel can ask: what is not there in the first moment is believed
            // to be gone by a backup that waited for the mount.
            try await mount.connectAll()
            try mount.mount(telling: notifier)
            await mount.applyPace()
            // Later, or fusermount3, which stays, would inherit the engines' connections.
            for account in mount.accounts.withLock({ Array($0.values) }) { account.start() }
        } catch {
            await mount.close()
            throw error
        }
        mount.removeFetchedVersions()
        mount.beginUpkeep()
        return mount
    }

    /// Work that goes on beside the mount: a look through the catalog's pages, the rest of the recovery,
    /// the index of names, and a checkpoint of the catalog's log once a minute.
    ///
    /// The first three begin when programs have left the catalog alone for a second, at the latest after
    /// half a minute: a walk right after the mount needs the processors. A process that ends earlier loses
    /// nothing: the next one looks through the pages; bytes that were lost with the machine are looked for
    /// until that was done once (`ContentStore.recoverCached`); and a search itself looks at what the index
    /// lacks.
    private func beginUpkeep() {
        let task = Task { [store, catalog, logger, weak self] in
            async let _: Void? = self?.keepDesktopInformed()
            async let _: Void? = self?.keepWatchersInformed()
            do { try await catalog.waitForRest(of: .seconds(1), atMost: .seconds(30)) } catch {
                return
            }
            async let _: Void = catalog.keepSearchIndex()
            do throws(CatalogError) { try await catalog.checkPages() } catch {
                logger.error("the catalog is not sound", metadata: ["cause": "\(error)"])
            }
            do throws(ContentError) {
                var found = ContentRecovery()
                try await store.recoverCached(&found)
                logger.info("the cache was looked through", metadata: ["lost": "\(found.lost)"])
            } catch {
                logger.warning("the cache was not looked through", metadata: ["cause": "\(error)"])
            }
            var left: Set<Inode> = []
            while (try? await Task.sleep(for: .seconds(60))) != nil {
                left = await self?.endLeftConflicts(left) ?? []
                do throws(CatalogError) { try await catalog.checkpoint() } catch {
                    logger.warning(
                        "the catalog's log was not brought home",
                        metadata: ["cause": "\(error)"]
                    )
                }
            }
        }
        upkeep.withLock { $0 = task }
    }

    private init(
        options: MountOptions,
        logger: Logger,
        catalog: Catalog,
        store: ContentStore,
        files: CloudFileSystem,
        wire: CurlClient,
        tokens: any TokenStore
    ) {
        self.options = options
        self.logger = logger
        self.catalog = catalog
        self.store = store
        self.files = files
        self.wire = wire
        self.tokens = tokens
        kernelEvents = KernelEvents(catalog, logger: logger)
    }

    /// Has the kernel and the engines hear of changes.
    private func listen(telling notifier: KernelNotifier) {
        catalog.setListeners(
            CatalogListeners(
                news: { [weak self] news in
                    notifier.hear(news)
                    self?.kernelEvents.hear(news)
                    self?.wakeKeepers()
                    self?.changed.continuation.yield()
                },
                localChange: { [weak self] account in self?.heardOfLocalChange(account) }
            )
        )
        files.setRefusalListener { [weak self] in self?.tell(refused: $0) }
        // An item that waited while it was open for writing may go out now.
        store.writers.setListener { [weak self] inode in
            guard let self else { return }
            do throws(CatalogError) {
                guard let account = try catalog.knownNode(inode)?.account else { return }
                heardOfLocalChange(account)
            } catch {
                // It may be any account's.
                let all = accounts.withLock { Array($0.values) }
                for account in all { account.engine.localChange() }
            }
        }
    }

    func run() async throws {
        do {
            try await withGracefulShutdownHandler {
                try await fuse.withLock { $0 }?.end()
            } onGracefulShutdown: {
                self.stop()
            }
        } catch {
            logger.error("the mount did not end orderly", metadata: ["error": "\(error)"])
        }
        await close()
    }

    func stop() {
        // Owned by the mount's own threads, which end it.
        Task {
            do {
                try await fuse.withLock { $0 }?.unmount(within: .seconds(5))
            } catch {
                logger.error("unmounting failed", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Ends everything, in the order in which it depends on each other.
    private func close() async {
        watchers.end()
        kernelEvents.end()
        files.setPictures(nil)
        await pictures.withLock { $0 }?.end()
        try? await fuse.withLock { $0 }?.unmount(within: .zero)
        let task = upkeep.withLock { $0 }
        task?.cancel()
        await task?.value
        await restores.end()
        let connected = accounts.withLock { accounts in
            defer { accounts = [:] }
            return Array(accounts.values)
        }
        for account in connected { await account.stop() }
        await store.stop()
        await wire.shutdown()
        do {
            // Should the main file's checkpoint fail, the log is safe.
            try catalog.persist()
            try catalog.close()
        } catch {
            logger.error("closing the catalog failed", metadata: ["error": "\(error)"])
        }
    }

    /// Returns when the kernel knows all that changed until now, so that a program that is started next
    /// sees it; after some seconds in any case, since the kernel may wait for a program.
    func finishTelling() async {
        guard let notifier = fuse.withLock({ $0?.notifier }) else { return }
        let (told, end) = AsyncStream<Void>.makeStream()
        // Owned by nothing: ends with what is queued, or with the mount.
        Task {
            await notifier.finishTelling()
            end.finish()
        }
        let timer = Task {
            try? await Task.sleep(for: .seconds(10))
            end.finish()
        }
        for await _ in told {}
        timer.cancel()
    }

    private func heardOfLocalChange(_ id: AccountID) {
        let account = accounts.withLock { $0.values.first { $0.id == id } }
        account?.engine.localChange()
        account?.keeper.wake()
        changed.continuation.yield()
    }

    /// Brings to the desktop what a person has to know, until the task is cancelled.
    private func keepDesktopInformed() async {
        let desktop = Desktop(options.settings)
        guard desktop.isThere else { return }
        let watch = DesktopWatch(
            desktop,
            boardFile: options.folders.noticesFile,
            canSignIn: { Services.named($0)?.oauth != nil },
            logger: logger
        )
        await watch.run(changes: changed.stream) { [self] in await status() }
    }

    /// What is to be kept here may be something else now.
    private func wakeKeepers() {
        for account in accounts.withLock({ Array($0.values) }) { account.keeper.wake() }
    }

    private static func openStore(
        _ options: MountOptions,
        _ catalog: Catalog,
        _ logger: Logger
    ) async throws(Failure) -> ContentStore {
        var settings = ContentStoreSettings()
        settings.limit = options.settings.cacheSize.bytes
        settings.roomPatience = options.settings.roomPatience.duration
        do throws(ContentError) {
            let store = try ContentStore(
                cacheFolder: options.folders.cache,
                stateFolder: options.folders.state,
                catalog: catalog,
                settings: settings,
                logger: logger
            )
            let found = try await store.recoverStaged()
            if found.isOfAnotherCatalog || found.aside > 0 {
                let folders = try store.foldersAside
                logger.error(
                    "the catalog is another one than before, or an older copy of it",
                    metadata: ["moved aside": "\(found.aside)", "to": "\(folders)"]
                )
            }
            if !found.damaged.isEmpty {
                logger.error(
                    "staged contents are damaged",
                    metadata: ["contents": "\(found.damaged)"]
                )
            }
            return store
        } catch {
            throw Failure(
                "The contents in \(options.folders.state) and \(options.folders.cache) cannot be "
                    + "opened: \(error)",
                advice: "Check the disk, its free space and the permissions of the folders."
            )
        }
    }

    /// The folder with what programs wrote at the mount point in the moment of mounting, for as long as it
    /// is there.
    var foundBeneath: String? {
        fuse.withLock { $0?.foundBeneath }
            .flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
    }

    private func mount(telling notifier: KernelNotifier) throws(Failure) {
        var settings = FileSystemMount.Settings()
        settings.isReadOnly = options.isReadOnly
        settings.allowsOtherUsers = options.allowsOtherUsers
        do {
            let mounted = try FileSystemMount(
                TrashFileSystem(files, service: trashService),
                at: options.mountPoint.path,
                settings: settings,
                notifier: notifier,
                announcements: kernelEvents.announcements,
                log: logger
            )
            fuse.withLock { $0 = mounted }
            if let found = mounted.foundBeneath {
                logger.warning(
                    "programs wrote at the mount point while there was no mount",
                    metadata: ["folder": "\(found)"]
                )
            }
            // A mount that refuses all changes refuses the helper's, too.
            if !options.isReadOnly { kernelEvents.begin(at: mounted.path, notifier) }
            let pictures = makePictures(at: mounted.path)
            self.pictures.withLock { $0 = pictures }
            files.setPictures(pictures)
        } catch {
            let path = options.mountPoint.path
            let words: String? =
                if case .system(_, "mount", _) = error {
                    MountRequirements().refusal(
                        at: path,
                        allowsOtherUsers: options.allowsOtherUsers
                    )
                } else { nil }
            throw Failure(
                "Mounting at \(path) failed: \(words ?? "\(error)").",
                advice: "`oort doctor` looks at all that a mount needs, and says what to do."
            )
        }
    }
}
