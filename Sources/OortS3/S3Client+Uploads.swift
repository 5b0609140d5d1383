import Crypto
import Foundation
public import OortModel
import OortTransport
import Synchronization

extension S3Client {
    /// What an upload in parts holds between two runs of the program.
    fileprivate struct Session: Codable {
        var id: String
        var key: String
        var size: Int64
        var partSize: Int64
        var hash: String
    }

    /// A part that the store has.
    private struct Part: Sendable {
        var number: Int
        var tag: String
        var size: Int64
    }

    public func upload(
        _ upload: PlaceUpload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let key = try space.key(of: upload.path)
        if let name = upload.path.name, upload.before == .nothing,
            let refusal = S3Names.refusal(of: name, prefix: "")
        {
            switch refusal {
            case .refused(let reason): throw ProviderError(.nameRefused, detail: reason)
            case .tooLong: throw ProviderError(.nameTooLong, detail: "longer than a key may be")
            }
        }
        guard let md5 = S3Text.bytes(hex: upload.hash.value), md5.count == 16 else {
            throw ProviderError(.badRequest, detail: "an upload without its MD5")
        }
        let stored = Self.session(upload)
        if let stored, !stored.isOf(upload, at: key) {
            await abandon(stored)
            await observer.sessionChanged(nil)
        }
        // An earlier upload of this run to the same key, which nothing will continue.
        let earlier = memory.withLock { $0.sessions[ExactText(key)] }
        if let earlier, earlier != stored?.id { await abort(earlier, at: key) }
        if upload.size <= largestInOnePiece(upload), stored?.isOf(upload, at: key) != true {
            return try await uploadWhole(upload, to: key, md5: md5, observer: observer)
        }
        let session = stored.flatMap { $0.isOf(upload, at: key) ? $0 : nil }
        do throws(ProviderError) {
            return try await uploadParts(upload, to: key, going: session, observer: observer)
        } catch  where error.kind == .sessionLost && session != nil {
            await observer.sessionChanged(nil)
            return try await uploadParts(upload, to: key, going: nil, observer: observer)
        }
    }

    /// Where the store does not compare, an upload goes in parts from a few MiB on: the look before its end
    /// is a moment old then, however long the bytes took.
    private func largestInOnePiece(_ upload: PlaceUpload) -> Int64 {
        let isGuarded =
            switch upload.before {
            case .nothing: abilities.refusesTakenKeys
            case .file(nil): true
            case .file: abilities.refusesStaleUploads
            }
        return isGuarded
            ? settings.largestSimpleUpload
            : min(settings.largestSimpleUpload, settings.largestUnguardedUpload)
    }

    // MARK: Conditions

