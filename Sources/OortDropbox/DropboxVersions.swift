import OortModel
import OortTransport

/// A file's revisions at Dropbox, which follow it over moves.
struct DropboxVersions: VersionHistory {
    let provider: DropboxProvider

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        // By id there are no further pages: the newest hundred are all.
        let answer: DropboxWire.Revisions = try await provider.api.call(
            "files/list_revisions",
            DropboxWire.ListRevisions(path: provider.address(item), mode: "id")
        )
        let versions = answer.entries.enumerated().compactMap { index, entry in
            entry.rev.map {
                ItemVersion(
                    id: $0,
                    size: entry.size?.bytes,
                    modifiedTime: (entry.client_modified ?? entry.server_modified)
                        .flatMap { Timestamp(rfc3339: $0) },
                    isCurrent: index == 0 && answer.is_deleted != true
                )
            }
        }
        return VersionPage(versions: versions, next: nil)
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        guard version.size != 0 else { return ByteStream { () async throws(ProviderError) in nil } }
        return try await provider.api.download(
            "files/download",
            DropboxWire.PathArgument(path: "rev:" + version.id)
        ).body
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        // It takes no id, and would make a file at the place that another has left.
        let metadata: DropboxWire.Metadata = try await provider.api.call(
            "files/get_metadata",
            DropboxWire.PathArgument(path: provider.address(item))
        )
        guard let path = metadata.path_lower, metadata.tag == "file" else {
            throw ProviderError(.notAFile, detail: "not a file any more")
        }
        guard current == nil || metadata.rev == current?.rawValue else {
            throw ProviderError(.preconditionFailed, detail: "another revision is current")
        }
        let _: DropboxWire.Metadata = try await provider.api.call(
            "files/restore",
            DropboxWire.Restore(path: path, rev: version.id)
        )
    }
}
