public import OortModel
import OortTransport

extension DropboxProvider {
    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        guard !range.isEmpty else { return Self.nothing }
        let path = revision.map { "rev:" + $0.rawValue } ?? address(item)
        let response: HTTPStreamedResponse
        do throws(ProviderError) {
            response = try await api.download(
                "files/download",
                DropboxWire.PathArgument(path: path),
                range: range
            )
        } catch {
            // A range behind the end is 416 without JSON.
            if error.detail.hasPrefix("416") { return Self.nothing }
            guard error.kind == .notFound, revision != nil else { throw error }
            _ = try await self.item(item)
            throw ProviderError(.preconditionFailed, detail: error.detail)
        }
        // 200 is the whole content: good when the range begins at its start, and then to be cut.
        guard response.head.status == 206 || range.lowerBound == 0 else {
            throw ProviderError(.malformedAnswer, detail: "a range was asked for and not given")
        }
        return response.head.status == 206
            ? response.body : response.body.prefix(Int64(range.count))
    }

    private static let nothing = ByteStream { () async throws(ProviderError) in nil }

    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        guard let name = DropboxExport.name(of: format) else {
            throw ProviderError(.unsupported, detail: "no export to \(format.mimeType)")
        }
        return try await api.download(
            "files/export",
            DropboxWire.ExportArgument(path: address(item), export_format: name)
        ).body
    }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        let argument = DropboxWire.Thumbnail(
            resource: DropboxWire.Thumbnail.Resource(path: address(item)),
            size: DropboxThumbnails.size(edge: edge)
        )
        return try await api.download("files/get_thumbnail_v2", argument).body
    }
}

extension ByteStream {
    /// The first `count` bytes.
    fileprivate func prefix(_ count: Int64) -> ByteStream {
        let cutter = Cutter(left: count)
        return ByteStream { () async throws(ProviderError) in
            guard await cutter.left > 0, let part = try await self.next() else { return nil }
            return await cutter.cut(part)
        }
    }
}

/// How much of a stream is still wanted.
private actor Cutter {
    private(set) var left: Int64

    init(left: Int64) { self.left = left }

    func cut(_ part: [UInt8]) -> [UInt8] {
        let wanted = Array(part.prefix(Int(clamping: left)))
        left -= Int64(wanted.count)
        return wanted
    }
}
