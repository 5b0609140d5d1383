import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Synchronization

extension CloudMount {
    func status() async -> StatusReport {
        let usage = store.usage
        let mounted = accounts.withLock { $0 }
        var trouble = diskTrouble
        var foldersAside: [String] = []
        do throws(ContentError) { foldersAside = try store.foldersAside } catch {
            trouble = trouble ?? "\(error)"
        }
        var report = StatusReport(
            mount: MountStatus(
                mountPoint: mountPoint,
                process: getpid(),
                since: since,
                version: OortVersion.current,
                cachedBytes: usage.cached,
                cacheLimit: options.settings.cacheSize.bytes,
                trouble: trouble,
                foldersAside: foldersAside
            ),
            accounts: []
        )
        for account in mounted.values { report.accounts.append(await status(of: account)) }
        for account in detached.withLock({ $0 }).values {
            report.accounts.append(await status(of: account))
        }
        report.accounts.sort { $0.name < $1.name }
        return report
    }

    /// What is wrong with the disk on which programs' writes are kept, in words.
    private var diskTrouble: String? {
        let catalogTrouble = catalog.trouble.map {
            CatalogTrouble.words($0, path: options.folders.catalogFile)
        }
        if case .corrupt = catalog.trouble { return catalogTrouble }
        guard let trouble = store.trouble else { return catalogTrouble }
        let advice =
            switch trouble {
            case .noSpace:
                "make room on the disk; uploads make room by themselves"
            default: "nothing can be changed until the disk is mended; nothing that was is lost"
            }
        return "\(trouble) (\(options.folders.state)): \(advice)"
    }

