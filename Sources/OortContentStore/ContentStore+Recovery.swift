import Logging
import OortCatalog
import OortModel
import Synchronization

/// What was found when the store was opened.
public struct ContentRecovery: Sendable, Hashable {
    /// Staged contents that a dead process had open: recorded with all that was acknowledged.
    public var recovered = 0
    /// Staged contents of which bytes are lost; each is also logged.
    public var damaged: [Int64] = []
    /// Cached contents whose file was gone, or had lost bytes.
    public var lost = 0
    /// Files that belonged to nothing.
    public var strays = 0
    /// Whether the machine started anew since the contents were last used: what was not
    /// synchronised may be lost, which is looked for.
    public var isAfterPowerLoss = false
}

extension ContentStore {
    /// Brings the catalog and the folders into agreement after whatever ended the last process.
    ///
    /// To be called once, before anything else.
    ///
    /// After the death of the process alone, all that was written is there. After that of the
    /// machine, the disk may have kept any of what was not synchronised, and the catalog may be of
    /// an earlier moment than the files. Staged content is never taken away for being damaged: it
    /// stays, and reading it fails.
    @discardableResult
    public func recover() async throws(ContentError) -> ContentRecovery {
        var recovery = ContentRecovery()
        let boot = Self.bootID
        recovery.isAfterPowerLoss =
            boot == nil || DiskFile.text(at: paths.boot) != boot
        let looksForHoles =
            recovery.isAfterPowerLoss && !DiskFile.makesHolesOfZeros(at: temporaryPath())
        setLooksForHoles(looksForHoles)
        do throws(CatalogError) {
            // Files are taken away below on the word of a catalog that must not be forgotten.
            try catalog.persist()
            let orphans = Set(try await catalog.orphanedContents())
            let rows = try catalog.contents()
            var gone: [ContentID] = Array(orphans)
            var staged: Set<ContentID> = []
            var cached: Set<ContentID> = []
            for row in rows {
                if orphans.contains(row.id) { continue }
                if row.isStaged {
                    staged.insert(row.id)
                    await recover(row, &recovery)
                } else if isCached(row, looksForHoles: looksForHoles) {
                    cached.insert(row.id)
                    room.addCached(row.bytesOnDisk)
                } else {
                    gone.append(row.id)
                    recovery.lost += 1
                }
            }
            try await catalog.removeContents(gone)
            try catalog.persist()
            recovery.strays =
                sweep(paths.stagedFolder, keeping: staged)
                + sweep(paths.cacheFolder, keeping: cached)
        } catch { throw ContentError(error) }
        if let boot { try DiskFile.write(boot, at: paths.boot) }
        return recovery
    }

    /// What tells one run of the machine from the next; `man 4 random`.
    private static var bootID: String? { DiskFile.text(at: "/proc/sys/kernel/random/boot_id") }

    /// Whether the bytes of a revision are where they should be.
    private func isCached(_ row: ContentRow, looksForHoles: Bool) -> Bool {
        guard
            DiskFile.exists(paths.cached(row.id))
                || DiskFile.move(paths.staged(row.id), to: paths.cached(row.id))
        else { return false }
        guard looksForHoles else { return true }
        let present = row.present.flatMap { RangeSet(record: $0, size: row.size) } ?? RangeSet()
        guard let file = try? DiskFile.open(paths.cached(row.id)),
            let data = try? file.dataRanges()
        else { return false }
        return present.subtracting(data).isEmpty
    }

    private func recover(
        _ row: ContentRow,
        _ recovery: inout ContentRecovery
    ) async {
        do throws(ContentError) {
            let row = try await takeBack(row)
            let content = try load(staged: row.id)
            defer { if let base = content.base { close(base) } }
            let charged = content.state.withLock { $0.charged }
            room.addStaged(charged)
            try judge(row, content, &recovery)
            // Longer than was recorded when it was closed: a write of which the disk kept the bytes
            // and not the note that comes before.
            guard row.isOpen || row.size != content.size else { return }
            let (seconds, nanoseconds) = try content.file().modified()
            let written = Timestamp(seconds: seconds, nanoseconds: nanoseconds)
            let node: Node?
            do throws(CatalogError) { node = try catalog.node(staged: row.id) } catch {
                throw ContentError(error)
            }
            // A time that a program set after its last write is kept.
            let modified = node.map { $0.changed > written ? $0.modified : written }
            try content.record(modified: modified ?? written)
            if row.isOpen { recovery.recovered += 1 }
        } catch {
            recovery.damaged.append(row.id.rawValue)
            logger.error(
                "bytes that were not uploaded yet are damaged",
                metadata: ["content": "\(row.id.rawValue)", "cause": "\(error)"]
            )
        }
    }

    /// Notes what a closed file lacks of what was recorded when it was closed.
    private func judge(
        _ row: ContentRow,
        _ content: StagedContent,
        _ recovery: inout ContentRecovery
    ) throws(ContentError) {
        var damage = row.damage
        if damage == nil, !row.isOpen {
            var lost = max(row.size - content.size, 0)
            if looksForHoles { lost = max(lost, try row.bytesOnDisk - content.bytesOnDisk()) }
            if lost > 0 {
                damage =
                    "\(lost) of \(row.size) bytes were lost, as by a machine that died; "
                    + "what is left can be read"
            }
        }
        guard let damage else { return }
        if row.damage == nil {
            do throws(CatalogError) { try catalog.setDamage(damage, ofStaged: row.id) } catch {
                throw ContentError(error)
            }
        }
        content.state.withLock { $0.damage = damage }
        recovery.damaged.append(row.id.rawValue)
        logger.error(
            "bytes that were not uploaded yet are damaged",
            metadata: ["content": "\(row.id.rawValue)", "cause": "\(damage)"]
        )
    }

    /// Staged content that had been uploaded and moved to the cache before the machine died, which
    /// the catalog knew and forgot: moved back, whole.
    private func takeBack(_ row: ContentRow) async throws(ContentError) -> ContentRow {
        guard !DiskFile.exists(paths.staged(row.id)), DiskFile.exists(paths.cached(row.id)),
            let size = try? DiskFile.open(paths.cached(row.id)).size(), size == row.size
        else { return row }
        do throws(CatalogError) { try await catalog.standsAlone(row.id) } catch {
            throw ContentError(error)
        }
        guard DiskFile.move(paths.cached(row.id), to: paths.staged(row.id)) else { return row }
        DiskFile.remove(paths.journal(row.id))
        var row = row
        (row.baseItem, row.baseRevision, row.baseSize) = (nil, nil, 0)
        return row
    }

    /// Takes away files that belong to no content.
    private func sweep(_ folder: String, keeping: Set<ContentID>) -> Int {
        var count = 0
        for (path, id) in paths.files(in: folder) {
            if path == paths.boot { continue }
            if let id, keeping.contains(id) { continue }
            DiskFile.remove(path)
            count += 1
        }
        return count
    }
}

extension StagedContent {
    /// Bytes of the staged file that the disk really has, where they count.
    fileprivate func bytesOnDisk() throws(ContentError) -> Int64 {
        var data = try file().dataRanges()
        let (own, baseEnd) = state.withLock { ($0.own, $0.baseEnd) }
        // Below the base's end the sidecar knows; what it does not know of was not written.
        data.remove(contentsOf: 0..<baseEnd)
        data.formUnion(own)
        return data.byteCount
    }
}
