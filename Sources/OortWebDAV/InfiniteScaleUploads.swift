import Foundation
import OortModel
import OortTransport

/// What the state of an upload by TUS holds between two runs of the program.
private struct TUSSession: Codable {
    /// The address that the bytes go to: whoever knows it may send, so it is a secret.
    var location: String
    var size: Int64
    /// The names of its place, which the server fixes at the beginning.
    var path: [String]

    var stored: String {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}

/// Uploads to Infinite Scale and OpenCloud (github.com/opencloud-eu/reva, `put.go` and `tus.go` in
/// `internal/http/services/owncloud/ocdav`).
///
/// A `PUT` is guarded by `If-Match` to its end, and refuses a file that came while it was under way; but
/// one that creates a file overwrites what was there when it began. So the place is looked at before, and
/// checked after.
extension WebDAVClient {
    func uploadToInfiniteScale(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        if upload.size > largestSimpleUpload || stored(upload) != nil {
            return try await uploadByTUS(upload, observer: observer)
        }
        _ = try await replaces(upload)
        var request = put(upload, at: upload.path, observer: observer)
        request.headers += guards(upload.before) + checksum(upload)
        let head: HTTPResponseHead
        do throws(ProviderError) {
            head = try await api.send(request, about: .parent).head
        } catch  where error.kind == .tooLarge && upload.size > partSize {
            // A proxy before the server refuses such a body; parts are smaller.
            return try await uploadByTUS(upload, observer: observer)
        } catch  where upload.before == .nothing && error.isOutcomeUnknown {
            guard error.kind != .cancelled, let entry = try await arrived(upload) else {
                throw error
            }
            return try await made(entry, of: upload, hasOverwritten: false)
        } catch {
            throw try await cloudFailure(error, of: upload)
        }
        let entry = try await landing(upload)
        guard upload.before == .nothing, head.status == 204 else { return entry }
        return try await made(entry, of: upload, hasOverwritten: true)
    }

    /// The time as it is sent: the server makes a file's tag of its id and this time alone, so two contents
    /// of one second get different nanoseconds.
    static func sentTime(_ time: Timestamp, of hash: ContentHash) -> String {
        let digits = String((UInt32(hash.value.prefix(8), radix: 16) ?? 0) % 1_000_000_000)
        return "\(time.seconds)." + String(repeating: "0", count: 9 - digits.utf8.count) + digits
    }

    /// The entry of what was just uploaded, once the server has checked it.
    private func landing(_ upload: PlaceUpload) async throws(ProviderError) -> PlaceEntry {
        var entry = try await afterwards(upload.path)
        guard entry.size == upload.size, entry.hash == nil || entry.hash == upload.hash else {
            throw Self.unknown("the file has another content than was sent")
        }
        entry.hash = upload.hash
        return entry
    }

    /// The entry of an upload that created a file.
    ///
    /// Another client may have created one there just after the place was looked at. Then that file is the
    /// only earlier version, and is made the newest again. `hasOverwritten` is whether the server says that
    /// a file was there.
    ///
    /// - Throws: `.nameTaken` where the other client's file is restored; `.outcomeUnknown` where it may not
    ///   be restored, or where it cannot be known which of several versions was there, since the server
    ///   orders them by times that programs choose. It is an earlier version then.
    private func made(
        _ entry: PlaceEntry,
        of upload: PlaceUpload,
        hasOverwritten: Bool
    ) async throws(ProviderError) -> PlaceEntry {
        let item = ItemReference(id: ItemID(""), path: upload.path)
        let history = InfiniteScaleVersions(client: self)
        do throws(ProviderError) {
            let older = try await history.versions(of: item, page: nil).versions
                .filter { !$0.isCurrent }
            if older.isEmpty, !hasOverwritten { return entry }
            guard let theirs = older.first, older.count == 1 else {
                throw Self.unknown("the file that was there is not one earlier version alone")
            }
            // The other version has this content, whoever sent it.
            if try await content(of: theirs, in: history, of: item, isThatOf: upload) {
                return entry
            }
            do throws(ProviderError) {
                try await history.restore(theirs, of: item, current: entry.revision)
            } catch  where error.isOutcomeUnknown && error.kind != .cancelled {
                // The file at the place decides.
            }
            guard let hash = try await settledEntry(at: upload.path).hash, hash != upload.hash
            else { throw Self.unknown("the file that was there is not back") }
        } catch {
            throw error.isOutcomeUnknown ? error : Self.unknown(error.detail)
        }
        throw ProviderError(
            .nameTaken,
            detail: "somebody else made a file of the name just before"
        )
    }

    private static func unknown(_ detail: String) -> ProviderError {
        ProviderError(.outcomeUnknown(retryAfter: nil), detail: detail)
    }

