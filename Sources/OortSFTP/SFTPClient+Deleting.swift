import Foundation
public import OortModel
import OortTransport
import SwiftSFTP
import Synchronization

/// Deletions, and Oort's trash on the server.
extension SFTPClient {
    public func removeEmptyFolder(at path: RemotePath) async throws(ProviderError) {
        let session = try await connection.session()
        let own = try await self.path(path)
        do throws(SFTPError) {
            try await session.send(.removeFolder(own)).answer()
        } catch {
            if error.endsSession { await connection.broke(session) }
            guard try await find(path, session) != nil else { return try await checkRoot(session) }
            guard error.isFailure else { throw error.provider(path) }
            throw ProviderError(.locked, detail: "\(path) holds something still: \(error.detail)")
        }
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        try await delete(kind, at: path, revision: revision, mark: nil)
    }

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?,
        mark: String?
    ) async throws(ProviderError) {
        let session = try await connection.session()
        guard let found = try await find(path, session) else { return try await checkRoot(session) }
        let entry = entry(path, found)
        if let revision, entry?.revision != revision {
            throw ProviderError(.preconditionFailed, detail: "\(path) has another revision")
        }
        guard entry?.kind == kind else {
            throw ProviderError(.preconditionFailed, detail: "\(path) is of another kind")
        }
        openFiles.close(at: path)
        if traits.deletesToTrash {
            _ = try await rootPath()
            do throws(SFTPError) {
                let folders = try await makeTrashFolder(for: path, mark, session)
                do throws(SFTPError) {
                    let own = path.name ?? ""
                    let name = try SFTPPath(
                        ByteNames.bytes(found.target == nil ? own : LinkName.link(own) ?? own)
                    )
                    let target = folders[folders.count - 1].appending(name)
                    try await session.send(.rename(found.path, to: target)).answer()
                    purgeTrash(after: folders[0])
                    return
                } catch {
                    for folder in folders.reversed() { _ = session.send(.removeFolder(folder)) }
                    throw error
                }
            } catch {
                if error.endsSession { await connection.broke(session) }
                guard case .status = error.kind else { throw error.provider(path) }
                guard try await find(path, session) != nil else {
                    return try await checkRoot(session)
                }
                if kind == .folder { try await refuseDisk(path, session) }
                // It is on another disk, or in a root where the login may create nothing. The account
                // promises that deleted items can be restored.
                throw ProviderError(
                    .noPermission,
                    detail: "\(path) cannot be moved to \(Self.trash), and is deleted for good "
                        + "only with trash = false: \(error.detail)"
                )
            }
        }
        if kind == .folder {
            // Otherwise its contents would be deleted before the server refuses.
            try await refuseDisk(path, session)
            // A recursive deletion would remove entries that were never seen here.
            throw ProviderError(.unsupported, detail: "\(path) goes piece by piece")
        }
        do throws(SFTPError) { try await remove(kind, found.path, path, session) } catch {
            if error.endsSession { await connection.broke(session) }
            throw error.provider(path)
        }
    }

    /// Removes a file or a tree for good; links are removed and never followed.
    func remove(
        _ kind: PlaceEntry.Kind,
        _ path: SFTPPath,
        _ place: RemotePath,
        _ session: SFTPSession
    ) async throws(SFTPError) {
        guard kind == .folder else {
            do throws(SFTPError) { try await session.send(.remove(path)).answer() } catch {
                guard error.kind == .status(.noSuchFile) else { throw error }
            }
            return
        }
        let entries = try await session.entries(of: path)
        let removals = entries.filter { $0.attributes.kind != .folder }
            .map { session.send(.remove(path.appending($0.name))) }
        for entry in entries where entry.attributes.kind == .folder {
            try await remove(.folder, path.appending(entry.name), place, session)
        }
        for removal in removals {
            do throws(SFTPError) { try await removal.answer() } catch {
                guard error.kind == .status(.noSuchFile) else { throw error }
            }
        }
        try await session.send(.removeFolder(path)).answer()
    }

    // MARK: The trash

    /// Removes from the trash what has lain there for more than 30 days; once in the client's life, in the
    /// background.
    ///
    /// It follows a deletion, whose folder in the trash has the server's present time
    /// (`TrashFolder.outlived`).
    func purgeTrash(after deletion: SFTPPath) {
        guard
            !hasPurged.withLock({ done in
                defer { done = true }
                return done
            })
        else { return }
        Task {
            let trash = RemotePath([Self.trash])
            guard let path = try? await path(trash),
                let session = try? await connection.session(),
                let entries = try? await session.entries(of: path),
                let deleted = entries.first(where: { path.appending($0.name) == deletion })
            else { return }
            let folders = entries.compactMap { entry in
                entry.attributes.times.map {
                    (ByteNames.text(entry.name.bytes), Timestamp(seconds: Int64($0.modified)))
                }
            }
            let named = ByteNames.text(deleted.name.bytes)
            for name in TrashFolder.outlived(among: folders, at: named) {
                guard let name = try? SFTPPath(ByteNames.bytes(name)) else { continue }
                try? await remove(.folder, path.appending(name), trash, session)
            }
        }
    }

    /// A new folder in the trash, for what lies at a path, and the folders in it with which its name goes
    /// on; the last one is to hold the thing.
    func makeTrashFolder(
        for path: RemotePath,
        _ mark: String?,
        _ session: SFTPSession
    ) async throws(SFTPError) -> [SFTPPath] {
        guard let root = root.withLock(\.self) else {
            throw SFTPError(.status(.noSuchFile), detail: "the account's folder is not known")
        }
        let trash = root.appending(try SFTPPath(Self.trash))
        var attributes = SFTPAttributes()
        attributes.mode = 0o700
        // It may exist already.
        _ = session.send(.makeFolder(trash, attributes))
        let number = UInt32.random(in: .min ... .max)
        let names = TrashFolder.names(
            seconds: now().seconds,
            number: number,
            mark: mark,
            of: path
        )
        var folders = [trash]
        for name in names {
            folders.append(
                folders[folders.count - 1].appending(try SFTPPath(ByteNames.bytes(name)))
            )
        }
        folders.removeFirst()
        let made = folders.map { session.send(.makeFolder($0, attributes)) }
        do throws(SFTPError) { for answer in made { try await answer.answer() } } catch {
            for folder in folders.reversed() { _ = session.send(.removeFolder(folder)) }
            throw error
        }
        return folders
    }
}
