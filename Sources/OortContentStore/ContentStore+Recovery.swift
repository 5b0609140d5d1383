import Logging
import OortCatalog
import OortModel
import Synchronization

/// What was found when the store was opened.
public struct ContentRecovery: Sendable, Hashable {
    /// Staged contents that a dead process had open: recorded with all that was acknowledged.
    public var recovered = 0
    /// Staged contents whose bytes are lost or torn; each is also logged.
    public var damaged: [Int64] = []
    /// Cached contents whose file was gone.
    public var lost = 0
    /// Files that belonged to nothing.
    public var strays = 0
}

extension ContentStore {
    /// Brings the catalog and the folders into agreement after whatever ended the last process.
    ///
    /// To
    /// be called once, before anything else.
    ///
    /// Staged content is never taken away for being damaged: it stays, and reading it fails.
    @discardableResult
    public func recover() async throws(ContentError) -> ContentRecovery {
        var recovery = ContentRecovery()
        do throws(CatalogError) {
            let orphans = Set(try await catalog.orphanedContents())
            let rows = try catalog.contents()
            var gone: [ContentID] = Array(orphans)
            var staged: Set<ContentID> = []
            var cached: Set<ContentID> = []
            for row in rows {
                if orphans.contains(row.id) { continue }
                if row.isStaged {
                    staged.insert(row.id)
                    try recover(row, &recovery)
                } else if DiskFile.exists(paths.cached(row.id))
                    || DiskFile.move(paths.staged(row.id), to: paths.cached(row.id))
                {
                    cached.insert(row.id)
                    room.addCached(row.bytesOnDisk)
                } else {
                    gone.append(row.id)
                    recovery.lost += 1
                }
            }
            try await catalog.removeContents(gone)
            recovery.strays =
                sweep(paths.stagedFolder, keeping: staged)
                + sweep(paths.cacheFolder, keeping: cached)
        } catch { throw .catalog(detail: "\(error)") }
        return recovery
    }

    private func recover(
        _ row: ContentRow,
        _ recovery: inout ContentRecovery
    ) throws(CatalogError) {
        do throws(ContentError) {
            let content = try load(staged: row.id)
            defer { if let base = content.base { close(base) } }
            let (size, charged) = content.state.withLock { ($0.size, $0.charged) }
            room.addStaged(charged)
            guard row.isOpen || row.size != size else { return }
            let (seconds, nanoseconds) = try content.file().modified()
            let written = Timestamp(seconds: seconds, nanoseconds: nanoseconds)
            do throws(CatalogError) {
                // A time that a program set after its last write is kept.
                let node = try catalog.node(staged: row.id)
                let modified = node.map { $0.changed > written ? $0.modified : written }
                try catalog.recordStaged(
                    row.id,
                    size: size,
                    modified: modified ?? written,
                    isOpen: false
                )
            } catch { throw .catalog(detail: "\(error)") }
            recovery.recovered += 1
        } catch {
            recovery.damaged.append(row.id.rawValue)
            logger.error(
                "bytes that were not uploaded yet are damaged",
                metadata: ["content": "\(row.id.rawValue)", "cause": "\(error)"]
            )
        }
    }

    /// Takes away files that belong to no content.
    private func sweep(_ folder: String, keeping: Set<ContentID>) -> Int {
        var count = 0
        for (path, id) in paths.files(in: folder) {
            if let id, keeping.contains(id) { continue }
            DiskFile.remove(path)
            count += 1
        }
        return count
    }
}
