import Foundation
public import OortModel
import OortTransport

extension WebDAVClient {
    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        try check(upload.path)
        if dialect == .infinitescale {
            return try await uploadToInfiniteScale(upload, observer: observer)
        }
        if dialect.isCloud { return try await uploadToCloud(upload, observer: observer) }
        await removeLeftover()
        return abilities.sendsDirectly
            ? try await uploadDirectly(upload, observer: observer)
            : try await uploadBeside(upload, observer: observer)
    }

    /// Removes one file that an old upload left.
    private func removeLeftover() async {
        guard !abilities.isReadOnly, let path = memory.takeLeftover() else { return }
        _ = try? await api.exchange(api.request("DELETE", path, isFolder: false))
    }

    /// The request that carries a content, without its guard.
    func put(
        _ upload: PlaceUpload,
        at path: RemotePath,
        observer: any UploadObserver
    ) -> HTTPRequest {
        var request = api.request(
            "PUT",
            path,
            isFolder: false,
            headers: [("Content-Type", upload.mimeType ?? "application/octet-stream")]
        )
        if dialect.isCloud || abilities.takesTimeWithUpload, let time = upload.modifiedTime,
            Self.isSendable(time)
        {
            let sent =
                dialect == .infinitescale
                ? Self.sentTime(time, of: upload.hash) : String(time.seconds)
            request.headers.append(("X-OC-Mtime", sent))
        }
        request.body = upload.size == 0 ? .bytes([]) : .content(upload.content, 0..<upload.size)
        request.weight = .bulk
        // A server stores the whole content before it answers.
        request.answerTimeout = .seconds(60 + (upload.size >> 24))
        request.onSent = { observer.sent($0) }
        return request
    }

    // MARK: Directly

    /// Sends content to its place, where the server itself refuses stale writes.
    private func uploadDirectly(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let request = put(upload, at: upload.path, observer: observer)
        func send(_ condition: WebDAVAPI.Header?) async throws(ProviderError) {
            var request = request
            if let condition { request.headers.append(condition) }
            _ = try await api.send(request, about: .parent)
        }
        do throws(ProviderError) {
            switch upload.before {
            case .nothing:
                do throws(ProviderError) {
                    try await send(("If-None-Match", "*"))
                } catch  where error.kind == .preconditionFailed {
                    throw error.asKind(.nameTaken)
                }
            case .file(let revision):
                do throws(ProviderError) {
                    try await guarded(by: revision, at: upload.path, send)
                } catch  where error.kind == .notFound {
                    throw Self.stale
                }
            }
        } catch {
            throw try await failure(error, of: upload)
        }
        let entry = try await arrived(upload)
        guard entry.size == upload.size else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the file has another size than was sent"
            )
        }
        return try await withTime(entry, upload.modifiedTime, at: upload.path)
    }

    /// The entry at the place of an upload that has just ended.
    private func arrived(_ upload: PlaceUpload) async throws(ProviderError) -> PlaceEntry {
        guard case .nothing = upload.before else { return try await afterwards(upload.path) }
        return try await made(upload.path) { () async throws(ProviderError) in
            try await takeBack(upload.path, size: upload.size)
        }
    }

    private func failure(
        _ error: ProviderError,
        of upload: PlaceUpload
    ) async throws(ProviderError) -> ProviderError {
        switch error.kind {
        case .unsupported, .parentNotFound, .noPermission, .badRequest, .malformedAnswer:
            // Apache redirects a write to a folder to the folder's own address.
            do throws(ProviderError) {
                if try await entry(at: upload.path).kind == .folder {
                    return upload.before == .nothing
                        ? error.asKind(.nameTaken) : error.asKind(.notAFile)
                }
            } catch  where error.kind == .notFound {}
            return try await explained(error, writingTo: upload.path)
        default: return error
        }
    }

    /// Sends a change of a file that must be of a revision; nil is any.
    ///
    /// A file of a young time, or of one in the future, has a weak tag, which `If-Match` refuses although it
    /// is the current one: the change is sent again when the file is older, and then with the condition of
    /// RFC 4918, section 10.4, which Apache compares weakly.
    ///
    /// - Parameters:
    ///   - revision: the revision that it must have.
    ///   - path: the file's place.
    ///   - namesFile: whether that last condition names the file: at a deletion Apache holds one without a
    ///     name against the folder, too. Behind a proxy of other paths a name leads nowhere.
    ///   - send: sends the change with a condition.
    /// - Throws: `.notFound` where no file is there; `.preconditionFailed` where it is of another revision.
    func guarded(
        by revision: Revision?,
        at path: RemotePath,
        namesFile: Bool = false,
        _ send: (WebDAVAPI.Header?) async throws(ProviderError) -> Void
    ) async throws(ProviderError) {
        guard let revision else { return try await send(nil) }
        guard let tag = WebDAVEntries.tag(of: revision) else {
            try await wantCurrent(revision, at: path)
            return try await send(nil)
        }
        for wait in [Self.youth, .zero] {
            do throws(ProviderError) {
                return try await send(("If-Match", "\"\(tag)\""))
            } catch  where error.kind == .preconditionFailed {
                try await wantCurrent(revision, at: path)
                try await pause(wait)
            }
        }
        // Of a strong one, something else is refused; and a server may not know the other condition.
        guard try await hasWeakTag(path) else { throw Self.stale }
        let file = namesFile ? "<\(address.url(path, isFolder: false))> " : ""
        do throws(ProviderError) {
            try await send(("If", "\(file)([\"\(tag)\"])"))
        } catch  where [.badRequest, .unsupported].contains(error.kind) {
            // The server knows no such condition.
            throw Self.stale
        }
    }

    /// Whether a file's tag is a weak one, which `If-Match` must refuse (RFC 9110, section 13.1.1).
    private func hasWeakTag(_ path: RemotePath) async throws(ProviderError) -> Bool {
        let (own, _, _) = try await ownEntry(of: path, depth: 0, isFolder: false)
        return own.text(.dav("getetag"))?.trimmed.begins(with: "W/") ?? false
    }

    /// - Throws: `.preconditionFailed` unless a file of this revision is at the place; `.notFound` where
    ///   nothing is.
    func wantCurrent(
        _ revision: Revision,
        at path: RemotePath
    ) async throws(ProviderError) {
        let current = try await entry(at: path)
        guard current.kind == .file else {
            throw ProviderError(.notAFile, detail: "a folder is there now")
        }
        guard current.revision == revision else { throw Self.stale }
    }

    // MARK: Beside

    /// Sends content to a temporary name beside its place, checks that it is complete, and moves it there
    /// in one step: an upload that is cut off destroys nothing, and no condition is needed that the server
    /// might ignore.
    private func uploadBeside(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        guard let folder = upload.path.parent else {
            throw ProviderError(.badRequest, detail: "the root of an account cannot be changed")
        }
        // An upload that cannot succeed is not sent.
        if upload.size > 1 << 20 { _ = try await replaces(upload) }
        let temporary = folder.appending(
            WebDAVNames.temporary(WebDAVNames.unique(at: .now), abilities)
        )
        do throws(ProviderError) {
            _ = try await api.send(
                put(upload, at: temporary, observer: observer),
                about: .parent
            )
            let sent = try await afterwards(temporary)
            guard sent.size == upload.size else {
                throw ProviderError(
                    .contentDamaged,
                    detail: "\(sent.size ?? 0) of \(upload.size) bytes arrived"
                )
            }
            _ = try await withTime(sent, upload.modifiedTime, at: temporary)
        } catch {
            await discard(temporary)
            throw try await explained(error, writingTo: upload.path)
        }
        try await install(temporary, upload)
        let entry = try await arrived(upload)
        guard entry.size == upload.size else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the file has another size than was sent"
            )
        }
        return try await withTime(entry, upload.modifiedTime, at: upload.path)
    }

    /// Whether a file is to be replaced at an upload's place.
    ///
    /// - Throws: `.nameTaken`, `.preconditionFailed`, `.notAFile` when it cannot be done at all.
    func replaces(_ upload: PlaceUpload) async throws(ProviderError) -> Bool {
        let current: PlaceEntry
        do throws(ProviderError) {
            current = try await unconfirmedEntry(at: upload.path)
        } catch  where error.kind == .notFound {
            guard case .file(.some) = upload.before else { return false }
            throw Self.stale
        }
        switch upload.before {
        case .nothing: throw ProviderError(.nameTaken, detail: "something is there already")
        case .file(let revision):
            guard current.kind == .file else {
                throw ProviderError(.notAFile, detail: "a folder is there now")
            }
            guard revision == nil || current.revision == revision else { throw Self.stale }
            return true
        }
    }

    /// Moves complete content to its place; the temporary file is removed as soon as it is not needed.
    private func install(
        _ temporary: RemotePath,
        _ upload: PlaceUpload
    ) async throws(ProviderError) {
        // Never onto a folder: some servers would remove all of its contents.
        let isReplacing: Bool
        do throws(ProviderError) {
            isReplacing = try await replaces(upload)
        } catch {
            if error.kind != .cancelled { await discard(temporary) }
            throw error
        }
        do throws(ProviderError) {
            try await relocate(
                "MOVE",
                .file,
                from: temporary,
                to: upload.path,
                replacing: isReplacing
            )
        } catch {
            switch error.kind {
            case .cancelled: throw error
            case .preconditionFailed where upload.before == .nothing:
                await discard(temporary)
                throw error.asKind(.nameTaken)
            default:
                // If the temporary file is still there, the content is not at its place, unless somebody
                // copies; if it is not, the content is.
                let isThere: Bool
                do throws(ProviderError) {
                    _ = try await entry(at: temporary)
                    isThere = true
                } catch  where error.kind == .notFound {
                    isThere = false
                }
                guard isThere else { return }
                // Some servers remove the target first, and then refuse the move: while the target is
                // missing, the temporary file is the only content.
                if isReplacing {
                    do throws(ProviderError) {
                        _ = try await entry(at: upload.path)
                    } catch  where error.kind == .notFound {
                        try await relocate(
                            "MOVE",
                            .file,
                            from: temporary,
                            to: upload.path,
                            replacing: false
                        )
                        return
                    }
                }
                await discard(temporary)
                throw error
            }
        }
    }

    /// Removes a temporary file; if that fails now, it is removed some days later.
    private func discard(_ temporary: RemotePath) async {
        _ = try? await api.exchange(api.request("DELETE", temporary, isFolder: false))
    }
}
