import Logging
import OortModel

/// Moves entries, even where a service moves only files, and finds out what became of moves without an
/// answer.
struct PlaceMoves: Sendable {
    let client: any PlaceClient
    let map: PlaceMap
    let turns: PlaceTurns
    let logger: Logger
    let now: @Sendable () -> Timestamp
    /// Moves that left something where it was.
    let splitMoves = SplitMoves()

    /// Moves a row to a place; returns the row then.
    ///
    /// To be called in an operation on both places. If it ends half-way, `settle` continues it.
    ///
    /// - Throws: as `PlaceClient.move`.
    func move(_ row: PlaceRow, to parent: Int64, name: String) async throws(ProviderError)
        -> PlaceRow
    {
        let paths = try await map.write { database -> (RemotePath, RemotePath)? in
            let transaction = PlaceTransaction(database: database)
            guard let old = try transaction.path(of: row.id),
                let folder = try transaction.path(of: parent)
            else { return nil }
            try transaction.noteMotion(of: row.id, to: parent, name: name)
            return (old, folder.appending(name))
        }
        guard let (old, new) = paths else {
            throw ProviderError(.notFound, detail: "place \(row.id) is gone")
        }
        let entry: PlaceEntry
        do throws(ProviderError) { entry = try await carry(row, from: old, to: new) } catch {
            if !error.isOutcomeUnknown { try await forget(row, to: parent) }
            throw error
        }
        return try await record(row.id, at: parent, name: name, as: entry)
    }

    /// Records that a row lies at a place now.
    ///
    /// - Throws: `.notFound` where the moved entry is of the other kind: somebody had replaced the row's
    ///   entry.
    private func record(
        _ id: Int64,
        at parent: Int64,
        name: String,
        as entry: PlaceEntry
    ) async throws(ProviderError) -> PlaceRow {
        let row = try await map.write { database -> PlaceRow? in
            let transaction = PlaceTransaction(database: database)
            try transaction.move(id, to: parent, name: name)
            guard let row = try transaction.row(id) else { return nil }
            return try transaction.rewrite(row, as: entry)
        }
        guard let row, row.id == id else {
            throw ProviderError(.notFound, detail: "place \(id) is gone")
        }
        return row
    }

    // MARK: Moves without an answer

