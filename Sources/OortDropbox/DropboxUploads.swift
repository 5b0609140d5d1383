import Foundation
public import OortModel
import OortTransport

extension DropboxProvider {
    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        do throws(ProviderError) {
            let metadata =
                upload.size <= traits.largestSimpleUpload && upload.session == nil
                ? try await simply(upload, observer: observer)
                : try await inSession(upload, observer: observer)
            return try verified(metadata, upload)
        } catch {
            throw await explain(error, upload)
        }
    }

    /// All modes do nothing when the same bytes are there already; but a new file may be elsewhere by
    /// the time that it is sent again, where somebody moved it.
    private func simply(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DropboxWire.Metadata {
        var commit = commit(upload)
        commit.content_hash = upload.hash.value
        let body: HTTPRequest.Body =
            upload.size == 0 ? .bytes([]) : .content(upload.content, 0..<upload.size)
        return try await api.upload(
            "files/upload",
            commit,
            body: body,
            repetition: commit.mode == .add ? .onlyIfNotDone : .harmless
        ) { observer.sent($0) }
    }

    func commit(_ upload: Upload) -> DropboxWire.Commit {
        let path: String
        let mode: DropboxWire.Mode
        switch upload.target {
        case .create(let parent, let name, _):
            path = address(of: name, in: parent)
            mode = .add
        case .replace(let item, let revision):
            path = address(item)
            mode = revision.map { .update($0.rawValue) } ?? .overwrite
        }
        return DropboxWire.Commit(
            path: path,
            mode: mode,
            client_modified: upload.modifiedTime?.rfc3339(.seconds)
        )
    }

    /// The item of an answer whose content is what was sent.
    func verified(
        _ metadata: DropboxWire.Metadata,
        _ upload: Upload
    ) throws(ProviderError) -> Item {
        let item = try item(metadata)
        guard item.contentHash == upload.hash else {
            throw ProviderError(
                .contentDamaged,
                detail: "the service has another content hash",
                item: item
            )
        }
        return item
    }

    /// A conflict means a taken name or a stale revision, by what was asked for.
    func explain(_ error: ProviderError, _ upload: Upload) async -> ProviderError {
        switch (upload.target, error.kind) {
        case (.create(let parent, _, _), _): return await explain(error, parent: parent)
        case (.replace(let item, _), .nameTaken), (.replace(let item, _), .nameRefused),
            (.replace(let item, _), .notAFolder), (.replace(let item, _), .badRequest):
            do throws(ProviderError) {
                _ = try await self.item(item)
                return error.kind == .nameTaken
                    ? ProviderError(.preconditionFailed, detail: error.detail) : error
            } catch let found {
                return found.kind == .notFound ? found : error
            }
        default: return error
        }
    }

    // MARK: Sessions

    /// How many parts are under way at once.
    private static let partsAtOnce = 4
    /// Dropbox keeps a session for seven days.
    private static let sessionSeconds: Int64 = 6 * 24 * 3600

    private func inSession(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DropboxWire.Metadata {
        var session: UploadSession
        if let earlier = upload.session {
            session = earlier
        } else {
            let started: DropboxWire.SessionID = try await api.upload(
                "files/upload_session/start",
                DropboxWire.SessionStart(),
                body: .bytes([])
            )
            session = UploadSession(
                state: started.session_id,
                confirmedBytes: 0,
                expires: Timestamp(seconds: Timestamp.now.seconds + Self.sessionSeconds)
            )
            await observer.sessionChanged(session)
        }

        // The last part closes the session, so it goes when all the others are there.
        let partSize = traits.uploadPartSize
        let lastStart = (upload.size - 1) / partSize * partSize
        let start = min(session.confirmedBytes / partSize * partSize, upload.size)
        if start < lastStart {
            session = try await append(
                upload,
                session,
                parts: start..<lastStart,
                observer: observer
            )
        }
        if session.confirmedBytes < upload.size {
            try await close(upload, session.state, from: lastStart, observer: observer)
            session.confirmedBytes = upload.size
            await observer.sessionChanged(session)
        }
        let metadata = try await finish(upload, session.state)
        await observer.sessionChanged(nil)
        return metadata
    }

    /// Sends the parts of a range, some of them side by side.
    ///
    /// None starts further ahead of what is confirmed than the others may be under way: whatever
    /// ends this, no more than that must be sent again.
    private func append(
        _ upload: Upload,
        _ session: UploadSession,
        parts: Range<Int64>,
        observer: any UploadObserver
    ) async throws(ProviderError) -> UploadSession {
        let partSize = traits.uploadPartSize
        let outcome = await withTaskGroup(of: (start: Int64, failure: ProviderError?).self) {
            group -> Result<UploadSession, ProviderError> in
            var session = session
            session.confirmedBytes = parts.lowerBound
            var next = parts.lowerBound
            var arrived: Set<Int64> = []
            while true {
                let limit = session.confirmedBytes + partSize * Int64(Self.partsAtOnce)
                while next < min(parts.upperBound, limit) {
                    let range = next..<next + partSize
                    group.addTask { [id = session.state] in
                        do throws(ProviderError) {
                            try await self.append(
                                upload,
                                id,
                                range,
                                closes: false,
                                observer: observer
                            )
                            return (range.lowerBound, nil)
                        } catch { return (range.lowerBound, error) }
                    }
                    next += partSize
                }
                guard let (start, failure) = await group.next() else { return .success(session) }
                if let failure {
                    group.cancelAll()
                    return .failure(failure)
                }
                arrived.insert(start)
                let confirmed = session.confirmedBytes
                while arrived.remove(session.confirmedBytes) != nil {
                    session.confirmedBytes += partSize
                }
                if session.confirmedBytes > confirmed { await observer.sessionChanged(session) }
            }
        }
        return try outcome.get()
    }

    /// Sends the last part; a session that is closed already has it.
    private func close(
        _ upload: Upload,
        _ id: String,
        from start: Int64,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        try await append(
            upload,
            id,
            max(0, start)..<upload.size,
            closes: true,
            observer: observer
        )
    }

    private func append(
        _ upload: Upload,
        _ id: String,
        _ range: Range<Int64>,
        closes: Bool,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        var hasher = DropboxContentHasher()
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = min(range.upperBound - offset, Int64(DropboxContentHasher.blockSize))
            hasher.update(try await upload.content.read(at: offset, count: Int(count))[...])
            offset += count
        }
        let argument = DropboxWire.SessionAppend(
            cursor: DropboxWire.SessionCursor(session_id: id, offset: range.lowerBound),
            close: closes,
            content_hash: hasher.finalize().value
        )
        let body: HTTPRequest.Body = range.isEmpty ? .bytes([]) : .content(upload.content, range)
        do throws(ProviderError) {
            let _: DropboxWire.Nothing = try await api.upload(
                "files/upload_session/append_v2",
                argument,
                body: body
            ) { observer.sent(range.lowerBound + $0) }
        } catch {
            // An earlier try whose answer was lost may have closed it: the commit will tell.
            guard closes, DropboxErrors.isClosed(error) else {
                throw DropboxErrors.isSessionGone(error)
                    ? ProviderError(.sessionLost, detail: error.detail) : error
            }
        }
    }

    private func finish(
        _ upload: Upload,
        _ id: String
    ) async throws(ProviderError) -> DropboxWire.Metadata {
        let argument = DropboxWire.SessionFinish(
            cursor: DropboxWire.SessionCursor(session_id: id, offset: upload.size),
            commit: commit(upload)
        )
        do throws(ProviderError) {
            return try await api.upload(
                "files/upload_session/finish",
                argument,
                body: .bytes([]),
                repetition: .onlyIfNotDone
            )
        } catch {
            // A session that is gone may have been committed by a try whose answer was lost.
            guard error.kind == .sessionLost else { throw error }
            let there: DropboxWire.Metadata? = try? await api.call(
                "files/get_metadata",
                DropboxWire.PathArgument(path: argument.commit.path)
            )
            guard let there, there.content_hash == upload.hash.value else { throw error }
            return there
        }
    }
}

extension DropboxErrors {
    /// Whether a session does not take more because it is closed.
    static func isClosed(_ error: ProviderError) -> Bool {
        error.detail.hasPrefix("409 closed ")
    }

    /// Whether a session is not there (any more).
    static func isSessionGone(_ error: ProviderError) -> Bool {
        ["409 not_found ", "409 closed ", "409 incorrect_offset "]
            .contains { error.detail.hasPrefix($0) }
    }
}
