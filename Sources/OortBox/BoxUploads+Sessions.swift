import Foundation
import OortModel
import OortTransport
import Synchronization

/// An upload session at Box: its parts are as long as Box says, go in any order, and are listed by it.
struct BoxUploadSession {
    /// What of it is stored: which parts arrived Box is asked after a restart.
    private struct State: Codable {
        var session: BoxWire.Session
        var size: Int64
        /// What it was opened for: Box makes that of it, whatever is wanted later.
        var purpose: String
    }

    /// Each part is kept in mind; Box's own are of 8 MiB and more.
    private static let mostParts: Int64 = 100_000

    let session: BoxWire.Session
    /// Bytes of the whole content.
    let size: Int64
    private let purpose: String
    /// The parts that Box has, by where they begin.
    private(set) var parts: [Int64: BoxWire.Part] = [:]
    /// Bytes from the start of the content without a gap.
    private(set) var confirmed: Int64 = 0

    init(
        _ session: BoxWire.Session,
        size: Int64,
        for destination: BoxDestination
    ) throws(ProviderError) {
        guard session.part_size > 0, session.part_size <= 1 << 32,
            size / session.part_size < Self.mostParts
        else {
            throw ProviderError(.malformedAnswer, detail: "a session with parts of no size")
        }
        self.session = session
        self.size = size
        purpose = destination.purpose
    }

    /// A session as it was stored.
    ///
    /// - Throws: `.sessionLost` when what was stored is no session for so many bytes that go there.
    init(
        _ stored: UploadSession,
        size: Int64,
        for destination: BoxDestination
    ) throws(ProviderError) {
        guard
            let state = try? JSONDecoder().decode(State.self, from: Data(stored.state.utf8)),
            state.size == size, state.purpose.isSameText(as: destination.purpose)
        else { throw ProviderError(.sessionLost, detail: "not a session for this upload") }
        try self.init(state.session, size: size, for: destination)
    }

    func stored() throws(ProviderError) -> UploadSession {
        UploadSession(
            state: String(
                decoding: try BoxAPI.json(
                    State(session: session, size: size, purpose: purpose)
                ),
                as: UTF8.self
            ),
            confirmedBytes: confirmed,
            expires: session.session_expires_at.flatMap { Timestamp(rfc3339: $0) }
        )
    }

    /// Where the parts begin that are missing, in order.
    var missing: [Int64] {
        stride(from: confirmed, to: size, by: Int64.Stride(session.part_size))
            .filter { parts[$0] == nil }
    }

    /// The range of the part that begins at `start`.
    func part(at start: Int64) -> Range<Int64> {
        start..<min(start.addingSaturating(session.part_size), size)
    }

    /// Box has a part; one that fits no place of the content is none of this session's.
    mutating func add(_ part: BoxWire.Part) {
        guard part.offset >= 0, part.offset < size, part.offset % session.part_size == 0,
            part.size == Int64(self.part(at: part.offset).count)
        else { return }
        parts[part.offset] = part
        while let next = parts[confirmed] { confirmed += next.size }
    }

    /// All parts in order.
    var inOrder: [BoxWire.Part] { parts.values.sorted { $0.offset < $1.offset } }
}

extension BoxDestination {
    /// What an upload session is opened for: the folder and the name, or the file.
    fileprivate var purpose: String {
        switch self {
        case .folder(let folder, _, let name): "\(folder.itemID.rawValue)/\(name)"
        case .file(let id, _): id.itemID.rawValue
        }
    }
}

/// Keeps the session of an upload over the tries of one call: what arrived is not sent again.
final class BoxSessionKeeper: UploadObserver {
    private let state: Mutex<UploadSession?>
    private let observer: any UploadObserver

    init(_ session: UploadSession?, _ observer: any UploadObserver) {
        state = Mutex(session)
        self.observer = observer
    }

    var session: UploadSession? { state.withLock { $0 } }

    func sent(_ bytes: Int64) { observer.sent(bytes) }

    func sessionChanged(_ session: UploadSession?) async {
        state.withLock { $0 = session }
        await observer.sessionChanged(session)
    }

    /// Gives the session up where there is one.
    func drop() async {
        if session != nil { await sessionChanged(nil) }
    }
}

/// How much of the parts that travel side by side was sent.
private final class SentParts: Sendable {
    private let sent: Mutex<(before: Int64, parts: [Int64: Int64])>
    private let observer: any UploadObserver

    init(before: Int64, observer: any UploadObserver) {
        sent = Mutex((before, [:]))
        self.observer = observer
    }

    func sent(_ bytes: Int64, of start: Int64) {
        let all = sent.withLock { sent in
            sent.parts[start] = bytes
            return sent.parts.values.reduce(sent.before, +)
        }
        observer.sent(all)
    }
}

