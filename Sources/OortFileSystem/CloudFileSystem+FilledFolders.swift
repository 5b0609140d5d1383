import Logging
import OortCatalog
import OortModel

/// Folders that only their service can create, and that it fills by itself.
extension CloudFileSystem {
    /// Creates a folder at the service first, where only the service can say whether there can be such a
    /// folder; nil for all other services, where the catalog has it first.
    func makeFolderAtService(_ name: String, in folder: Inode) -> Outcome<Entry>? {
        let parent: Node
        do throws(FileSystemError) {
            parent = try node(folder)
            guard traits(of: parent.account)?.makesFoldersItself == true else { return nil }
            try checkChangeable(folder)
            guard parent.kind == .folder else { throw .notAFolder }
            guard parent.permissions.contains(.write) else { throw .noPermission }
            try check(name, kind: .folder, in: parent)
        } catch { return .failure(error) }
        return waiting.later { () async throws(FileSystemError) in
            if try !self.isKnown(parent) { try await self.list(parent) }
            guard try self.child(name, of: parent) == nil else { throw .exists }
            guard let lister = self.lister(of: parent.account) else { throw .offline }
            do throws(ProviderError) { try await lister.makeFolder(name, in: folder) } catch {
                if error.kind == .nameRefused {
                    throw self.refuse(name, in: parent, error.detail)
                }
                self.logger.notice(
                    "a folder was refused",
                    metadata: ["name": "\(name)", "inode": "\(folder)", "error": "\(error)"]
                )
                throw FileSystemError(error)
            }
            guard let made = try self.child(name, of: parent) else { throw .notFound }
            try await self.list(made)
            return try self.entry(made)
        }
    }

    /// Removes the service's own items from a folder, so that the folder can be removed.
    func emptyFilledFolder(_ name: String, in folder: Inode) throws(CatalogError) {
        let parent = try catalog.node(folder)
        guard traits(of: parent.account)?.fillsFolders == true,
            let filled = try catalog.lookup(name, in: parent), filled.kind == .folder
        else { return }
        for child in try catalog.children(of: filled.inode, after: nil, limit: 1000)
        where child.kind == .nativeDocument {
            _ = try catalog.unlink(child.name, in: filled.inode)
        }
    }
}
