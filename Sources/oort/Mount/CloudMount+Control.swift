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
                uploadLimit: bandwidth.up.bytesPerSecond,
                downloadLimit: bandwidth.down.bytesPerSecond,
                trouble: trouble,
                foldersAside: foldersAside,
                foundBeneath: foundBeneath
            ),
            accounts: []
        )
        for account in mounted.values { report.accounts.append(await status(of: account)) }
        for account in detached.withLock({ $0 }).values {
            report.accounts.append(await status(of: account))
        }
        report.accounts.sort { $0.name < $1.name }
        var kept: Int64 = 0
        for account in mounted.values {
            let sums = await account.keeper.report().sums
            // `oort pins` reports pins that find no room.
            kept = kept.addingSaturating(min(sums.cachedBytes, sums.bytesHere))
        }
        if kept > options.settings.cacheSize.bytes { report.mount?.keptAboveLimit = kept }
        report.needs = Need.all(in: report)
        return report
    }

    /// What is wrong with the disk on which programs' writes are kept, in words.
    private var diskTrouble: String? {
        let catalogTrouble = catalog.trouble.map {
            CatalogTrouble.words($0, path: options.folders.catalogFile)
        }
        if case .corrupt = catalog.trouble { return catalogTrouble }
        guard let trouble = store.trouble else {
            if let catalogTrouble { return catalogTrouble }
            guard store.isCacheFull else { return nil }
            return
                "there is no room on the disk of the cache (\(options.folders.cache)): make some; "
                + "what is not here already cannot be read until then"
        }
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

    /// Whether an item waits for a program to close it: a program that writes to it, or that has it open
    /// and may still read what is to be deleted or replaced.
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
        var groups: [PendingGroup] = []
        var keeping: PinProgress?
        var held = 0
        do throws(CatalogError) {
            groups = try await waiting(
                of: account.id,
                below: folder,
                compared: Self.compared(status.transfers),
                now: now
            )
            keeping = try await self.keeping(of: account)
            held = try await catalog.heldCount(account.id)
        } catch { status.trouble = .unreadable(error) }
        let isPaused = await account.engine.isPaused
        if isPaused {
            for index in groups.indices
            where !groups[index].isUnderWay && !groups[index].needsPerson {
                groups[index].next = "waits for the end of the pause"
            }
        }
        if account.engine.isReadOnly {
            for index in groups.indices {
                groups[index].needsPerson = true
                groups[index].next = SyncWords.readOnly
            }
        }
        let names = refusedNames(of: account.id, below: folder, now: now)
        let refused = groups.filter(\.needsPerson).reduce(0) { $0 + $1.count }
        let speed = speed(
            of: account,
            groups: groups,
            sent: status.transfers.reduce(0) { $0 + ($1.isUpload ? $1.sent : 0) },
            isComing: transfers.contains { !$0.isUpload }
        )
        let obstacles = SyncWords.obstacles(status.pending, now: now)
        let compared = Self.compared(status.transfers)
        let pending = status.pending.map { item in
            SyncWords.change(
                item,
                below: folder,
                isHeld: isHeld(item),
                isCompared: compared.contains(item.inode),
                obstacle: obstacles[item.inode],
                now: now
            )
        }
        return AccountStatus(
            name: account.name,
            service: account.service,
            person: known.flatMap { $0.email ?? $0.displayName },
            state: SyncWords.state(status, refused: refused, isPaused: isPaused),
            trouble: SyncWords.trouble(
                status.trouble,
                account: account.name,
                service: account.service
            ) ?? damage,
            remarks: status.remarks.isEmpty ? nil : status.remarks,
            signIn: status.trouble?.needsPerson == true
                ? SyncWords.signIn(account: account.name, service: account.service) : nil,
            isReadOnly: account.engine.isReadOnly ? true : nil,
            abilities: account.abilities,
            pausedUntil: pace.withLock { $0.pause(of: account.name, at: now)?.until },
            usedBytes: status.quota?.used,
            totalBytes: status.quota?.total,
            knownItems: status.knownItems,
            pendingCount: status.pendingCount,
            pendingBytes: speed.bytes,
            refusedCount: refused,
            uploadBytesPerSecond: speed.up,
            downloadBytesPerSecond: speed.down,
            secondsLeft: status.trouble == nil && !isPaused ? speed.secondsLeft : nil,
            waiting: groups,
            pending: Self.ordered(pending),
            transfers: transfers,
            keeping: keeping,
            staysHere: held > 0 ? held : nil,
            conflicts: status.conflicts.map { ([folder] + $0.path).joined(separator: "/") },
            refusedNames: names.isEmpty ? nil : names
        )
    }

    /// The names of an account's files that programs were refused in the last hour, the newest first.
    private func refusedNames(
        of account: AccountID,
        below folder: String,
        now: Date
    ) -> [RefusedNameReport] {
        files.refusedNames.reversed().compactMap { refused in
            let time = refused.time.date
            guard refused.account == account, now.timeIntervalSince(time) < 3600 else {
                return nil
            }
            let place: String?
            // For a folder that is gone, or cannot be read, the account's folder is named.
            do throws(CatalogError) { place = try path(of: refused.folder) } catch { place = nil }
            return RefusedNameReport(
                path: "\(place ?? folder)/\(refused.name)",
                reason: refused.reason,
                time: time
            )
        }
    }

    /// The files whose contents are read at the service, to be compared with what was sent.
    private static func compared(_ transfers: [SyncStatus.Transfer]) -> Set<Inode> {
        Set(transfers.filter { !$0.isUpload }.map(\.inode))
    }

    /// All that an account's service does not have yet, in groups.
    private func waiting(
        of account: AccountID,
        below folder: String,
        compared: Set<Inode>,
        now: Date
    ) async throws(CatalogError) -> [PendingGroup] {
        let survey = try await catalog.surveyPending(
            account,
            examples: 3,
            isRefused: { SyncWords.isRefused($0, now: now) },
            kind: { [self] item, obstacle in
                PendingKind(
                    item,
                    obstacle: obstacle,
                    isHeld: isHeld(item),
                    isCompared: compared.contains(item.inode),
                    now: now
                )
            }
        )
        var obstacles: [Inode: String] = [:]
        for inode in survey.groups.keys.compactMap(\.obstacle) {
            obstacles[inode] = try path(of: inode)
        }
        return SyncWords.groups(survey, below: folder, obstacles: obstacles, now: now)
    }

    /// How fast an account's changes go out, and how long those will take that go by themselves.
    private func speed(
        of account: MountedAccount,
        groups: [PendingGroup],
        sent: Int64,
        isComing: Bool
    ) -> (bytes: Int64, up: Int64?, down: Int64?, secondsLeft: Int64?) {
        let going = groups.filter { !$0.needsPerson }
        let count = going.reduce(0) { $0 + $1.count }
        let bytes = groups.reduce(0) { $0 + $1.bytes }
        let up = account.meter.sentContent.perSecond
        let seconds = SyncWords.secondsLeft(
            bytes: max(going.reduce(0) { $0 + $1.bytes } - sent, 0),
            count: count,
            bytesPerSecond: up,
            itemsPerSecond: account.engine.finished.perSecond
        )
        return (
            bytes: max(bytes - sent, 0),
            up: count > 0 ? up.map { Int64($0) } : nil,
            down: isComing ? account.meter.receivedContent.perSecond.map { Int64($0) } : nil,
            secondsLeft: seconds.flatMap { Int64(exactly: $0.rounded(.up)) }
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

    /// The contents that are being sent to an account's service, by path, and those that are read there to
    /// be compared.
    private func uploads(
        _ status: SyncStatus,
        below folder: String
    ) throws(CatalogError) -> [Transfer] {
        try status.transfers.map { transfer throws(CatalogError) in
            Transfer(
                path: try path(of: transfer.inode) ?? folder,
                isUpload: transfer.isUpload,
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
        if !status.pending.isEmpty {
            status.waiting = [
                PendingGroup(
                    count: status.pendingCount,
                    bytes: 0,
                    isUnderWay: false,
                    needsPerson: true,
                    next: "kept here",
                    examples: status.pending.prefix(3).map { PendingExample(path: $0.path) }
                )
            ]
            status.refusedCount = status.pendingCount
        }
        return status
    }

    /// The stored changes of an account that is not signed in.
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
                // Nothing is reported of a catalog that could not be read.
                if now.pendingCount == 0 { changed.yield() }
            }
            group.cancelAll()
        }
    }

    private func progress(_ targets: [Target]) async -> SyncProgress {
        var changes: [PendingChange] = []
        var isStuck = true
        var isKnown = true
        var (bytes, speed, seconds) = (Int64(0), Int64?.none, Double?.some(0))
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
            let isPaused = await account.engine.isPaused
            let obstacles = SyncWords.obstacles(all, now: now)
            // What waits for a refused change, though it does not lie in it, has no error of its own.
            let isIdle = await account.engine.isIdle
            let transfers = await account.engine.transfers
            let compared = Self.compared(transfers)
            let sent = transfers.filter { transfer in
                transfer.isUpload && items.contains { $0.inode == transfer.inode }
            }
            let left = max(items.reduce(0) { $0 + $1.size } - sent.reduce(0) { $0 + $1.sent }, 0)
            bytes += left
            if !items.isEmpty {
                let rate = account.meter.sentContent.perSecond
                speed = rate.map { (speed ?? 0) + Int64($0) } ?? speed
                let time = SyncWords.secondsLeft(
                    bytes: left,
                    count: items.count,
                    bytesPerSecond: rate,
                    itemsPerSecond: account.engine.finished.perSecond
                )
                // The accounts send at the same time.
                seconds =
                    trouble == nil ? seconds.flatMap { now in time.map { max(now, $0) } } : nil
            }
            let isHeldUp = isIdle && all.contains { SyncWords.isRefused($0, now: now) }
            for item in items {
                var change = SyncWords.change(
                    item,
                    below: folder,
                    isHeld: isHeld(item),
                    isCompared: compared.contains(item.inode),
                    obstacle: obstacles[item.inode],
                    now: now
                )
                if account.engine.isReadOnly {
                    change.error = change.error ?? SyncWords.readOnly
                } else if isPaused, !item.isUnderWay, change.error == nil {
                    change.next = "paused: oort resume \(Shell.quoted(account.name))"
                } else if trouble?.needsPerson == true || SyncWords.isRefused(item, now: now) {
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
            pendingBytes: bytes,
            uploadBytesPerSecond: speed,
            secondsLeft: changes.isEmpty
                ? nil : seconds.flatMap { Int64(exactly: $0.rounded(.up)) },
            pending: Array(Self.ordered(changes).prefix(100))
        )
    }

    /// An account, connected or not, and what of it is meant; the whole of it for nil.
    struct Target {
        var account: MountedAccount?
        var detached: DetachedAccount?
        var inode: Inode?
    }

    func targets(of path: String?) throws(Failure) -> [Target] {
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
}

/// The last progress that a waiting client got, shared by the work and its timer.
private final class LatestProgress: Sendable {
    let value = Mutex(SyncProgress(state: .waiting, pendingCount: 0, pending: []))
}
