import Foundation
public import OortModel
import OortTransport

/// What the state of an upload session holds between two runs of the program.
struct CloudUploadSession: Codable {
    /// The session's folder at the server.
    var name: String
    var size: Int64
    var partSize: Int64

    var partCount: Int64 { (size + partSize - 1) / partSize }

    /// The bytes of a part; parts are counted from 1.
    func range(_ part: Int64) -> Range<Int64> {
        (part - 1) * partSize..<min(part * partSize, size)
    }

    /// Five digits, since older servers put parts in the order of their names as text.
    func partName(_ part: Int64) -> String {
        let digits = String(part)
        return String(repeating: "0", count: max(0, 5 - digits.utf8.count)) + digits
    }

    var stored: String? {
        (try? JSONEncoder().encode(self)).map { String(decoding: $0, as: UTF8.self) }
    }
}

extension WebDAVClient {
    func uploadToCloud(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        upload.size <= partSize
            ? try await uploadWhole(upload, observer: observer)
            : try await uploadInParts(upload, observer: observer)
    }

    /// The fields by which the server checks what is there, tag in quotes.
    func guards(_ before: PlaceUpload.Before) -> [WebDAVAPI.Header] {
        switch before {
        case .nothing: [("If-None-Match", "*")]
        case .file(let revision):
            revision.flatMap { WebDAVEntries.tag(of: $0) }.map { [("If-Match", "\"\($0)\"")] } ?? []
        }
    }

    /// The content's hash as the server keeps it; only the SHA-1 of this client's own hasher.
    func checksum(_ upload: PlaceUpload) -> [WebDAVAPI.Header] {
        guard upload.hash.algorithm == .sha1 else { return [] }
        return [("OC-Checksum", "SHA1:\(upload.hash.value)")]
    }

    // MARK: In one request

    private func uploadWhole(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        var request = put(upload, at: upload.path, observer: observer)
        request.headers += guards(upload.before) + checksum(upload) + [("X-Hash", "sha1")]
        let head: HTTPResponseHead
        do throws(ProviderError) {
            head = try await api.send(request, about: .parent).head
        } catch {
            throw try await cloudFailure(error, of: upload)
        }
        if let sum = head.header("X-Hash-SHA1")?.trimmed.lowercased(), dialect == .nextcloud {
            try check(sum, upload)
            return try await written(upload, as: WebDAVEntries.tag(head.header("OC-ETag")))
        }
        try await prove(upload)
        return try await written(upload)
    }

    private func check(_ sum: String, _ upload: PlaceUpload) throws(ProviderError) {
        guard upload.hash.algorithm != .sha1 || sum == upload.hash.value else {
            throw ProviderError(.contentDamaged, detail: "the server has other bytes than it got")
        }
    }

    /// Makes sure that the server has the bytes that were sent: it computes the checksum of what it stored;
    /// if it cannot, the content is read back.
    ///
    /// Nextcloud keeps the checksum of an upload unchecked; its kin compare it themselves.
    private func prove(_ upload: PlaceUpload) async throws(ProviderError) {
        guard dialect == .nextcloud, upload.hash.algorithm == .sha1 else { return }
        do throws(ProviderError) {
            if let sum = try await recomputed(upload) { return try check(sum, upload) }
            guard upload.size > 0 else { return }
            let stored = try await read(upload.path, revision: nil, range: 0..<upload.size)
            var hasher = makeHasher()
            while let bytes = try await stored.next() { hasher.update(bytes[...]) }
            try check(hasher.finalize().value, upload)
        } catch  where error.kind != .contentDamaged {
            throw error.ofUnconfirmedWrite
        }
    }

    /// The SHA-1 of what the server has stored, in hex; nil where it does not compute it.
    private func recomputed(_ upload: PlaceUpload) async throws(ProviderError) -> String? {
        var request = api.request(
            "PATCH",
            upload.path,
            isFolder: false,
            headers: [("X-Recalculate-Hash", "sha1")],
            repetition: .harmless
        )
        request.answerTimeout = Self.timeToReadAll(upload.size)
        do throws(ProviderError) {
            let sums = try await api.send(request, about: .item).head.header("OC-Checksum") ?? ""
            return sums.lowercased().parts(between: " ").lazy
                .compactMap { $0.dropping(beginning: "sha1:").map(String.init) }.first
        } catch {
            switch error.kind {
            case .unsupported, .badRequest, .noPermission: return nil
            default: throw error
            }
        }
    }

