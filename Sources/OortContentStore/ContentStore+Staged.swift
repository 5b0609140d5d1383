import Logging
public import OortCatalog
public import OortModel
import Synchronization

/// Making, finding and letting go of staged contents.
extension ContentStore {
    /// Makes a file with empty staged content, in one transaction of the catalog.
    ///
    /// The caller is the content's user, and a writer of the file (`writers`).
    ///
    /// - Throws: what `Catalog.create` throws, `.diskFull` or `.storage` when the content's file
    ///   cannot be made; then nothing is made.
    public func create(
        _ new: NewNode,
        named name: String,
        in folder: Inode
    ) throws(CatalogError) -> (node: Node, content: StagedContent) {
        beginMaking()
        defer { endMaking() }
        var made: (content: ContentID, inode: Inode)?
        do throws(CatalogError) {
            let node = try catalog.create(new, named: name, in: folder) {
                id,
                inode throws(CatalogError) in
                do throws(ContentError) {
                    _ = try self.makeStagedFile(id)
                } catch {
                    throw CatalogError(error)
                }
                // Before any plan could upload it.
                self.writers.opened(inode)
                made = (id, inode)
            }
            guard let made else { throw .storage(detail: "a file without content was made") }
            let content = StagedContent(
                id: made.content,
                account: node.account,
                base: nil,
                state: StagedContent.State(
                    size: 0,
                    baseEnd: 0,
                    own: RangeSet(),
                    isReopened: true
                ),
                store: self
            )
            register(content)
            return (node, content)
        } catch {
            if let made { writers.closed(made.inode, hasWritten: false) }
            throw error
        }
    }

    /// Staged content for a file that is about to be changed: over its present revision (`base`),
    /// or empty.
    ///
    /// The file has it from now on; the caller is its user.
    ///
    /// - Parameters:
    ///   - base: the content that the file holds; the new content uses it, too, from now on. Nil for a new
    ///     or emptied file.
    ///   - origin: what the writer had read before, where that is not the base; nil when it had read
    ///     nothing, or has what the file has now.
    ///   - original: the staged content that the writer had before, likewise.
    ///   - isUnread: whether no program here got a byte of the base: then another revision may take its
    ///     place as long as that is so, if it is of the file's own item (`StagedContent.baseBytes`).
    ///   - inode: the file; when the catalog has forgotten it (unlinked while open), no file has the
    ///     content, and it goes with its last user.
    ///   - account: the file's account.
    ///   - modified: the file's modified time.
    /// - Returns: the content, and the file afterwards.
    /// - Throws: `.noSpace`, `.catalog`.
    public func stage(
        over base: CachedContent?,
        origin: CachedContent? = nil,
        original: StagedContent? = nil,
        isUnread: Bool = false,
        of inode: Inode,
        account: AccountID,
        modified: Timestamp
    ) throws(ContentError) -> (content: StagedContent, node: Node?) {
        let known = origin ?? original?.successor ?? base
        // Of a revision without bytes, only its identity matters: the writer knew it.
        let base = base.flatMap { $0.size > 0 ? $0 : nil }
        let size = base?.size ?? 0
        let isUnread = isUnread && base?.isEmpty == true
        let made = try makeStaged(
            StagedContent.State(size: size, baseEnd: size, own: RangeSet()),
            over: base,
            origin: known.map {
                ContentOrigin(
                    item: $0.key.item,
                    revision: $0.key.revision,
                    size: $0.size,
                    hash: $0.hash,
                    content: $0.namingID
                )
            },
            original: original.flatMap { $0.successor == nil ? $0.id : nil },
            of: inode,
            account: account,
            modified: modified
        ) { id throws(ContentError) in
            let file = try makeStagedFile(id)
            guard base != nil else { return nil }
            try file.resize(to: size)
            return OverlayJournal(file: try pool.create(paths.journal(id)))
        }
        // As the file was inside the transaction: it may have given its item away since the caller looked.
        if isUnread, let item = base?.key.item, made.node?.remoteID == item {
            do throws(ContentError) { try made.content.leaveBaseOpen() } catch {
                logger.info(
                    "a file keeps to the revision that is known",
                    metadata: ["content": "\(made.content.id.rawValue)", "cause": "\(error)"]
                )
            }
        }
        return made
    }