    /// Whether a version has the content of an upload; it is read where the sizes are equal.
    private func content(
        of version: ItemVersion,
        in history: InfiniteScaleVersions,
        of item: ItemReference,
        isThatOf upload: PlaceUpload
    ) async throws(ProviderError) -> Bool {
        guard version.size == upload.size else { return false }
        let stored = try await history.read(version, of: item)
        var hasher = makeHasher()
        while let bytes = try await stored.next() { hasher.update(bytes[...]) }
        return hasher.finalize() == upload.hash
    }

    // MARK: In parts

    private func uploadByTUS(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let session: TUSSession
        var offset: Int64 = 0
        var earlier = stored(upload)
        if let begun = earlier, begun.path != upload.path.parts {
            // It would end as a file at the old place.
            await abort(begun, observer: observer)
            earlier = nil
        }
        if let earlier {
            session = earlier
            do throws(ProviderError) {
                offset = try await self.offset(of: session)
            } catch  where upload.session?.confirmedBytes == session.size {
                return try await finished(upload, session, observer: observer)
            } catch  where error.kind == .sessionLost {
                return try await ended(upload, error, observer: observer)
            }
        } else {
            _ = try await replaces(upload)
            session = try await begin(upload)
            await observer.sessionChanged(uploadSession(session, 0))
            do throws(ProviderError) {
                // A file that was there at the beginning would be overwritten.
                if upload.before == .nothing { _ = try await replaces(upload) }
            } catch {
                await abort(session, observer: observer)
                throw error
            }
        }
        let limit = offset == session.size ? upload.session?.expires : nil
        while offset < session.size {
            let end = min(offset + partSize, session.size)
            do throws(ProviderError) {
                // The file at the place was checked when the upload began.
                if end == session.size { _ = try await replaces(upload) }
                offset = try await send(offset..<end, to: session, upload, observer: observer)
            } catch {
                switch error.kind {
                case .sessionLost, .contentDamaged:
                    return try await ended(upload, error, observer: observer)
                case .nameTaken:
                    await abort(session, observer: observer)
                    return try await ended(upload, error, observer: observer)
                case .preconditionFailed, .notAFile, .quotaExceeded, .tooLarge:
                    await abort(session, observer: observer)
                    throw error
                default: throw error
                }
            }
            await observer.sessionChanged(uploadSession(session, offset))
        }
        return try await finished(upload, session, until: limit, observer: observer)
    }

    /// What became of an upload whose session is over: its file is there, or the reason why it is not is
    /// thrown.
    private func ended(
        _ upload: PlaceUpload,
        _ failure: ProviderError,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let entry = try await arrived(upload)
        await observer.sessionChanged(nil)
        guard let entry else { throw failure }
        return entry
    }

    /// What became of an upload whose bytes the server has all.
    ///
    /// The server reads all of them once more before the file appears (reva, `FinishUploadDecomposed`), and
    /// its answer may be lost meanwhile; if it failed, it keeps the session. So nothing is sent again while
    /// the session exists, up to the limit.
    ///
    /// - Throws: `.outcomeUnknown` while the file is not there; `.sessionLost` after the limit.
    private func finished(
        _ upload: PlaceUpload,
        _ session: TUSSession,
        until limit: Timestamp? = nil,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        if let entry = try await arrived(upload) {
            await observer.sessionChanged(nil)
            return entry
        }
        do throws(ProviderError) {
            _ = try await offset(of: session)
        } catch  where error.kind == .sessionLost {
            await observer.sessionChanged(nil)
            throw Self.unknown("all was sent, and the file is not there")
        } catch {
            throw error.asUnknownOutcome
        }
        if let limit, limit < .now {
            await abort(session, observer: observer)
            throw ProviderError(.sessionLost, detail: "the server never made a file of the upload")
        }
        throw Self.unknown("all was sent, and the server has not made a file of it yet")
    }

    /// The entry of an upload's file; nil where there is none, or another one.
    private func arrived(_ upload: PlaceUpload) async throws(ProviderError) -> PlaceEntry? {
        var entry: PlaceEntry
        do throws(ProviderError) {
            entry = try await settledEntry(at: upload.path)
        } catch  where error.kind == .notFound {
            return nil
        } catch {
            throw error.asUnknownOutcome
        }
        guard entry.kind == .file, entry.size == upload.size, entry.hash == upload.hash else {
            return nil
        }
        entry.hash = upload.hash
        return entry
    }

    private func stored(_ upload: PlaceUpload) -> TUSSession? {
        guard let state = upload.session?.state,
            let stored = try? JSONDecoder().decode(TUSSession.self, from: Data(state.utf8)),
            stored.size == upload.size
        else { return nil }
        return stored
    }

    private func uploadSession(_ session: TUSSession, _ confirmed: Int64) -> UploadSession {
        UploadSession(
            state: session.stored,
            confirmedBytes: confirmed,
            expires: Timestamp(seconds: Timestamp.now.seconds + 86_400)
        )
    }

