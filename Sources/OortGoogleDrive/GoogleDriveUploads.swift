import Foundation
public import OortModel
import OortTransport

/// What it takes to go on with an upload session; its URI is a secret.
struct DriveSession: Codable {
    var uri: String
    /// The item that comes of it, where it is known beforehand.
    var id: String
    /// Whether v2 was asked, which answers in its own words.
    var isV2: Bool

    init(uri: String, id: String, isV2: Bool) {
        self.uri = uri
        self.id = id
        self.isV2 = isV2
    }

    init?(_ session: UploadSession) {
        guard let value = try? JSONDecoder().decode(Self.self, from: Data(session.state.utf8))
        else { return nil }
        self = value
    }

    func session(confirmed: Int64, expires: Timestamp?) throws(ProviderError) -> UploadSession {
        UploadSession(
            state: String(decoding: try GoogleDriveAPI.json(self), as: UTF8.self),
            confirmedBytes: confirmed,
            expires: expires
        )
    }
}

extension GoogleDriveProvider {
    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        let file: DriveFile
        switch upload.target {
        case .create(let parent, _, let reservedID):
            try refuseSynthetic(parent)
            let id = try await idForCreation(reservedID)
            file = try await create(upload, id: id, parent: parent, observer)
        case .replace(let item, let revision):
            file = try await replace(item, revision, upload, observer)
        }
        let sent: DriveFile
        do throws(ProviderError) { sent = try await repaired(file, upload, observer) } catch {
            throw error.asUnknownOutcome
        }
        if case .create(let parent, _, _) = upload.target {
            return try await created(sent, in: parent)
        }
        return sent.item(parent: sent.parents?.first.map { ItemID($0) })
    }

    /// Replaces content that arrived damaged by the right one at once, while only we know its revision:
    /// first in the same way as before, then by a session.
    private func repaired(
        _ file: DriveFile,
        _ upload: Upload,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> DriveFile {
        var last = file
        var again = upload
        again.session = nil
        for bySession in [false, true] {
            if Self.isContent(of: upload, last) { return last }
            guard let damaged = last.headRevisionId else {
                throw ProviderError(.contentDamaged, detail: "no content came of the upload")
            }
            last = try await replace(
                ItemReference(id: ItemID(last.id), path: .root),
                Revision(damaged),
                again,
                bySession: bySession,
                observer
            )
        }
        guard Self.isContent(of: upload, last) else {
            throw ProviderError(
                .contentDamaged,
                detail: "Drive holds other bytes than were sent",
                item: last.item(parent: last.parents?.first.map { ItemID($0) })
            )
        }
        return last
    }

    static func isContent(of upload: Upload, _ file: DriveFile) -> Bool {
        file.md5Checksum == upload.hash.value && file.size?.bytes == upload.size
    }

    // MARK: New items

    private func create(
        _ upload: Upload,
        id: ItemID,
        parent: ItemReference,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> DriveFile {
        guard case .create(_, let name, _) = upload.target else {
            throw ProviderError(.badRequest, detail: "not a new item")
        }
        let metadata = try GoogleDriveAPI.json(
            DriveMetadata(
                id: id.rawValue,
                name: name,
                parents: [parent.id.rawValue],
                mimeType: Self.mediaType(upload),
                modifiedTime: Self.spelled(upload.modifiedTime)
            )
        )
        let answer: UploadAnswer
        if isSimple(upload) {
            let url = api.url(
                "/upload/drive/v3/files",
                [("uploadType", "multipart")] + GoogleDriveAPI.fileQuery
            )
            answer = try await sendWhole(
                upload,
                method: "POST",
                url: url,
                metadata: metadata,
                ifMatch: nil,
                observer
            )
        } else {
            let url = api.url(
                "/upload/drive/v3/files",
                [("uploadType", "resumable")] + GoogleDriveAPI.fileQuery
            )
            answer = try await sendInParts(
                upload,
                observer,
                opening: SessionOpening(
                    method: "POST",
                    url: url,
                    metadata: metadata,
                    ifMatch: nil,
                    id: id,
                    isV2: false,
                    revision: nil
                )
            )
        }
        switch answer {
        case .file(let file): return file
        case .refused(let failure):
            let file = try await fileCreatedBefore(failure, id: id)
            guard Self.isContent(of: upload, file), file.trashed != true else {
                throw ProviderError(
                    .preconditionFailed,
                    detail: "an earlier try's item has changed since"
                )
            }
            return file
        }
    }

    // MARK: New revisions

    /// v3 has no precondition, so this one call uses v2, whose ETag changes with any change of the item:
    /// when it fails, the head revision shows whether the content changed.
    private func replace(
        _ item: ItemReference,
        _ revision: Revision?,
        _ upload: Upload,
        bySession: Bool = false,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> DriveFile {
        if upload.session != nil, let file = try await continued(upload, observer) { return file }
        var hasSent = false
        for _ in 0..<5 {
            let current: DriveFileV2
            do throws(ProviderError) { current = try await api.metadataV2(item.id) } catch {
                // What was refused may have been the repetition of what was done.
                throw hasSent ? error.asUnknownOutcome : error
            }
            if current.labels?.trashed == true { throw Self.inTrash }
            guard current.headRevisionId == revision?.rawValue, let etag = current.etag else {
                // An earlier try of ours, of which the answer was lost, looks like this.
                if Self.isContent(of: upload, current.v3) { return current.v3 }
                throw ProviderError(.preconditionFailed, detail: "Drive has a newer revision")
            }
            // PUT replaces all metadata, so what is to stay goes along; the ETag guards it.
            let metadata = try GoogleDriveAPI.json(
                DriveMetadataV2(
                    title: current.title,
                    description: current.description,
                    mimeType: Self.mediaType(upload) ?? current.mimeType,
                    modifiedDate: Self.spelled(upload.modifiedTime)
                )
            )
            let path = "/upload/drive/v2/files/\(GoogleDriveAPI.encoded(item.id.rawValue))"
            let query = [
                ("supportsAllDrives", "true"),
                ("setModifiedDate", upload.modifiedTime == nil ? "false" : "true"),
                ("fields", DriveFileV2.fields),
            ]
            let answer: UploadAnswer
            hasSent = true
            // Nothing can be sent in no parts.
            if upload.size == 0 || (isSimple(upload) && !bySession) {
                answer = try await sendWhole(
                    upload,
                    method: "PUT",
                    url: api.url(path, [("uploadType", "multipart")] + query),
                    metadata: metadata,
                    ifMatch: etag,
                    observer
                )
            } else {
                var fresh = upload
                fresh.session = nil
                answer = try await sendInParts(
                    fresh,
                    observer,
                    opening: SessionOpening(
                        method: "PUT",
                        url: api.url(path, [("uploadType", "resumable")] + query),
                        metadata: metadata,
                        ifMatch: etag,
                        id: item.id,
                        isV2: true,
                        revision: revision
                    )
                )
            }
            switch answer {
            case .file(let file): return file
            case .refused(let failure) where failure.status == 412: continue
            case .refused(let failure): throw failure.error
            }
        }
        throw ProviderError(.locked, detail: "the item changes faster than we can ask")
    }

    /// Goes on with an interrupted session of a replacement.
    private func continued(
        _ upload: Upload,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> DriveFile? {
        guard case .replace(_, let revision) = upload.target else { return nil }
        switch try await sendInParts(upload, observer, opening: nil, replacing: revision) {
        case .file(let file): return file
        case .refused(let failure) where failure.status == 412: return nil
        case .refused(let failure): throw failure.error
        }
    }

    // MARK: One request

    enum UploadAnswer {
        case file(DriveFile)
        case refused(DriveFailure)
    }

    private func isSimple(_ upload: Upload) -> Bool {
        upload.size == 0 || (upload.size <= traits.largestSimpleUpload && upload.session == nil)
    }

    /// Metadata and content in one request.
    ///
    /// It can be repeated: a create has its id, a replacement its precondition.
    private func sendWhole(
        _ upload: Upload,
        method: String,
        url: String,
        metadata: [UInt8],
        ifMatch: String?,
        _ observer: any UploadObserver
    ) async throws(ProviderError) -> UploadAnswer {
        let boundary = MultipartBoundary()
        let type = Self.contentType(upload)
        let prefix =
            Array("--\(boundary)\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".utf8)
            + metadata + Array("\r\n--\(boundary)\r\nContent-Type: \(type)\r\n\r\n".utf8)
        var request = HTTPRequest(
            method: method,
            url: url,
            headers: [("Content-Type", "multipart/related; boundary=\(boundary)")],
            body: .framed(
                prefix: prefix,
                upload.content,
                0..<upload.size,
                suffix: Array("\r\n--\(boundary)--\r\n".utf8)
            ),
            repetition: .harmless,
            weight: .bulk,
            answerTimeout: .seconds(300)
        )
        if let ifMatch { request.headers.append(("If-Match", ifMatch)) }
        let before = Int64(prefix.count)
        let size = upload.size
        request.onSent = { observer.sent(min(max($0 - before, 0), size)) }
        switch try await api.perform(request) {
        case .success(let response): return .file(try decode(response, isV2: ifMatch != nil))
        case .refused(let failure): return .refused(failure)
        }
    }

    func decode(_ response: HTTPResponse, isV2: Bool) throws(ProviderError) -> DriveFile {
        if isV2 {
            let file: DriveFileV2 = try api.decode(response)
            return file.v3
        }
        return try api.decode(response)
    }

    /// The content's type, where anything is known of it; never one of Drive's own, which would
    /// convert the content.
    private static func mediaType(_ upload: Upload) -> String? {
        guard let type = upload.mimeType, type != unknownType,
            !type.hasPrefix(DriveType.nativePrefix),
            type.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return type
    }

    /// The type that goes along with the bytes, whole or in parts; of an unknown one Drive finds out
    /// what it is.
    static func contentType(_ upload: Upload) -> String { mediaType(upload) ?? unknownType }

    private static let unknownType = "application/octet-stream"
}
