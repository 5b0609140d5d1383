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
            mark: { [weak self] id, item in self?.mountedAccount(id)?.engine.trashMark(of: item) },
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
        do throws(CatalogError) {
            let all = try catalog.trashed(of: account.id)
            let alike = all.filter { Self.likeness(found, $0, among: all) != .other }
            let same = alike.last { Self.likeness(found, $0, among: all) == .same }
            guard let item = same ?? (alike.count == 1 ? alike[0] : nil) else { return }
            try await catalog.forgetTrashed(item.id)
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

    /// The entry of the service's trash; nil where there is none.
    ///
    /// - Throws: `Failure` also where several entries may be it.
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
        if let mark = item.mark {
            do throws(ProviderError) {
                try await account.engine.checkPerson()
                return try await trash.entry(marked: mark)
            } catch {
                throw failure(error, "The trash of \(account.name) cannot be read", account)
            }
        }
        let all: [TrashedNode]
        do throws(CatalogError) { all = try catalog.trashed(of: account.id) } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
        let place = try mounted(path(account, item.path))
        let alike = try await entries(trash, below: place).entries
            .filter { Self.likeness($0, item, among: all) != .other }
        if let same = alike.first(where: { Self.likeness($0, item, among: all) == .same }) {
            return same.entry
        }
        // A service may list one entry more than once (a path that was deleted twice).
        guard Set(alike.map { ExactText($0.entry.id) }).count < 2 else {
            throw Failure(
                "The trash of \(account.name) has several things that may be it: `oort trash` lists "
                    + "them, and `oort restore` brings back the one that you name."
            )
        }
        return alike.first?.entry
    }

    /// Whether an entry of a service's trash is what a program moved to the desktop's.
    private enum Likeness {
        case other
        /// Nothing that is known of both differs, and the service does not say what tells them apart.
        case alike
        case same
    }

    /// How far a service's clock may be from this machine's, in seconds.
    private static let clockDifference: Int64 = 60

    private static func likeness(
        _ found: Placed,
        _ item: TrashedNode,
        among all: [TrashedNode]
    ) -> Likeness {
        let entry = found.entry
        if let id = entry.item { return id == item.item ? .same : .other }
        if let mark = entry.mark, mark.isSameText(as: item.mark ?? item.item.rawValue) {
            return .same
        }
        guard item.mark == nil, lay(found, at: item.path),
            entry.kind.map({ ($0 == .folder) == (item.kind == .folder) }) ?? true
        else { return .other }
        if item.kind == .file, let size = entry.size, size != item.size { return .other }
        // What lay there later was deleted later.
        let next = all.first { $0.id > item.id && $0.path == item.path }?.deleted
        guard let time = entry.deletedTime else { return next == nil ? .alike : .other }
        let earliest = item.deleted.seconds - clockDifference
        guard time.seconds >= earliest, next.map({ time < $0 }) ?? true else { return .other }
        return .alike
    }
}
