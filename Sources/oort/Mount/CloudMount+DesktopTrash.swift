import Foundation
import Logging
import OortCatalog
import OortFileSystem
import OortModel
import OortSync
import Synchronization

/// The trash that desktops show: what lies in it comes back out of the services' own.
extension CloudMount {
    /// What the folder of the desktop's trash needs of the accounts.
    var trashService: TrashService {
        TrashService(
            keepsDeleted: { [weak self] id, item in
                guard let engine = self?.mountedAccount(id)?.engine else { return false }
                guard let item else { return engine.trash != nil || engine.undeletion != nil }
                return engine.keepsDeleted(item)
            },
            restore: { [weak self] item, name, folder throws(FileSystemError) in
                guard let self else { throw .offline }
                try await restore(item, as: name, in: folder)
            },
            isInPart: { [weak self] item, name, folder in
                self?.begunRestore(item, as: name, in: folder) != nil
            }
        )
    }

    private func mountedAccount(_ id: AccountID) -> MountedAccount? {
        accounts.withLock { $0.values.first { $0.id == id } }
    }

    /// Has the desktop's trash show something no longer that came back in another way.
    func forgetTrashed(_ found: Placed, _ account: MountedAccount) async {
        guard let names = found.names else { return }
        do throws(CatalogError) {
            try await catalog.forgetTrashed(at: names, of: account.id)
        } catch {
            logger.warning("the desktop's trash shows too much", metadata: ["cause": "\(error)"])
        }
    }

    private func restore(
        _ item: TrashedNode,
        as name: String,
        in folder: Node
    ) async throws(FileSystemError) {
        guard let account = mountedAccount(item.account) else { throw .offline }
        let begun = begunRestore(item, as: name, in: folder)
        if begun == nil { try await awaitDeletion(of: item, account) }
        do throws(Failure) {
            let restore: Restore
            if let begun {
                restore = begun
            } else {
                restore = try await newRestore(of: item, as: name, in: folder, account)
            }
            _ = try await restores.run(restore) { progress throws(Failure) in
                try await self.bringBack(restore, progress) { place throws(ProviderError) in
                    if let undeletion = self.undeletion(of: item, account) {
                        try await undeletion.restore(item.item, revision: item.revision, to: place)
                    } else if let trash = account.engine.trash {
                        try await trash.restore(restore.found.entry, to: place, progress)
                    }
                }
            }
        } catch {
            logger.warning(
                "nothing was brought back from the trash",
                metadata: ["cause": "\(error.message)"]
            )
            throw .failed(detail: error.message)
        }
    }

    private func newRestore(
        of item: TrashedNode,
        as name: String,
        in folder: Node,
        _ account: MountedAccount
    ) async throws(Failure) -> Restore {
        let names = try shownNames(of: folder)
        guard let entry = try await entry(of: item, account) else {
            throw Failure("The trash of \(account.name) does not show it.")
        }
        let isLink = item.kind == .symlink
        // Documents are shown with other endings than they have at the service.
        let isSame = item.path.last?.isSameText(as: name) == true
        let target = Destination(
            place: try mounted(path(account, names)),
            folder: folder,
            name: isSame ? item.serviceName : Self.serviceName(name, isLink: isLink),
            path: path(account, names + [name]),
            isLink: isLink
        )
        return Restore(
            account: account,
            found: Placed(entry: entry, names: item.path, isLink: isLink),
            target: target
        )
    }

    /// The restore of the same item to the same place that is under way, or stopped in the middle.
    private func begunRestore(
        _ item: TrashedNode,
        as name: String,
        in folder: Node
    ) -> Restore? {
        restores.begun { restore in
            guard restore.account.id == item.account, restore.target.folder.inode == folder.inode,
                let last = restore.target.path.parts(between: "/").last,
                name.isSameText(as: String(last)), let names = restore.found.names
            else { return false }
            return names.count == item.path.count
                && zip(names, item.path).allSatisfy { $0.isSameText(as: $1) }
        }
    }

    private func shownNames(of folder: Node) throws(Failure) -> [String] {
        guard !folder.isAccountRoot else { return [] }
        do throws(CatalogError) {
            guard let names = try catalog.shownPath(of: folder.inode) else { throw .notFound }
            return names
        } catch { throw CatalogTrouble.failure(error, path: options.folders.catalogFile) }
    }

    /// Returns when the service has heard of the deletion: before, there is nothing in its trash.
    ///
    /// - Throws: `.offline` where it does not hear of it as long as a program waits for a restore: nothing
    ///   must come back at some later time that nobody expects.
    private func awaitDeletion(
        of item: TrashedNode,
        _ account: MountedAccount
    ) async throws(FileSystemError) {
        let isSent = await withTaskGroup(of: Bool.self) { group in
            group.addTask { await self.isDeletionSent(of: item, account) }
            group.addTask {
                try? await Task.sleep(for: .seconds(45))
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
        guard isSent else { throw .offline }
    }

    private func isDeletionSent(of item: TrashedNode, _ account: MountedAccount) async -> Bool {
        await account.engine.pushingAtOnce { [catalog] changes in
            for await _ in changes {
                do throws(CatalogError) {
                    guard let node = try catalog.knownNode(item.inode) else { return true }
                    if node.parent != nil { return false }
                } catch { return false }
                if await account.engine.trouble != nil { return false }
            }
            return false
        }
    }

    /// How it comes back without a look at the service's trash; nil where it does not.
    private func undeletion(
        of item: TrashedNode,
        _ account: MountedAccount
    ) -> (any Undeletion)? {
        guard let undeletion = account.engine.undeletion else { return nil }
        return item.kind != .folder || undeletion.restoresFolders ? undeletion : nil
    }

    /// The entry of the service's trash: by its id or, where the service reports none, by where it lay and
    /// when it was deleted; nil where there is none.
    private func entry(
        of item: TrashedNode,
        _ account: MountedAccount
    ) async throws(Failure) -> TrashEntry? {
        guard undeletion(of: item, account) == nil, let trash = account.engine.trash else {
            var entry = TrashEntry(id: item.item.rawValue, name: item.serviceName)
            entry.item = item.item
            entry.kind = item.kind == .folder ? .folder : .file
            return entry
        }
        let place = try mounted(path(account, item.path))
        let all = try await entries(trash, below: place).entries
        if let same = all.first(where: { $0.entry.item == item.item }) { return same.entry }
        func distance(_ entry: Placed) -> Int64 {
            let seconds = entry.entry.deletedTime?.seconds ?? 0
            let (difference, isHuge) = seconds.subtractingReportingOverflow(item.deleted.seconds)
            return isHuge ? .max : abs(max(difference, -.max))
        }
        return all.filter { $0.entry.item == nil && Self.lay($0, at: item.path) }
            .min { distance($0) < distance($1) }?.entry
    }
}
