import Logging
public import OortCatalog
public import OortModel
import Synchronization

/// Bytes that a program wrote and the service does not have yet: a file of its own, over a base
/// revision where the program changed only a part.
///
/// The staged file's length is the content's size. Below `baseEnd`, `own` says which bytes are the
/// staged file's; the others are the base's. From `baseEnd` on all are the staged file's, holes
/// reading as zeros.
///
/// Isolation: any thread; operations on one content take turns. The lock is held over local disk calls,
/// never during a transfer.
public final class StagedContent: Sendable {
    struct State {
        var size: Int64
        var baseEnd: Int64
        /// Written ranges; those from `baseEnd` on are known for `seek` and the room only.
        var own: RangeSet<Int64>
        var journal: OverlayJournal?
        /// Whether no byte of the base was used yet, so that another revision may take its place.
        var isBaseUnread = false
        /// Whether the catalog's note of the base must be safe from the death of the machine before a byte
        /// of it is used.
        var owesBaseNote = false
        /// Where the base was cut, until the sidecar records it: while the file is no longer than that, its
        /// length says so.
        var owedCut: Int64?
        /// How many uploads have frozen it.
        var freezes = 0
        /// The cached content that it became when the service took it.
        var cached: CachedContent?
        /// Whether it is not needed any longer; its files go with the last user.
        var isDiscarded = false
        /// Its hash, once an upload asked for it; void with the next write.
        var hash: ContentHash?
        /// Whether `hash` is the store's remembered one, which it gives only once, and was not computed
        /// here.
        var isHashRemembered = false
        /// Its hash as it was recorded, until it was compared with the bytes; void with the next
        /// write.
        var recordedHash: ContentHash?
        /// Whether the file's name is safe from the death of the machine.
        var isNamed = false
        /// What was lost of it, in words; it is not uploaded while this is set.
        var damage: String?
        /// Whether the catalog knows that its records no longer hold.
        var isReopened = false
        /// Whether it belongs to a file that the catalog has forgotten.
        var isNobodys = false
        /// Whether its file has another content by now: as a rule the one that the service made of it, when
        /// the answer to its upload was lost.
        var isLeft = false
        /// Bytes that a program tried to write, and the disk refused.
        ///
        /// A file without them is not what the program meant, and has a `damage`.
        var unkept = RangeSet<Int64>()
    }

    /// The result of a write.
    public enum WriteOutcome: Hashable, Sendable {
        /// Written, and kept even if the process dies; `offset` is where.
        case done(offset: Int64)
        /// An upload reads it, the service has it, or its file has another content by now:
        /// `ContentStore.thaw` gives a writable one.
        case frozen
        /// The disk or the limit is full: `ContentStore.makeRoom` for as many bytes, then again.
        case noRoom(for: Int64)
    }

    /// The content's number.
    public let id: ContentID
    let account: AccountID
    /// The revision that it lies over; nil when it stands alone.
    var base: CachedContent? { currentBase.withLock { $0 } }
    private let currentBase: Mutex<CachedContent?>
    let store: ContentStore
    let state: Mutex<State>

    init(
        id: ContentID,
        account: AccountID,
        base: CachedContent?,
        state: State,
        store: ContentStore
    ) {
        self.id = id
        self.account = account
        currentBase = Mutex(base)
        self.store = store
        self.state = Mutex(state)
    }

    /// Bytes in all.
    public var size: Int64 { state.withLock { $0.size } }

    /// Exchanges the base; to be called under the lock.
    func setBase(_ base: CachedContent) { currentBase.withLock { $0 = base } }

    /// Its hash, if it was just computed from the bytes: the next user then need not read them all again.
    ///
    /// That of a small content is quickly computed, and not remembered. Does not wait: the store asks under
    /// its own lock, for which a transaction may wait that is under way for this content.
    var hashToRemember: ContentHash? {
        let hash = state.withLockIfAvailable { state -> ContentHash? in
            let isWorthIt = state.size >= 4 << 20 && !state.isHashRemembered
            return isWorthIt && state.cached == nil && !state.isDiscarded ? state.hash : nil
        }
        return hash ?? nil
    }

    /// The cached content that it became when the service took it; to be read from then on.
    public var successor: CachedContent? { state.withLock { $0.cached } }

    // MARK: Writing