    func sync(_ request: SyncRequest) throws(Failure) -> AsyncStream<SyncProgress> {
        let targets = try targets(of: request.path)
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let latest = LatestProgress()
            // Owned by the stream, as the timer is: both end with it.
            let task = Task {
                await self.sync(targets) { progress in
                    latest.value.withLock { $0 = progress }
                    continuation.yield(progress)
                }
                continuation.finish()
            }
            // Apart from the work, so that the time ends also when that hangs.
            let timer = request.timeoutSeconds.map { seconds in
                Task {
                    guard (try? await Task.sleep(for: .seconds(seconds))) != nil else { return }
                    var last = latest.value.withLock { $0 }
                    last.state = .timedOut
                    continuation.yield(last)
                    continuation.finish()
                }
            }
            continuation.onTermination = { _ in
                task.cancel()
                timer?.cancel()
            }
        }
    }

    func metrics() async -> String {
        let usage = store.usage
        var lines = [
            "# TYPE oort_cached_bytes gauge", "oort_cached_bytes \(usage.cached)",
            "# TYPE oort_staged_bytes gauge", "oort_staged_bytes \(usage.staged)",
            "# TYPE oort_pending_changes gauge",
        ]
        for (name, account) in accounts.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let label = name.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            do throws(CatalogError) {
                let count = try await catalog.pendingCount(account.id)
                lines.append("oort_pending_changes{account=\"\(label)\"} \(count)")
            } catch {
                // What cannot be read has no value; none is not 0.
                logger.error("what is pending could not be read", metadata: ["error": "\(error)"])
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Whether an item waits for a program to close it: one that writes to it, or has it open and may
    /// read of it what is to be deleted or replaced.
    private func isHeld(_ item: PendingItem) -> Bool {
        let writers = store.writers
        return writers.isBeingWritten(item.inode)
            || (item.isDeleted || item.isNews) && writers.isOpen(item.inode)
    }

    private func status(of account: MountedAccount) async -> AccountStatus {
        var status = await account.engine.status()
        let folder = "\(mountPoint)/\(account.name)"
        var known: Account?
        var damage: String?
        var transfers: [Transfer] = []
        do throws(CatalogError) {
            known = try catalog.account(account.id)
            damage = try self.damage(of: account.id, below: folder)
            transfers = try uploads(status, below: folder)
            transfers += try downloads(of: account.id, below: folder)
        } catch { status.trouble = .unreadable(error) }
        let now = Date()
        let obstacles = SyncWords.obstacles(status.pending, now: now)
        let pending = status.pending.map { item in
            SyncWords.change(
                item,
                below: folder,
                isHeld: isHeld(item),
                obstacle: obstacles[item.inode],
                now: now
            )
        }
        return AccountStatus(
            name: account.name,
            service: account.service,
            person: known.flatMap { $0.email ?? $0.displayName },
            state: SyncWords.state(status),
            trouble: SyncWords.trouble(
                status.trouble,
                account: account.name,
                service: account.service
            ) ?? damage,
            usedBytes: status.quota?.used,
            totalBytes: status.quota?.total,
            knownItems: status.knownItems,
            pendingCount: status.pendingCount,
            pending: Self.ordered(pending),
            transfers: transfers,
            conflicts: status.conflicts.map { ([folder] + $0.path).joined(separator: "/") }
        )
    }

    /// What an account's service gives other bytes of than it says itself, and what to do.
    private func damage(
        of account: AccountID,
        below folder: String
    ) throws(CatalogError) -> String? {
        var paths: [String] = []
        for key in store.damagedContents where key.account == account {
            guard let node = try catalog.node(remoteID: key.item, account: account),
                node.revision == key.revision
            else { continue }
            paths.append(try path(of: node.inode) ?? folder)
        }
        paths.sort()
        guard let first = paths.first else { return nil }
        let others = paths.count > 1 ? " and \(paths.count - 1) more" : ""
        return "the service gives damaged bytes of \(first)\(others): what was read of it may be "
            + "wrong. Read it again later; if it stays so, look at the service whether an older version is whole"
    }

    /// What goes to an account's service now, by path.
    private func uploads(
        _ status: SyncStatus,
        below folder: String
    ) throws(CatalogError) -> [Transfer] {
        try status.transfers.map { transfer throws(CatalogError) in
            Transfer(
                path: try path(of: transfer.inode) ?? folder,
                isUpload: true,
                doneBytes: transfer.sent,
                totalBytes: transfer.size
            )
        }
    }

    /// What comes from an account's service now, by path.
    private func downloads(
        of account: AccountID,
        below folder: String
    ) throws(CatalogError) -> [Transfer] {
        var found: [Transfer] = []
        for download in store.downloads where download.key.account == account {
            let node = try catalog.node(remoteID: download.key.item, account: account)
            let path = if let node { try path(of: node.inode) } else { String?.none }
            found.append(
                Transfer(
                    path: path ?? folder,
                    isUpload: false,
                    doneBytes: download.present,
                    totalBytes: download.size
                )
            )
        }
        return found.sorted { $0.path < $1.path }
    }

    private func status(of account: DetachedAccount) async -> AccountStatus {
        var status = AccountStatus(account.kept, state: .trouble)
        status.trouble = account.obstacle
        do throws(CatalogError) {
            status.pending = try await changes(of: account, below: nil)
        } catch {
            status.trouble = SyncWords.trouble(
                .unreadable(error),
                account: account.kept.name,
                service: account.kept.service
            )
        }
        status.pendingCount = status.pending.count
        return status
    }

    /// What is kept of an account that nobody signed in to.
    private func changes(
        of account: DetachedAccount,
        below inode: Inode?
    ) async throws(CatalogError) -> [PendingChange] {
        guard let id = account.id else { return [] }
        let now = Date()
        return try await catalog.pending(id, below: inode).map { item in
            var change = SyncWords.change(
                item,
                below: "\(mountPoint)/\(account.kept.name)",
                isHeld: isHeld(item),
                now: now
            )
            change.error = account.obstacle
            change.next = "kept here"
            return change
        }
    }

    /// Sends and waits until nothing is pending or nothing can move.
    private func sync(
        _ targets: [Target],
        tell: @escaping @Sendable (SyncProgress) -> Void
    ) async {
        let (changes, changed) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let (retries, retried) = AsyncStream<Void>.makeStream()
        await withTaskGroup { group in
            let engines = targets.compactMap(\.account?.engine)
            for engine in engines {
                group.addTask {
                    await engine.pushingAtOnce { news in
                        retried.yield()
                        for await _ in news { changed.yield() }
                    }
                }
            }
            // An engine may come to rest without a word.
            group.addTask {
                while (try? await Task.sleep(for: .seconds(1))) != nil { changed.yield() }
            }
            // What was refused earlier is stuck only when it was tried again.
            var all = retries.makeAsyncIterator()
            for _ in engines { await all.next() }
            changed.yield()
            for await _ in changes {
                let now = await progress(targets)
                tell(now)
                guard now.state == .waiting else { break }
                // Looking costs what is pending.
                let pause = Duration.milliseconds(now.pendingCount < 100 ? 10 : 500)
                guard (try? await Task.sleep(for: pause)) != nil else { break }
                // Nothing is told of a catalog that could not be read.
                if now.pendingCount == 0 { changed.yield() }
            }
            group.cancelAll()
        }
    }

    private func progress(_ targets: [Target]) async -> SyncProgress {
        var changes: [PendingChange] = []
        var isStuck = true
        var isKnown = true
        let now = Date()
        for target in targets {
            let all: [PendingItem]
            guard let account = target.account else {
                do throws(CatalogError) {
                    guard let detached = target.detached else { throw .noAccount }
                    changes += try await self.changes(of: detached, below: target.inode)
                } catch { isKnown = false }
                continue
            }
            // What hinders a path may lie above it.
            do throws(CatalogError) { all = try await catalog.pending(account.id) } catch {
                isKnown = false
                continue
            }
            let items = target.inode.map { inode in all.filter { $0.isIn(inode) } } ?? all
            let trouble = await account.engine.trouble
            let folder = "\(mountPoint)/\(account.name)"
            let obstacles = SyncWords.obstacles(all, now: now)
            // What waits for a refused change, though it does not lie in it, has no error of its own.
            let isIdle = await account.engine.isIdle
            let isHeldUp = isIdle && all.contains { SyncWords.isRefused($0, now: now) }
            for item in items {
                var change = SyncWords.change(
                    item,
                    below: folder,
                    isHeld: isHeld(item),
                    obstacle: obstacles[item.inode],
                    now: now
                )
                if trouble?.needsPerson == true || SyncWords.isRefused(item, now: now) {
                    change.error =
                        change.error
                        ?? SyncWords.trouble(
                            trouble,
                            account: account.name,
                            service: account.service
                        )
                } else {
                    let isBlocked =
                        obstacles[item.inode] != nil
                        || isHeldUp && !store.writers.isOpen(item.inode) && item.errorKind == nil
                    if item.isUnderWay || !isBlocked { isStuck = false }
                }
                changes.append(change)
            }
        }
        // What could not be read may be anything: nothing is done before it is known.
        let state: SyncProgress.State =
            if !isKnown { .waiting } else if changes.isEmpty { .done } else {
                isStuck ? .stuck : .waiting
            }
        return SyncProgress(
            state: state,
            pendingCount: changes.count,
            pending: Array(Self.ordered(changes).prefix(100))
        )
    }

    /// An account, connected or not, and what of it is meant; the whole of it for nil.
    private struct Target {
        var account: MountedAccount?
        var detached: DetachedAccount?
        var inode: Inode?
    }

    private func targets(of path: String?) throws(Failure) -> [Target] {
        let all = accounts.withLock { $0 }
        let detached = detached.withLock { $0 }
        guard let path, path != mountPoint else {
            return all.values.map { Target(account: $0) }
                + detached.values.map { Target(detached: $0) }
        }
        guard let below = path.dropping(beginning: mountPoint + "/") else {
            throw Failure(
                "\(path) does not lie in the mount \(mountPoint).",
                advice: "Name a file or folder below it."
            )
        }
        var names = below.parts(between: "/").filter { !$0.isEmpty }.map(String.init)[...]
        guard let name = names.popFirst() else { return try targets(of: mountPoint) }
        var target = Target(account: all[name], detached: detached[name])
        guard let id = target.account?.id ?? target.detached?.id else {
            throw Failure(
                "There is no account \"\(name)\" in the mount.",
                advice: "`oort accounts` lists them."
            )
        }
        guard !names.isEmpty else { return [target] }
        do throws(CatalogError) {
            guard let root = try catalog.account(id)?.root else { throw .noAccount }
            var node = try catalog.node(root)
            for name in names {
                guard let child = try catalog.lookup(name, in: node) else { throw .notFound }
                node = child
            }
            target.inode = node.inode
            return [target]
        } catch {
            throw Failure("\(path) is not there.", advice: "Check the spelling.")
        }
    }

    /// The changes, those with an error before the others.
    private static func ordered(_ changes: [PendingChange]) -> [PendingChange] {
        changes.filter { $0.error != nil } + changes.filter { $0.error == nil }
    }

    private func path(of inode: Inode) throws(CatalogError) -> String? {
        var names: [String] = []
        var next = inode
        while next != .root, names.count < 10_000 {
            guard let node = try catalog.knownNode(next), let parent = node.parent else {
                return nil
            }
            names.append(node.name)
            next = parent
        }
        return ([mountPoint] + names.reversed()).joined(separator: "/")
    }
}

/// What a waiting client was told last, shared by the work and its timer.
private final class LatestProgress: Sendable {
    let value = Mutex(SyncProgress(state: .waiting, pendingCount: 0, pending: []))
}