extension BoxProvider {
    /// How many parts are under way at once.
    private static let partsAtOnce = 4
    /// How often a commit is repeated that Box has not carried out yet.
    private static let mostCommits = 100

    func inSession(
        _ upload: Upload,
        to destination: BoxDestination,
        tag: String?,
        _ observer: BoxSessionKeeper
    ) async throws(ProviderError) -> BoxWire.Item {
        do throws(ProviderError) {
            var session = try await session(of: upload, to: destination, observer)
            let before = session.parts.values.reduce(0) { $0 + $1.size }
            let sent = SentParts(before: before, observer: observer)
            try await append(upload, to: &session, sent, observer)
            let wire: BoxWire.Item
            do throws(ProviderError) {
                wire = try await commit(upload, session, to: destination, tag: tag)
            } catch {
                // Committed again, it would be refused again.
                if Self.isLost(by: error.kind) { await observer.drop() }
                throw error
            }
            await observer.sessionChanged(nil)
            return wire
        } catch {
            guard error.kind == .sessionLost else { throw error }
            await observer.sessionChanged(nil)
            // Over: perhaps because it was committed, and the answer was lost.
            if case .folder(_, let parent, let name) = destination,
                let made = try await outcome(of: upload, named: name, in: parent)
            {
                return try await api.item(try BoxID(made.id))
            }
            throw error
        }
    }

    /// Whether a session is of no use any longer when its commit is refused so.
    private static func isLost(by kind: ProviderError.Kind) -> Bool {
        switch kind {
        // Damaged parts cannot be replaced.
        case .contentDamaged: true
        // There may be room or leave later.
        case .quotaExceeded, .limitExceeded, .noPermission: false
        // Perhaps by a new name only, with which a commit works.
        case .preconditionFailed: false
        default: ProviderError(kind, detail: "").isLastingRefusal
        }
    }

    /// The session of an earlier try with what Box has of it, or a new one.
    private func session(
        of upload: Upload,
        to destination: BoxDestination,
        _ observer: BoxSessionKeeper
    ) async throws(ProviderError) -> BoxUploadSession {
        if let earlier = observer.session {
            var session = try BoxUploadSession(earlier, size: upload.size, for: destination)
            for part in try await parts(of: session) { session.add(part) }
            return session
        }
        var body = BoxWire.NewSession(file_size: upload.size)
        let path: String
        switch destination {
        case .folder(let folder, _, let name):
            body.folder_id = folder.id
            body.file_name = name
            path = "files/upload_sessions"
        case .file(let id, _): path = id.path + "/upload_sessions"
        }
        // An unused session does no harm and runs out.
        let request = try api.request("POST", api.uploadURL(path), body, repetition: .harmless)
        try await uploadPace.take()
        let made: BoxWire.Session
        switch destination {
        case .folder: made = try await sendCreation(request)
        case .file: made = try await api.send(request)
        }
        let session = try BoxUploadSession(made, size: upload.size, for: destination)
        await observer.sessionChanged(try session.stored())
        return session
    }

    /// The parts that Box has.
    private func parts(
        of session: BoxUploadSession
    ) async throws(ProviderError) -> [BoxWire.Part] {
        let address = session.session.session_endpoints.list_parts
        var parts: [BoxWire.Part] = []
        while true {
            let separator = address.has("?") ? "&" : "?"
            let page: BoxWire.Parts = try await sendToSession(
                HTTPRequest(
                    method: "GET",
                    url: address + "\(separator)offset=\(parts.count)&limit=1000",
                    repetition: .harmless
                )
            )
            parts += page.entries
            guard page.entries.count >= 1000, parts.count < 1_000_000 else { return parts }
        }
    }

    /// Sends the missing parts, some of them side by side, those further ahead first.
    ///
    /// After a failure no further part begins, and those under way are sent to their ends.
    private func append(
        _ upload: Upload,
        to session: inout BoxUploadSession,
        _ sent: SentParts,
        _ observer: any UploadObserver
    ) async throws(ProviderError) {
        let before = session
        let outcome = await withTaskGroup(of: Result<BoxWire.Part, ProviderError>.self) {
            group -> (session: BoxUploadSession, failure: ProviderError?) in
            var session = before
            var failure: ProviderError?
            var waiting = session.missing[...]
            func begin() {
                guard failure == nil, let start = waiting.popFirst() else { return }
                group.addTask {
                    do throws(ProviderError) {
                        return .success(
                            try await self.append(upload, before, before.part(at: start), sent)
                        )
                    } catch { return .failure(error) }
                }
            }
            for _ in 0..<Self.partsAtOnce { begin() }
            while let result = await group.next() {
                do throws(ProviderError) {
                    session.add(try result.get())
                    await observer.sessionChanged(try session.stored())
                } catch { failure = failure ?? error }
                begin()
            }
            return (session, failure)
        }
        session = outcome.session
        if let failure = outcome.failure { throw failure }
        guard session.missing.isEmpty else {
            throw ProviderError(.sessionLost, detail: "the session has other parts than were sent")
        }
    }