    /// Writes all bytes at `offset`; nil means the end.
    ///
    /// - Throws: `.tooLarge` when the content would have more than `limit` bytes; nothing is written
    ///   then.
    public func write(
        _ bytes: RawSpan,
        at offset: Int64?,
        upTo limit: Int64 = .max
    ) throws(ContentError) -> WriteOutcome {
        try locked { state throws(ContentError) in
            guard state.isWritable else { return .frozen }
            let offset = offset ?? state.size
            guard offset <= limit - Int64(bytes.byteCount) else { throw .tooLarge }
            let range = offset..<offset + Int64(bytes.byteCount)
            guard !range.isEmpty else { return .done(offset: offset) }
            let growth = state.own.gaps(in: range).reduce(Int64(0)) {
                $0 + ($1.upperBound - $1.lowerBound)
            }
            guard growth == 0 || store.room.take(growth, for: id) else {
                return .noRoom(for: growth)
            }
            func giveBack() { store.room.give(growth, of: id) }
            do throws(ContentError) {
                guard try reopen(&state) else {
                    giveBack()
                    return .frozen
                }
                let file = try self.file()
                try file.write(bytes, at: offset)
                try note(range, &state)
                state.size = max(state.size, range.upperBound)
                keep(range, &state)
            } catch {
                giveBack()
                return try full(error, for: growth)
            }
            return .done(offset: offset)
        }
    }

    /// Cuts or extends it; the new part reads as zeros.
    ///
    /// With `onlyExtends`, a longer content stays as it is.
    public func truncate(
        to size: Int64,
        onlyExtends: Bool = false
    ) throws(ContentError) -> WriteOutcome {
        try locked { state throws(ContentError) in
            guard state.isWritable else { return .frozen }
            let size = onlyExtends ? max(size, state.size) : size
            if size == 0 {
                state.unkept = RangeSet()
                try setDamage(nil, &state)
            } else if size <= state.size {
                keep(size..<Int64.max, &state)
            }
            guard size != state.size else { return .done(offset: size) }
            guard try reopen(&state) else { return .frozen }
            try file().resize(to: size)
            state.size = size
            if size < state.baseEnd { (state.baseEnd, state.owedCut) = (size, size) }
            state.own.remove(contentsOf: size..<Int64.max)
            store.room.set(state.own.byteCount, of: id)
            do throws(ContentError) { try noteCut(&state) } catch {
                // The change is done: a full disk makes the next one wait, and must not fail this one.
                logNotNoted(error)
            }
            return .done(offset: size)
        }
    }

    /// Takes room on the disk for the part of a range that lies within the size.
    public func allocate(_ range: Range<Int64>) throws(ContentError) -> WriteOutcome {
        try locked { state throws(ContentError) in
            guard state.isWritable else { return .frozen }
            // The file's length is the size, which may have been cut since.
            let range = range.clamped(to: 0..<state.size)
            guard !range.isEmpty else { return .done(offset: range.lowerBound) }
            do throws(ContentError) {
                try file().allocate(range)
            } catch {
                return try full(error, for: range.upperBound - range.lowerBound)
            }
            return .done(offset: range.lowerBound)
        }
    }

    /// Notes that a program's write was refused, and that the program knows: the content lacks those bytes,
    /// and is not sent before they are written, or all of it anew.
    ///
    /// - Parameters:
    ///   - offset: where the bytes were to go; nil means the end.
    ///   - count: how many they were.
    ///   - cause: why they were refused, in words.
    public func refused(at offset: Int64?, count: Int64, cause: String) {
        state.withLock { state in
            let start = offset ?? state.size
            guard count > 0, start <= Int64.max - count else { return }
            // What was lost before is still lost.
            if state.damage != nil, state.unkept.isEmpty { return }
            state.unkept.insert(contentsOf: start..<start + count)
            let damage =
                "a program could not write all of it (\(cause)), so it is not sent: write it again, or "
                + "remove it"
            do throws(ContentError) { try setDamage(damage, &state) } catch {
                // It is not sent in this process's life.
                state.damage = damage
            }
        }
    }

    /// Notes that bytes are now as a program wants them.
    private func keep(_ range: Range<Int64>, _ state: inout State) {
        guard !state.unkept.isEmpty else { return }
        state.unkept.remove(contentsOf: range)
        guard state.unkept.isEmpty else { return }
        do throws(ContentError) { try setDamage(nil, &state) } catch {
            // The recorded damage stays: the content is not sent before it is written again.
            logNotNoted(error)
        }
    }

