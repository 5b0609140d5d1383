public import OortModel
import OortTransport

extension WebDAVClient {
    /// - Throws: `.nameRefused`, `.nameTooLong` for a name that the server would refuse, or hide.
    func check(_ path: RemotePath) throws(ProviderError) {
        guard let name = path.name else {
            throw ProviderError(.badRequest, detail: "the root of an account cannot be changed")
        }
        let isAtTop = address.folder.isEmpty && path.parts.count == 1
        switch WebDAVNames.refusal(of: name, dialect, abilities, isAtTop: isAtTop) {
        case .refused(let reason): throw ProviderError(.nameRefused, detail: reason)
        case .tooLong: throw ProviderError(.nameTooLong, detail: "the name is too long")
        case nil: return
        }
    }

    /// The error of a write into a folder, judged by a look: servers answer a missing folder with 403, 404,
    /// 409 and 500.
    func explained(
        _ error: ProviderError,
        writingTo path: RemotePath
    ) async throws(ProviderError) -> ProviderError {
        switch error.kind {
        case .notFound, .parentNotFound, .noPermission, .badRequest, .outcomeUnknown:
            guard let parent = path.parent else { return error }
            if try await isMissing(parent) {
                return error.asKind(.parentNotFound)
            }
            return error.kind == .parentNotFound || error.kind == .notFound
                ? ProviderError(.outcomeUnknown(retryAfter: nil), detail: error.detail) : error
        default: return error
        }
    }

    // MARK: Folders

    public func createFolder(at path: RemotePath) async throws(ProviderError) -> PlaceEntry {
        try check(path)
        if !dialect.isCloud {
            // Not every server reports that the name is taken.
            try await wantNothing(at: path)
        }
        do throws(ProviderError) {
            _ = try await api.send(
                api.request("MKCOL", path, isFolder: true),
                about: .parent
            )
        } catch  where error.kind == .unsupported {
            _ = try await entry(at: path, .folder)
            throw ProviderError(.nameTaken, detail: error.detail)
        } catch {
            throw try await explained(error, writingTo: path)
        }
        return try await made(path, .folder) { () async throws(ProviderError) in
            try await removeEmpty(path)
        }
    }

    /// Removes a folder that was just made and is empty.
    private func removeEmpty(_ path: RemotePath) async throws(ProviderError) {
        let (responses, _) = try await api.look(
            at: address.url(path, isFolder: true),
            depth: 1,
            properties: entries.listingProperties
        )
        guard responses.count == 1 else { return }
        try await remove(path, .folder)
    }

