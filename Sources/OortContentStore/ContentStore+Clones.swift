public import OortCatalog
public import OortModel
import Synchronization

/// Clones of staged contents that an upload has frozen, so that programs can write meanwhile.
extension ContentStore {
    /// Copies a staged content that an upload has frozen, so that its file can have a writable one; bytes
    /// that the service has taken by now are not copied.
    ///
    /// The original is not written to any more.
    ///
    /// - Returns: the clone, which `stage` gives to the file; deleted with the value if no file gets it.
    /// - Throws: `.noSpace` when the disk has no room for the copy: call `makeRoom(forCloneOf:since:)`, and
    ///   try again.
    public func thaw(_ frozen: StagedContent) async throws(ContentError) -> ThawedContent {
        // Frozen for good, since all of the file's handles write to the clone from now on: a later write to
        // the original would not be in it. Frozen before the copy: bytes that come from the base meanwhile
        // need not be in it.
        let state = frozen.state.withLock { state in
            state.freezes += 1
            return state
        }
        let thawed = ThawedContent(of: frozen, state, path: temporaryPath())
        guard state.cached == nil else { return thawed }
        do throws(ContentError) {
            let source = try frozen.file()
            DiskFile.remove(thawed.path)
            let copy = try DiskFile.open(thawed.path, creates: true)
            try await beforeClone.withLock { $0 }?()
            try await copy.becomeCopy(of: source) {
                !self.isStopping && frozen.state.withLock { $0.cached == nil }
            }
            // A content that was synchronised must stay so.
            if state.isNamed { try copy.synchronise() }
        } catch {
            // The service has taken the content meanwhile: no copy is needed.
            guard frozen.successor != nil else { throw error }
        }
        return thawed
    }

    /// The room before a clone is tried, by which `makeRoom(forCloneOf:since:)` judges.
    public func roomForClone(of frozen: StagedContent) -> RoomForClone {
        RoomForClone(given: room.given, isThere: room.hasRoom(for: bytes(ofCloneOf: frozen)))
    }

    /// Waits until a clone that found no room is worth another try, or is no longer needed because its
    /// original is not frozen any more.
    ///
    /// - Parameters:
    ///   - frozen: the content that was to be copied.
    ///   - before: the room before the try: a copy takes long, and room that was given back or came free
    ///     since makes another try worthwhile.
    /// - Throws: as `makeRoom(for:)`; `.noSpace`, too, where there was room all the time, so that the disk
    ///   refuses for another reason (a user's quota).
    public func makeRoom(
        forCloneOf frozen: StagedContent,
        since before: RoomForClone
    ) async throws(ContentError) {
        let now = roomForClone(of: frozen)
        guard !before.isThere || !now.isThere || now.given != before.given else { throw .noSpace }
        let bytes = bytes(ofCloneOf: frozen)
        try await makeRoom(for: bytes) {
            bytes > 0 && frozen.state.withLock { $0.isWritable || $0.cached != nil }
        }
    }

    /// Bytes that a clone takes: none where the service has taken the original.
    private func bytes(ofCloneOf frozen: StagedContent) -> Int64 {
        frozen.state.withLock { $0.cached == nil ? $0.own.byteCount : 0 }
    }

    /// Makes a content that its file has left writable for those who have it open, where the catalog has
    /// forgotten the file.
    ///
    /// - Parameters:
    ///   - content: the content, which no file gets from now on.
    ///   - users: how many uses the caller knows of; if there are others, another file shows it, too.
    /// - Returns: whether it can be written to now.
    public func leaveToNobody(_ content: StagedContent, users: Int) -> Bool {
        guard state.withLock({ $0.staged[content.id]?.users }) == users else { return false }
        return content.state.withLock { state in
            guard state.isLeft else { return false }
            (state.isNobodys, state.isLeft) = (true, false)
            return true
        }
    }

    /// Gives a file a clone of the content that it has.
    ///
    /// The file has it from now on; the caller is its user.
    public func stage(
        _ thawed: ThawedContent,
        of inode: Inode,
        account: AccountID,
        modified: Timestamp
    ) throws(ContentError) -> (content: StagedContent, node: Node?) {
        // The service may have taken it meanwhile; then its base and sidecar are gone.
        if let successor = thawed.frozen.successor {
            return try stage(over: successor, of: inode, account: account, modified: modified)
        }
        let isNamed = thawed.frozen.state.withLock { $0.isNamed }
        // The content was synchronised by a program while it was copied.
        if isNamed, !thawed.state.isNamed { try DiskFile.open(thawed.path).synchronise() }
        // Both stay over one revision.
        let base = try thawed.frozen.boundBase()
        let (own, baseEnd) = (thawed.state.own, thawed.state.baseEnd)
        let made = try makeStaged(
            StagedContent.State(
                size: thawed.state.size,
                baseEnd: baseEnd,
                own: own,
                isNamed: isNamed,
                damage: thawed.state.damage,
                unkept: thawed.state.unkept
            ),
            over: base,
            original: thawed.frozen.id,
            of: inode,
            account: account,
            modified: modified
        ) { id throws(ContentError) in
            try freeStagedFile(id)
            // Until the catalog knows of the first name, the second one says that the bytes are a copy.
            try DiskFile.link(thawed.path, as: paths.staged(id))
            var journal: OverlayJournal?
            if base != nil {
                var records = OverlayJournal(file: try pool.create(paths.journal(id)))
                try records.append(.cut(baseEnd))
                for range in own.ranges {
                    let below = range.clamped(to: 0..<baseEnd)
                    if !below.isEmpty { try records.append(.written(below)) }
                }
                journal = records
            }
            if isNamed {
                try journal?.synchronise()
                try DiskFile.synchroniseFolder(paths.folder(ofStaged: id))
            }
            return journal
        }
        thawed.isGiven = true
        return made
    }
}

/// The room for a clone at one moment.
public struct RoomForClone: Sendable {
    /// Counts the bytes that were given back so far.
    let given: Int64
    /// Whether the disk had room for the clone.
    let isThere: Bool
}

/// A copy of a staged content that is not written to any more, to be given to its file.
public final class ThawedContent: Sendable {
    let frozen: StagedContent
    /// What the original was when the copy was begun.
    let state: StagedContent.State
    /// Where the copy is until it is given.
    let path: String
    private let given = Atomic<Bool>(false)
    /// Whether a file has it: the original is not written to any more.
    var isGiven: Bool {
        get { given.load(ordering: .acquiring) }
        set { given.store(newValue, ordering: .releasing) }
    }

    init(of frozen: StagedContent, _ state: StagedContent.State, path: String) {
        self.frozen = frozen
        self.state = state
        self.path = path
    }

    deinit {
        if !isGiven {
            // Emptied first, for its other name, where the catalog's transaction failed.
            do throws(ContentError) { try DiskFile.open(path).resize(to: 0) } catch {
                // The bytes are deleted with the last name.
            }
            frozen.state.withLock { $0.freezes -= 1 }
        }
        DiskFile.remove(path)
    }
}