    private func append(
        _ upload: Upload,
        _ session: BoxUploadSession,
        _ range: Range<Int64>,
        _ sent: SentParts
    ) async throws(ProviderError) -> BoxWire.Part {
        // Read twice rather than held: the digest goes before the bytes, and parts may be large.
        var hasher = SHA1Hasher()
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(range.upperBound - offset, 1 << 20))
            hasher.update(try await upload.content.read(at: offset, count: count)[...])
            offset += Int64(count)
        }
        var request = HTTPRequest(
            method: "PUT",
            url: session.session.session_endpoints.upload_part,
            headers: [
                ("Content-Type", "application/octet-stream"),
                (
                    "Content-Range",
                    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(upload.size)"
                ),
                ("Digest", "sha=" + Data(hasher.digest).base64EncodedString()),
            ],
            body: .content(upload.content, range),
            // Box reports a part that it has already as such.
            repetition: .harmless,
            weight: .bulk,
            answerTimeout: .seconds(120)
        )
        request.onSent = { sent.sent($0, of: range.lowerBound) }
        switch try await performAtSession(request) {
        case .success(let response):
            return try BoxAPI.decode(response.body, as: BoxWire.UploadedPart.self).part
        case .refused(let failure):
            guard failure.code == "range_overlaps_existing_part",
                let part = try await parts(of: session).first(where: {
                    $0.offset == range.lowerBound && $0.size == Int64(range.count)
                })
            else { throw Self.sessionError(failure) }
            return part
        }
    }

    /// Makes a file of the parts: the same request again and again until Box has put them together.
    private func commit(
        _ upload: Upload,
        _ session: BoxUploadSession,
        to destination: BoxDestination,
        tag: String?
    ) async throws(ProviderError) -> BoxWire.Item {
        guard let digest = SHA1Hasher.bytes(of: upload.hash) else {
            throw ProviderError(.badRequest, detail: "a hash that is no SHA-1")
        }
        let request = try api.request(
            "POST",
            session.session.session_endpoints.commit,
            BoxWire.Commit(
                parts: session.inOrder,
                attributes: attributes(of: upload, to: destination)
            ),
            headers: [("Digest", "sha=" + Data(digest).base64EncodedString())]
                + (tag.map { [("If-Match", $0)] } ?? []),
            repetition: .onlyIfNotDone
        )
        var isMismatch = false
        for _ in 0..<Self.mostCommits {
            switch try await performAtSession(request) {
            case .success(let response) where response.head.status == 202:
                isMismatch = false
                try await api.pause(response.head.retryAfter ?? .seconds(1))
            case .success(let response):
                let made: BoxWire.Uploaded = try BoxAPI.decode(response.body)
                guard let item = made.entries.first else {
                    throw ProviderError(.malformedAnswer, detail: "an upload that made nothing")
                }
                // The answer has no `fields` to choose.
                return item
            // Right after the last part Box may not know it yet.
            case .refused(let failure) where failure.code == "parts_mismatch":
                isMismatch = true
                try await api.pause(failure.retryAfter ?? .seconds(1))
            case .refused(let failure):
                let error = Self.sessionError(failure)
                if error.kind == .notFound {
                    throw ProviderError(.parentNotFound, detail: error.detail)
                }
                throw error
            }
        }
        // It never will be: what arrived is no use.
        guard !isMismatch else {
            throw ProviderError(.sessionLost, detail: "Box has other parts than were sent")
        }
        throw ProviderError(
            .outcomeUnknown(retryAfter: nil),
            detail: "Box did not finish putting the parts together"
        )
    }

    // MARK: Sending

    /// Sends a request to an address that a session came with, as it is.
    private func performAtSession(
        _ request: HTTPRequest
    ) async throws(ProviderError) -> BoxAPI.Answer {
        guard api.endpoints.isTrusted(request.url) else {
            throw ProviderError(.malformedAnswer, detail: "a session at an unexpected host")
        }
        return try await api.perform(request)
    }

    private func sendToSession<Result: Decodable>(
        _ request: HTTPRequest
    ) async throws(ProviderError) -> Result {
        switch try await performAtSession(request) {
        case .success(let response): try BoxAPI.decode(response.body)
        case .refused(let failure): throw Self.sessionError(failure)
        }
    }

    /// The meaning of a refusal at a session: for one that is gone, Box answers 404, too.
    private static func sessionError(_ failure: BoxFailure) -> ProviderError {
        let error = failure.error
        return failure.status == 404 || error.kind == .sessionLost
            ? ProviderError(.sessionLost, detail: error.detail) : error
    }
}
