import OortModel
import OortTransport

/// Drive's trash: of a trashed folder and all below only the folder itself is an entry.
///
/// What lies in a shared drive has that drive's trash; a page token is `DRIVE|TOKEN`, DRIVE empty for the
/// person's own items, and TOKEN empty for the first page.
struct GoogleDriveTrash: Trash {
    let provider: GoogleDriveProvider

    private struct Trashed: Decodable, Sendable {
        var id: String
        var name: String?
        var mimeType: String?
        var parents: [String]?
        var size: ReportedSize?
        var trashedTime: String?
        var modifiedTime: String?
        var explicitlyTrashed: Bool?
        var ownedByMe: Bool?
        var driveId: String?
    }

    private struct TrashedList: Decodable, Sendable {
        var files: [Trashed]?
        var nextPageToken: String?
    }

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        guard let parts = (page?.rawValue ?? "|").cut(atFirst: "|") else {
            throw ProviderError(.badRequest, detail: "not a page of Drive's trash")
        }
        let (drive, token) = (String(parts.before), String(parts.after))
        var query = [
            ("q", "trashed=true"), ("pageSize", "1000"), ("spaces", "drive"),
            ("supportsAllDrives", "true"), ("includeItemsFromAllDrives", "true"),
            (
                "fields",
                "nextPageToken,files(id,name,mimeType,parents,size,trashedTime,modifiedTime,"
                    + "explicitlyTrashed,ownedByMe,driveId)"
            ),
        ]
        if !drive.isEmpty { query += [("corpora", "drive"), ("driveId", drive)] }
        if !token.isEmpty { query.append(("pageToken", token)) }
        let answer: TrashedList = try await provider.api.get("/drive/v3/files", query)
        let entries = (answer.files ?? []).filter {
            // What others trashed of theirs is not ours to bring back.
            $0.explicitlyTrashed == true && ($0.ownedByMe ?? true || $0.driveId != nil)
        }.map { Self.entry($0) }
        return TrashPage(
            entries: entries,
            next: try await next(after: drive, token: answer.nextPageToken)
        )
    }

    private func next(
        after drive: String,
        token: String?
    ) async throws(ProviderError) -> PageToken? {
        if let token { return PageToken("\(drive)|\(token)") }
        let drives = try await provider.api.drives().map(\.id)
        let done = drives.firstIndex(of: drive)
        guard drive.isEmpty || done != nil else { return nil }
        let index = done.map { $0 + 1 } ?? 0
        return index < drives.count ? PageToken("\(drives[index])|") : nil
    }

    private static func entry(_ file: Trashed) -> TrashEntry {
        var entry = TrashEntry(id: file.id, name: file.name ?? "Untitled")
        entry.folder = file.parents?.first.map { ItemID($0) }
        entry.item = ItemID(file.id)
        entry.deletedTime = file.trashedTime.flatMap { Timestamp(rfc3339: $0) }
        switch file.mimeType {
        case DriveType.folder: entry.kind = .folder
        case DriveType.shortcut: entry.kind = .shortcut
        case let type? where type.hasPrefix(DriveType.nativePrefix): entry.kind = .nativeDocument
        default:
            entry.kind = .file
            entry.size = file.size?.bytes
        }
        return entry
    }

    /// One call for all of it: out of the trash, to its place and under its name; absolute, so it can
    /// be repeated.
    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        try provider.refuseSynthetic(place.folder)
        let file = try await provider.api.metadata(ItemID(entry.id))
        var query = GoogleDriveAPI.fileQuery
        let folder = place.folder.id.rawValue
        if file.parents?.first != folder {
            query.append(("addParents", folder))
            if let old = file.parents?.first { query.append(("removeParents", old)) }
        }
        let restored: DriveFile = try await provider.api.send(
            try provider.api.request(
                "PATCH",
                provider.api.file(ItemID(entry.id)),
                query,
                DriveMetadata(
                    name: place.name,
                    modifiedTime: file.modifiedTime,
                    trashed: false
                ),
                repetition: .harmless
            )
        )
        guard restored.trashed != true else {
            throw ProviderError(.parentNotFound, detail: "the folder is in Drive's trash")
        }
    }
}