    /// Makes staged content in the given `state`; its file has it from now on, and the caller is its user.
    ///
    /// `files` makes its file and, over a base, its sidecar, before the catalog's transaction ends; if it
    /// throws, none of them is left.
    ///
    /// - Throws: `.noSpace` of the catalog and of `files`, else `.catalog`.
    func makeStaged(
        _ state: StagedContent.State,
        over base: CachedContent?,
        origin: ContentOrigin? = nil,
        original: ContentID?,
        of inode: Inode,
        account: AccountID,
        modified: Timestamp,
        files: (ContentID) throws(ContentError) -> OverlayJournal?
    ) throws(ContentError) -> (content: StagedContent, node: Node?) {
        let new = NewStagedContent(
            baseItem: base?.key.item,
            baseRevision: base?.key.revision,
            baseContent: base?.namingID,
            baseSize: base?.size ?? 0,
            size: state.size,
            damage: state.damage,
            origin: origin,
            original: original
        )
        let held = try base.map { base throws(ContentError) in
            try use(base)
        }
        beginMaking()
        defer { endMaking() }
        do throws(CatalogError) {
            var state = state
            let (id, node) = try catalog.stage(
                new,
                account: account,
                modified: modified,
                of: inode
            ) { id throws(CatalogError) in
                do throws(ContentError) { state.journal = try files(id) } catch {
                    // A full disk must not be filled with contents that no file has.
                    remove([paths.staged(id), paths.journal(id)])
                    throw CatalogError(error)
                }
            }
            (state.isReopened, state.isNobodys) = (true, node == nil)
            room.set(state.own.byteCount, of: id)
            let content = StagedContent(
                id: id,
                account: account,
                base: held,
                state: state,
                store: self
            )
            register(content)
            completeIfSmall(content)
            return (content, node)
        } catch {
            if let held { close(held) }
            throw ContentError(error)
        }
    }

    /// Fetches the rest of a small base at once, by one request, and puts it beside the program's bytes: by
    /// the time of the upload the base may have been replaced, and not every service still gives it then;
    /// and the cache must not hold an only copy.
    func completeIfSmall(_ content: StagedContent) {
        guard let base = content.base, base.size > 0, base.size <= CachedContent.wholeFile else {
            return
        }
        let held = content
        use(held)
        state.withLock { state in
            // Owned by the store; ends with the transfer, whether it brought the bytes or not.
            state.completions[content.id] = Task {
                do throws(ContentError) { try await held.standAlone(in: completing) } catch {
                    logger.info(
                        "the rest of a file is fetched when it is sent",
                        metadata: ["content": "\(held.id.rawValue)", "cause": "\(error)"]
                    )
                }
                self.state.withLock { $0.completions[held.id] = nil }
                close(held)
            }
        }
    }

    /// Ends background work, and stores the cache's state; programs write nothing any more.
    public func stop() async {
        isStopping = true
        await endExports()
        await endCompletions()
        await save()
        await storeUses()
        do throws(ContentError) { try renewStamps() } catch {
            logger.warning("the folders' stamps are the old ones", metadata: ["cause": "\(error)"])
        }
    }

    func endCompletions() async {
        let completions = state.withLock { Array($0.completions.values) }
        for completion in completions { completion.cancel() }
        for completion in completions { await completion.value }
    }

    /// The base of a staged content, which may get another key while it is opened.
    private func openBase(
        _ key: ContentKey,
        of row: ContentRow
    ) throws(ContentError) -> CachedContent {
        var (key, size) = (key, row.baseSize)
        while true {
            let base = try open(key, size: size, hash: nil)
            do throws(CatalogError) {
                guard let now = try catalog.content(row.id), let item = now.baseItem,
                    let revision = now.baseRevision,
                    item != key.item || revision != key.revision
                else { return base }
                key = ContentKey(account: row.account, item: item, revision: revision)
                size = now.baseSize
            } catch {
                close(base)
                throw .catalog(detail: "\(error)")
            }
            close(base)
        }
    }

