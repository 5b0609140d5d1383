import Logging
import OortCatalog
import Synchronization

/// Deletes staged contents that no file has any longer.
///
/// Their files go only after the catalog in which no file has them is safe from the death of the machine.
/// Otherwise the catalog might return to an earlier state, with a file whose bytes are gone: one that had
/// been written, synchronised, and replaced a moment ago. Their rows go last: a file without one is
/// unknown, and kept.
extension ContentStore {
    /// Deletes contents that no file has and that are not in use; one in use goes with its last user.
    ///
    /// To be called now and then, and when room is needed. One run at a time: a second call returns at
    /// once.
    public func collectGarbage() async {
        let doomed = state.withLock { state -> Set<ContentID>? in
            guard !state.isCollecting else { return nil }
            state.isCollecting = true
            defer { state.doomed = [] }
            // A content that was opened again, by a node that was read before, is left for the next run.
            return state.doomed.filter { state.staged[$0] == nil }
        }
        guard let doomed else { return }
        defer { state.withLock { $0.isCollecting = false } }
        let orphans: [ContentID]
        do throws(CatalogError) { orphans = try await catalog.orphanedContents() } catch {
            return notCollected(doomed, error)
        }
        let used = state.withLock { state in orphans.compactMap { state.staged[$0]?.content } }
        // Without the store's lock: a content's lock is held over transactions, which wait for that one.
        for content in used { content.state.withLock { $0.isDiscarded = true } }
        let (unused, isMaking) = state.withLock { state in
            // A content that is being made may be in the catalog and not yet in use: left for the next run.
            (orphans.filter { state.staged[$0] == nil }, state.making > 0)
        }
        var garbage = doomed
        if !isMaking { garbage.formUnion(unused) }
        guard !garbage.isEmpty else { return }
        do throws(CatalogError) {
            try catalog.persist()
        } catch {
            return notCollected(garbage, error)
        }
        for id in garbage {
            remove([paths.staged(id), paths.journal(id)])
            room.set(0, of: id)
        }
        state.withLock { state in
            for id in garbage { state.hashes[id] = nil }
        }
        do throws(CatalogError) {
            try await catalog.removeContents(Array(garbage), areStaged: true)
        } catch {
            logger.info("contents are not forgotten yet", metadata: ["cause": "\(error)"])
        }
    }

    private func notCollected(_ garbage: Set<ContentID>, _ cause: CatalogError) {
        logger.warning("contents were not deleted", metadata: ["cause": "\(cause)"])
        state.withLock { $0.doomed.formUnion(garbage) }
    }

    /// Deletes files, which may have been open.
    func remove(_ paths: [String]) {
        for path in paths {
            pool.forget(path)
            DiskFile.remove(path)
        }
    }

    /// Notes that the last user of a content that no file has is gone.
    func doom(_ content: StagedContent) {
        state.withLock { _ = $0.doomed.insert(content.id) }
    }

    func beginMaking() { state.withLock { $0.making += 1 } }

    func endMaking() { state.withLock { $0.making -= 1 } }
}