    /// How long to wait for a server that reads or writes a whole content before it answers.
    private static func timeToReadAll(_ size: Int64) -> Duration {
        .seconds(min(30 + 180 * ((size >> 30) + 1), 1800))
    }

    /// The entry of what was just uploaded, if it is still that: `tag` is what the server gave it, where the
    /// answer says so.
    private func written(
        _ upload: PlaceUpload,
        as tag: String? = nil
    ) async throws(ProviderError) -> PlaceEntry {
        var entry = try await afterwards(upload.path)
        let isSameTag =
            tag.flatMap { tag in
                entry.revision.flatMap { WebDAVEntries.tag(of: $0) }?.isSameText(as: tag)
            } ?? true
        let isSameHash = entry.hash.map { $0 == upload.hash || !isSHA1(upload) } ?? true
        guard entry.size == upload.size, isSameTag, isSameHash else {
            // Somebody else's save of the moment after has a revision of its own.
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "the file has another content than was sent"
            )
        }
        entry = try await withTime(entry, upload.modifiedTime, at: upload.path)
        entry.hash = upload.hash
        return entry
    }

    private func isSHA1(_ upload: PlaceUpload) -> Bool { upload.hash.algorithm == .sha1 }

    func cloudFailure(
        _ error: ProviderError,
        of upload: PlaceUpload
    ) async throws(ProviderError) -> ProviderError {
        switch error.kind {
        case .preconditionFailed:
            // An Infinite Scale gives the same answer to an upload in parts into a folder that is gone.
            if dialect == .infinitescale, let parent = upload.path.parent,
                try await isMissing(parent)
            {
                return error.asKind(.parentNotFound)
            }
            return upload.before == .nothing ? error.asKind(.nameTaken) : error
        case .parentNotFound, .badRequest, .unsupported, .noPermission:
            do throws(ProviderError) {
                if try await entry(at: upload.path).kind == .folder {
                    return error.asKind(upload.before == .nothing ? .nameTaken : .notAFile)
                }
            } catch  where error.kind == .notFound {}
            return try await explained(error, writingTo: upload.path)
        default: return error
        }
    }

    // MARK: In parts

    /// The address of a session, or of something in it.
    private func sessionURL(_ session: CloudUploadSession, _ name: String = "") -> String {
        api.address.program([
            "remote.php", "dav", "uploads", address.userID ?? address.user ?? "", session.name,
        ]) + "/" + PercentEncoding.segment(name)
    }

    private func sessionRequest(
        _ method: String,
        _ url: String,
        of upload: PlaceUpload,
        headers: [WebDAVAPI.Header] = [],
        repetition: HTTPRequest.Repetition = .harmless
    ) -> HTTPRequest {
        HTTPRequest(
            method: method,
            url: url,
            headers: [
                api.destination(upload.path, isFolder: false),
                ("OC-Total-Length", String(upload.size)),
            ] + headers,
            repetition: repetition
        )
    }

    private func uploadInParts(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let session: CloudUploadSession
        var present: Set<Int64> = []
        if let stored = stored(upload) {
            session = stored
            do throws(ProviderError) {
                present = try await presentParts(session)
            } catch  where error.kind == .sessionLost {
                // The session is over: perhaps all was put together and the answer was lost.
                await observer.sessionChanged(nil)
                guard let entry = try await landed(upload) else { throw error }
                try await prove(upload)
                return entry
            }
        } else {
            session = newSession(upload)
            let request = sessionRequest("MKCOL", sessionURL(session), of: upload)
            do throws(ProviderError) {
                _ = try await api.send(request, about: .parent)
            } catch {
                throw try await cloudFailure(error, of: upload)
            }
            await observer.sessionChanged(UploadSession(session, confirmed: 0))
        }
        do throws(ProviderError) {
            try await sendParts(session, present, of: upload, observer: observer)
            try await assemble(session, upload)
        } catch {
            switch error.kind {
            case .preconditionFailed, .nameTaken, .contentDamaged, .quotaExceeded, .tooLarge,
                .parentNotFound, .nameRefused, .noPermission, .sessionLost, .notAFile:
                await observer.sessionChanged(nil)
                if error.kind != .sessionLost {
                    let abort = HTTPRequest(method: "DELETE", url: sessionURL(session))
                    _ = try? await api.exchange(abort)
                }
            default: break
            }
            throw error
        }
        await observer.sessionChanged(nil)
        try await prove(upload)
        return try await written(upload)
    }

    private func newSession(_ upload: PlaceUpload) -> CloudUploadSession {
        // At most 10,000 parts, in whole MiB.
        let least = (upload.size / 9000 / (1 << 20) + 1) << 20
        return CloudUploadSession(
            name: "oort-" + UUID().uuidString.lowercased(),
            size: upload.size,
            partSize: upload.size / partSize >= 9000 ? max(partSize, least) : partSize
        )
    }

    private func stored(_ upload: PlaceUpload) -> CloudUploadSession? {
        guard let state = upload.session?.state,
            let stored = try? JSONDecoder().decode(
                CloudUploadSession.self,
                from: Data(state.utf8)
            ), stored.size == upload.size, stored.partSize > 0, stored.partCount <= 10_000
        else { return nil }
        return stored
    }

    /// The parts that the server has completely.
    ///
    /// - Throws: `.sessionLost`.
    private func presentParts(
        _ session: CloudUploadSession
    ) async throws(ProviderError) -> Set<Int64> {
        let responses: [DAVResponse]
        do throws(ProviderError) {
            (responses, _) = try await api.look(
                at: sessionURL(session),
                depth: 1,
                properties: [.dav("resourcetype"), .dav("getcontentlength")]
            )
        } catch  where error.kind == .notFound {
            throw error.asKind(.sessionLost)
        }
        var parts: Set<Int64> = []
        for response in responses {
            guard let name = PercentEncoding.names(ofReference: response.href)?.last,
                let part = Int64(name), (1...session.partCount).contains(part),
                let size = response.text(.dav("getcontentlength")).flatMap({ Int64($0) }),
                size == session.range(part).upperBound - session.range(part).lowerBound
            else { continue }
            parts.insert(part)
        }
        return parts
    }

    private func sendParts(
        _ session: CloudUploadSession,
        _ present: Set<Int64>,
        of upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) {
        var confirmed: Int64 = 0
        for part in 1...session.partCount {
            let range = session.range(part)
            if !present.contains(part) {
                var request = sessionRequest(
                    "PUT",
                    sessionURL(session, session.partName(part)),
                    of: upload,
                    headers: [("Content-Type", "application/octet-stream")]
                )
                request.body = .content(upload.content, range)
                request.weight = .bulk
                request.answerTimeout = .seconds(120)
                request.onSent = { observer.sent(range.lowerBound + $0) }
                do throws(ProviderError) {
                    _ = try await api.send(request, about: .session)
                } catch  where error.kind == .sessionLost {
                    // A missing target folder gets the same answer.
                    if let parent = upload.path.parent, try await isMissing(parent) {
                        throw error.asKind(.parentNotFound)
                    }
                    throw error
                }
            }
            confirmed = range.upperBound
            await observer.sessionChanged(UploadSession(session, confirmed: confirmed))
        }
    }

    // MARK: Putting together

    /// Has the server put the parts together at the upload's place.
    private func assemble(
        _ session: CloudUploadSession,
        _ upload: PlaceUpload
    ) async throws(ProviderError) {
        var headers: [WebDAVAPI.Header] = checksum(upload)
        switch upload.before {
        case .nothing: headers.append(("Overwrite", "F"))
        case .file(let revision):
            headers.append(("Overwrite", "T"))
            // `If-Match` would be compared with the parts.
            if let tag = revision.flatMap({ WebDAVEntries.tag(of: $0) }) {
                let url = address.url(upload.path, isFolder: false)
                headers.append(("If", "<\(url)> ([\"\(tag)\"])"))
            }
        }
        if let time = upload.modifiedTime, Self.isSendable(time) {
            headers.append(("X-OC-Mtime", String(time.seconds)))
        }
        var request = sessionRequest(
            "MOVE",
            sessionURL(session, ".file"),
            of: upload,
            headers: headers,
            repetition: .onlyIfNotDone
        )
        request.answerTimeout = Self.timeToReadAll(upload.size)
        var (patience, lost) = (5, 0)
        for round in 0..<60 {
            do throws(ProviderError) {
                _ = try await api.send(request, about: .session)
                return
            } catch {
                switch error.kind {
                case .preconditionFailed:
                    throw upload.before == .nothing ? error.asKind(.nameTaken) : error
                case .sessionLost:
                    // The guard is on a file that is gone, or an earlier try succeeded.
                    if try await landed(upload) != nil { return }
                    if case .file(.some) = upload.before, try await isPresent(session) {
                        throw error.asKind(.preconditionFailed)
                    }
                    throw error
                case .outcomeUnknown, .locked, .malformedAnswer:
                    if error.kind != .locked { lost += 1 }
                    guard round < 59, lost < 4 else { throw error.asUnknownOutcome }
                    // The server may still be putting it together, and a second request would have it begin
                    // once more beside that.
                    let wait =
                        error.kind == .locked
                        ? .seconds(patience) : max(.seconds(300), Self.timeToReadAll(upload.size))
                    if try await isOver(session, within: wait) {
                        if try await landed(upload) != nil { return }
                        throw error.asUnknownOutcome
                    }
                    patience = min(patience * 2, 60)
                default: throw error
                }
            }
        }
    }

    /// Waits until a session is over, and no longer than that; whether it is.
    private func isOver(
        _ session: CloudUploadSession,
        within limit: Duration
    ) async throws(ProviderError) -> Bool {
        var (waited, pause) = (Duration.zero, Duration.seconds(5))
        while waited < limit {
            try await self.pause(min(pause, limit - waited))
            waited += pause
            pause = min(pause * 2, .seconds(60))
            if try await !isPresent(session) { return true }
        }
        return false
    }

    private func isPresent(_ session: CloudUploadSession) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            _ = try await presentParts(session)
            return true
        } catch  where error.kind == .sessionLost {
            return false
        }
    }

    /// What an upload without an answer left at its place; nil when that is something else.
    ///
    /// The server returns the checksum that was sent with an upload: only an entry that has it is this
    /// upload's.
    private func landed(_ upload: PlaceUpload) async throws(ProviderError) -> PlaceEntry? {
        let own: DAVResponse
        let head: HTTPResponseHead
        do throws(ProviderError) {
            (own, head, _) = try await ownEntry(of: upload.path, depth: 0, isFolder: false)
        } catch  where error.kind == .notFound {
            return nil
        }
        guard var entry = entries.entry(own, name: upload.path.name ?? "", head: head),
            entry.size == upload.size, CloudItem(own).hash == upload.hash
        else { return nil }
        entry.hash = upload.hash
        return entry
    }

    // MARK: Pictures

    public func thumbnail(
        of path: RemotePath,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        let nothing = ProviderError(.unsupported, detail: "no thumbnail of this file")
        guard dialect.isCloud else { throw nothing }
        var request: HTTPRequest
        let pixels = min(max(edge, 32), 1024)
        if dialect == .nextcloud {
            let (own, _, _) = try await ownEntry(of: path, depth: 0, isFolder: false)
            guard let number = CloudItem(own).number, Int64(number) != nil else { throw nothing }
            request = HTTPRequest(
                method: "GET",
                url: address.program(["index.php", "core", "preview"])
                    + "?fileId=\(number)&x=\(pixels)&y=\(pixels)&a=1&forceIcon=0",
                repetition: .harmless
            )
        } else {
            request = api.request("GET", path, isFolder: false, repetition: .harmless)
            request.url += "?preview=1&x=\(pixels)&y=\(pixels)&scalingup=0"
        }
        request.weight = .bulk
        let response = try await api.stream(request)
        let type = response.head.header("Content-Type")?.lowercased() ?? ""
        guard response.head.status == 200 else {
            let maySucceed = [425, 429].contains(response.head.status)
            guard response.head.status >= 500 || maySucceed else { throw nothing }
            throw ProviderError(
                .outcomeUnknown(retryAfter: response.head.retryAfter),
                detail: "a thumbnail was answered with status \(response.head.status)"
            )
        }
        guard type.begins(with: "image/jpeg") || type.begins(with: "image/png") else {
            throw nothing
        }
        return response.body
    }
}

extension UploadSession {
    /// A session without activity is removed after a day.
    fileprivate init(_ session: CloudUploadSession, confirmed: Int64) {
        self.init(
            state: session.stored ?? "",
            confirmedBytes: confirmed,
            expires: Timestamp(seconds: Timestamp.now.seconds + 86_400)
        )
    }
}
