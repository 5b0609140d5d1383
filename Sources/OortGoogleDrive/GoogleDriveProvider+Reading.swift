import Foundation
public import OortModel
import OortTransport
import Synchronization

extension GoogleDriveProvider {
    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard !range.isEmpty else { return ByteStream { nil } }
        guard let revision else { return try await bytes(of: item, range) }
        // Drive cannot be asked for a revision, and a download gives the one that is current when it
        // is answered. So the item is asked after that: the download may have been tried again
        // meanwhile. It is asked beside the download, too: a first part is given out before the second
        // answer, and a program that has read in the file shall not get it of another content. Both take
        // no turn of their own, since the body waits for them.
        async let beside = isCurrent(revision, of: item.id)
        let body = try await bytes(of: item, range)
        try await beside.get()
        return body.confirmed { await self.isCurrent(revision, of: item.id) }
    }

    /// The bytes of a range of what is current.
    private func bytes(
        of item: ItemReference,
        _ range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let response = try await open(item, range)
        guard response.head.status != 416 else { return ByteStream { nil } }
        let start = try Self.start(of: response.head, asked: range.lowerBound)
        return response.body.cut(skipping: range.lowerBound - start, count: Int64(range.count))
    }

    private func open(
        _ item: ItemReference,
        _ range: Range<Int64>
    ) async throws(ProviderError) -> HTTPStreamedResponse {
        let url = api.url(
            api.file(item.id),
            [("alt", "media"), ("supportsAllDrives", "true")]
        )
        let last = range.upperBound == .max ? "" : String(range.upperBound - 1)
        return try await api.download(
            url,
            headers: [("Range", "bytes=\(range.lowerBound)-\(last)")]
        )
    }

    /// Asks whether a revision is current.
    private func isCurrent(
        _ revision: Revision,
        of id: ItemID
    ) async -> Result<Void, ProviderError> {
        struct Head: Decodable { var headRevisionId: String? }
        return await RequestPriority.$current.withValue(.attendant) {
            do throws(ProviderError) {
                let head: Head = try await api.get(
                    api.file(id),
                    [("supportsAllDrives", "true"), ("fields", "headRevisionId")]
                )
                guard head.headRevisionId == revision.rawValue else {
                    return .failure(
                        .init(.preconditionFailed, detail: "Drive has a newer revision")
                    )
                }
                return .success(())
            } catch { return .failure(error) }
        }
    }

    /// Where the body begins: the whole content at 200, what Content-Range says at 206.
    private static func start(
        of head: HTTPResponseHead,
        asked: Int64
    ) throws(ProviderError) -> Int64 {
        guard head.status == 206 else { return 0 }
        guard let field = head.header("Content-Range"), field.hasPrefix("bytes "),
            let start = field.dropFirst(6).split(separator: "-").first.flatMap({ Int64($0) }),
            start <= asked
        else { throw ProviderError(.malformedAnswer, detail: "a part from an unasked place") }
        return start
    }

    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        if format == AddressFile.format {
            let page = try await GoogleDriveWebPages(provider: self).page(of: item, isFolder: false)
            let part = Mutex<[UInt8]?>(AddressFile.content(of: page))
            return ByteStream { () async throws(ProviderError) -> [UInt8]? in
                part.withLock { part in
                    defer { part = nil }
                    return part
                }
            }
        }
        let url = api.url(api.file(item.id, "/export"), [("mimeType", format.mimeType)])
        do throws(ProviderError) {
            return try await api.download(url).body
        } catch {
            // Above 10 MB only the links hand it out.
            switch error.kind {
            case .tooLarge: return try await exportByLink(item, format)
            case .badRequest, .contentBlocked:
                throw ProviderError(.unsupported, detail: error.detail)
            default: throw error
            }
        }
    }

    private func exportByLink(
        _ item: ItemReference,
        _ format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        let links: DriveLinks = try await api.get(
            api.file(item.id),
            [("supportsAllDrives", "true"), ("fields", "exportLinks")]
        )
        guard let link = links.exportLinks?[format.mimeType] else {
            throw ProviderError(.unsupported, detail: "no link to this form")
        }
        return try await api.download(link).body
    }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        let links: DriveLinks = try await api.get(
            api.file(item.id),
            [("supportsAllDrives", "true"), ("fields", "thumbnailLink")]
        )
        guard let link = links.thumbnailLink else {
            throw ProviderError(.unsupported, detail: "Drive has no picture of it")
        }
        return try await api.download(Self.resized(link, edge: edge)).body
    }

    /// Picture links end in `=s220`, the longer edge in pixels.
    static func resized(_ link: String, edge: Int) -> String {
        guard let equals = link.lastIndex(of: "="),
            link[equals...].dropFirst().first == "s",
            link[equals...].dropFirst(2).allSatisfy({ $0.isASCII && $0.isNumber })
        else { return link }
        return link[..<equals] + "=s\(max(edge, 16))"
    }
}

extension ByteStream {
    /// The `count` bytes after the first `skipping`, fewer where the stream ends earlier.
    fileprivate func cut(skipping: Int64, count: Int64) -> ByteStream {
        let window = Mutex((toSkip: skipping, left: count))
        return ByteStream { () async throws(ProviderError) -> [UInt8]? in
            while window.withLock({ $0.left > 0 }), let part = try await next() {
                let kept = window.withLock { window -> ArraySlice<UInt8> in
                    let skipped = min(Int64(part.count), window.toSkip)
                    window.toSkip -= skipped
                    let kept = part.dropFirst(Int(skipped)).prefix(
                        Int(clamping: window.left)
                    )
                    window.left -= Int64(kept.count)
                    return kept
                }
                if !kept.isEmpty { return Array(kept) }
            }
            return nil
        }
    }
}
