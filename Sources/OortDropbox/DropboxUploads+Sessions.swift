import Foundation
import OortModel
import OortTransport
import Synchronization

/// An upload session and which parts of the content it holds.
struct DropboxUploadSession {
    /// What of it is stored besides the confirmed bytes.
    private struct State: Codable {
        var id: String
        var partSize: Int64
        var arrived: [Int64]
    }

    let id: String
    /// Bytes of each part but the last.
    let partSize: Int64
    /// Bytes of the whole content, at least one.
    let size: Int64
    let expires: Timestamp?
    /// Bytes from the start of the content without a gap.
    private(set) var confirmed: Int64 = 0
    /// Where the parts begin that arrived beyond the first gap.
    private(set) var arrived: Set<Int64> = []

    /// Where the last part begins, which closes the session and goes when all others are there.
    var lastStart: Int64 { (size - 1) / partSize * partSize }

    /// Where the parts but the last begin that are missing, in order.
    var missing: [Int64] {
        stride(from: confirmed, to: lastStart, by: Int64.Stride(partSize))
            .filter { !arrived.contains($0) }
    }

    /// A session that holds nothing yet.
    init(id: String, partSize: Int64, size: Int64, expires: Timestamp?) {
        self.id = id
        self.partSize = partSize
        self.size = size
        self.expires = expires
    }

    /// A session as it was stored; nil when what was stored fits no content of `size` bytes.
    init?(_ stored: UploadSession, size: Int64) {
        guard
            let state = try? JSONDecoder().decode(State.self, from: Data(stored.state.utf8)),
            state.partSize > 0, state.partSize % Int64(DropboxContentHasher.blockSize) == 0,
            stored.confirmedBytes == size
                || (0..<size).contains(stored.confirmedBytes)
                    && stored.confirmedBytes % state.partSize == 0
        else { return nil }
        self.init(id: state.id, partSize: state.partSize, size: size, expires: stored.expires)
        confirmed = stored.confirmedBytes
        arrived = Set(state.arrived)
    }

    /// What is stored of it.
    func stored() throws(ProviderError) -> UploadSession {
        let state = State(id: id, partSize: partSize, arrived: arrived.sorted())
        return UploadSession(
            state: String(decoding: try DropboxWire.encode(state), as: UTF8.self),
            confirmedBytes: confirmed,
            expires: expires
        )
    }

    /// The range of the part that begins at `start`.
    func part(at start: Int64) -> Range<Int64> { start..<min(start + partSize, size) }

    /// The part that begins at `start` is at the service.
    mutating func add(_ start: Int64) {
        arrived.insert(start)
        while confirmed < size, arrived.remove(confirmed) != nil {
            confirmed = part(at: confirmed).upperBound
        }
    }
}

/// How much of the parts that travel side by side was sent.
private final class SentParts: Sendable {
    private let sent: Mutex<(before: Int64, parts: [Int64: Int64])>
    private let observer: any UploadObserver

    /// Parts beside those of `before` bytes, which were sent by an earlier try.
    init(before: Int64, observer: any UploadObserver) {
        sent = Mutex((before, [:]))
        self.observer = observer
    }

    /// So many bytes of the part that begins at `start` were sent.
    func sent(_ bytes: Int64, of start: Int64) {
        let all = sent.withLock { sent in
            sent.parts[start] = bytes
            return sent.parts.values.reduce(sent.before, +)
        }
        observer.sent(all)
    }
}

extension DropboxProvider {
    /// How many parts are under way at once.
    private static let partsAtOnce = 4
    /// Dropbox keeps a session for seven days.
    private static let sessionSeconds: Int64 = 6 * 24 * 3600

    func inSession(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DropboxWire.Metadata {
        var session = try await session(of: upload, observer: observer)
        let before = session.confirmed + Int64(session.arrived.count) * session.partSize
        let sent = SentParts(before: before, observer: observer)
        try await append(upload, to: &session, sent, observer)
        if session.confirmed < upload.size {
            let last = session.lastStart
            try await append(upload, session.id, session.part(at: last), closes: true, sent)
            session.add(last)
            await observer.sessionChanged(try session.stored())
        }
        let metadata = try await finish(upload, session.id)
        await observer.sessionChanged(nil)
        return metadata
    }

    /// The session of an earlier try, or a new one.
    private func session(
        of upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DropboxUploadSession {
        if let earlier = upload.session {
            guard let session = DropboxUploadSession(earlier, size: upload.size) else {
                throw ProviderError(.sessionLost, detail: "not a session of this provider")
            }
            return session
        }
        let started: DropboxWire.SessionID = try await api.upload(
            "files/upload_session/start",
            DropboxWire.SessionStart(),
            body: .bytes([])
        )
        let session = DropboxUploadSession(
            id: started.session_id,
            partSize: traits.uploadPartSize,
            size: upload.size,
            expires: Timestamp(seconds: Timestamp.now.seconds + Self.sessionSeconds)
        )
        await observer.sessionChanged(try session.stored())
        return session
    }

    /// Sends the missing parts but the last, some of them side by side.
    ///
    /// Each part that arrived is stored, in whatever order they do. After a failure no further part
    /// begins, and those under way are sent to their ends: the session holds what the service has.
    private func append(
        _ upload: Upload,
        to session: inout DropboxUploadSession,
        _ sent: SentParts,
        _ observer: any UploadObserver
    ) async throws(ProviderError) {
        let before = session
        let outcome = await withTaskGroup(of: (start: Int64, failure: ProviderError?).self) {
            group -> (session: DropboxUploadSession, failure: ProviderError?) in
            var session = before
            var failure: ProviderError?
            var waiting = session.missing[...]
            func begin() {
                guard failure == nil, let start = waiting.popFirst() else { return }
                group.addTask {
                    do throws(ProviderError) {
                        let part = before.part(at: start)
                        try await self.append(upload, before.id, part, closes: false, sent)
                        return (start, nil)
                    } catch { return (start, error) }
                }
            }
            for _ in 0..<Self.partsAtOnce { begin() }
            while let (start, error) = await group.next() {
                if let error {
                    failure = failure ?? error
                    continue
                }
                session.add(start)
                do throws(ProviderError) {
                    await observer.sessionChanged(try session.stored())
                } catch { failure = failure ?? error }
                begin()
            }
            return (session, failure)
        }
        session = outcome.session
        if let failure = outcome.failure { throw failure }
    }

    /// Sends a part, read once: its hash goes before it.
    ///
    /// The last part closes the session; one that is closed already has it.
    private func append(
        _ upload: Upload,
        _ id: String,
        _ range: Range<Int64>,
        closes: Bool,
        _ sent: SentParts
    ) async throws(ProviderError) {
        let bytes = try await upload.content.read(at: range.lowerBound, count: range.count)
        let argument = DropboxWire.SessionAppend(
            cursor: DropboxWire.SessionCursor(session_id: id, offset: range.lowerBound),
            close: closes,
            content_hash: DropboxContentHasher.hash(bytes).value
        )
        do throws(ProviderError) {
            let _: DropboxWire.Nothing = try await api.upload(
                "files/upload_session/append_v2",
                argument,
                body: .bytes(bytes)
            ) { sent.sent($0, of: range.lowerBound) }
        } catch {
            // An earlier try without an answer may have closed it: the commit will show that.
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
