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
    /// Files that belonged to nothing and could not be the only copy of anything.
    public var strays = 0
    /// Staged files that the catalog does not know, moved to one of `ContentStore.foldersAside`.
    public var aside = 0
    /// Whether the staged contents were last used under another catalog, or a later state of this one: this
    /// catalog's records of them were not trusted.
    public var isOfAnotherCatalog = false
    /// Whether the machine started anew since the contents were last used: what was not
    /// synchronised may be lost, which is looked for.
    public var isAfterPowerLoss = false

    /// Nothing out of the ordinary.
    public init() {}
}

extension ContentStore {
    /// Brings the catalog and the folders into agreement after whatever ended the last process.
    ///
    /// To be called once, before anything else.
    ///
    /// If only the process died, everything that was written is there. If the machine died, the disk may
    /// have kept any part of what was not synchronised, and the catalog may be older than the files.
    /// Damaged staged content is never deleted: it stays, and reading it fails. Nor is content that the
    /// catalog does not know: it is moved aside.
    @discardableResult
    public func recover() async throws(ContentError) -> ContentRecovery {
        var recovery = try await recoverStaged()
        try await recoverCached(&recovery)
        return recovery
    }

    /// The part of `recover` that comes before everything else: staged contents, and whether the folders
    /// are this catalog's.
    ///
    /// Takes longer the more is staged; `recoverCached` must follow, and may run beside everything else.
    public func recoverStaged() async throws(ContentError) -> ContentRecovery {
        var recovery = ContentRecovery()
        let boot = Self.bootID
        recovery.isAfterPowerLoss =
            boot == nil || DiskFile.text(at: paths.boot) != boot
        setLooksForHoles(
            recovery.isAfterPowerLoss && !DiskFile.makesHolesOfZeros(at: paths.probe)
        )
        try await takeOver(&recovery)
        do throws(CatalogError) {
            // Below, files are deleted because of what the catalog says, which must therefore be durable.
            try catalog.persist()
            let orphans = Set(try await catalog.orphanedContents())
            let rows = try catalog.stagedContents()
            for row in rows where !orphans.contains(row.id) { await recover(row, &recovery) }
            let known = Set(rows.map(\.id)).subtracting(orphans)
            do throws(ContentError) {
                try clearStaged(keeping: known, orphans: orphans, &recovery)
            } catch { throw CatalogError(error) }
            // After their files, since a file without a row is unknown.
            try await catalog.removeContents(Array(orphans), areStaged: true)
            room.addCached(try catalog.cachedBytes())
        } catch { throw ContentError(error) }
        // This must be known before bytes are read that the disk may have lost.
        if looksForHoles { try await recoverCached(&recovery) }
        return recovery
    }

    /// The part of `recover` that may run beside everything else: cached contents whose files are gone or
    /// have lost bytes, and files that belong to none.
    public func recoverCached(_ recovery: inout ContentRecovery) async throws(ContentError) {
        do throws(CatalogError) {
            var last = ContentID(0)
            while true {
                let rows = try await catalog.cachedContents(after: last, limit: 1000)
                guard let end = rows.last?.id else { break }
                var lost: [ContentRow] = []
                do throws(ContentError) {
                    for row in rows where try !isIntact(row) { lost.append(row) }
                } catch { throw CatalogError(error) }
                recovery.lost += try await remove(cached: lost).count
                last = end
                guard !Task.isCancelled else { return }
            }
            for (path, id) in paths.files(in: paths.cacheFolder) {
                if path == paths.stamp(of: paths.cacheFolder) { continue }
                // A file has its row before it is made, and numbers are not reused.
                if let id, try catalog.content(id) != nil { continue }
                remove([path])
                recovery.strays += 1
                await SystemInputs.yield()
                guard !Task.isCancelled else { return }
            }
        } catch { throw ContentError(error) }
        // Until this says so, every start looks for holes.
        if let boot = Self.bootID { try DiskFile.write(boot, at: paths.boot) }
    }

    /// Makes the two folders this catalog's.
    ///
    /// If they were last used under another catalog, or a later state of this one, its records do not
    /// describe them: the same numbers may mean other contents there.
    private func takeOver(_ recovery: inout ContentRecovery) async throws(ContentError) {
        let isKnown = try areFoldersKnown()
        recovery.isOfAnotherCatalog = !isKnown.staged
        if !isKnown.staged { try clearStaged(keeping: nil, orphans: [], &recovery) }
        do throws(CatalogError) {
            if !isKnown.cache { try await catalog.removeCachedContents() }
        } catch { throw ContentError(error) }
        if !isKnown.cache { remove(paths.files(in: paths.cacheFolder).map(\.path)) }
        do throws(ContentError) { try renewStamps() } catch {
            // Otherwise the next start would take what is staged now for another catalog's.
            guard isKnown.staged, isKnown.cache else { throw error }
            logger.warning("the folders' stamps are the old ones", metadata: ["cause": "\(error)"])
        }
    }

