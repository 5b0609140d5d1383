import OortModel
import OortTransport

/// A file's versions at Box, which follow it over moves; only paid plans keep earlier ones.
struct BoxVersions: VersionHistory {
    let provider: BoxProvider

    func versions(
        of item: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> VersionPage {
        let id = try provider.fileID(item)
        let offset = page.flatMap { Int($0.rawValue) } ?? 0
        var versions: [ItemVersion] = []
        if page == nil {
            // The list is of the earlier ones only.
            let current = try await provider.item(item)
            if let revision = current.rev {
                versions.append(
                    ItemVersion(
                        id: revision.rawValue,
                        size: current.size,
                        modifiedTime: current.clientModifiedTime,
                        isCurrent: true
                    )
                )
            }
        }
        let answer: BoxWire.Versions
        do throws(ProviderError) {
            answer = try await provider.api.send(
                provider.api.get(
                    id.path + "/versions",
                    [
                        ("fields", "id,size,created_at,modified_at,trashed_at,modified_by"),
                        ("limit", "1000"), ("offset", String(offset)),
                    ]
                )
            )
        } catch {
            // A plan without them.
            guard error.kind == .noPermission, page == nil else { throw error }
            return VersionPage(versions: versions, next: nil)
        }
        versions += answer.entries.compactMap { entry in
            guard entry.trashed_at == nil else { return nil }
            return ItemVersion(
                id: entry.id.text,
                size: entry.size?.value,
                modifiedTime: (entry.modified_at ?? entry.created_at)
                    .flatMap { Timestamp(rfc3339: $0) },
                author: entry.modified_by?.name,
                isCurrent: false
            )
        }
        let end = offset + answer.entries.count
        let total = answer.total_count?.value ?? 0
        let isLast = answer.entries.isEmpty || Int64(end) >= total
        return VersionPage(versions: versions, next: isLast ? nil : PageToken(String(end)))
    }

    func read(
        _ version: ItemVersion,
        of item: ItemReference
    ) async throws(ProviderError) -> ByteStream {
        let id = try provider.fileID(item)
        guard version.size != 0 else { return BoxProvider.nothing }
        return try await provider.read(
            id,
            version: version.id,
            range: 0..<(version.size ?? ReportedSize.largest)
        )
    }

    /// Box makes a copy of the version the newest one, and takes no condition with it.
    func restore(
        _ version: ItemVersion,
        of item: ItemReference,
        current: Revision?
    ) async throws(ProviderError) {
        let id = try provider.fileID(item)
        if let current { _ = try await provider.tag(of: id, guarding: current) }
        struct Promoted: Decodable { var id: BoxText }
        let _: Promoted = try await provider.api.send(
            try provider.api.request(
                "POST",
                provider.api.url(id.path + "/versions/current"),
                BoxWire.Reference(version.id, type: "file_version"),
                repetition: .onlyIfNotDone
            )
        )
    }
}
