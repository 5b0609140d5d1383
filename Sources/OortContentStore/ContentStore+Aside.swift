import Foundation
import Logging
import OortCatalog
import Synchronization

/// Staged files that the catalog does not know: perhaps a person's work, if the catalog is another one or
/// an older copy of itself.
///
/// They are never deleted, but moved to a folder beside, for a person to look through. A file that cannot
/// be the only copy of anything is not one of them: a file without bytes, or a clone whose transaction did
/// not end, which has a second name until then.
extension ContentStore {
    /// The folders with staged files that the catalog did not know, and that nobody has removed since.
    ///
    /// - Throws: `.disk` when their folder cannot be listed.
    public var foldersAside: [String] {
        get throws(ContentError) { try paths.foldersAside() }
    }

    /// Moves the unknown file of a staged content away, with its sidecar.
    ///
    /// - Returns: whether it was moved aside, and not deleted.
    /// - Throws: `.disk` when it cannot be moved; it is left as it is.
    @discardableResult
    func setAside(_ path: String) throws(ContentError) -> Bool {
        let sidecar = path + ContentPaths.journalEnding
        let file = try DiskFile.open(path)
        guard try file.linkCount() == 1, try !file.dataRanges().isEmpty else {
            remove([path, sidecar])
            return false
        }
        let folder = state.withLock { state in
            let folder = state.aside ?? paths.aside(at: Date())
            state.aside = folder
            return folder
        }
        let name = path.dropFirst(paths.stagedFolder.count)
        var target = folder + name
        var number = 1
        while DiskFile.exists(target) {
            number += 1
            target = "\(folder)\(name)-\(number)"
        }
        do {
            try FileManager.default.createDirectory(
                at: URL(filePath: target).deletingLastPathComponent(),
                withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700]
            )
        } catch { throw .disk(code: 0, detail: "\(folder): \(error.localizedDescription)") }
        pool.forget(path)
        try DiskFile.rename(path, to: target)
        pool.forget(sidecar)
        if DiskFile.exists(sidecar) {
            try DiskFile.rename(sidecar, to: target + ContentPaths.journalEnding)
        }
        logger.error(
            "bytes that were not uploaded are unknown to the catalog; they were moved aside",
            metadata: ["file": "\(target)"]
        )
        return true
    }

    /// An empty file for a new staged content.
    func makeStagedFile(_ id: ContentID) throws(ContentError) -> DiskFile {
        try freeStagedFile(id)
        return try pool.create(paths.staged(id))
    }

    /// Frees a new staged content's file name: a catalog that is an older copy of itself gives numbers
    /// again.
    func freeStagedFile(_ id: ContentID) throws(ContentError) {
        if DiskFile.exists(paths.staged(id)) { try setAside(paths.staged(id)) }
        pool.forget(paths.staged(id))
    }
}

/// The stamps that the folders bear; see `Catalog.stamps`.
extension ContentStore {
    /// Whether each folder was last used under this catalog, as that is now.
    ///
    /// A folder without a stamp is one of an older version, or was made anew.
    func areFoldersKnown() throws(ContentError) -> (staged: Bool, cache: Bool) {
        let known: Set<String>
        do throws(CatalogError) { known = try catalog.stamps() } catch { throw ContentError(error) }
        let stamps = (staged: stamp(of: paths.stagedFolder), cache: stamp(of: paths.cacheFolder))
        return (
            stamps.staged.map(known.contains) ?? true,
            stamps.cache.map(known.contains) ?? known.isEmpty
        )
    }

    /// Gives both folders a new stamp: an older copy of the catalog then no longer knows them.
    ///
    /// The catalog keeps knowing the old stamps until the next time: wherever this is broken off, each
    /// folder bears a known one.
    func renewStamps() throws(ContentError) {
        let folders = [paths.stagedFolder, paths.cacheFolder]
        let new = UUID().uuidString
        do throws(CatalogError) {
            try catalog.setStamps(Set(folders.compactMap { stamp(of: $0) } + [new]))
        } catch { throw ContentError(error) }
        for folder in folders {
            let temporary = "\(folder)/temporary-stamp"
            DiskFile.remove(temporary)
            let file = try DiskFile.open(temporary, creates: true)
            try file.write([UInt8](new.utf8)[...], at: 0)
            try file.synchronise()
            try DiskFile.rename(temporary, to: paths.stamp(of: folder))
            try DiskFile.synchroniseFolder(folder)
        }
    }

    private func stamp(of folder: String) -> String? {
        DiskFile.text(at: paths.stamp(of: folder)).flatMap { $0.isEmpty ? nil : $0 }
    }
}