    /// What tells one run of the machine from the next; `man 4 random`.
    private static var bootID: String? { DiskFile.text(at: "/proc/sys/kernel/random/boot_id") }

    /// Whether the bytes that the catalog records for a revision are here.
    ///
    /// - Throws: `ContentError` when the disk does not say.
    func isIntact(_ row: ContentRow) throws(ContentError) -> Bool {
        guard looksForHoles else { return DiskFile.exists(paths.cached(row.id)) }
        let present = row.present.flatMap { RangeSet(record: $0, size: row.size) } ?? RangeSet()
        guard let file = try DiskFile.openIfPresent(paths.cached(row.id)) else { return false }
        return present.subtracting(try file.dataRanges()).isEmpty
    }

    private func recover(
        _ row: ContentRow,
        _ recovery: inout ContentRecovery
    ) async {
        do throws(ContentError) {
            let row = try await takeBack(row)
            let content = try load(staged: row.id)
            defer { if let base = content.base { close(base) } }
            room.set(content.state.withLock { $0.own.byteCount }, of: row.id)
            try judge(row, content, &recovery)
            // The file is longer than was recorded when it was closed: of a later write, the disk kept the
            // bytes but not the note that precedes them.
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

    /// Notes which recorded bytes a closed file lacks.
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

    /// Moves a staged content back, whole, that had been uploaded and moved to the cache before the machine
    /// died, while the catalog came back as it was before.
    private func takeBack(_ row: ContentRow) async throws(ContentError) -> ContentRow {
        guard !DiskFile.exists(paths.staged(row.id)),
            try DiskFile.openIfPresent(paths.cached(row.id))?.size() == row.size
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

    /// Deletes files that belong to no staged content: those that were being made, those that no file had
    /// any longer, and those that are cached by now; files that the catalog does not know are moved aside.
    ///
    /// `known` are the contents that files have, nil when the catalog is not trusted; `orphans` are those
    /// that no file has, according to the catalog.
    private func clearStaged(
        keeping known: Set<ContentID>?,
        orphans: Set<ContentID>,
        _ recovery: inout ContentRecovery
    ) throws(ContentError) {
        let files = paths.files(in: paths.stagedFolder)
        // Temporary files come last: such a name shows that a clone is a copy.
        let made = files.filter { paths.isTemporary($0.path) }
        for (path, id) in files.filter({ !paths.isTemporary($0.path) }) + made {
            if path == paths.boot || path == paths.stamp(of: paths.stagedFolder) { continue }
            if let id, let known, known.contains(id) { continue }
            // A sidecar is handled with its file; without one it means nothing.
            if path.hasSuffix(ContentPaths.journalEnding), DiskFile.exists(path.withoutEnding) {
                continue
            }
            // It was deleted with its file a moment ago.
            guard DiskFile.exists(path) else { continue }
            if try isRubbish(path, id, orphans: orphans, isKnown: known != nil) {
                remove([path, path + ContentPaths.journalEnding])
                recovery.strays += 1
            } else if try setAside(path) {
                recovery.aside += 1
            } else {
                recovery.strays += 1
            }
        }
    }

    private func isRubbish(
        _ path: String,
        _ id: ContentID?,
        orphans: Set<ContentID>,
        isKnown: Bool
    ) throws(ContentError) -> Bool {
        if paths.isTemporary(path) || path.hasSuffix(ContentPaths.journalEnding) { return true }
        guard isKnown, let id else { return false }
        if orphans.contains(id) { return true }
        do throws(CatalogError) {
            guard let row = try catalog.content(id), !row.isStaged else { return false }
            // The move to the cache was not safe from the death of the machine.
            if !DiskFile.exists(paths.cached(id)) {
                pool.forget(path)
                return !DiskFile.move(path, to: paths.cached(id))
            }
            return true
        } catch { throw ContentError(error) }
    }
}

extension String {
    /// The path of a sidecar's content file.
    fileprivate var withoutEnding: String {
        String(decoding: utf8.dropLast(ContentPaths.journalEnding.utf8.count), as: UTF8.self)
    }
}

extension StagedContent {
    /// Bytes of the staged file that the disk really has, where they count.
    fileprivate func bytesOnDisk() throws(ContentError) -> Int64 {
        var data = try file().dataRanges()
        let (own, baseEnd) = state.withLock { ($0.own, $0.baseEnd) }
        // Below the base's end the sidecar decides; bytes that it does not list were not written.
        data.remove(contentsOf: 0..<baseEnd)
        data.formUnion(own)
        return data.byteCount
    }
}