    /// A staged content as it lies on the disk.
    ///
    /// - Throws: `.damaged` when its row, its file or its sidecar is missing or torn.
    func load(staged id: ContentID) throws(ContentError) -> StagedContent {
        let row: ContentRow?
        do throws(CatalogError) { row = try catalog.content(id) } catch {
            throw .catalog(detail: "\(error)")
        }
        guard let row, row.isStaged else {
            throw .damaged(detail: "staged content \(id.rawValue) is not known")
        }
        guard DiskFile.exists(paths.staged(id)) else {
            throw .damaged(detail: "the file of staged content \(id.rawValue) is missing")
        }
        let file = try pool.file(paths.staged(id))
        let size = try file.size()
        var state = StagedContent.State(size: size, baseEnd: 0, own: RangeSet())
        // Where a hash is recorded, the catalog must be asked again: the next write must void it.
        state.isReopened = row.isOpen && row.hash == nil
        state.recordedHash = row.isOpen ? nil : row.hash
        state.hash = self.state.withLock { $0.hashes.removeValue(forKey: id) }
        state.isHashRemembered = state.hash != nil
        state.damage = row.damage
        var base: CachedContent?
        if let item = row.baseItem, let revision = row.baseRevision {
            guard DiskFile.exists(paths.journal(id)) else {
                throw .damaged(detail: "the sidecar of staged content \(id.rawValue) is missing")
            }
            var journal = try OverlayJournal(
                reading: try pool.file(paths.journal(id)),
                baseSize: row.baseSize
            )
            state.baseEnd = journal.contents.baseEnd
            state.own = journal.contents.own
            state.isBaseUnread = journal.contents.isBaseUnread
            // The note of this base may be of a process that was killed before it was safe.
            state.owesBaseNote = state.isBaseUnread
            if size < state.baseEnd {
                try journal.append(.cut(size))
                state.baseEnd = size
                state.own.remove(contentsOf: size..<Int64.max)
            }
            state.journal = journal
            base = try openBase(
                ContentKey(account: row.account, item: item, revision: revision),
                of: row
            )
        }
        var data = try file.dataRanges()
        if looksForHoles {
            let lost = state.own.subtracting(data)
            for range in lost.ranges { try state.journal?.append(.lost(range)) }
            state.own.subtract(lost)
        }
        data.remove(contentsOf: 0..<state.baseEnd)
        state.own.formUnion(data)
        return StagedContent(
            id: id,
            account: row.account,
            base: base,
            state: state,
            store: self
        )
    }

    /// Waits until there is room for a write that found none: cached contents give way, then uploads are
    /// waited for.
    ///
    /// Room that was made before the call counts, too. `isNeedless` says, each time it looks again, whether
    /// none is needed any longer.
    ///
    /// - Throws: `.noSpace` when no room was given back for as long as the settings say.
    public func makeRoom(
        for bytes: Int64,
        unless isNeedless: @Sendable () -> Bool = { false }
    ) async throws(ContentError) {
        let step = Duration.milliseconds(100)
        var given = room.given
        var waited = Duration.zero
        while !isNeedless() {
            await evict(toFit: bytes)
            await collectGarbage()
            if room.hasRoom(for: bytes) { return }
            // As long as uploads go on, one of them will make enough.
            if room.given != given { (given, waited) = (room.given, .zero) }
            // A caller that comes after one that waited in vain waits only once room was given back.
            guard waited < settings.roomPatience, room.givenInVain != given else {
                room.givenInVain = given
                throw .noSpace
            }
            do { try await clock.sleep(for: step) } catch {
                throw .fetch(ProviderError(.cancelled, detail: "the caller no longer waits"))
            }
            waited += step
        }
    }
}

extension CatalogError {
    /// What kept a content's file from being made inside a transaction, in the catalog's words.
    init(_ error: ContentError) {
        switch error {
        case .noSpace: self = .diskFull
        default: self = .storage(detail: "\(error)")
        }
    }
}
