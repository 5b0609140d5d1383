import OortModel
import OortTransport

/// The revisions of a file's content at Drive, kept for 30 days or up to 100 of them.
///
/// Drive hands out an earlier one only when it is kept for ever, and makes none current again.
struct GoogleDriveVersions: VersionHistory {
    let provider: GoogleDriveProvider

    private struct Head: Decodable, Sendable {
        var mimeType: String?
        var headRevisionId: String?
    }

    private struct DriveRevision: Decodable, Sendable {
        struct User: Decodable, Sendable { var displayName: String? }
        var id: String
        var modifiedTime: String?
        var size: ReportedSize?
        var lastModifyingUser: User?
    }

    private struct DriveRevisionList: Decodable, Sendable {
        var revisions: [DriveRevision]?
        var nextPageToken: String?
    }

    private struct Kept: Codable, Sendable { var keepForever: Bool? }

    var restoresAtService: Bool { false }

    var readingCost: String? {
        "Google Drive keeps an earlier version for ever once it is read; its size counts in the room "
            + "of the account from then on."
    }

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        try provider.refuseSynthetic(item)
        let head: Head = try await provider.api.get(
            provider.api.file(item.id),
            [("supportsAllDrives", "true"), ("fields", "mimeType,headRevisionId")]
        )
        guard let current = head.headRevisionId else {
            throw ProviderError(
                head.mimeType == DriveType.folder ? .notAFile : .unsupported,
                detail: "Drive keeps versions of files with content only"
            )
        }
        // Drive lists the oldest first.
        var all: [ItemVersion] = []
        var token: String?
        var walk = PageWalk()
        repeat {
            if let token { try walk.goOn(to: token) }
            var query = [
                ("pageSize", "1000"),
                (
                    "fields",
                    "nextPageToken,revisions(id,modifiedTime,size,lastModifyingUser(displayName))"
                ),
            ]
            if let token { query.append(("pageToken", token)) }
            let answer: DriveRevisionList = try await provider.api.get(
                provider.api.file(item.id, "/revisions"),
                query
            )
            all += (answer.revisions ?? []).map { revision in
                ItemVersion(
                    id: revision.id,
                    size: revision.size?.bytes,
                    modifiedTime: revision.modifiedTime.flatMap { Timestamp(rfc3339: $0) },
                    author: revision.lastModifyingUser?.displayName,
                    isCurrent: revision.id == current
                )
            }
            token = answer.nextPageToken
        } while token != nil
        return VersionPage(versions: all.reversed(), next: nil)
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        let revision = "/revisions/\(GoogleDriveAPI.encoded(version.id))"
        if !version.isCurrent {
            let _: Kept = try await provider.api.send(
                try provider.api.request(
                    "PATCH",
                    provider.api.file(item.id, revision),
                    [("fields", "keepForever")],
                    Kept(keepForever: true),
                    repetition: .harmless
                )
            )
        }
        guard version.size != 0 else { return ByteStream { nil } }
        return try await provider.api.download(
            provider.api.url(provider.api.file(item.id, revision), [("alt", "media")])
        ).body
    }

    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        throw ProviderError(.unsupported, detail: "Drive makes no earlier version current again")
    }
}