    /// Removes a file that was just created under a name that the server took for another one, if it still
    /// has the size that was sent and its present tag.
    func takeBack(_ path: RemotePath, size: Int64?) async throws(ProviderError) {
        let (responses, _) = try await api.look(
            at: address.url(path, isFolder: false),
            depth: 0,
            properties: entries.listingProperties
        )
        guard let made = responses.first,
            made.text(.dav("getcontentlength")).flatMap({ Int64($0) }) == size
        else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "\(path) is another file")
        }
        let tag = WebDAVEntries.tag(made.text(.dav("getetag")))
        try await remove(
            path,
            .file,
            abilities.guardsDeletion ? tag.map { ("If-Match", "\"\($0)\"") } : nil
        )
    }

    private func wantNothing(at path: RemotePath) async throws(ProviderError) {
        do throws(ProviderError) {
            _ = try await unconfirmedEntry(at: path)
        } catch  where error.kind == .notFound {
            return
        }
        throw ProviderError(.nameTaken, detail: "something is there already")
    }

    /// The entry at a place where something was just created; if the server took the name for another one,
    /// the item is removed again and the name refused.
    ///
    /// - Throws: an error that says that the write may have been done; `.nameRefused` where it was not.
    func made(
        _ path: RemotePath,
        _ kind: PlaceEntry.Kind = .file,
        takeBack: () async throws(ProviderError) -> Void
    ) async throws(ProviderError) -> PlaceEntry {
        do throws(ProviderError) {
            return try await landedEntry(at: path, kind)
        } catch  where error.kind == .nameRefused {
            do throws(ProviderError) { try await takeBack() } catch {
                throw error.ofUnconfirmedWrite
            }
            throw error
        } catch {
            throw error.ofUnconfirmedWrite
        }
    }

    /// The entry at a place that was just written.
    ///
    /// - Throws: an error that says that the write may have been done.
    func afterwards(
        _ path: RemotePath,
        _ kind: PlaceEntry.Kind = .file
    ) async throws(ProviderError) -> PlaceEntry {
        do throws(ProviderError) { return try await landedEntry(at: path, kind) } catch {
            throw error.ofUnconfirmedWrite
        }
    }

    /// - Throws: `.nameRefused` where the server took the name for another one.
    private func landedEntry(
        at path: RemotePath,
        _ kind: PlaceEntry.Kind
    ) async throws(ProviderError) -> PlaceEntry {
        let entry = try await settledEntry(at: path, kind)
        guard entry.kind == kind else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "something else lies where was written"
            )
        }
        return entry
    }

    /// The entry at a place where content has arrived that the server checks before it shows it: waits for
    /// that, about a minute in all.
    func settledEntry(
        at path: RemotePath,
        _ kind: PlaceEntry.Kind = .file
    ) async throws(ProviderError) -> PlaceEntry {
        var patience = 1
        while true {
            do throws(ProviderError) {
                return try await unconfirmedEntry(at: path, kind)
            } catch  where error.kind == .locked && patience <= 32 {
                try await pause(.seconds(patience))
                patience *= 2
            }
        }
    }

    /// - Throws: `.nameRefused` for a place to which nothing can be moved or copied: an Infinite Scale looks
    ///   for its own program in the destination, and wants to find it once (reva, `net.go`).
    func checkDestination(_ path: RemotePath) throws(ProviderError) {
        let text = "/" + (address.folder + path.parts).joined(separator: "/")
        guard dialect == .infinitescale, text.firstRange(of: "/dav/spaces") != nil else { return }
        throw ProviderError(
            .nameRefused,
            detail: "the server moves nothing to a path with /dav/spaces in it"
        )
    }

    // MARK: Moves

    public func move(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try check(new)
        guard let name = old.name else {
            throw ProviderError(.badRequest, detail: "the root of an account cannot be moved")
        }
        // Some servers destroy the whole folder when asked for this (nginx).
        if new.parts.count > old.parts.count,
            zip(old.parts, new.parts).allSatisfy({ $0.isSameText(as: $1) })
        {
            throw ProviderError(.moveIntoItself, detail: "a folder cannot go into itself")
        }
        if old == new { return try await entry(at: old, kind) }
        let onlyCase =
            old.parent == new.parent
            && traits.provider.names.key(name)
                == traits.provider.names.key(new.name ?? "")
        if !dialect.isCloud, !onlyCase {
            if !abilities.guardsMoves || kind == .folder { try await wantNothing(at: new) }
            if !abilities.wantsParentOfMove, let parent = new.parent,
                try await isMissing(parent)
            {
                throw ProviderError(.parentNotFound, detail: "the folder is not there")
            }
        }
        do throws(ProviderError) {
            try await relocate("MOVE", kind, from: old, to: new, replacing: false)
        } catch {
            return try await outcome(of: error, kind, from: old, to: new)
        }
        return try await moved(kind, from: old, to: new)
    }

    /// The entry of an item that was just moved; it is moved back if the server took the new name for
    /// another one.
    private func moved(
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try await made(new, kind) { () async throws(ProviderError) in
            try await relocate("MOVE", kind, from: new, to: old, replacing: false)
        }
    }

    /// What became of a move without a usable answer.
    private func outcome(
        of error: ProviderError,
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        switch error.kind {
        case .preconditionFailed: throw error.asKind(.nameTaken)
        case .outcomeUnknown, .malformedAnswer:
            // Gone here and there now: done, since nothing was there before.
            guard try await isGone(old, kind) else {
                // Apache sends who moves a file onto a folder to that one's own address.
                if error.kind == .malformedAnswer, try await !isGone(new, .folder) {
                    throw error.asKind(.nameTaken)
                }
                throw try await explained(error, writingTo: new)
            }
            return try await moved(kind, from: old, to: new)
        case .notFound, .parentNotFound, .noPermission, .badRequest:
            if try await isGone(old, kind) { throw error.asKind(.notFound) }
            // What came to the name in the same moment is a conflict (409) to an Infinite Scale.
            if dialect == .infinitescale, error.kind == .badRequest, try await !isGone(new, kind) {
                throw error.asKind(.nameTaken)
            }
            throw try await explained(error, writingTo: new)
        default: throw error
        }
    }

    private func isGone(
        _ path: RemotePath,
        _ kind: PlaceEntry.Kind
    ) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            _ = try await entry(at: path, kind)
            return false
        } catch  where error.kind == .notFound {
            return true
        }
    }

    /// Sends a move or copy.
    ///
    /// - Throws: `.preconditionFailed` when the name is taken and nothing is to be replaced.
    func relocate(
        _ method: String,
        _ kind: PlaceEntry.Kind,
        from old: RemotePath,
        to new: RemotePath,
        replacing: Bool,
        headers: [WebDAVAPI.Header] = []
    ) async throws(ProviderError) {
        let isFolder = kind == .folder
        try checkDestination(new)
        // The folders above may have such names from before.
        if abilities.cutsDestinations, new.parts.contains(where: WebDAVNames.isCutInDestinations) {
            throw ProviderError(
                .nameRefused,
                detail: "the server loses what follows a ; or ? in a path"
            )
        }
        func request(asPath: Bool) -> HTTPRequest {
            var request = api.request(
                method,
                old,
                isFolder: isFolder,
                headers: [
                    api.destination(new, isFolder: isFolder, asPath: asPath),
                    ("Overwrite", replacing ? "T" : "F"),
                ] + headers
            )
            // Between storages a server copies all that is moved.
            request.answerTimeout = .seconds(600)
            return request
        }
        let asPath = memory.wantsDestinationPath
        let response = try await api.exchange(request(asPath: asPath))
        switch response.head.status {
        case 207:
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the server did a part of it only"
            )
        case 200..<300: return
        case 400 where !asPath && !dialect.isCloud, 502 where !asPath && !dialect.isCloud:
            // Behind a proxy the server knows itself by another name; or the proxy only lost the answer, and
            // the second would remove what the first has brought there.
            if replacing {
                do throws(ProviderError) {
                    _ = try await unconfirmedEntry(at: old, isFolder ? .folder : .file)
                } catch  where error.kind == .notFound { return }
            }
            let second = try await api.exchange(request(asPath: true))
            guard (200..<300).contains(second.head.status), second.head.status != 207 else {
                throw WebDAVErrors.error(response, about: .item)
            }
            memory.wantsDestinationPath = true
        default: throw WebDAVErrors.error(response, about: .item)
        }
    }

    // MARK: Deletions

    public func delete(
        _ kind: PlaceEntry.Kind,
        at path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) {
        guard path != .root else {
            throw ProviderError(.badRequest, detail: "the root of an account cannot be removed")
        }
        let revision = kind == .file ? revision : nil
        do throws(ProviderError) {
            if dialect.heedsConditions || abilities.guardsDeletion {
                try await guarded(by: revision, at: path, namesFile: true) {
                    condition throws(ProviderError) in
                    try await remove(path, kind, condition)
                }
            } else {
                if let revision { try await wantCurrent(revision, at: path) }
                try await remove(path, kind)
            }
        } catch  where error.kind == .notFound {
            // It may be there all the same, and hold what the server cannot find (a link that leads
            // nowhere).
            guard try await isGone(path, kind) else { throw error.asKind(.noPermission) }
        }
    }

    func remove(
        _ path: RemotePath,
        _ kind: PlaceEntry.Kind,
        _ condition: WebDAVAPI.Header? = nil
    ) async throws(ProviderError) {
        _ = try await api.send(
            api.request(
                "DELETE",
                path,
                isFolder: kind == .folder,
                headers: condition.map { [$0] } ?? []
            ),
            about: .item
        )
    }

    static var stale: ProviderError {
        ProviderError(.preconditionFailed, detail: "another revision is current")
    }

    /// How long a tag may be weak.
    static let youth = Duration.seconds(2)

    // MARK: Copies and times

    public func copy(
        from path: RemotePath,
        to new: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        try check(new)
        guard dialect.isCloud || abilities.copies else {
            throw ProviderError(.unsupported, detail: "the server copies nothing by itself")
        }
        let source = try await entry(at: path)
        guard source.kind == .file else {
            throw ProviderError(.notAFile, detail: "a folder is not copied")
        }
        if !dialect.isCloud {
            if !abilities.guardsMoves { try await wantNothing(at: new) }
            if !abilities.wantsParentOfMove, let parent = new.parent, try await isMissing(parent) {
                throw ProviderError(.parentNotFound, detail: "the folder is not there")
            }
        }
        do throws(ProviderError) {
            try await relocate("COPY", .file, from: path, to: new, replacing: false)
        } catch  where error.kind == .preconditionFailed {
            throw error.asKind(.nameTaken)
        } catch {
            throw try await explained(error, writingTo: new)
        }
        let copy = try await made(new) { () async throws(ProviderError) in
            try await takeBack(new, size: source.size)
        }
        guard copy.size == source.size else {
            throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: "the copy is not whole")
        }
        return try await withTime(copy, source.modifiedTime, at: new)
    }

    /// The entry with a time, set where that can be done and is needed.
    func withTime(
        _ entry: PlaceEntry,
        _ time: Timestamp?,
        at path: RemotePath
    ) async throws(ProviderError) -> PlaceEntry {
        guard let time, traits.provider.setsModifiedTime, Self.isSendable(time),
            entry.modifiedTime?.seconds != time.seconds
        else { return entry }
        do throws(ProviderError) {
            try await api.setTime(time, of: path, tag: nil)
            return try await afterwards(path)
        } catch  where error.kind != .cancelled {
            // The content is there; a time that is not is for the caller to see and to set again.
            return entry
        }
    }

    /// Nextcloud answers an error for older times, having written the file all the same.
    static func isSendable(_ time: Timestamp) -> Bool { time.seconds > 86400 }

    public func setModifiedTime(
        _ time: Timestamp,
        of path: RemotePath,
        revision: Revision?
    ) async throws(ProviderError) -> PlaceEntry {
        guard traits.provider.setsModifiedTime, Self.isSendable(time) else {
            throw ProviderError(.unsupported, detail: "the server does not take this time")
        }
        let tag = revision.flatMap { WebDAVEntries.tag(of: $0) }
        do throws(ProviderError) {
            try await api.setTime(time, of: path, tag: tag)
        } catch  where error.kind == .preconditionFailed && tag != nil {
            // A server may compare tags in another form than it gives them.
            guard try await entry(at: path).revision == revision else { throw error }
            try await api.setTime(time, of: path, tag: nil)
        }
        return try await afterwards(path)
    }
}