    private func request(
        _ method: String,
        _ session: TUSSession,
        headers: [WebDAVAPI.Header] = []
    ) -> HTTPRequest {
        var request = HTTPRequest(
            method: method,
            url: session.location,
            headers: [("Tus-Resumable", "1.0.0")] + headers,
            repetition: method == "HEAD" ? .harmless : .onlyIfNotDone
        )
        // The address itself is the permission.
        request.isAuthorized = false
        return request
    }

    private func begin(_ upload: PlaceUpload) async throws(ProviderError) -> TUSSession {
        guard let folder = upload.path.parent, let name = upload.path.name else {
            throw ProviderError(.badRequest, detail: "the root of an account cannot be changed")
        }
        func field(_ name: String, _ value: String) -> String {
            "\(name) \(Data(value.utf8).base64EncodedString())"
        }
        var fields = [field("filename", name)]
        if let time = upload.modifiedTime, Self.isSendable(time) {
            fields.append(field("mtime", Self.sentTime(time, of: upload.hash)))
        }
        if upload.hash.algorithm == .sha1 {
            fields.append(field("checksum", "SHA1 \(upload.hash.value)"))
        }
        var request = api.request(
            "POST",
            folder,
            isFolder: true,
            headers: [
                ("Tus-Resumable", "1.0.0"), ("Upload-Length", String(upload.size)),
                ("Upload-Metadata", fields.joined(separator: ",")),
            ],
            repetition: .harmless
        )
        if case .file = upload.before { request.headers += guards(upload.before) }
        let head: HTTPResponseHead
        do throws(ProviderError) {
            head = try await api.send(request, about: .parent).head
        } catch {
            throw try await cloudFailure(error, of: upload)
        }
        guard let location = head.header("Location"),
            location.begins(with: "https://") || address.origin.begins(with: "http://")
        else {
            throw ProviderError(.malformedAnswer, detail: "an upload without a good address")
        }
        return TUSSession(location: location, size: upload.size, path: upload.path.parts)
    }

    /// How much of an upload the server has.
    ///
    /// - Throws: `.sessionLost`.
    private func offset(of session: TUSSession) async throws(ProviderError) -> Int64 {
        let head = try await tus(request("HEAD", session)).head
        guard let offset = Self.offset(head, session) else {
            throw ProviderError(.malformedAnswer, detail: "an upload without an offset")
        }
        return offset
    }

    private static func offset(_ head: HTTPResponseHead, _ session: TUSSession) -> Int64? {
        head.header("Upload-Offset").flatMap { Int64($0.trimmed) }
            .flatMap { (0...session.size).contains($0) ? $0 : nil }
    }

    /// Sends bytes to an upload's address; a refusal there does not concern the password.
    private func tus(_ request: HTTPRequest) async throws(ProviderError) -> HTTPResponse {
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await api.client.send(request)
        } catch {
            throw ProviderError(error)
        }
        switch response.head.status {
        case 200..<300: return response
        // A token that ran out is refused with 403 (`datagateway.go`).
        case 401, 403, 404, 410:
            throw ProviderError(
                .sessionLost,
                detail: "the upload is over (status \(response.head.status))"
            )
        default: throw WebDAVErrors.error(response, about: .session)
        }
    }

    /// Sends a part; returns the offset then, beyond the part's beginning.
    ///
    /// The server is asked for it if its answer is lost, or if it had another offset. If it does not know
    /// the upload after the last part, the upload has ended.
    private func send(
        _ range: Range<Int64>,
        to session: TUSSession,
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Int64 {
        var request = request(
            "PATCH",
            session,
            headers: [
                ("Upload-Offset", String(range.lowerBound)),
                ("Content-Type", "application/offset+octet-stream"),
            ]
        )
        request.body = .content(upload.content, range)
        request.weight = .bulk
        // With the last part the server computes the sum of all.
        request.answerTimeout = .seconds(120 + (upload.size >> 24))
        request.onSent = { observer.sent(range.lowerBound + $0) }
        var said: Int64?
        var failure = ProviderError(.malformedAnswer, detail: "the server has no more than before")
        do throws(ProviderError) {
            said = Self.offset(try await tus(request).head, session)
        } catch {
            switch error.kind {
            case .badRequest, .outcomeUnknown, .malformedAnswer: failure = error
            default: throw error
            }
        }
        let reached: Int64
        do throws(ProviderError) {
            reached = if let said { said } else { try await offset(of: session) }
        } catch  where range.upperBound == session.size {
            guard error.kind == .sessionLost else { throw error.asUnknownOutcome }
            return session.size
        }
        guard reached > range.lowerBound else {
            throw reached == range.lowerBound
                ? failure
                : ProviderError(.malformedAnswer, detail: "the server has less than before")
        }
        return reached
    }

    /// Has the server forget an upload.
    private func abort(_ session: TUSSession, observer: any UploadObserver) async {
        await observer.sessionChanged(nil)
        do throws(ProviderError) {
            _ = try await tus(request("DELETE", session))
        } catch {
            // It ends by itself.
        }
    }
}