    /// The condition under which the key may be written; where the store knows no conditions, the key is
    /// looked at just before.
    private func conditions(
        _ upload: PlaceUpload,
        at key: String
    ) async throws(ProviderError) -> [(name: String, value: String)] {
        switch upload.before {
        case .nothing:
            if abilities.refusesTakenKeys { return [("If-None-Match", "*")] }
            if let head = try await head(key), !isOutcome(head, of: upload) {
                throw ProviderError(.nameTaken, detail: "an object has this key")
            }
            return []
        case .file(nil): return []
        case .file(let revision?):
            if abilities.refusesStaleUploads {
                return [("If-Match", "\"\(revision.rawValue)\"")]
            }
            guard let head = try await head(key) else {
                throw ProviderError(.notFound, detail: "the object is gone")
            }
            guard Revision(head.tag) == revision || isOutcome(head, of: upload) else {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            return []
        }
    }

    /// Whether an object is what this upload would make: an earlier try may have made it.
    private func isOutcome(_ head: S3Head, of upload: PlaceUpload) -> Bool {
        let md5 = upload.hash.value
        let isSame =
            head.size == upload.size
            && (head.tag.lowercased() == md5 || head.md5 == md5)
        guard let time = upload.modifiedTime else { return isSame }
        return isSame && head.modified == time
    }

    /// What it means that writing a key was refused: the object at the key decides, since the store may
    /// have refused the repetition of a try that had succeeded.
    private func settled(
        _ error: ProviderError,
        _ upload: PlaceUpload,
        at key: String,
        tag: String? = nil
    ) async throws(ProviderError) -> S3Head {
        switch error.kind {
        case .nameTaken, .preconditionFailed, .notFound, .outcomeUnknown, .malformedAnswer,
            .sessionLost:
            break
        default: throw error
        }
        let now: S3Head?
        do throws(ProviderError) { now = try await head(key) } catch { throw error }
        if let now, isOutcome(now, of: upload) || now.tag == tag && now.size == upload.size {
            return now
        }
        switch (error.kind, upload.before) {
        case (.outcomeUnknown, _), (.malformedAnswer, _), (.sessionLost, _): throw error
        case (_, .nothing):
            // Some stores refuse an object whose key, with a slash, begins other keys.
            if now == nil, try await !isAnything(below: key + "/") {
                throw error.asKind(.rateLimited(retryAfter: nil))
            }
            throw error.asKind(.nameTaken)
        case (_, .file):
            throw error.asKind(now == nil ? .notFound : .preconditionFailed)
        }
    }

    private func metadata(
        _ upload: PlaceUpload,
        md5: [UInt8]?
    ) -> [(name: String, value: String)] {
        var fields = [("Content-Type", upload.mimeType ?? "application/octet-stream")]
        if let time = upload.modifiedTime {
            fields.append(("x-amz-meta-mtime", S3Head.metadata(time)))
        }
        if let md5 {
            fields.append(("x-amz-meta-md5chksum", Data(md5).base64EncodedString()))
        }
        return fields
    }

    private func uploaded(_ upload: PlaceUpload, tag: String) -> PlaceEntry {
        var entry = PlaceEntry.file(
            upload.path.name ?? "",
            size: upload.size,
            revision: Revision(tag),
            modifiedTime: upload.modifiedTime
        )
        entry.hash = upload.hash
        entry.mimeType = upload.mimeType
        return entry
    }

    // MARK: In one piece

    private func uploadWhole(
        _ upload: PlaceUpload,
        to key: String,
        md5: [UInt8],
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let conditions = try await conditions(upload, at: key)
        var request = S3Request("PUT", key)
        request.headers = metadata(upload, md5: abilities.tagsAreMD5 ? nil : md5) + conditions
        let range = 0..<upload.size
        request.headers += try await api.protection(of: upload.content, range, md5: md5).headers
        request.body = upload.size == 0 ? .bytes([]) : .content(upload.content, range)
        request.weight = .bulk
        // Without a condition, a repetition could undo what another client wrote after the first try.
        let isGuarded = !conditions.isEmpty || upload.before == .file(nil)
        request.repetition = isGuarded ? .harmless : .onlyIfNotDone
        request.isLong = true
        request.onSent = { observer.sent($0) }
        let answer: HTTPResponse
        do throws(ProviderError) {
            let subject: S3Errors.Subject = upload.before == .nothing ? .creation : .object
            answer = try await api.send(request, about: subject)
        } catch {
            let head = try await settled(error, upload, at: key)
            return uploaded(upload, tag: head.tag)
        }
        learnVersion(answer.head)
        guard let tag = answer.head.header("ETag").map(S3Head.bare), !tag.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "an upload was answered without an ETag")
        }
        let isEncrypted =
            answer.head.header("x-amz-server-side-encryption")?.begins(with: "aws:") == true
        if abilities.tagsAreMD5, !isEncrypted, S3Head.canBeMD5(tag),
            tag.lowercased() != upload.hash.value
        {
            throw ProviderError(.contentDamaged, detail: "the store has other bytes")
        }
        return uploaded(upload, tag: tag)
    }

    // MARK: In parts

    fileprivate static func session(_ upload: PlaceUpload) -> Session? {
        guard let state = upload.session?.state else { return nil }
        return try? JSONDecoder().decode(Session.self, from: Data(state.utf8))
    }

    private func uploadParts(
        _ upload: PlaceUpload,
        to key: String,
        going stored: Session?,
        observer: any UploadObserver
    ) async throws(ProviderError) -> PlaceEntry {
        let session: Session
        var known: [Int: Part] = [:]
        if let stored {
            session = stored
            do throws(ProviderError) {
                known = try await parts(of: stored)
            } catch  where error.kind == .sessionLost {
                // It was ended, and the answer was lost, or the store has given it up.
                begun.forget(stored.id)
                let head = try await settled(error, upload, at: key)
                await observer.sessionChanged(nil)
                return uploaded(upload, tag: head.tag)
            }
        } else {
            session = try await begin(upload, at: key, observer: observer)
        }
        memory.withLock { $0.sessions[ExactText(key)] = session.id }
        do throws(ProviderError) {
            let parts = try await send(upload, by: session, known: known, observer: observer)
            let entry = try await end(upload, by: session, parts: parts)
            memory.withLock { $0.sessions[ExactText(key)] = nil }
            begun.forget(session.id)
            await observer.sessionChanged(nil)
            return entry
        } catch {
            if error.isLastingRefusal {
                await abort(session.id, at: key)
                await observer.sessionChanged(nil)
            }
            throw error
        }
    }

    private func begin(
        _ upload: PlaceUpload,
        at key: String,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Session {
        // The store checks conditions only at the end of an upload in parts; without this look, all of it
        // could be in vain.
        if upload.before != .file(nil) { try await lookBefore(upload, at: key) }
        var request = S3Request("POST", key)
        request.query = [("uploads", "")]
        request.headers = metadata(upload, md5: S3Text.bytes(hex: upload.hash.value))
        let answer = try await api.element(
            request,
            about: .creation
        )
        guard let id = answer.text(of: "UploadId"), !id.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "an upload without an id")
        }
        note(begun: id, at: key)
        let mebibyte: Int64 = 1 << 20
        let least = (upload.size / 10_000 / mebibyte + 1) * mebibyte
        let session = Session(
            id: id,
            key: key,
            size: upload.size,
            partSize: upload.size / settings.partSize < 10_000 ? settings.partSize : least,
            hash: upload.hash.value
        )
        await observer.sessionChanged(session.stored(confirmed: 0))
        return session
    }

    private func lookBefore(
        _ upload: PlaceUpload,
        at key: String
    ) async throws(ProviderError) {
        let head = try await head(key)
        switch upload.before {
        case .nothing:
            if let head, !isOutcome(head, of: upload) {
                throw ProviderError(.nameTaken, detail: "an object has this key")
            }
        case .file(let revision):
            guard let head else {
                throw ProviderError(.notFound, detail: "the object is gone")
            }
            guard revision == nil || revision == Revision(head.tag) || isOutcome(head, of: upload)
            else {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
        }
    }

    /// The parts that the store has, by number.
    private func parts(of session: Session) async throws(ProviderError) -> [Int: Part] {
        var result: [Int: Part] = [:]
        var marker: String?
        for _ in 0..<100 {
            var request = S3Request("GET", session.key)
            request.query = [("uploadId", session.id)]
            if let marker { request.query.append(("part-number-marker", marker)) }
            let root = try await api.element(request, about: .session)
            guard root.text(of: "UploadId") == session.id else {
                throw ProviderError(.malformedAnswer, detail: "a list of another upload's parts")
            }
            for part in root.all("Part") {
                guard let number = part.text(of: "PartNumber").flatMap({ Int($0) }),
                    let size = part.text(of: "Size").flatMap({ ReportedSize(digits: $0)?.bytes }),
                    let tag = part.text(of: "ETag").map(S3Head.bare)
                else { throw ProviderError(.malformedAnswer, detail: "a part without its parts") }
                result[number] = Part(number: number, tag: tag, size: size)
            }
            guard root.text(of: "IsTruncated") == "true",
                let next = root.text(of: "NextPartNumberMarker"), next != marker
            else { return result }
            marker = next
        }
        throw ProviderError(.malformedAnswer, detail: "a list of parts without end")
    }

    /// Sends the parts that the store lacks, four at a time.
    private func send(
        _ upload: PlaceUpload,
        by session: Session,
        known: [Int: Part],
        observer: any UploadObserver
    ) async throws(ProviderError) -> [Part] {
        let count = Int((upload.size + session.partSize - 1) / session.partSize)
        let sent = SentBytes(observer)
        var done: [Part] = []
        var failure: ProviderError?
        await withTaskGroup(of: Result<Part, ProviderError>.self) { group in
            var next = 1
            func startNext() {
                guard next <= count, failure == nil else { return }
                let number = next
                next += 1
                group.addTask {
                    do throws(ProviderError) {
                        return .success(
                            try await self.send(
                                number,
                                of: upload,
                                by: session,
                                known: known[number],
                                sent: sent
                            )
                        )
                    } catch {
                        return .failure(error)
                    }
                }
            }
            for _ in 0..<4 { startNext() }
            while let result = await group.next() {
                switch result {
                case .success(let part):
                    done.append(part)
                    let bytes = done.reduce(Int64(0)) { $0 + $1.size }
                    await observer.sessionChanged(session.stored(confirmed: bytes))
                case .failure(let error):
                    if failure == nil || error.kind != .cancelled { failure = error }
                    group.cancelAll()
                }
                startNext()
            }
        }
        if let failure { throw failure }
        return done.sorted { $0.number < $1.number }
    }

    private func send(
        _ number: Int,
        of upload: PlaceUpload,
        by session: Session,
        known: Part?,
        sent: SentBytes
    ) async throws(ProviderError) -> Part {
        let start = Int64(number - 1) * session.partSize
        let range = start..<min(start + session.partSize, upload.size)
        let size = range.upperBound - range.lowerBound
        let (headers, md5) = try await api.protection(of: upload.content, range, md5: nil)
        // A part of an earlier run may be of other bytes: only its hash can prove that it is not.
        if let known, known.size == size, known.tag.lowercased() == S3Text.hex(md5) {
            sent.set(number, size)
            return known
        }
        var request = S3Request("PUT", session.key)
        request.query = [("partNumber", "\(number)"), ("uploadId", session.id)]
        request.headers = headers
        request.body = .content(upload.content, range)
        request.weight = .bulk
        request.isLong = true
        request.onSent = { sent.set(number, $0) }
        let answer = try await api.send(request, about: .session)
        guard let tag = answer.head.header("ETag").map(S3Head.bare), !tag.isEmpty else {
            throw ProviderError(.malformedAnswer, detail: "a part was answered without an ETag")
        }
        return Part(number: number, tag: tag, size: size)
    }

    /// Makes the parts an object.
    private func end(
        _ upload: PlaceUpload,
        by session: Session,
        parts: [Part]
    ) async throws(ProviderError) -> PlaceEntry {
        var xml = "<CompleteMultipartUpload>"
        var digests: [UInt8] = []
        for part in parts {
            xml += "<Part><PartNumber>\(part.number)</PartNumber>"
            xml += "<ETag>&quot;\(S3API.escaped(part.tag))&quot;</ETag></Part>"
            digests += S3Text.bytes(hex: part.tag) ?? []
        }
        xml += "</CompleteMultipartUpload>"
        let expected = "\(S3Text.hex(Insecure.MD5.hash(data: digests)))-\(parts.count)"
        var request = S3Request("POST", session.key)
        request.query = [("uploadId", session.id)]
        request.headers = try await conditions(upload, at: session.key)
        request.isLong = true
        do throws(ProviderError) {
            let root = try await api.element(
                api.xml(xml, in: request),
                named: "CompleteMultipartUploadResult",
                about: .session
            )
            let tag = root.text(of: "ETag").map(S3Head.bare) ?? ""
            // Some stores give the object another ETag than in this answer.
            if let head = try? await head(session.key), isOutcome(head, of: upload) {
                return uploaded(upload, tag: head.tag)
            }
            guard !tag.isEmpty else {
                throw ProviderError(.malformedAnswer, detail: "an upload's end without an ETag")
            }
            return uploaded(upload, tag: tag)
        } catch {
            let head = try await settled(error, upload, at: session.key, tag: expected)
            return uploaded(upload, tag: head.tag)
        }
    }

    // MARK: Leftovers

    private func abandon(_ session: Session) async { await abort(session.id, at: session.key) }

    /// Notes an upload in parts, so that it is found when nothing continues it.
    func note(begun id: String, at key: String) {
        let second = Timestamp(api.signer.serviceTime).seconds
        begun.note(S3BegunUploads.Upload(id: id, key: key, begun: second))
    }

    /// Gives an upload in parts up; what fails is left to `removeLeftovers`.
    func abort(_ id: String, at key: String) async {
        var request = S3Request("DELETE", key)
        request.query = [("uploadId", id)]
        // A part that was under way may have arrived after the first time.
        for _ in 0..<2 {
            guard let answer = try? await api.exchange(request) else { continue }
            let isGone =
                (200..<300).contains(answer.head.status)
                || S3Errors.words(in: answer.body)?.code == "NoSuchUpload"
            if isGone { begun.forget(id) }
        }
        memory.withLock { memory in
            if memory.sessions[ExactText(key)] == id { memory.sessions[ExactText(key)] = nil }
        }
    }

    /// Looks for leftovers in the background, once a day, and not in a run's first hour: what an earlier run
    /// began, and this one is to continue, may be older than leftovers become.
    func cleanUp() {
        let isDue = memory.withLock { memory in
            guard .now - memory.begun > settings.cleaningRest else { return false }
            if let last = memory.lastCleaning, .now - last < .seconds(86_400) { return false }
            memory.lastCleaning = .now
            return true
        }
        guard isDue else { return }
        // Ends by itself; what cannot be given up now is tried another day.
        Task { await removeLeftovers() }
    }

    /// Gives up the uploads in parts that were begun from here so long ago and that nothing in this run
    /// continues: stores keep, and charge for, their parts for ever.
    ///
    /// - Returns: How many were given up.
    @discardableResult
    public func removeLeftovers(olderThan age: Duration = .seconds(7 * 86_400)) async -> Int {
        let second = Timestamp(api.signer.serviceTime).seconds - age.components.seconds
        var removed = 0
        for upload in begun.begun(until: second) {
            let isGoingOn = memory.withLock { memory in
                memory.sessions.values.contains { $0.isSameText(as: upload.id) }
            }
            guard !isGoingOn else { continue }
            await abort(upload.id, at: upload.key)
            let isGone = begun.begun(until: second).allSatisfy { !$0.id.isSameText(as: upload.id) }
            if isGone { removed += 1 }
        }
        return removed
    }
}

extension S3Client.Session {
    /// Whether the session is for exactly this content, whose place may have changed.
    fileprivate func isOf(_ upload: PlaceUpload, at key: String) -> Bool {
        size == upload.size && hash == upload.hash.value && self.key.isSameText(as: key)
            && partSize > 0
    }

    fileprivate func stored(confirmed bytes: Int64) -> UploadSession {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        // Texts and numbers: there is nothing that could fail to encode.
        let state = (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        return UploadSession(state: state, confirmedBytes: bytes, expires: nil)
    }
}

/// How much of all parts was sent.
private final class SentBytes: Sendable {
    private let observer: any UploadObserver
    private let parts = Mutex<[Int: Int64]>([:])

    init(_ observer: any UploadObserver) { self.observer = observer }

    func set(_ part: Int, _ bytes: Int64) {
        let sum = parts.withLock { parts in
            parts[part] = bytes
            return parts.values.reduce(0, +)
        }
        observer.sent(sum)
    }
}
