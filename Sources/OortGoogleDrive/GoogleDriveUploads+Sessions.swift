import OortModel
import OortTransport

extension GoogleDriveProvider {
    /// How an upload session is begun.
    struct SessionOpening {
        var method: String
        var url: String
        var metadata: [UInt8]
        var ifMatch: String?
        var id: ItemID
        var isV2: Bool
        /// The revision that is replaced.
        var revision: Revision?
    }

    private enum SessionState {
        case confirmed(Int64)
        case done(DriveFile)
        case refused(DriveFailure)
        case broken(ProviderError)
    }

    /// Sends content in one request, from where an earlier try of the same upload stopped.
    ///
    /// Of a request that breaks the service keeps what arrived, and says how much. Where it kept
    /// nothing, the rest goes in parts, of which at most one is lost at a time.
    /// Source: developers.google.com/workspace/drive/api/guides/manage-uploads.
    func sendInParts(
        _ upload: Upload,
        _ observer: any UploadObserver,
        opening: SessionOpening?,
        replacing: Revision? = nil
    ) async throws(ProviderError) -> UploadAnswer {
        let session: DriveSession
        let expires = upload.session?.expires ?? Self.nextWeek
        var state: SessionState
        if let earlier = upload.session {
            guard let found = DriveSession(earlier), api.endpoints.isTrusted(found.uri) else {
                throw ProviderError(.sessionLost, detail: "not a session of this provider")
            }
            session = found
            state = try await status(of: session, size: upload.size)
        } else {
            guard let opening else {
                throw ProviderError(.sessionLost, detail: "no session to go on with")
            }
            switch try await open(opening, upload) {
            case .success(let opened): session = opened
            case .failure(let refusal): return .refused(refusal.failure)
            }
            state = .confirmed(0)
        }
        let revision = opening?.revision ?? replacing
        var confirmed: Int64 = -1
        var fruitless = 0
        var longest = Int64.max
        // Whether the last part may have arrived without an answer.
        var mayBeDone = false
        do throws(ProviderError) {
            while true {
                switch state {
                case .done(let file):
                    await observer.sessionChanged(nil)
                    return .file(file)
                case .refused(let failure):
                    return try await ended(failure, isResumed: upload.session != nil, observer)
                case .broken(let error):
                    mayBeDone = true
                    fruitless += 1
                    if fruitless > 4 { throw error }
                    state = try await status(of: session, size: upload.size)
                    // The question has been repeated patiently already.
                    if case .broken(let error) = state { throw error }
                case .confirmed(let count):
                    mayBeDone = false
                    // What is kept may lie behind what was sent, and even behind what was kept before.
                    fruitless = count > confirmed ? 0 : fruitless + 1
                    if fruitless > 4 {
                        throw ProviderError(
                            .outcomeUnknown(retryAfter: nil),
                            detail: "the upload session stands still"
                        )
                    }
                    if fruitless > 0 { longest = traits.uploadPartSize }
                    if count != confirmed {
                        confirmed = count
                        observer.sent(count)
                        await observer.sessionChanged(
                            try session.session(confirmed: count, expires: expires)
                        )
                    }
                    state = try await sendPart(
                        from: count,
                        atMost: longest,
                        of: upload,
                        to: session,
                        replacing: revision,
                        observer
                    )
                }
            }
        } catch { throw mayBeDone ? error.asUnknownOutcome : error }
    }

    private struct Refusal: Error { var failure: DriveFailure }

    private func open(
        _ opening: SessionOpening,
        _ upload: Upload
    ) async throws(ProviderError) -> Result<DriveSession, Refusal> {
        var request = HTTPRequest(
            method: opening.method,
            url: opening.url,
            headers: [
                ("Content-Type", "application/json; charset=UTF-8"),
                ("X-Upload-Content-Type", Self.contentType(upload)),
                ("X-Upload-Content-Length", String(upload.size)),
            ],
            body: .bytes(opening.metadata),
            // An unused session leaves nothing behind.
            repetition: .harmless
        )
        if let ifMatch = opening.ifMatch { request.headers.append(("If-Match", ifMatch)) }
        switch try await api.perform(request) {
        case .success(let response):
            guard let uri = response.head.header("Location"), api.endpoints.isTrusted(uri) else {
                throw ProviderError(.malformedAnswer, detail: "an upload session without a URI")
            }
            return .success(
                DriveSession(uri: uri, id: opening.id.rawValue, isV2: opening.isV2)
            )
        case .refused(let failure): return .failure(Refusal(failure: failure))
        }
    }

