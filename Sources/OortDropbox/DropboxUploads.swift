import Foundation
public import OortModel
import OortTransport

extension DropboxProvider {
    public func upload(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> Item {
        do throws(ProviderError) {
            let metadata =
                upload.size <= traits.largestSimpleUpload && upload.session == nil
                ? try await simply(upload, observer: observer)
                : try await inSession(upload, observer: observer)
            return try verified(metadata, upload)
        } catch {
            throw await explain(error, upload)
        }
    }

    /// All modes do nothing when the same bytes are there already; but a new file may be elsewhere by the
    /// time that it is sent again, if another client moved it.
    private func simply(
        _ upload: Upload,
        observer: any UploadObserver
    ) async throws(ProviderError) -> DropboxWire.Metadata {
        var commit = commit(upload)
        commit.content_hash = upload.hash.value
        let body: HTTPRequest.Body =
            upload.size == 0 ? .bytes([]) : .content(upload.content, 0..<upload.size)
        return try await api.upload(
            "files/upload",
            commit,
            body: body,
            repetition: commit.mode == .add ? .onlyIfNotDone : .harmless
        ) { observer.sent($0) }
    }

    func commit(_ upload: Upload) -> DropboxWire.Commit {
        let path: String
        let mode: DropboxWire.Mode
        switch upload.target {
        case .create(let parent, let name, _):
            path = address(of: name, in: parent)
            mode = .add
        case .replace(let item, let revision):
            path = address(item)
            mode = revision.map { .update($0.rawValue) } ?? .overwrite
        }
        return DropboxWire.Commit(
            path: path,
            mode: mode,
            client_modified: upload.modifiedTime?.rfc3339(.seconds)
        )
    }

    /// The item of an answer whose content is what was sent.
    func verified(
        _ metadata: DropboxWire.Metadata,
        _ upload: Upload
    ) throws(ProviderError) -> Item {
        let item = try item(metadata)
        guard item.contentHash == upload.hash else {
            throw ProviderError(
                .contentDamaged,
                detail: "the service has another content hash",
                item: item
            )
        }
        return item
    }

    /// A conflict means a taken name or a stale revision, by what was asked for.
    func explain(_ error: ProviderError, _ upload: Upload) async -> ProviderError {
        switch (upload.target, error.kind) {
        case (.create(let parent, _, _), _): return await explain(error, parent: parent)
        case (.replace(let item, _), .nameTaken), (.replace(let item, _), .nameRefused),
            (.replace(let item, _), .notAFolder), (.replace(let item, _), .badRequest):
            do throws(ProviderError) {
                _ = try await self.item(item)
                return error.kind == .nameTaken
                    ? ProviderError(.preconditionFailed, detail: error.detail) : error
            } catch let found {
                return found.kind == .notFound ? found : error
            }
        default: return error
        }
    }
}

extension DropboxErrors {
    /// Whether a session does not take more because it is closed.
    static func isClosed(_ error: ProviderError) -> Bool {
        error.detail.hasPrefix("409 closed ")
    }

    /// Whether a session is not there (any more).
    static func isSessionGone(_ error: ProviderError) -> Bool {
        ["409 not_found ", "409 closed ", "409 incorrect_offset "]
            .contains { error.detail.hasPrefix($0) }
    }
}
