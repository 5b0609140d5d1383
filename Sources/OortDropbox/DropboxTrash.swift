import OortModel
import OortTransport

/// Deleted items at Dropbox: listings name deleted paths, and a path's revisions show what lay there.
///
/// A deleted path has neither a time nor a size nor an id of its own; those are its last revision's, at one
/// call for each path. An entry's id is its path in lower case.
struct DropboxTrash: Trash, Undeletion {
    let provider: DropboxProvider

    var restoresFolders: Bool { false }

    /// A revision of a file that is nowhere comes back at any path, also while another file has the old one.
    func restore(
        _ item: ItemID,
        revision: Revision?,
        to place: Placement
    ) async throws(ProviderError) {
        guard let revision else {
            throw ProviderError(.unsupported, detail: "a folder has no revision")
        }
        try await restore(revision.rawValue, to: place.folder.path.appending(place.name))
    }

    /// How many paths are asked for their revisions at once.
    private static let asking = 8

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        let listing = try await deleted(below: provider.address(folder), page: page)
        let tops = Self.tops(of: listing.entries)
        // A file that was moved away left its path as a deleted one does, and is no entry.
        let entries = try await many(tops) { path throws(ProviderError) in try await entry(path) }
        return TrashPage(entries: entries.compactMap(\.self), next: listing.next)
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        try await restore(entry, to: place, RestoreProgress())
    }

    func restore(
        _ entry: TrashEntry,
        to place: Placement,
        _ progress: RestoreProgress
    ) async throws(ProviderError) {
        let target = place.folder.path.appending(place.name)
        if let last = try await lastRevision(of: entry.id) {
            return try await restore(last, to: target)
        }
        let isContinued = progress.hasBegun
        let (files, since) = try await files(of: entry, in: target, progress)
        // First, so that a folder in which no file lay comes back, too.
        do throws(ProviderError) {
            try await makeFolder(target, .onlyIfNotDone, mayBeThere: isContinued)
        } catch {
            guard error.isOutcomeUnknown else { throw error }
            progress.begin(files: files.count, since: since)
            try await makeFolder(target, .harmless, mayBeThere: true)
        }
        progress.begin(files: files.count, since: since)
        var refusal: ProviderError?
        // One by one: each write takes the lock of the whole account.
        for file in files {
            do throws(ProviderError) {
                guard !file.isTaken else {
                    throw ProviderError(.nameTaken, detail: "\(file.place) is there already")
                }
                try await restore(file.last, to: file.place)
                progress.oneIsBack()
            } catch {
                // One file that is refused does not keep the others away.
                guard error.isLastingRefusal else { throw error }
                refusal = refusal ?? error
            }
        }
        if let refusal { throw refusal }
    }

    /// Makes a folder; one that is there counts as made where an earlier try or request may have made it.
    private func makeFolder(
        _ path: RemotePath,
        _ repetition: HTTPRequest.Repetition,
        mayBeThere: Bool
    ) async throws(ProviderError) {
        do throws(ProviderError) {
            let _: DropboxWire.Wrapped = try await provider.api.call(
                "files/create_folder_v2",
                DropboxWire.CreateFolder(path: path.description),
                repetition: repetition
            )
        } catch {
            guard mayBeThere, error.kind == .nameTaken else { throw error }
        }
    }

    /// A file that comes back with its folder.
    private struct File: Sendable {
        var last: DropboxWire.Metadata
        /// Where it is to be.
        var place: RemotePath
        /// Whether something else is there.
        var isTaken = false
    }

    /// The files that were deleted with a folder and are still to come back, and when that deletion began.
    private func files(
        of folder: TrashEntry,
        in target: RemotePath,
        _ progress: RestoreProgress
    ) async throws(ProviderError) -> ([File], since: Timestamp?) {
        let below = try await paths(below: folder.id)
        let answers = try await many(below) { path throws(ProviderError) in
            try await revisions(of: path.key)
        }
        let since = progress.since ?? Self.beginning(of: answers.compactMap { $0?.deletedTime })
        let depth = folder.id.parts(between: "/").count
        let files = zip(below, answers).compactMap { path, answer -> File? in
            // What was deleted in the folder before it was is meant to be gone.
            if let time = answer?.deletedTime, let since, time < since { return nil }
            let inside = path.display.parts(between: "/").dropFirst(depth).map(String.init)
            return answer?.entries.first.map {
                File(last: $0, place: RemotePath(target.parts + inside))
            }
        }
        let isContinued = progress.hasBegun
        let wanted = try await many(files) { file throws(ProviderError) in
            guard try await !isElsewhere(file.last) else { return File?.none }
            var file = file
            if isContinued { file.isTaken = try await isThere(file.place) }
            return file
        }
        return (wanted.compactMap(\.self), since)
    }

    /// Whether anything is at a path.
    private func isThere(_ path: RemotePath) async throws(ProviderError) -> Bool {
        let root = ItemReference(id: DropboxProvider.rootID, path: .root)
        return try await !provider.items(named: path.parts.joined(separator: "/"), in: root).isEmpty
    }

    /// When the deletion of a folder began, by the times at which files in it were deleted; nil where
    /// there are none.
    ///
    /// Those of one deletion follow each other: some programs delete a folder file by file.
    static func beginning(of times: [Timestamp]) -> Timestamp? {
        let times = times.sorted()
        guard var beginning = times.last else { return nil }
        for time in times.reversed() {
            guard beginning.seconds.subtractingReportingOverflow(time.seconds).partialValue <= 60
            else { break }
            beginning = time
        }
        return beginning
    }

    private func restore(
        _ last: DropboxWire.Metadata,
        to target: RemotePath
    ) async throws(ProviderError) {
        guard let revision = last.rev else {
            throw ProviderError(.malformedAnswer, detail: "a file's revision without a name")
        }
        try await restore(revision, to: target)
    }

    private func restore(_ revision: String, to target: RemotePath) async throws(ProviderError) {
        let _: DropboxWire.Metadata = try await provider.api.call(
            "files/restore",
            DropboxWire.Restore(path: target.description, rev: revision)
        )
    }

    // MARK: Paths

    /// A deleted path: as it is compared, and as it was written.
    private struct Path: Sendable {
        var key: String
        var display: String
        var name: String

        init?(_ metadata: DropboxWire.Metadata) {
            guard metadata.tag == "deleted",
                let key = metadata.path_lower ?? metadata.path_display
            else { return nil }
            self.key = key
            display = metadata.path_display ?? key
            name = metadata.name
        }
    }

    private func deleted(
        below path: String,
        page: PageToken?
    ) async throws(ProviderError) -> (entries: [Path], next: PageToken?) {
        let listing: DropboxWire.Listing
        if let page {
            listing = try await provider.api.call(
                "files/list_folder/continue",
                DropboxWire.CursorArgument(cursor: page.rawValue)
            )
        } else {
            listing = try await provider.api.call(
                "files/list_folder",
                DropboxWire.ListFolder(path: path, recursive: true, include_deleted: true)
            )
        }
        return (
            listing.entries.compactMap(Path.init),
            listing.has_more ? PageToken(listing.cursor) : nil
        )
    }

    /// Those of a page that lie in no other of it: what lay in a deleted folder goes with it.
    private static func tops(of paths: [Path]) -> [Path] {
        let keys = Set(paths.map { Array($0.key.utf8) })
        return paths.filter { path in
            var bytes = Array(path.key.utf8)
            while let slash = bytes.lastIndex(of: UInt8(ascii: "/")), slash > 0 {
                bytes.removeSubrange(slash...)
                if keys.contains(bytes) { return false }
            }
            return true
        }
    }

    /// All deleted paths below one, found by the nearest folder above that is there.
    private func paths(below key: String) async throws(ProviderError) -> [Path] {
        var above = key.parts(between: "/").map(String.init)
        while !above.isEmpty {
            above.removeLast()
            let folder = above.joined(separator: "/")
            do throws(ProviderError) {
                var found: [Path] = []
                var page: PageToken?
                var walk = PageWalk()
                repeat {
                    if let page { try walk.goOn(to: page.rawValue) }
                    let listing = try await deleted(below: folder, page: page)
                    found += listing.entries.filter { $0.key.begins(with: key + "/") }
                    page = listing.next
                } while page != nil
                return found
            } catch {
                guard error.kind == .notFound, !folder.isEmpty else { throw error }
            }
        }
        return []
    }

    // MARK: Revisions

    private func entry(_ path: Path) async throws(ProviderError) -> TrashEntry? {
        let answer = try await revisions(of: path.key)
        guard answer?.is_deleted != false else { return nil }
        var entry = TrashEntry(id: path.key, name: path.name)
        entry.path = RemotePath(path.display.parts(between: "/").dropFirst().map(String.init))
        guard let answer, let last = answer.entries.first else { return entry }
        guard try await !isElsewhere(last) else { return nil }
        entry.kind = .file
        entry.size = last.size?.bytes
        entry.deletedTime = answer.deletedTime
        entry.item = last.id.map { ItemID($0) }
        return entry
    }

    /// The newest revision of the file that lay at a path last; nil where that was a folder.
    private func lastRevision(
        of path: String
    ) async throws(ProviderError) -> DropboxWire.Metadata? {
        try await revisions(of: path)?.entries.first
    }

    private func revisions(of path: String) async throws(ProviderError) -> DropboxWire.Revisions? {
        do throws(ProviderError) {
            return try await provider.api.call(
                "files/list_revisions",
                DropboxWire.ListRevisions(path: path, limit: 1)
            )
        } catch {
            guard error.kind == .notFound || error.kind == .notAFile else { throw error }
            return nil
        }
    }

    /// Whether the file lies somewhere in the tree: it was moved, not deleted.
    private func isElsewhere(_ last: DropboxWire.Metadata) async throws(ProviderError) -> Bool {
        guard let id = last.id else { return false }
        do throws(ProviderError) {
            _ = try await provider.item(ItemReference(id: ItemID(id), path: .root))
            return true
        } catch {
            guard error.kind == .notFound else { throw error }
            return false
        }
    }

    /// Asks for each, some at a time; answers in the same order.
    private func many<Question: Sendable, Answer: Sendable>(
        _ questions: [Question],
        _ ask: @escaping @Sendable (Question) async throws(ProviderError) -> Answer
    ) async throws(ProviderError) -> [Answer] {
        let results = await withTaskGroup(of: (Int, Result<Answer, ProviderError>).self) { group in
            var results: [Int: Result<Answer, ProviderError>] = [:]
            for (index, question) in questions.enumerated() {
                if index >= Self.asking, let (done, result) = await group.next() {
                    results[done] = result
                }
                group.addTask {
                    do throws(ProviderError) {
                        return (index, .success(try await ask(question)))
                    } catch { return (index, .failure(error)) }
                }
            }
            for await (done, result) in group { results[done] = result }
            return results
        }
        var answers: [Answer] = []
        for index in questions.indices {
            guard let result = results[index] else { continue }
            answers.append(try result.get())
        }
        return answers
    }
}
