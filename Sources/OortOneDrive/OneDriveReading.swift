public import OortModel
import OortTransport
import Synchronization

extension OneDriveProvider {
    public func read(
        _ item: ItemReference,
        revision: Revision?,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        let id = try OneDriveItemID(item.id)
        var download = memory.download(of: id.target)
        if let known = download, let revision, known.revision != revision { download = nil }
        var isFresh = false
        // Twice, because an address that was given some time ago may have run out.
        while true {
            let current: OneDriveMemory.Download
            if let download {
                current = download
            } else {
                current = try await freshDownload(of: id)
                isFresh = true
            }
            if let revision, current.revision != revision {
                throw ProviderError(.preconditionFailed, detail: "another revision is current")
            }
            let wanted = range.clamped(to: 0..<current.size)
            guard !wanted.isEmpty else { return ByteStream { () throws(ProviderError) in nil } }
            do throws(ProviderError) {
                return try await stream(wanted, of: id, from: current, revision: revision)
            } catch  where error.kind == .sessionLost && !isFresh {
                memory.forgetDownload(of: id.target)
                download = nil
            } catch  where error.kind == .sessionLost {
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "a new download address was refused: \(error.detail)"
                )
            }
        }
    }

    /// Asks for a file's download address.
    private func freshDownload(
        of id: OneDriveItemID
    ) async throws(ProviderError) -> OneDriveMemory.Download {
        let wire = try await api.item(at: id.target)
        guard OneDriveItems.isFile(wire) else {
            throw ProviderError(.notAFile, detail: "a folder has no content")
        }
        guard wire.malware == nil else {
            throw ProviderError(.contentBlocked, detail: "the service found malware")
        }
        guard
            let download = memory.learnDownload(
                wire,
                at: id.target,
                isShortcut: id.isShortcut
            )
        else {
            throw ProviderError(.malformedAnswer, detail: "a file without a download address")
        }
        return download
    }

    /// The bytes of a range that is not empty.
    ///
    /// - Throws: `.sessionLost` when the address does not work (any longer).
    private func stream(
        _ range: Range<Int64>,
        of id: OneDriveItemID,
        from download: OneDriveMemory.Download,
        revision: Revision?
    ) async throws(ProviderError) -> ByteStream {
        // The address is the permission: personal drives answer 401 to a token.
        var request = HTTPRequest(
            method: "GET",
            url: try api.presigned(download.url),
            repetition: .harmless,
            weight: .bulk,
            isAuthorized: false
        )
        let isWhole = range == 0..<download.size
        if !isWhole {
            request.headers = [("Range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)")]
        }
        let response: HTTPStreamedResponse
        do throws(TransportError) {
            response = try await api.client.stream(request)
        } catch {
            throw ProviderError(error)
        }
        switch response.head.status {
        case 200, 206: break
        case 401, 404, 410:
            throw ProviderError(.sessionLost, detail: "status \(response.head.status)")
        case 416:
            throw ProviderError(.preconditionFailed, detail: "the content is shorter now")
        case let status:
            let body = (try? await response.body.collect(atMost: 1 << 20)) ?? []
            let error = OneDriveErrors.error(
                status: status,
                retryAfter: response.head.retryAfter,
                requestID: nil,
                body: body,
                about: .item
            )
            throw error.kind == .noPermission ? error.asKind(.sessionLost) : error
        }
        if let total = Self.total(response.head), total != download.size {
            throw ProviderError(.preconditionFailed, detail: "the content has another size now")
        }
        if revision != nil {
            try await verify(response.head, of: id, against: download)
        }
        let isCut = response.head.status == 206 || isWhole
        return Slice(
            of: response.body,
            skipping: isCut ? 0 : range.lowerBound,
            count: Int64(range.count)
        ).stream
    }

    /// The address gives whatever is current, so an answer is of the revision only if it says so by
    /// its tag, or if the item still has that revision after the answer began.
    private func verify(
        _ head: HTTPResponseHead,
        of id: OneDriveItemID,
        against download: OneDriveMemory.Download
    ) async throws(ProviderError) {
        if let tag = head.header("ETag"), let known = download.tag, tag == known { return }
        let answer = await RequestPriority.$current.withValue(.attendant) {
            () async -> Result<DriveItemWire, ProviderError> in
            do throws(ProviderError) { return .success(try await api.item(at: id.target)) } catch {
                return .failure(error)
            }
        }
        let wire = try answer.get()
        let current = OneDriveItems.revision(
            wire,
            in: id.target.drive,
            isShortcut: id.isShortcut
        )
        memory.learnDownload(wire, at: id.target, isShortcut: id.isShortcut)
        guard current == download.revision else {
            throw ProviderError(.preconditionFailed, detail: "the content changed meanwhile")
        }
    }

    /// The content's whole size, from a ranged answer.
    private static func total(_ head: HTTPResponseHead) -> Int64? {
        guard head.status == 206, let range = head.header("Content-Range"),
            let slash = range.lastIndex(of: "/")
        else { return nil }
        return Int64(range[range.index(after: slash)...])
    }

    public func export(
        _ item: ItemReference,
        to format: ExportFormat
    ) async throws(ProviderError) -> ByteStream {
        throw ProviderError(.unsupported, detail: "OneDrive has no documents without content")
    }

    public func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        let id = try OneDriveItemID(item.id)
        let sets = try await api.send(
            api.request("GET", "\(id.target.path)/thumbnails"),
            for: ThumbnailSetsWire.self,
            about: .item
        )
        let set = sets.value.first
        let pictures =
            switch edge {
            case ...96: [set?.small, set?.medium, set?.large]
            case ...176: [set?.medium, set?.large, set?.small]
            default: [set?.large, set?.medium, set?.small]
            }
        guard let url = pictures.lazy.compactMap({ $0?.url }).first else {
            throw ProviderError(.unsupported, detail: "no thumbnail of this item")
        }
        let address = try api.presigned(url)
        let response: HTTPStreamedResponse
        do throws(TransportError) {
            response = try await api.client.stream(
                HTTPRequest(
                    method: "GET",
                    url: address,
                    repetition: .harmless,
                    weight: .bulk,
                    isAuthorized: false
                )
            )
        } catch {
            throw ProviderError(error)
        }
        guard response.head.status == 200 else {
            throw ProviderError(
                .outcomeUnknown(retryAfter: response.head.retryAfter),
                detail: "a thumbnail was answered with status \(response.head.status)"
            )
        }
        return response.body
    }
}

/// A part of a stream: some bytes are let go, then exactly so many are handed on.
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