    /// Where a request that begins at `start` ends.
    ///
    /// The last part of a large replacement goes alone and is small, so that next to nothing lies
    /// between the look at the revision before it and the end of the upload.
    private func end(
        from start: Int64,
        atMost longest: Int64,
        of size: Int64,
        isV2: Bool
    ) -> Int64 {
        let rest = size - start
        let multiple = traits.uploadPartMultiple
        let count = isV2 && rest > traits.uploadPartSize ? (rest - 1) / multiple * multiple : rest
        return start + min(count, longest)
    }

    private func sendPart(
        from start: Int64,
        atMost longest: Int64,
        of upload: Upload,
        to session: DriveSession,
        replacing: Revision?,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> SessionState {
        guard start < upload.size else { return try await status(of: session, size: upload.size) }
        let end = end(from: start, atMost: longest, of: upload.size, isV2: session.isV2)
        if end == upload.size, session.isV2, start > 0 {
            // Whether If-Match still counts when a session ends is written nowhere.
            let current = try await api.metadata(ItemID(session.id))
            guard current.headRevisionId == replacing?.rawValue else {
                await observer.sessionChanged(nil)
                if Self.isContent(of: upload, current) { return .done(current) }
                throw ProviderError(.preconditionFailed, detail: "Drive has a newer revision")
            }
        }
        var request = HTTPRequest(
            method: "PUT",
            url: session.uri,
            headers: [("Content-Range", "bytes \(start)-\(end - 1)/\(upload.size)")],
            body: .content(upload.content, start..<end),
            // Not repeated blindly: the status says where to continue.
            repetition: .onlyIfNotDone,
            weight: .bulk,
            answerTimeout: .seconds(300)
        )
        request.onSent = { observer.sent(min(start + $0, end)) }
        return try await state(after: request, session)
    }

    private func status(
        of session: DriveSession,
        size: Int64
    ) async throws(ProviderError) -> SessionState {
        try await state(
            after: HTTPRequest(
                method: "PUT",
                url: session.uri,
                headers: [("Content-Range", "bytes */\(size)"), ("Content-Length", "0")],
                body: .bytes([]),
                repetition: .harmless,
                answerTimeout: .seconds(120)
            ),
            session
        )
    }

    private func state(
        after request: HTTPRequest,
        _ session: DriveSession
    ) async throws(ProviderError) -> SessionState {
        let response: HTTPResponse
        do throws(TransportError) {
            response = try await api.client.send(request)
        } catch {
            if case .broken = error { return .broken(ProviderError(error)) }
            throw ProviderError(error)
        }
        switch response.head.status {
        case 200..<300: return .done(try decode(response, isV2: session.isV2))
        case 308: return .confirmed(Self.confirmedBytes(response.head))
        default:
            let failure = DriveFailure(response)
            if failure.error.isTransient {
                if case .rateLimited = failure.error.kind { throw failure.error }
                return .broken(failure.error)
            }
            return .refused(failure)
        }
    }

    /// `Range: bytes=0-k` names what is kept; without it that is nothing.
    static func confirmedBytes(_ head: HTTPResponseHead) -> Int64 {
        guard let range = head.header("Range"),
            let last = range.split(separator: "-").last.flatMap({ Int64($0) }), last >= 0,
            last < .max
        else { return 0 }
        return last + 1
    }

    /// The error that a session ended with.
    ///
    /// A refusal of the content for good is kept as it is; any other means that the session is gone, which
    /// a new one mends.
    private func ended(
        _ failure: DriveFailure,
        isResumed: Bool,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> UploadAnswer {
        await observer.sessionChanged(nil)
        switch failure.error.kind {
        case .nameTaken, .preconditionFailed: return .refused(failure)
        case .quotaExceeded, .limitExceeded, .tooLarge, .noPermission, .signedOut,
            .clientRefused:
            throw failure.error
        default: throw ProviderError(.sessionLost, detail: failure.error.detail)
        }
    }

    /// Sessions live for one week.
    private static var nextWeek: Timestamp { Timestamp(seconds: Timestamp.now.seconds + 7 * 86400) }
}