    /// Finds out what became of all moves without an answer; a move that would have to wait is left for the
    /// next time.
    func settleAll() async throws(ProviderError) {
        for row in try await map.read({ try PlaceTransaction(database: $0).motions() }) {
            do throws(ProviderError) {
                guard let task = try await settling(row) else { continue }
                _ = try await operateAtOnce(on: task) { ground throws(ProviderError) in
                    try await settle(ground)
                }
            } catch {
                // A move that cannot be settled delays nothing else; it is tried again with each look.
                guard error.isLastingRefusal || error.isOutcomeUnknown, !Task.isCancelled else {
                    throw error
                }
                logger.warning("a move is not settled", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Finds out what became of a move without an answer, if there is one; a move that was done in part is
    /// completed.
    func settle(_ id: Int64) async throws(ProviderError) {
        guard let task = try await settling(id) else { return }
        do throws(ProviderError) {
            try await operate(on: task) { ground throws(ProviderError) in
                try await settle(ground)
            }
        } catch {
            // The row is gone, or the target folder is, and the move with it.
            guard error.kind == .notFound || error.kind == .parentNotFound else { throw error }
        }
    }

    /// The task to settle a row's move; nil where it has none.
    private func settling(_ id: Int64) async throws(ProviderError) -> PlaceTask? {
        try await map.read { try PlaceTransaction(database: $0).motion(of: id) }.map { motion in
            PlaceTask(
                manner: .moveOrRemove,
                rows: [id],
                places: [PlaceTurns.Place(motion.parent, motion.name)],
                settling: id
            )
        }
    }

    private func settle(_ ground: PlaceGround) async throws(ProviderError) {
        guard let row = ground.rows.first,
            let motion = try await map.read({
                try PlaceTransaction(database: $0).motion(of: row.id)
            })
        else { return }
        if motion.isBegun {
            _ = try await move(row, to: motion.parent, name: motion.name)
            return
        }
        do throws(ProviderError) { try await look(row, motion) } catch {
            guard error.isLastingRefusal else { throw error }
            // If a look is refused, listings will say where the entry is.
            try await forget(row, to: motion.parent)
        }
    }

    /// Forgets a move: the listings of both folders will say what became of it.
    private func forget(_ row: PlaceRow, to parent: Int64) async throws(ProviderError) {
        try await map.write { database in
            let transaction = PlaceTransaction(database: database)
            try transaction.forgetMotion(of: row.id)
            for folder in [row.parent, parent].compactMap(\.self) {
                try transaction.makeDue(folder)
            }
        }
    }

    private func look(_ row: PlaceRow, _ motion: PlaceMotion) async throws(ProviderError) {
        let paths = try await map.read { database -> (RemotePath, RemotePath)? in
            let transaction = PlaceTransaction(database: database)
            guard let old = try transaction.path(of: row.id),
                let folder = try transaction.path(of: motion.parent)
            else { return nil }
            return (old, folder.appending(motion.name))
        }
        guard let (old, new) = paths else { return }
        if row.entry.kind == .folder, !client.traits.movesFolders || client.traits.mayHaveDisks,
            try await isEmptyFolder(at: new), try await find(.folder, at: old) != nil
        {
            // The new folder was created for the contents of the old one.
            try await map.write { try PlaceTransaction(database: $0).noteBegun(row.id) }
            _ = try await move(row, to: motion.parent, name: motion.name)
            return
        }
        if let there = try await find(row.entry.kind, at: new),
            try await find(row.entry.kind, at: old) == nil
        {
            _ = try await record(row.id, at: motion.parent, name: motion.name, as: there)
        } else {
            try await map.write { try PlaceTransaction(database: $0).forgetMotion(of: row.id) }
        }
    }

    private func isEmptyFolder(at path: RemotePath) async throws(ProviderError) -> Bool {
        guard try await find(.folder, at: path) != nil else { return false }
        return try await client.listing(of: path).entries.isEmpty
    }

    private func find(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath
    ) async throws(ProviderError) -> PlaceEntry? {
        do throws(ProviderError) {
            let entry = try await client.entry(at: path)
            return entry.kind == kind ? entry : nil
        } catch {
            guard error.saysNothingIsThere else { throw error }
            return nil
        }
    }

    // MARK: Piece by piece

    /// Moves an entry; the contents of a folder that the service cannot move, piece by piece.
    ///
    /// A try that ended half-way is continued: what the new place has already, it moved.
    private func carry(
        _ row: PlaceRow,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let isFolder = row.entry.kind == .folder
        let isBegun = try await map.read {
            try PlaceTransaction(database: $0).motion(of: row.id)?.isBegun ?? false
        }
        if !isFolder || client.traits.movesFolders && !isBegun {
            do throws(ProviderError) {
                return try await client.move(row.entry.kind, from: old, to: new)
            } catch {
                // The new place is on another disk.
                guard isFolder, client.traits.mayHaveDisks, error.kind == .unsupported else {
                    throw error
                }
            }
        }
        if !isBegun {
            _ = try await client.createFolder(at: new, like: old)
            try await map.write { try PlaceTransaction(database: $0).noteBegun(row.id) }
        }
        do throws(ProviderError) {
            let pieces = StayingPieces()
            if try await carryContents(from: old, to: new, noting: pieces) {
                // What stays keeps the folder at its old place.
                if let parent = row.parent {
                    try await map.write { try PlaceTransaction(database: $0).makeDue(parent) }
                }
                splitMoves.add(from: old, to: new, pieces, at: now())
                logger.warning(
                    "a folder was moved, and its old place holds what cannot be moved",
                    metadata: ["old": "\(old)", "new": "\(new)"]
                )
            }
            return try await client.entry(at: new)
        } catch {
            // A disk that is away for a while may come back.
            if error.saysNothingIsThere, !client.traits.mayHaveDisks,
                try await find(.folder, at: new) == nil
            {
                // There is nothing to continue; the feed will report what is left at the old place.
                throw ProviderError(
                    .preconditionFailed,
                    detail: "somebody removed \(new) while a folder was moved there"
                )
            }
            // Some of it is at the new place: only continuing ends that.
            throw ProviderError(
                .outcomeUnknown(retryAfter: error.retryAfter),
                detail: "a folder was moved in part: \(error.detail)"
            )
        }
    }

    /// Carries a folder's contents until nothing is left, and removes the folder; what others put there
    /// meanwhile is carried, too.
    ///
    /// - Returns: whether the folder stays at its old place, with nothing to be seen in it but pieces that
    ///   cannot be moved: the server keeps it (a socket in it, a temporary file of another client), or
    ///   refuses to move it.
    private func carryContents(
        from old: RemotePath,
        to new: RemotePath,
        noting pieces: StayingPieces
    ) async throws(ProviderError) -> Bool {
        var left: Set<ExactText> = []
        for _ in 0..<Self.mostLooks {
            guard let entries = try await shown(in: old) else { return false }
            // If anything else was carried, the folder is looked at once more.
            let isCarried = entries.allSatisfy { left.contains(ExactText($0.name)) }
            if isCarried {
                guard entries.isEmpty else { return true }
                do throws(ProviderError) {
                    try await client.removeEmptyFolder(at: old)
                    return false
                } catch {
                    guard error.kind == .locked || error.kind == .noPermission else { throw error }
                    // An entry may have come into it since it was listed.
                    guard let now = try await shown(in: old) else { return false }
                    if now.isEmpty { return true }
                    continue
                }
            }
            left = []
            for entry in entries {
                let (from, to) = (old.appending(entry.name), new.appending(entry.name))
                do throws(ProviderError) {
                    if try await !carryPiece(entry.kind, from: from, to: to, noting: pieces) {
                        left.insert(ExactText(entry.name))
                    }
                } catch {
                    // One piece that cannot be moved (an archived object, a file that the login may not
                    // read, one for which the service has no words) must not keep all others between two
                    // places.
                    guard error.refusesThePiece else { throw error }
                    logger.warning("a piece of a folder stays", metadata: ["error": "\(error)"])
                    pieces.note(from, reason: error.detail)
                    left.insert(ExactText(entry.name))
                }
            }
        }
        throw ProviderError(.locked, detail: "\(old) is being written while it is moved")
    }

    /// Carries a file, or a folder with its contents.
    ///
    /// - Returns: whether nothing of it is left at its old place.
    private func carryPiece(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath,
        noting pieces: StayingPieces
    ) async throws(ProviderError) -> Bool {
        guard kind == .folder else {
            try await carryFile(from: old, to: new)
            return true
        }
        do throws(ProviderError) { _ = try await client.createFolder(at: new, like: old) } catch {
            guard error.kind == .nameTaken else { throw error }
        }
        return try await !carryContents(from: old, to: new, noting: pieces)
    }

    /// The entries of a folder that is being carried; nil if an earlier try, or another client, removed it,
    /// even if a file is in its place now.
    private func shown(in folder: RemotePath) async throws(ProviderError) -> [PlaceEntry]? {
        let listing: PlaceListing
        do throws(ProviderError) { listing = try await client.listing(of: folder) } catch {
            guard error.saysNothingIsThere else { throw error }
            return nil
        }
        guard listing.unknown.isEmpty else {
            throw ProviderError(.locked, detail: "not all of \(folder) can be seen")
        }
        return listing.entries
    }

    /// How often a folder is looked at before new entries in it end the move.
    private static let mostLooks = 20

    /// Moves a file; under a numbered name where its own is taken.
    private func carryFile(from old: RemotePath, to new: RemotePath) async throws(ProviderError) {
        for number in 1...Self.mostLooks {
            let place =
                number == 1
                ? new : (new.parent ?? .root).appending("\(new.name ?? "") (\(number))")
            do throws(ProviderError) {
                _ = try await client.move(.file, from: old, to: place)
                return
            } catch {
                switch error.kind {
                case .nameTaken: continue
                // It was moved already, or somebody removed it.
                case .notFound: return
                default: throw error
                }
            }
        }
        throw ProviderError(.nameTaken, detail: "\(new) and its numbers are taken")
    }
}

extension ProviderError {
    /// Whether only this piece cannot be moved, now and later: the other pieces are still moved.
    ///
    /// Of the lasting refusals not those that say that a folder is gone, or that there is no room: they
    /// concern all pieces.
    fileprivate var refusesThePiece: Bool {
        isLastingRefusal && !saysNothingIsThere && kind != .quotaExceeded
    }

    /// Whether there is nothing of the expected kind at a place, or no folder above it.
    fileprivate var saysNothingIsThere: Bool {
        switch kind {
        case .notFound, .parentNotFound, .notAFolder: true
        default: false
        }
    }
}

/// A move without an answer.
struct PlaceMotion: Sendable {
    /// The target folder's row, and below the name that the row is to have there.
    let parent: Int64
    let name: String
    /// Whether a part of it was certainly done.
    let isBegun: Bool
}
