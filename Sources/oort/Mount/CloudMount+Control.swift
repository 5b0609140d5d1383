import Foundation
import OortCatalog
import OortContentStore
import OortModel
import Synchronization

extension CloudMount {
    func status() async -> StatusReport {
        let usage = store.usage
        let mounted = accounts.withLock { $0 }
        var report = StatusReport(
            mount: MountStatus(
                mountPoint: mountPoint, process: getpid(), since: since,
                version: OortVersion.current, cachedBytes: usage.cached,
                cacheLimit: options.settings.cacheSize.bytes),
            accounts: [])
        for (name, account) in mounted.sorted(by: { $0.key < $1.key }) {
            report.accounts.append(await status(of: account, named: name))
        }
        return report
    }

    func sync(_ request: SyncRequest) throws(Failure) -> AsyncStream<SyncProgress> {
        let targets = try targets(of: request.path)
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            // Owned by the stream: ends with it.
            let task = Task {
                await self.sync(targets, within: request.timeoutSeconds) {
                    continuation.yield($0)
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
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
            let count = await account.engine.pending(below: nil).count
            lines.append("oort_pending_changes{account=\"\(label)\"} \(count)")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func status(of account: MountedAccount, named name: String) async -> AccountStatus {
        let engine = await account.engine.report()
        let pending = await account.engine.pending(below: nil)
        let known = try? catalog.account(account.id)
        let person = known.flatMap { $0.email ?? $0.displayName }
        return AccountStatus(
            name: name, service: known?.service ?? "", person: person, state: engine.state,
            trouble: engine.trouble ?? known?.trouble, usedBytes: known?.quota?.used,
            totalBytes: known?.quota?.total, knownItems: engine.knownItems,
            pendingCount: pending.count, pending: shown(pending.changes, of: name),
            transfers: engine.transfers.map { transfer in
                var transfer = transfer
                transfer.path = path(transfer.path, of: name)
                return transfer
            },
            conflicts: engine.conflicts.map { path($0, of: name) })
    }

    /// Sends and waits until nothing is pending, the time is over or nothing can move.
    private func sync(
        _ targets: [Target], within seconds: Double?, tell: @Sendable (SyncProgress) -> Void
    ) async {
        let clock = ContinuousClock()
        let deadline = seconds.map { clock.now + .seconds($0) }
        for target in targets { target.account.engine.hurry() }
        while !Task.isCancelled {
            var count = 0
            var changes: [PendingChange] = []
            var isStuck = true
            for target in targets {
                let pending = await target.account.engine.pending(below: target.inode)
                count += pending.count
                changes += shown(pending.changes, of: target.name)
                if pending.count > 0, !pending.isStuck { isStuck = false }
            }
            if count == 0 {
                return tell(SyncProgress(state: .done, pendingCount: 0, pending: []))
            }
            if isStuck {
                return tell(SyncProgress(state: .stuck, pendingCount: count, pending: changes))
            }
            if let deadline, clock.now >= deadline {
                return tell(SyncProgress(state: .timedOut, pendingCount: count, pending: changes))
            }
            tell(SyncProgress(state: .waiting, pendingCount: count, pending: []))
            for target in targets { target.account.engine.hurry() }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    /// An account, and what of it is meant; the whole of it for nil.
    private struct Target {
        let name: String
        let account: MountedAccount
        let inode: Inode?
    }

    private func targets(of path: String?) throws(Failure) -> [Target] {
        let all = accounts.withLock { $0 }
        guard let path, path != mountPoint else {
            return all.map { Target(name: $0.key, account: $0.value, inode: nil) }
        }
        guard path.hasPrefix(mountPoint + "/") else {
            throw Failure(
                "\(path) does not lie in the mount \(mountPoint).",
                advice: "Name a file or folder below it.")
        }
        var names = path.dropFirst(mountPoint.count + 1).split(separator: "/").map(String.init)
        let name = names.removeFirst()
        guard let account = all[name] else {
            throw Failure(
                "There is no account \"\(name)\" in the mount.",
                advice: "`oort accounts` lists them.")
        }
        guard !names.isEmpty else { return [Target(name: name, account: account, inode: nil)] }
        do throws(CatalogError) {
            guard let root = try catalog.account(account.id)?.root else { throw .noAccount }
            var node = try catalog.node(root)
            for name in names {
                guard let child = try catalog.lookup(name, in: node) else { throw .notFound }
                node = child
            }
            return [Target(name: name, account: account, inode: node.inode)]
        } catch {
            throw Failure("\(path) is not there.", advice: "Check the spelling.")
        }
    }

    private func shown(_ changes: [PendingChange], of account: String) -> [PendingChange] {
        changes.map { change in
            var change = change
            change.path = path(change.path, of: account)
            return change
        }
    }

    private func path(_ path: String, of account: String) -> String {
        "\(mountPoint)/\(account)/\(path)"
    }
}
