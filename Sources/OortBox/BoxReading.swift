public import OortModel
import OortTransport
import Synchronization

extension BoxProvider {
    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let id = try fileID(item)
        guard !range.isEmpty else { return Self.nothing }
        do throws(ProviderError) {
            return try await read(id, version: revision?.rawValue, range: range)
        } catch {
            guard error.kind == .notFound, revision != nil else { throw error }
            // The file, or only this version of it: plans without versions keep none.
            _ = try await self.item(item)
            throw ProviderError(.preconditionFailed, detail: error.detail)
        }
    }

    static let nothing = ByteStream { () async throws(ProviderError) -> [UInt8]? in nil }

    /// The bytes of a version, the current one where none is named.
    ///
    /// - Throws: `.notFound` when there is no such version, or no such file.
    func read(
        _ id: BoxID,
        version: String?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let key = id.id + ":" + (version ?? "")
        // Without a version the address is that of what was current then.
        if version != nil, let url = memory.download(key) {
            do throws(ProviderError) { return try await stream(url, range: range) } catch {
                // Addresses run out.
                guard error.kind == .sessionLost else { throw error }
                memory.forgetDownload(key)
            }
        }
        let url = try await download(id, version: version)
        if version != nil { memory.learn(download: url, of: key) }
        do throws(ProviderError) { return try await stream(url, range: range) } catch {
            guard error.kind == .sessionLost else { throw error }
            memory.forgetDownload(key)
            throw ProviderError(
                .outcomeUnknown(retryAfter: nil),
                detail: "a new download address was refused: \(error.detail)"
            )
        }
    }

    /// The address of the bytes, which is a permission by itself.
    private func download(_ id: BoxID, version: String?) async throws(ProviderError) -> String {
        let query = version.map { [("version", $0)] } ?? []
        let request = api.get(id.path + "/content", query)
        var waits = 0
        while true {
            let response = try await api.exchange(request)
            switch response.head.status {
            case 302:
                guard let url = response.head.header("Location"), api.endpoints.isSafe(url) else {
                    throw ProviderError(
                        .malformedAnswer,
                        detail: "a download without an address that is encrypted"
                    )
                }
                return url
            // Uploaded just now, and not ready yet.
            case 202 where waits < 10:
                waits += 1
                try await api.pause(response.head.retryAfter ?? .seconds(1))
            case 202:
                throw ProviderError(
                    .outcomeUnknown(retryAfter: response.head.retryAfter),
                    detail: "the content is not ready yet"
                )
            case 403:
                let error = BoxFailure(response).error
                throw error.kind == .noPermission
                    ? ProviderError(.contentBlocked, detail: error.detail) : error
            case 200..<300:
                throw ProviderError(.malformedAnswer, detail: "a download without an address")
            default: throw BoxFailure(response).error
            }
        }
    }

    /// - Throws: `.sessionLost` when the address does not work (any longer).
    private func stream(
        _ url: String,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let response = try await api.open(
            HTTPRequest(
                method: "GET",
                url: url,
                headers: [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")],
                repetition: .harmless,
                weight: .bulk,
                // The address is the permission; that host must not see the token.
                isAuthorized: false,
                answerTimeout: .seconds(120)
            )
        )
        switch response.head.status {
        case 206: return response.body
        case 200:
            return Slice(
                of: response.body,
                skipping: range.lowerBound,
                count: range.upperBound - range.lowerBound
            ).stream
        case 416: return Self.nothing
        case 401, 403, 404, 410:
            throw ProviderError(.sessionLost, detail: "status \(response.head.status)")
        default:
            let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
            let error = BoxFailure(head: response.head, body: body).error
            throw error.isTransient
                ? error
                : ProviderError(.outcomeUnknown(retryAfter: nil), detail: error.detail)
        }
    }

    /// A web link's address as a file.
    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        let id = try BoxID(item.id)
        guard id.kind == .webLink, format == AddressFile.format else {
            throw ProviderError(.unsupported, detail: "Box has no such form of it")
        }
        guard let url = try await api.item(id).url else {
            throw ProviderError(.malformedAnswer, detail: "a web link without an address")
        }
        let bytes = OnePartOnly(AddressFile.content(of: url))
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in bytes.take() }
    }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        let id = try BoxID(item.id)
        guard id.kind == .file else {
            throw ProviderError(.unsupported, detail: "only files have thumbnails")
        }
        let size = [32, 94, 160, 320, 1024].first { $0 >= edge } ?? 1024
        let request = api.get(
            id.path + "/thumbnail.jpg",
            [("min_width", String(size)), ("min_height", String(size))]
        )
        let response = try await api.open(request)
        switch response.head.status {
        case 200: return response.body
        case 202:
            throw ProviderError(
                .outcomeUnknown(retryAfter: response.head.retryAfter),
                detail: "the thumbnail is being made"
            )
        case 300..<400, 400:
            throw ProviderError(.unsupported, detail: "Box has no thumbnail of this file")
        default:
            let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
            throw BoxFailure(head: response.head, body: body).error
        }
    }
}

/// Bytes that are given once.
private final class OnePartOnly: Sendable {
    private let bytes: Mutex<[UInt8]?>

    init(_ bytes: [UInt8]) { self.bytes = Mutex(bytes) }

    func take() -> [UInt8]? {
        bytes.withLock { bytes in
            defer { bytes = nil }
            return bytes
        }
    }
}

/// A part of a whole content: some bytes are let go, then at most so many are handed on.
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
        while rest.withLock({ $0.take > 0 }), let part = try await source.next() {
            let cut = rest.withLock { rest in
                let skipped = min(rest.skip, Int64(part.count))
                rest.skip -= skipped
                let taken = min(rest.take, Int64(part.count) - skipped)
                rest.take -= taken
                return part[Int(skipped)..<Int(skipped + taken)]
            }
            if !cut.isEmpty { return Array(cut) }
        }
        return nil
    }
}
