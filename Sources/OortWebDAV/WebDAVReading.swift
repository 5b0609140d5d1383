import Foundation
public import OortModel
import OortTransport
import Synchronization

extension WebDAVClient {
    public func read(
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard !range.isEmpty else {
            return ByteStream { () async throws(ProviderError) -> [UInt8]? in nil }
        }
        let pinned = revision.flatMap { WebDAVEntries.tag(of: $0) }
        let first = try await content(path, range, guardedBy: pinned)
        guard first.head.status == 412, let revision else {
            return try await body(first, path, revision: revision, range: range)
        }
        // A young file's tag is weak, and refused although it is the current one.
        let entry = try await entry(at: path)
        guard entry.revision == revision else { throw Self.changed }
        let second = try await content(path, range, guardedBy: nil)
        return try await body(second, path, revision: revision, range: range)
    }

    private static var changed: ProviderError {
        ProviderError(.preconditionFailed, detail: "the content changed meanwhile")
    }

    private func content(
        _ path: RemotePath,
        _ range: Range<Int64>,
        guardedBy tag: String?
    ) async throws(ProviderError) -> HTTPStreamedResponse {
        let last = min(range.upperBound, ReportedSize.largest) - 1
        var request = api.request(
            "GET",
            path,
            isFolder: false,
            headers: [
                ("Range", "bytes=\(range.lowerBound)-\(max(last, range.lowerBound))"),
                // Otherwise offsets would count compressed bytes.
                ("Accept-Encoding", "identity"),
            ],
            repetition: .harmless
        )
        request.weight = .bulk
        if let tag { request.headers.append(("If-Match", "\"\(tag)\"")) }
        return try await api.stream(request)
    }