    private func logNotNoted(_ cause: ContentError) {
        store.logger.error(
            "a change of a content was not noted",
            metadata: ["content": "\(id.rawValue)", "cause": "\(cause)"]
        )
    }

    private func setDamage(_ damage: String?, _ state: inout State) throws(ContentError) {
        guard state.damage != damage else { return }
        try Self.translating { () throws(CatalogError) in
            try store.catalog.setDamage(damage, ofStaged: id)
        }
        state.damage = damage
    }

    /// Has the catalog void its records, before the first change after them.
    ///
    /// - Returns: false when its file has another content by now, and a write would be lost.
    private func reopen(_ state: inout State) throws(ContentError) -> Bool {
        try noteCut(&state)
        state.hash = nil
        state.recordedHash = nil
        guard !state.isReopened else { return true }
        let isHad = try Self.translating { () throws(CatalogError) in
            try store.catalog.reopenStaged(id)
        }
        guard isHad || state.isNobodys else {
            state.isLeft = true
            return false
        }
        state.isReopened = true
        return true
    }

    private func noteCut(_ state: inout State) throws(ContentError) {
        guard let size = state.owedCut else { return }
        try state.journal?.append(.cut(size))
        state.owedCut = nil
    }

    /// Ends all writing to it if it is empty, since its file is about to get another content.
    ///
    /// - Returns: false when it has bytes.
    public func leaveIfEmpty() -> Bool {
        state.withLock { state in
            guard state.size == 0 else { return false }
            state.isLeft = true
            return true
        }
    }

    /// Undoes `leaveIfEmpty`: its file keeps it.
    public func stay() { state.withLock { $0.isLeft = false } }

    /// Records size and time with the file that has the content: from now on that is what must be
    /// found after a crash, until the next write.
    ///
    /// - Parameter modified: the file's modified time.
    /// - Returns: the file's node; nil when no file has it any longer.
    /// - Throws: `.noSpace`, `.catalog`; what was written is safe all the same.
    @discardableResult
    public func record(modified: Timestamp) throws(ContentError) -> Node? {
        // Under the lock: otherwise the record might miss a write.
        try locked { state throws(ContentError) in
            let (size, bytes) = (state.size, state.own.byteCount)
            let node = try Self.translating { () throws(CatalogError) in
                try store.catalog.recordStaged(
                    id,
                    size: size,
                    bytesOnDisk: bytes,
                    modified: modified,
                    isOpen: false
                )
            }
            state.isReopened = false
            return node
        }
    }

    private static func translating<T>(
        _ body: () throws(CatalogError) -> T
    ) throws(ContentError) -> T {
        do throws(CatalogError) { return try body() } catch { throw ContentError(error) }
    }

    /// The outcome of a write that the disk refused: a disk that has room refuses for another reason (a
    /// user's quota), which waiting for uploads does not mend.
    private func full(
        _ error: ContentError,
        for bytes: Int64
    ) throws(ContentError) -> WriteOutcome {
        guard case .noSpace = error, !store.room.hasRoom(for: bytes) else { throw error }
        return .noRoom(for: bytes)
    }

    /// Makes what was written survive the death of the machine.
    public func synchronise() throws(ContentError) {
        try locked { state throws(ContentError) in
            guard state.cached == nil else { return }
            try file().synchronise()
            try state.journal?.synchronise()
            guard !state.isNamed else { return }
            try DiskFile.synchroniseFolder(store.paths.folder(ofStaged: id))
            state.isNamed = true
        }
    }

    /// Journals what was written below `baseEnd`, unless it is known already.
    private func note(_ range: Range<Int64>, _ state: inout State) throws(ContentError) {
        let below = range.lowerBound..<max(min(range.upperBound, state.baseEnd), range.lowerBound)
        if !below.isEmpty, !state.own.covers(below) {
            try state.journal?.append(.written(below))
        }
        state.own.insert(contentsOf: range)
    }

    // MARK: Reading

    /// One stretch of a read: from the staged file or from the base.
    struct Piece: Hashable {
        let range: Range<Int64>
        let isOwn: Bool
    }

