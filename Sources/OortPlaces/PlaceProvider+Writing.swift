import Logging
public import OortModel
import Synchronization

/// Writing: first at the service, then in the map; listings that are under way meanwhile do not count for
/// these places.
extension PlaceProvider {
    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        let parent = try await self.folder(folder.parent)
        let name = stored(folder.name)
        return try await moves.operate(on: .name(name, in: parent, .change)) {
            ground throws(ProviderError) in
            let entry = try await refusable(in: parent) { () async throws(ProviderError) in
                let path = ground.namePaths[0]
                guard let mode = folder.mode else { return try await client.createFolder(at: path) }
                return try await client.createFolder(at: path, mode: mode)
            }
            let row = try await map.write {
                try PlaceTransaction(database: $0).insert(entry, in: parent)
            }
            return item(row)
        }
    }

    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        let task: PlaceTask
        switch upload.target {
        case .create(let folder, let name, _):
            task = .name(stored(name), in: try await self.folder(folder), .change)
        case .replace(let reference, _):
            task = .entry(try await row(of: reference).id, .change)
        }
        return try await moves.operate(on: task) { ground throws(ProviderError) in
            try await send(upload, over: ground.rows.first, on: ground, observer: observer)
        }
    }

    /// Sends content to a place, over the file of `row` where one is given.
    private func send(
        _ upload: Upload,
        over row: PlaceRow?,
        on ground: PlaceGround,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        guard let place = ground.claim.places.first,
            let path = (ground.rowPaths + ground.namePaths).first, row?.entry.kind != .folder
        else { throw ProviderError(.notAFile, detail: "only a file has content") }
        let parent = place.folder
        await scan.visit(parent)
        var before = PlaceUpload.Before.nothing
        if case .replace(_, let revision) = upload.target, let row {
            before = .file(try clientRevision(revision, of: row))
        }
        let sent = PlaceUpload(
            path: path,
            before: before,
            size: upload.size,
            hash: upload.hash,
            modifiedTime: try await time(
                upload.modifiedTime,
                for: row,
                size: upload.size,
                hash: upload.hash
            ),
            mimeType: upload.mimeType,
            mode: upload.mode,
            content: upload.content,
            session: upload.session
        )
        var entry = try await refusable(in: parent) { () async throws(ProviderError) in
            try await client.upload(sent, observer: observer)
        }
        if entry.hash == nil { entry.hash = sent.hash }
        let new = try await map.write { [entry] database -> PlaceRow in
            let transaction = PlaceTransaction(database: database)
            if let row, let old = try transaction.row(row.id) {
                return try transaction.rewrite(old, as: entry)
            }
            return try transaction.insert(entry, in: parent)
        }
        if row == nil { await scan.changed(parent) }
        return item(new)
    }

    /// The modified time that a file gets.
    ///
    /// Where size and second make the revision, a content must not get the second that another one of its
    /// size has or had there. Otherwise two saves within a second, or programs that restore the old time
    /// after they wrote (`touch -r`), would go unseen by every other client, which would then overwrite
    /// them. `hash` is of the content that is to have the time; nil for the content that the file has.
    private func time(
        _ wanted: Timestamp?,
        for row: PlaceRow?,
        size: Int64?,
        hash: ContentHash?
    ) async throws(ProviderError) -> Timestamp? {
        let time = wanted?.truncated(to: traits.timeResolution)
        guard client.traits.hasRevisionsOfTimes, let time, let row, let size else { return time }
        let isOther = hash.map { $0 != row.entry.hash } ?? false
        return try await map.read { database in
            try PlaceTransaction(database: database)
                .freeTime(from: time, of: row, size: size, isOther: isOther)
        }
    }

    public func move(_ move: Move) async throws(ProviderError) -> Item {
        let id = try await row(of: move.item).id
        guard id != PlaceMap.rootRow else {
            throw ProviderError(.moveIntoItself, detail: "the account's root cannot be moved")
        }
        let parent = try await folder(move.parent)
        let name = stored(move.name)
        let task = PlaceTask(
            manner: .moveOrRemove,
            rows: [id],
            places: [PlaceTurns.Place(parent, name)]
        )
        return try await moves.operate(on: task) { ground throws(ProviderError) in
            let row = ground.rows[0]
            guard !ground.claim.above.contains(id) else {
                throw ProviderError(
                    .moveIntoItself,
                    detail: "\(move.item.path) would lie in itself"
                )
            }
            // It is there already: an earlier try moved it.
            if parent == row.parent, name.isSameText(as: row.entry.name) { return item(row) }
            return item(try await moves.move(row, to: parent, name: name))
        }
    }

    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        do throws(ProviderError) {
            let id = try await row(of: deletion.item).id
            try await moves.operate(on: .entry(id, .moveOrRemove)) {
                ground throws(ProviderError) in
                try await delete(ground.rows[0], at: ground.rowPaths[0], deletion.revision)
            }
        } catch {
            guard error.kind == .notFound, try await isGone(deletion.item) else { throw error }
        }
    }

    private func isGone(_ reference: ItemReference) async throws(ProviderError) -> Bool {
        let id = try map.row(of: reference.id)
        return try await map.read { try PlaceTransaction(database: $0).row(id) == nil }
    }

    private func delete(
        _ row: PlaceRow,
        at path: RemotePath,
        _ revision: Revision?
    ) async throws(ProviderError) {
        guard let parent = row.parent else {
            throw ProviderError(.noPermission, detail: "the account's root cannot be deleted")
        }
        let isAway = try await map.read { try PlaceTransaction(database: $0).isAway(row.id) }
        if isAway {
            // Nothing in the storage is deleted: when it is back, so is all of it.
            guard try await hasNothing(at: path) else {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(path) is back")
            }
            try await map.write { try PlaceTransaction(database: $0).remove(row.id) }
            return
        }
        let known = row.entry.kind == .file ? try clientRevision(revision, of: row) : nil
        if row.entry.kind == .folder { try await lookThrough(row.id) }
        try await refusable(in: parent) { () async throws(ProviderError) in
            do throws(ProviderError) {
                let mark = client.trashMark(of: row.entry, at: path, id: map.id(of: row.id))
                if row.entry.kind == .folder, client.traits.deletesKnownOnly {
                    let contents = try await map.read { database in
                        try PlaceTransaction(database: database).contents(of: row.id, at: path)
                    }
                    try await client.deleteFolder(at: path, holding: contents, mark: mark)
                } else {
                    try await client.delete(
                        row.entry.kind,
                        at: path,
                        revision: known,
                        mark: mark
                    )
                }
            } catch {
                // If there is a trash that cannot take it, it is not deleted.
                guard error.kind == .unsupported, row.entry.kind == .folder,
                    !client.traits.deletesToTrash
                else { throw error }
                try await deletePieces(of: row.id, at: path)
            }
        }
        try await map.write { try PlaceTransaction(database: $0).remove(row.id) }
    }

    /// Whether the service has nothing at a path.
    private func hasNothing(at path: RemotePath) async throws(ProviderError) -> Bool {
        do throws(ProviderError) { _ = try await client.entry(at: path) } catch {
            guard error.kind == .notFound else { throw error }
            return true
        }
        return false
    }

    /// Deletes a folder with the entries that the map knows, and nothing else.
    ///
    /// The next try continues one that ended half-way.
    private func deletePieces(
        of folder: Int64,
        at path: RemotePath
    ) async throws(ProviderError) {
        let children = try await map.read {
            try PlaceTransaction(database: $0).children(of: folder)
        }
        for child in children {
            let place = path.appending(child.entry.name)
            switch child.entry.kind {
            case .file:
                try await client.delete(.file, at: place, revision: child.entry.revision)
            case .folder: try await deletePieces(of: child.id, at: place)
            }
        }
        do throws(ProviderError) { try await client.removeEmptyFolder(at: path) } catch {
            guard error.kind == .locked else { throw error }
            let listing = try await client.listing(of: path)
            guard listing.entries.isEmpty, listing.unknown.isEmpty else { throw error }
            // For instance a socket: later tries would fail, too.
            throw ProviderError(
                .noPermission,
                detail: "\(path) holds what is not shown: \(error.detail)"
            )
        }
    }

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        let id = try await row(of: copy.item).id
        let parent = try await folder(copy.parent)
        let task = PlaceTask(
            manner: .change,
            rows: [id],
            places: [PlaceTurns.Place(parent, stored(copy.name))]
        )
        return try await moves.operate(on: task) { ground throws(ProviderError) in
            let (row, old, new) = (ground.rows[0], ground.rowPaths[0], ground.namePaths[0])
            guard !(try await unchanged(row, at: old)).isYoung else {
                // Its content may have changed under the same revision.
                throw ProviderError(.unsupported, detail: "\(old) was written a moment ago")
            }
            var entry = try await refusable(in: parent) { () async throws(ProviderError) in
                try await client.copy(from: old, to: new)
            }
            if let time = copy.modifiedTime?.truncated(to: traits.timeResolution),
                time != entry.modifiedTime, traits.setsModifiedTime
            {
                do throws(ProviderError) {
                    entry = try await client.setModifiedTime(
                        time,
                        of: new,
                        revision: entry.revision
                    )
                } catch {
                    // The copy exists, whatever became of its time.
                    guard !error.isOutcomeUnknown else { throw error }
                    throw ProviderError(
                        .outcomeUnknown(retryAfter: error.retryAfter),
                        detail: error.detail
                    )
                }
            }
            // If the service gives no hash, the copy has that of an original that stayed the same
            // throughout; otherwise it is not known what was copied.
            if entry.hash == nil {
                do throws(ProviderError) {
                    if !(try await unchanged(row, at: old)).isYoung { entry.hash = row.entry.hash }
                } catch { logger.info("a copy has no hash", metadata: ["error": "\(error)"]) }
            }
            let copied = try await map.write { [entry] in
                try PlaceTransaction(database: $0).insert(entry, in: parent)
            }
            return item(copied)
        }
    }

    public func setAttributes(
        of reference: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        let known = try await row(of: reference)
        guard change.description == nil, let time = change.modifiedTime,
            known.entry.kind == .file
        else { throw ProviderError(.unsupported, detail: "the service keeps no such attribute") }
        return try await moves.operate(on: .entry(known.id, .change)) {
            ground throws(ProviderError) in
            let row = ground.rows[0]
            guard let parent = row.parent else { throw gone(reference) }
            // A move of the file may have met somebody else's content.
            guard change.revision.map({ $0 == revision(of: row) }) ?? true else {
                throw ProviderError(
                    .preconditionFailed,
                    detail: "\(reference.path) has another revision"
                )
            }
            // The new revision is assumed to have the known revision's content.
            _ = try await unchanged(row, at: ground.rowPaths[0])
            let free = try await self.time(time, for: row, size: row.entry.size, hash: nil)
            var entry = try await refusable(in: parent) { () async throws(ProviderError) in
                try await stamp(row, with: free ?? time, at: ground.rowPaths[0])
            }
            // Where the time is part of the revision, the content is still the known one.
            if entry.hash == nil, entry.size == row.entry.size { entry.hash = row.entry.hash }
            let new = try await map.write { [entry] database -> PlaceRow? in
                let transaction = PlaceTransaction(database: database)
                return try transaction.row(row.id).map { try transaction.rewrite($0, as: entry) }
            }
            guard let new, new.id == row.id else { throw gone(reference) }
            return item(new)
        }
    }

    /// Sets the time of a file whose content the map knows.
    ///
    /// A try without an answer may have done so and changed the revision: a file of the same size that has
    /// this time now, and had another one, counts as done.
    private func stamp(
        _ row: PlaceRow,
        with time: Timestamp,
        at path: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let revision = row.entry.revision
        do throws(ProviderError) {
            return try await client.setModifiedTime(time, of: path, revision: revision)
        } catch {
            guard error.isOutcomeUnknown || error.kind == .preconditionFailed,
                row.entry.modifiedTime != time, let now = try? await client.entry(at: path),
                now.kind == row.entry.kind, now.size == row.entry.size, now.modifiedTime == time
            else { throw error }
            return now
        }
    }

    /// A file as the service has it, if it is still in the revision that the map knows.
    ///
    /// - Throws: `.preconditionFailed` where the service has another revision by now.
    private func unchanged(
        _ row: PlaceRow,
        at path: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        let now = try await client.entry(at: path)
        guard now.kind == row.entry.kind, now.revision == row.entry.revision else {
            if let parent = row.parent {
                try await map.write { try PlaceTransaction(database: $0).makeDue(parent) }
            }
            throw ProviderError(.preconditionFailed, detail: "\(path) has another revision")
        }
        return now
    }

    /// Runs an operation in a folder; if the service says that something is not as in the map, the folder
    /// is listed in the next round.
    private func refusable<Value: Sendable>(
        in folder: Int64,
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        do throws(ProviderError) { return try await body() } catch {
            switch error.kind {
            case .preconditionFailed, .nameTaken, .notFound, .parentNotFound, .notAFolder,
                .notAFile:
                try await map.write { try PlaceTransaction(database: $0).makeDue(folder) }
            default: break
            }
            throw error
        }
    }

    /// Looks at a folder and all below it before it is deleted: others may have changed it since the feed
    /// was read.
    ///
    /// Where stamps cover whole trees, only folders with a new stamp are listed; otherwise all are, and also
    /// where no trash keeps what could never be seen here.
    ///
    /// - Throws: `.preconditionFailed` where something lies there that the feed has not reported, or a
    ///   folder is not where it was.
    private func lookThrough(_ folder: Int64) async throws(ProviderError) {
        let stampsTrees = client.traits.scan == .subtreeStamps && client.keepsDeleted
        var waiting = stampsTrees ? try await changedFolders(below: folder) : [folder]
        while !waiting.isEmpty {
            let some = Array(waiting.suffix(max(1, client.traits.listingsInFlight)))
            waiting.removeLast(some.count)
            for (next, result) in await scan.readStandingListings(of: some) {
                do throws(ProviderError) {
                    let listing = try result.get()
                    if listing.holdsUnseen { try await refuseUnseen(in: next) }
                    waiting +=
                        stampsTrees
                        ? listing.folders
                        : try await map.read {
                            try PlaceTransaction(database: $0).subfolders(of: next)
                        }
                } catch {
                    try await judge(error, of: next)
                }
            }
        }
        let after = try await map.read {
            try PlaceTransaction(database: $0).lastNews(below: folder)
        }
        // A change in the map that the feed's reader has not stored counts as not reported.
        guard after <= stored.withLock(\.self) else {
            throw ProviderError(
                .preconditionFailed,
                detail: "the folder holds something that was not known of"
            )
        }
    }

    /// Refuses unless a trash keeps the folder, since something in it has no name here, or could not be
    /// read.
    private func refuseUnseen(in folder: Int64) async throws(ProviderError) {
        guard !client.keepsDeleted else { return }
        let path = try await map.read { try PlaceTransaction(database: $0).path(of: folder) }
        throw ProviderError(
            .noPermission,
            detail: "\(path ?? .root) holds something that cannot be shown here and would be lost"
        )
    }

    /// Decides what it means for a deletion that a folder below could not be looked at.
    private func judge(_ error: ProviderError, of folder: Int64) async throws(ProviderError) {
        switch error.kind {
        case .notFound, .notAFolder:
            try await map.write { database in
                let transaction = PlaceTransaction(database: database)
                if let above = try transaction.row(folder)?.parent {
                    try transaction.makeDue(above)
                }
            }
            throw ProviderError(.preconditionFailed, detail: error.detail)
        case .noPermission where client.keepsDeleted:
            // Its contents were never seen here; the trash keeps them.
            logger.notice("a folder goes unseen", metadata: ["error": "\(error)"])
        default: throw error
        }
    }

    /// The folders at and below one that must be listed, judging by its tree's stamp as it is now.
    private func changedFolders(below folder: Int64) async throws(ProviderError) -> [Int64] {
        let path = try await map.read { try PlaceTransaction(database: $0).path(of: folder) }
        guard let path, let answer = await client.stamps(of: [path]).first else { return [folder] }
        let stamp: FolderStamp?
        do throws(ProviderError) { stamp = try answer.get() } catch {
            try await judge(error, of: folder)
            return []
        }
        guard let stamp else { return [folder] }
        return try await map.write { database in
            let transaction = PlaceTransaction(database: database)
            try transaction.setStamp(stamp, of: folder)
            return try transaction.dueFolders().filter {
                try transaction.lies($0, below: folder)
            }
        }
    }
}
