public import OortModel
import OortTransport
import Synchronization

extension S3Client {
    public func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard !range.isEmpty else { return ByteStream { () throws(ProviderError) in nil } }
        let key = try space.key(of: path)
        if let revision, isArchived(key, revision) { throw S3Errors.archived }
        var request = S3Request("GET", key)
        request.weight = .bulk
        request.headers.append(("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"))
        if let revision { request.headers.append(("If-Match", "\"\(revision.rawValue)\"")) }
        let streamed: HTTPStreamedResponse
        switch try await api.stream(request) {
        case .success(let answer): streamed = answer
        case .failure(let refusal):
            // Any range of an empty object is refused so.
            guard refusal.answer.head.status == 416 else {
                let error = S3Errors.error(refusal.answer, about: .object)
                if let revision, error.kind == .contentBlocked { rememberArchived(key, revision) }
                throw error
            }
            guard let head = try await file(key) else {
                throw ProviderError(.notFound, detail: "no object")
            }
            guard revision == nil || revision == Revision(head.tag),
                range.lowerBound >= head.size
            else {
                throw ProviderError(.preconditionFailed, detail: "the object is shorter now")
            }
            return ByteStream { () throws(ProviderError) in nil }
        }
        // Some stores do not look at the condition.
        let tag = streamed.head.header("ETag").map(S3Head.bare)
        if let revision, tag.map({ Revision($0) }) != revision {
            throw ProviderError(.preconditionFailed, detail: "another revision is current")
        }
        // Some stores give a part with the status of the whole.
        if let place = streamed.head.header("Content-Range") {
            guard let size = streamed.head.wholeSize, size > range.lowerBound,
                place.begins(with: "bytes \(range.lowerBound)-")
            else {
                throw ProviderError(.malformedAnswer, detail: "a part of unknown place")
            }
            let end = min(range.upperBound, size)
            return Slice(of: streamed.body, skipping: 0, count: end - range.lowerBound).stream
        }
        guard streamed.head.status == 200,
            let length = streamed.head.header("Content-Length")
                .flatMap({ ReportedSize(digits: $0)?.bytes })
        else {
            throw ProviderError(.malformedAnswer, detail: "a content of unknown size")
        }
        let wanted = range.clamped(to: 0..<length)
        return Slice(
            of: streamed.body,
            skipping: wanted.lowerBound,
            count: Int64(wanted.count)
        ).stream
    }
}

// MARK: Archived objects

extension S3Client {
    /// Whether the store said a short while ago that the object is archived: a program that looks into each
    /// file of a folder need not wait for each answer.
    private func isArchived(_ key: String, _ revision: Revision) -> Bool {
        memory.withLock { memory in
            guard let known = memory.archived[ExactText(key)],
                Revision(known.tag) == revision
            else { return false }
            if .now - known.since < settings.archivedRest { return true }
            memory.archived[ExactText(key)] = nil
            return false
        }
    }

    private func rememberArchived(_ key: String, _ revision: Revision) {
        memory.withLock { memory in
            if memory.archived.count >= Memory.mostMarked { memory.archived = [:] }
            memory.archived[ExactText(key)] = (revision.rawValue, .now)
        }
    }

    /// Forgets that a listed object is archived, where its storage class says that it is not.
    func learn(_ object: S3Object) {
        guard !S3Errors.archives.contains(object.storageClass ?? "STANDARD") else { return }
        memory.withLock { memory in
            guard !memory.archived.isEmpty else { return }
            memory.archived[ExactText(object.key)] = nil
        }
    }
}

/// A part of a stream: skips some bytes, then hands on exactly so many.
private final class Slice: Sendable {
    private let source: ByteStream
    private let rest: Mutex<(skip: Int64, take: Int64)>

    init(of source: ByteStream, skipping skip: Int64, count: Int64) {
        self.source = source
        rest = Mutex((skip, count))
    }

    var stream: ByteStream {
        ByteStream { () async throws(ProviderError) -> [UInt8]? in try await self.next() }
    }

    private func next() async throws(ProviderError) -> [UInt8]? {
        while rest.withLock({ $0.take > 0 }) {
            guard let part = try await source.next() else {
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "the content ended too early"
                )
            }
            let cut = rest.withLock { rest in
                let skipped = min(rest.skip, Int64(part.count))
                rest.skip -= skipped
                let taken = min(rest.take, Int64(part.count) - skipped)
                rest.take -= taken
                return part[Int(skipped)..<Int(skipped + taken)]
            }
            if cut.count == part.count { return part }
            if !cut.isEmpty { return Array(cut) }
        }
        return nil
    }
}