    /// The bytes of an answer, if they are of the revision that was asked for.
    private func body(
        _ response: HTTPStreamedResponse,
        _ path: RemotePath,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let head = response.head
        switch head.status {
        case 200, 206: break
        case 412: throw Self.changed
        case 416:
            // The range begins at or past the end; is this the revision's end, too?
            let entry = try await entry(at: path)
            guard entry.kind == .file else { throw Self.notAFile }
            guard revision == nil || entry.revision == revision else { throw Self.changed }
            guard let size = entry.size, size <= range.lowerBound else {
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "the server refused a range that lies in the file"
                )
            }
            return ByteStream { () async throws(ProviderError) -> [UInt8]? in nil }
        default: throw try await failure(response, path)
        }
        let total = try Self.total(head, range: range)
        // A folder gets an answer without bytes and without an error there.
        if dialect == .infinitescale, head.header("ETag") == nil, head.header("OC-ETag") == nil {
            guard try await entry(at: path).kind == .file else { throw Self.notAFile }
        }
        try await wantPlain(head, path, total: total)
        let skipped = head.status == 206 ? 0 : range.lowerBound
        try await verify(head, path, total: total, revision: revision)
        let end = total.map { min($0, range.upperBound) } ?? range.upperBound
        guard end > range.lowerBound else {
            return ByteStream { () async throws(ProviderError) -> [UInt8]? in nil }
        }
        return StreamSlice(
            of: response.body,
            skipping: skipped,
            count: end - range.lowerBound,
            mayEndEarly: total == nil
        ).stream
    }

    /// - Throws: `.malformedAnswer` where a proxy compressed the content although it was asked not to: the tag
    ///   would be right, and the bytes would be others.
    ///
    /// A server may also name so what it stores as it is (`AddEncoding x-gzip .gz`): that has the file's size.
    private func wantPlain(
        _ head: HTTPResponseHead,
        _ path: RemotePath,
        total: Int64?
    ) async throws(ProviderError) {
        let coding = head.header("Content-Encoding")?.trimmed.lowercased() ?? ""
        guard !coding.isEmpty, coding != "identity" else { return }
        guard let total, try await entry(at: path).size == total else {
            throw ProviderError(
                .malformedAnswer,
                detail: "the content comes as \(coding.prefix(20)), which was not asked for: a "
                    + "proxy before the server must leave it as it is"
            )
        }
    }

    private static var notAFile: ProviderError {
        ProviderError(.notAFile, detail: "a folder has no content")
    }

    /// The content's whole size; nil where the server does not say.
    private static func total(
        _ head: HTTPResponseHead,
        range: Range<Int64>
    ) throws(ProviderError) -> Int64? {
        guard head.status == 206 else {
            return head.header("Content-Length").flatMap { Int64($0.trimmed) }
        }
        guard let field = head.header("Content-Range")?.trimmed,
            let (unit, rest) = field.cut(atFirst: " "), unit.lowercased() == "bytes",
            let (part, whole) = rest.cut(atFirst: "/"),
            let (first, _) = part.cut(atFirst: "-"),
            Int64(String(first).trimmed) == range.lowerBound
        else {
            throw ProviderError(.malformedAnswer, detail: "another range than asked for")
        }
        return Int64(String(whole).trimmed)
    }

    /// Throws unless the answer is of the revision, and of a file: not every server obeys the condition.
    private func verify(
        _ head: HTTPResponseHead,
        _ path: RemotePath,
        total: Int64?,
        revision: Revision?
    ) async throws(ProviderError) {
        guard let revision else {
            // A web page that shows a folder has neither.
            guard head.header("ETag") == nil, head.header("Last-Modified") == nil else { return }
            guard try await entry(at: path).kind == .file else { throw Self.notAFile }
            return
        }
        if let pinned = WebDAVEntries.tag(of: revision) {
            if let tag = WebDAVEntries.tag(head.header("OC-ETag") ?? head.header("ETag")) {
                if tag.isSameText(as: pinned) {
                    guard Self.isSame(head, total, as: revision) else { throw Self.changed }
                    return
                }
                // Only where both are made in the same way does another tag mean other content.
                if dialect.isCloud || abilities.sendsTags { throw Self.changed }
            }
        } else if let total, let time = Self.modifiedTime(head) {
            guard revision == WebDAVEntries.revision(tag: nil, size: total, time: time) else {
                throw Self.changed
            }
            return
        }
        // The answer does not name its revision: it is of the one that is current after the answer began.
        let entry = await RequestPriority.$current.withValue(.attendant) {
            () async -> Result<PlaceEntry, ProviderError> in
            do throws(ProviderError) {
                return .success(try await self.entry(at: path))
            } catch {
                return .failure(error)
            }
        }
        guard try entry.get().revision == revision else { throw Self.changed }
    }

    /// The modified time that an answer names; nil where it has none, or one that may stand for a later one:
    /// servers name none after the answer's own (RFC 9110, section 8.8.2.1).
    private static func modifiedTime(_ head: HTTPResponseHead) -> Timestamp? {
        guard let time = head.header("Last-Modified").flatMap({ HTTPDate.parse($0) }) else {
            return nil
        }
        return head.date.map { time.seconds >= $0.seconds } == true ? nil : time
    }

    /// Whether an answer's size and checksum are those of a revision that has them beside its tag.
    private static func isSame(
        _ head: HTTPResponseHead,
        _ total: Int64?,
        as revision: Revision
    ) -> Bool {
        guard let (size, hash) = WebDAVEntries.content(of: revision) else { return true }
        let sent = head.header("OC-Checksum")?.lowercased().dropping(beginning: "sha1:")
        let isSameHash = hash == nil || sent == nil || sent.map(String.init) == hash
        return (total == nil || total == size) && isSameHash
    }

    private func failure(
        _ response: HTTPStreamedResponse,
        _ path: RemotePath
    ) async throws(ProviderError) -> ProviderError {
        let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
        let error = WebDAVErrors.error(HTTPResponse(head: response.head, body: body), about: .item)
        switch error.kind {
        case .notFound:
            // Unreadable files get the same answer: only the folder's listing can say.
            let entry: PlaceEntry
            do throws(ProviderError) {
                entry = try await self.entry(at: path)
            } catch  where error.kind == .noPermission {
                return error.asKind(.contentBlocked)
            }
            return entry.kind == .folder ? Self.notAFile : error.asKind(.contentBlocked)
        case .noPermission: return error.asKind(.contentBlocked)
        case .malformedAnswer, .unsupported:
            let entry = try await entry(at: path)
            return entry.kind == .folder ? Self.notAFile : error
        default: return error
        }
    }
}

/// A part of a stream: skips some bytes, then hands on exactly so many.
final class StreamSlice: Sendable {
    private let source: ByteStream
    private let mayEndEarly: Bool
    private let rest: Mutex<(skip: Int64, take: Int64)>

    /// `mayEndEarly` is for a content of unknown size.
    init(of source: ByteStream, skipping skip: Int64, count: Int64, mayEndEarly: Bool) {
        self.source = source
        self.mayEndEarly = mayEndEarly
        rest = Mutex((skip, count))
    }

    var stream: ByteStream {
        ByteStream { () async throws(ProviderError) -> [UInt8]? in try await self.next() }
    }

    private func next() async throws(ProviderError) -> [UInt8]? {
        while rest.withLock({ $0.take > 0 }) {
            guard let part = try await source.next() else {
                if mayEndEarly { return nil }
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
