import Foundation
public import OortModel
import OortTransport

/// What an upload session's state holds between two runs of the program.
///
/// The address is the permission, so the state is a secret.
private struct StoredSession: Codable {
    var url: String
    var size: Int64
}

/// Where an upload goes, in the service's words.
struct Destination {
    /// The drive that will hold the item.
    var drive: String
    /// The resource's path without the action at its end.
    var path: String
    /// The item's name; nil where it is replaced by id.
    var name: String?
    /// The folder for a new item, the item itself for a new revision.
    var address: DriveAddress
    /// The revision that must be current; nil for new items, or where any will do.
    var revision: Revision?
    var isNew: Bool { name != nil }
    /// The tag of the revision that must be current, where it has one.
    var tag: String? { revision.flatMap { OneDriveItems.contentTag($0, isShortcut: false) } }
}

extension OneDriveProvider {
    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        let destination = try destination(of: upload)
        let wire =
            if upload.size == 0 {
                try await uploadEmpty(upload, to: destination)
            } else {
                try await uploadBySession(upload, to: destination, observer: observer)
            }
        return try known(wire, drive: destination.drive)
    }

    func destination(of upload: Upload) throws(ProviderError) -> Destination {
        switch upload.target {
        case .create(let parent, let name, _):
            let id = try OneDriveItemID(parent.id)
            memory.learn(id)
            try OneDriveNames.check(
                name,
                kind: .file,
                in: parent,
                isPersonal: OneDriveSpelling.isPersonal(drive: id.target.drive)
            )
            return Destination(
                drive: id.target.drive,
                path: "\(id.target.path):/\(PercentEncoding.segment(name)):",
                name: name,
                address: id.target,
                revision: nil
            )
        case .replace(let item, let revision):
            let id = try OneDriveItemID(item.id)
            memory.learn(id)
            return Destination(
                drive: id.target.drive,
                path: id.target.path,
                name: nil,
                address: id.target,
                // A shortcut reports too little of its file to compare it here.
                revision: id.isShortcut ? nil : revision
            )
        }
    }

    // MARK: Guarding the revision

    /// The tag that the upload is bound to; nil for a new item.
    ///
    /// - Throws: `.preconditionFailed` when another revision is current already.
    private func tag(guarding destination: Destination) async throws(ProviderError) -> String? {
        guard !destination.isNew, let revision = destination.revision else { return nil }
        let wire = try await api.item(at: destination.address)
        guard OneDriveItems.isFile(wire) else {
            throw ProviderError(.notAFile, detail: "a folder has no content")
        }
        guard
            OneDriveItems.revision(wire, in: destination.drive, isShortcut: false) == revision
        else { throw ProviderError(.preconditionFailed, detail: "another revision is current") }
        return wire.eTag
    }

    /// Runs an attempt bound to the current tag, and looks again when the service calls the tag
    /// stale: what changed may be a name only, or the service may be wrong (issue 1716).
    ///
    /// A tag that is refused although it is the current one is left out, right after that look.
    private func guarded<Value>(
        _ destination: Destination,
        _ attempt: (_ tag: String?) async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        // The revision's own tag needs no look before; a refusal is looked at.
        if let tag = destination.tag {
            do throws(ProviderError) {
                return try await attempt(tag)
            } catch  where error.kind == .preconditionFailed {}
        }
        var refused: String?
        for _ in 0..<4 {
            let tag = try await tag(guarding: destination)
            do throws(ProviderError) {
                return try await attempt(tag == refused ? nil : tag)
            } catch  where error.kind == .preconditionFailed {
                refused = tag
                try await pause(.milliseconds(250))
            }
        }
        throw ProviderError(.locked, detail: "the item changes too fast to be replaced")
    }

    // MARK: Empty files

    /// A session cannot make an empty file, and a simple upload cannot carry the modified time.
    private func uploadEmpty(
        _ upload: Upload,
        to destination: Destination
    ) async throws(ProviderError) -> DriveItemWire {
        let created = try await guarded(destination) { (tag) async throws(ProviderError) in
            let behavior: ConflictBehavior = destination.isNew ? .fail : .replace
            var request = api.request(
                "PUT",
                "\(destination.path)/content",
                query: [("@microsoft.graph.conflictBehavior", behavior.rawValue)],
                headers: [("Content-Type", upload.mimeType ?? "application/octet-stream")]
                    + (tag.map { [("If-Match", $0)] } ?? []),
                repetition: destination.isNew || tag != nil ? .onlyIfNotDone : .harmless
            )
            request.body = .bytes([])
            return try await api.send(
                request,
                for: DriveItemWire.self,
                about: destination.isNew ? .parent : .item
            )
        }
        guard created.size?.bytes ?? 0 == 0 else {
            throw ProviderError(
                .contentDamaged,
                detail: "an empty file that is not empty",
                item: try known(created, drive: destination.drive)
            )
        }
        guard let time = upload.modifiedTime, let id = created.id,
            OneDriveItems.modifiedTime(created)?.seconds != time.seconds
        else { return created }
        do throws(ProviderError) {
            return try await patch(
                DriveAddress(drive: destination.drive, item: id),
                path: nil,
                with: ItemChangeWire(fileSystemInfo: FileSystemInfoWire(modified: time))
            )
        } catch  where error.kind != .cancelled {
            // The content is there; a time that is not is for the caller to see and to set again.
            return created
        }
    }

    // MARK: Sessions

    private func uploadBySession(
        _ upload: Upload,
        to destination: Destination,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DriveItemWire {
        if let stored = stored(upload) {
            if let wire = try await resume(
                stored,
                upload,
                to: destination,
                observer: observer
            ) {
                return wire
            }
        }
        return try await guarded(destination) { (tag) async throws(ProviderError) in
            let session = try await open(upload, to: destination, tag: tag)
            await observer.sessionChanged(session.stored)
            return try await send(
                upload,
                to: destination,
                by: session,
                from: 0,
                observer: observer
            )
        }
    }

    /// Graph keeps no trace of where an item lay before, but both times that were sent with it.
    public func isOutcome(
        _ item: Item,
        of upload: LostUpload
    ) async throws(ProviderError) -> Bool {
        guard let created = upload.createdTime, let modified = upload.modifiedTime else {
            return false
        }
        return (item.contentHash == nil || item.contentHash == upload.hash)
            && item.createdTime?.seconds == created.seconds
            && item.clientModifiedTime?.seconds == modified.seconds
    }

    private func stored(_ upload: Upload) -> Session? {
        guard let session = upload.session,
            let stored = try? JSONDecoder().decode(
                StoredSession.self,
                from: Data(session.state.utf8)
            ),
            stored.size == upload.size
        else { return nil }
        return Session(url: stored.url, size: stored.size, expires: session.expires)
    }

    /// Goes on with a session of an earlier run; nil when it is over and left nothing.
    private func resume(
        _ session: Session,
        _ upload: Upload,
        to destination: Destination,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DriveItemWire? {
        do throws(ProviderError) {
            let next = try await nextByte(of: session)
            return try await send(
                upload,
                to: destination,
                by: session,
                from: next,
                observer: observer
            )
        } catch  where error.kind == .sessionLost {
            if let wire = try await landed(upload, at: destination) {
                await observer.sessionChanged(nil)
                return wire
            }
            await observer.sessionChanged(nil)
            return nil
        } catch  where error.kind == .preconditionFailed {
            // The tag of that time; whether the revision is still the same is looked at anew.
            return nil
        }
    }

    private func open(
        _ upload: Upload,
        to destination: Destination,
        tag: String?
    ) async throws(ProviderError) -> Session {
        let request = try api.request(
            "POST",
            "\(destination.path)/createUploadSession",
            headers: tag.map { [("If-Match", $0)] } ?? [],
            json: session(for: upload, to: destination),
            // An unused session does no harm and runs out.
            repetition: .harmless
        )
        let wire = try await api.send(
            request,
            for: UploadSessionWire.self,
            about: destination.isNew ? .parent : .item
        )
        return try session(wire, of: upload)
    }

    /// The body that opens a session.
    func session(for upload: Upload, to destination: Destination) -> NewUploadSessionWire {
        NewUploadSessionWire(
            item: ItemChangeWire(
                name: destination.name,
                fileSystemInfo: upload.modifiedTime.map {
                    FileSystemInfoWire(
                        modified: $0,
                        created: destination.isNew ? upload.createdTime : nil
                    )
                },
                conflictBehavior: destination.isNew ? .fail : .replace,
                fileSize: OneDriveSpelling.isPersonal(drive: destination.drive)
                    ? upload.size : nil
            )
        )
    }

    /// The session that an answer opened.
    func session(
        _ wire: UploadSessionWire,
        of upload: Upload
    ) throws(ProviderError) -> Session {
        guard let url = wire.uploadUrl else {
            throw ProviderError(.malformedAnswer, detail: "an upload session without an address")
        }
        return Session(
            url: try api.presigned(url),
            size: upload.size,
            expires: wire.expirationDateTime.flatMap { Timestamp(rfc3339: $0) }
        )
    }

    /// The first byte that the service misses.
    ///
    /// - Throws: `.sessionLost` when the session is finished, cancelled or has run out.
    private func nextByte(of session: Session) async throws(ProviderError) -> Int64 {
        let wire = try await api.send(
            HTTPRequest(
                method: "GET",
                url: session.url,
                repetition: .harmless,
                isAuthorized: false
            ),
            for: UploadSessionWire.self,
            about: .session
        )
        guard let next = wire.nextExpectedByte, (0..<session.size).contains(next) else {
            throw ProviderError(.sessionLost, detail: "a session that expects nothing")
        }
        return next
    }

    /// Sends the parts in order until the service has all of them and answers with the item.
    func send(
        _ upload: Upload,
        to destination: Destination,
        by session: Session,
        from start: Int64,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DriveItemWire {
        var next = start
        var failures = 0
        // Whether the last part was sent and what became of it is not known.
        var mayBeDone = false
        while true {
            let outcome: PartOutcome
            do throws(ProviderError) {
                outcome = try await sendPart(
                    upload,
                    by: session,
                    from: next,
                    observer: observer
                )
            } catch {
                outcome = .failed(error)
            }
            switch outcome {
            case .finished(let wire):
                await observer.sessionChanged(nil)
                return try await verified(wire, of: upload, at: destination)
            case .expects(let byte) where byte > next && byte < upload.size:
                next = byte
                failures = 0
                await observer.sessionChanged(session.stored(confirming: next))
                continue
            case .expects(let byte):
                failures += 1
                guard failures < 5, (0..<upload.size).contains(byte) else {
                    await abandon(session, observer: observer)
                    throw ProviderError(
                        .sessionLost,
                        detail: "the session expects byte \(byte) again and again"
                    )
                }
                next = byte
            case .failed(let error):
                if error.isOutcomeUnknown, end(from: next, of: upload.size) == upload.size {
                    mayBeDone = true
                }
                switch error.kind {
                case .sessionLost:
                    // Over: perhaps because the last part landed and its answer was lost.
                    await observer.sessionChanged(nil)
                    if let wire = try await landed(upload, at: destination) { return wire }
                    throw error
                case .outcomeUnknown, .offline, .rateLimited, .malformedAnswer:
                    failures += 1
                    guard failures < 5 else { throw mayBeDone ? error.asUnknownOutcome : error }
                    try await pause(
                        error.retryAfter ?? .milliseconds(300) * Double(1 << failures)
                    )
                    // The bytes may have arrived: the session knows.
                    let byte: Int64?
                    do throws(ProviderError) {
                        byte = try await stateAfterFailure(of: session, error)
                    } catch { throw mayBeDone ? error.asUnknownOutcome : error }
                    guard let byte else {
                        await observer.sessionChanged(nil)
                        if let wire = try await landed(upload, at: destination) { return wire }
                        // Perhaps the session ended because all of it arrived, and another client moved the
                        // file.
                        throw ProviderError(
                            mayBeDone ? .outcomeUnknown(retryAfter: nil) : .sessionLost,
                            detail: error.detail
                        )
                    }
                    mayBeDone = false
                    if byte > next { failures = 0 }
                    next = byte
                case .cancelled, .localContent, .signedOut, .clientRefused, .noPermission,
                    .quotaExceeded:
                    throw error
                default:
                    await abandon(session, observer: observer)
                    throw error
                }
            }
        }
    }

    /// What the session expects after a part that failed; nil when it is over.
    private func stateAfterFailure(
        of session: Session,
        _ failure: ProviderError
    ) async throws(ProviderError) -> Int64? {
        do throws(ProviderError) {
            return try await nextByte(of: session)
        } catch  where error.kind == .sessionLost {
            return nil
        }
    }

    /// Where the part that begins at `start` ends.
    ///
    /// Each part costs a round trip, and one that is cut off is lost whole: so a part grows with
    /// what the service has, of which at most an eighth goes again.
    private func end(from start: Int64, of size: Int64) -> Int64 {
        let multiple = Self.partMultiple
        let count = min(max(partSize, start / 8 / multiple * multiple), Self.largestPart)
        return min(start + count, size)
    }

    private enum PartOutcome {
        case expects(Int64)
        case finished(DriveItemWire)
        case failed(ProviderError)
    }

    private func sendPart(
        _ upload: Upload,
        by session: Session,
        from start: Int64,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PartOutcome {
        let end = end(from: start, of: upload.size)
        var request = HTTPRequest(
            method: "PUT",
            url: session.url,
            headers: [
                ("Content-Range", "bytes \(start)-\(end - 1)/\(upload.size)"),
                ("Content-Type", "application/octet-stream"),
            ],
            body: .content(upload.content, start..<end),
            weight: .bulk,
            isAuthorized: false,
            // The last part's answer waits until the service has put the file together.
            answerTimeout: .seconds(300)
        )
        request.onSent = { observer.sent(start + $0) }
        let response = try await api.exchange(request)
        switch response.head.status {
        case 200, 201:
            return .finished(try OneDriveAPI.decode(DriveItemWire.self, from: response.body))
        case 202:
            let wire = try OneDriveAPI.decode(UploadSessionWire.self, from: response.body)
            guard let byte = wire.nextExpectedByte else { return .expects(end) }
            return .expects(byte)
        case 416:
            return .expects(try await nextByte(of: session))
        default:
            return .failed(OneDriveErrors.error(response, about: .session))
        }
    }

    /// Ends a session that is of no more use: unfinished bytes count against the quota.
    private func abandon(_ session: Session, observer: any UploadObserver) async {
        await observer.sessionChanged(nil)
        _ = try? await api.exchange(
            HTTPRequest(
                method: "DELETE",
                url: session.url,
                repetition: .harmless,
                isAuthorized: false
            )
        )
    }

    // MARK: The end

    /// The item at the destination if it is what we sent: the answer to the last part may be lost.
    private func landed(
        _ upload: Upload,
        at destination: Destination
    ) async throws(ProviderError) -> DriveItemWire? {
        let wire: DriveItemWire?
        do throws(ProviderError) {
            if let name = destination.name {
                wire = try await api.item(named: name, in: destination.address)
            } else {
                wire = try await api.item(at: destination.address)
            }
        } catch { throw error.asUnknownOutcome }
        guard let wire, OneDriveItems.isFile(wire), wire.size?.bytes == upload.size,
            wire.file?.hashes?.quickXorHash == upload.hash.value
        else { return nil }
        return wire
    }

    /// The finished item in Graph's own form, once its content is known to be what was sent.
    private func verified(
        _ wire: DriveItemWire,
        of upload: Upload,
        at destination: Destination
    ) async throws(ProviderError) -> DriveItemWire {
        guard let id = wire.id else {
            throw ProviderError(.malformedAnswer, detail: "an uploaded item without an id")
        }
        // The answer comes from the content's host, which may leave fields out and may spell the
        // id in a form of its own.
        let isComplete =
            wire.name != nil && wire.eTag != nil && wire.parentReference?.id != nil
            && wire.file?.hashes?.quickXorHash != nil
            && (!OneDriveSpelling.isPersonal(drive: destination.drive)
                || (wire.cTag != nil && id.contains("!")))
        var item = wire
        if !isComplete {
            do throws(ProviderError) {
                item = try await api.item(at: DriveAddress(drive: destination.drive, item: id))
            } catch { throw error.asUnknownOutcome }
        }
        let hash = item.file?.hashes?.quickXorHash
        if hash == nil || (hash == upload.hash.value && item.size?.bytes == upload.size) {
            return item
        }
        // Libraries of organizations write properties into documents on upload.
        if !OneDriveSpelling.isPersonal(drive: destination.drive),
            Self.isRewritten(item.name ?? "")
        {
            return item
        }
        throw ProviderError(
            .contentDamaged,
            detail: "\(item.size?.bytes ?? 0) bytes with another hash arrived",
            item: try known(item, drive: destination.drive)
        )
    }

    private static func isRewritten(_ name: String) -> Bool {
        let endings = [
            ".docx", ".docm", ".dotx", ".xlsx", ".xlsm", ".xltx", ".pptx", ".pptm", ".potx",
            ".doc", ".xls", ".ppt", ".vsdx", ".pub", ".mpp", ".one", ".pdf", ".html", ".htm",
            ".aspx",
        ]
        let name = name.lowercased()
        return endings.contains { name.ends(with: $0) }
    }
}

/// An open session.
struct Session {
    var url: String
    var size: Int64
    var expires: Timestamp?

    /// What is kept of it before any byte is confirmed.
    var stored: UploadSession { stored(confirming: 0) }

    /// What is kept of it.
    func stored(confirming bytes: Int64) -> UploadSession {
        let state = try? JSONEncoder().encode(StoredSession(url: url, size: size))
        return UploadSession(
            state: state.map { String(decoding: $0, as: UTF8.self) } ?? "",
            confirmedBytes: bytes,
            expires: expires
        )
    }
}