    /// The pieces of a range, in order; cut at the size.
    func pieces(_ range: Range<Int64>) throws(ContentError) -> [Piece] {
        try locked { state throws(ContentError) in
            let range = range.clamped(to: 0..<state.size)
            guard !range.isEmpty else { return [] }
            var own = state.own
            own.insert(contentsOf: state.baseEnd..<Int64.max)
            var pieces: [Piece] = []
            var position = range.lowerBound
            for gap in own.gaps(in: range) {
                if position < gap.lowerBound {
                    pieces.append(Piece(range: position..<gap.lowerBound, isOwn: true))
                }
                pieces.append(Piece(range: gap, isOwn: false))
                position = gap.upperBound
            }
            if position < range.upperBound {
                pieces.append(Piece(range: position..<range.upperBound, isOwn: true))
            }
            return pieces
        }
    }

    /// The local file and range that hold all of a range, cut at the size; nil when some bytes are
    /// elsewhere, or there are none.
    public func readIfPresent(
        _ range: Range<Int64>
    ) throws(ContentError) -> (DiskFile, Range<Int64>)? {
        if let successor {
            let range = range.clamped(to: 0..<successor.size)
            guard !range.isEmpty, let file = successor.readIfPresent(range) else { return nil }
            return (file, range)
        }
        let pieces = try pieces(range)
        guard pieces.count == 1, let piece = pieces.first else { return nil }
        if piece.isOwn {
            do throws(ContentError) { return (try file(), piece.range) } catch {
                // The service took it a moment ago.
                guard successor != nil else { throw error }
                return nil
            }
        }
        // The first byte binds it to the base's revision.
        guard !isBaseUnread, let file = base?.readIfPresent(piece.range) else { return nil }
        return (file, piece.range)
    }

    /// Bytes of a range, cut at the size; fetches what is missing of the base.
    public func bytes(_ range: Range<Int64>) async throws(ContentError) -> [UInt8] {
        while true {
            if let bytes = try await presentBytes(range) { return bytes }
        }
    }

    /// Bytes of a range; nil when the content changed so that they must be looked for again.
    private func presentBytes(_ range: Range<Int64>) async throws(ContentError) -> [UInt8]? {
        if let successor { return try await successor.bytes(range.clamped(to: 0..<successor.size)) }
        var bytes: [UInt8] = []
        for piece in try pieces(range) {
            let count = Int(piece.range.upperBound - piece.range.lowerBound)
            if piece.isOwn {
                do throws(ContentError) {
                    bytes += try file().read(at: piece.range.lowerBound, count: count)
                } catch {
                    // The service may have taken it a moment ago.
                    guard let successor else { throw error }
                    return try await successor.bytes(range.clamped(to: 0..<successor.size))
                }
            } else {
                guard let part = try await baseBytes(piece.range) else { return nil }
                bytes += part
            }
        }
        return bytes
    }

    /// The next data (or hole) at or after `offset`; nil when there is none before the end.
    public func nextBoundary(from offset: Int64, isData: Bool) -> Int64? {
        state.withLock { state in
            var data = state.own
            data.insert(contentsOf: 0..<state.baseEnd)
            data.remove(contentsOf: state.size..<Int64.max)
            guard offset < state.size else { return nil }
            if data.contains(offset) == isData { return offset }
            if isData { return data.ranges.first { $0.lowerBound > offset }?.lowerBound }
            return data.ranges.first { $0.contains(offset) }?.upperBound ?? state.size
        }
    }

    func file() throws(ContentError) -> DiskFile {
        if let file = try store.pool.fileIfPresent(store.paths.staged(id)) { return file }
        // The service has it, and its file is on the way to the cache.
        if let moved = try store.pool.fileIfPresent(store.paths.cached(id)) { return moved }
        return try store.pool.file(store.paths.staged(id))
    }

    /// Runs `body` under the lock; `Mutex.withLock` with a typed error.
    func locked<T: Sendable>(
        _ body: (inout State) throws(ContentError) -> T
    ) throws(ContentError) -> T {
        let result: Result<T, ContentError> = state.withLock { state in
            do throws(ContentError) { return .success(try body(&state)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}

extension StagedContent.State {
    /// Whether writes go here.
    var isWritable: Bool { freezes == 0 && cached == nil && !isLeft }
}
