public import OortCatalog
public import OortModel
import Synchronization

/// Clones of staged contents that an upload holds still, for their files to be written meanwhile.
extension ContentStore {
    /// Copies a staged content that an upload holds still, so that its file can have another to
    /// write; nothing is copied of what the service has taken by now.
    ///
    /// From now on nobody writes to it any more.
    ///
    /// - Returns: what `stage` gives to the file; goes with the value where nobody does.
    /// - Throws: `.noSpace` when the disk has no room for the copy: `makeRoom(forCloneOf:since:)`, and again.
    public func thaw(_ frozen: StagedContent) async throws(ContentError) -> ThawedContent {
        // Held until all of the file's handles write to the clone, which is for ever: what another
        // one wrote to it meanwhile would not be in the clone.
        // Before the copy: what comes of the base meanwhile need not be in it.
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
            // What was synchronised stays so.
            if state.isNamed { try copy.synchronise() }
        } catch {
            // Nothing is needed of what the service has taken meanwhile.
            guard frozen.successor != nil else { throw error }
        }
        return thawed
    }

    /// What the room for a clone is before it is tried: `makeRoom(forCloneOf:since:)` judges by it.
    public func roomForClone(of frozen: StagedContent) -> RoomForClone {
        RoomForClone(given: room.given, isThere: room.hasRoom(for: bytes(ofCloneOf: frozen)))
    }

    /// Waits until a clone that found no room is worth another try, or is not needed any longer, since
    /// nobody holds its original still.
    ///
    /// - Parameters:
    ///   - frozen: the content that was to be copied.
    ///   - before: the room before the try: a copy takes long, and what was given back or came free
    ///     since makes another worth trying.
    /// - Throws: as `makeRoom(for:)`; `.noSpace`, too, where there was room all the while, and the disk
    ///   refuses for another cause (a user's quota).
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

    /// Bytes that a clone takes: what the service has taken is not copied.
    private func bytes(ofCloneOf frozen: StagedContent) -> Int64 {
        frozen.state.withLock { $0.cached == nil ? $0.own.byteCount : 0 }
    }

    /// Has a content that its file has left belong to nobody, where the catalog has forgotten the file:
    /// what is written to it is for those who have it open.
    ///
    /// - Parameters:
    ///   - content: the content, which nobody else gets from now on.
    ///   - users: of how many uses the caller knows; where there are others, another file shows it, too.
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
        // Synchronised by a program while it was copied.
        if isNamed, !thawed.state.isNamed { try DiskFile.open(thawed.path).synchronise() }
        let base = thawed.frozen.base
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
            // The second name, until the catalog knows of the first, says that the bytes are a copy.
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

/// A copy of a staged content that nobody writes to any more, for its file to be given.
public final class ThawedContent: Sendable {
    let frozen: StagedContent
    /// What the original was when the copy was begun.
    let state: StagedContent.State
    /// Where the copy is until it is given.
    let path: String
    private let given = Atomic<Bool>(false)
    /// Whether a file has it: nobody writes to the original any more.
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
            // Under its other name, too, where the catalog's transaction failed.
            do throws(ContentError) { try DiskFile.open(path).resize(to: 0) } catch {
                // Its bytes are taken away with its last name.
            }
            frozen.state.withLock { $0.freezes -= 1 }
        }
        DiskFile.remove(path)
    }
}
