import OortModel
import OortTransport

/// The trash of a space at an Infinite Scale or OpenCloud; of a deleted folder only the folder itself is an
/// entry.
///
/// An entry comes back to any free place of the space, with its id and its versions (reva, `trashbin.go`).
struct InfiniteScaleTrash: Trash {
    let client: WebDAVClient

    private static let properties: [XMLName] = [
        .dav("resourcetype"), .dav("getcontentlength"), .owncloud("trashbin-original-filename"),
        .owncloud("trashbin-original-location"), .owncloud("trashbin-delete-timestamp"),
    ]

    private func url(_ names: [String]) -> String {
        let space = client.address.space?.id ?? ""
        return client.address.program(["dav", "spaces", "trash-bin", space] + names)
    }

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        let (responses, _) = try await client.api.look(
            at: url([]) + "/",
            depth: 1,
            properties: Self.properties
        )
        return TrashPage(entries: responses.compactMap { entry($0) }, next: nil)
    }

    private func entry(_ response: DAVResponse) -> TrashEntry? {
        guard let id = PercentEncoding.names(ofReference: response.href)?.last,
            let name = response.text(.owncloud("trashbin-original-filename")),
            let location = response.text(.owncloud("trashbin-original-location"))
        else { return nil }
        let parts = location.parts(between: "/").map(String.init).filter { !$0.isEmpty }
        let own = client.address.folder
        guard parts.count > own.count, zip(parts, own).allSatisfy({ $0.isSameText(as: $1) })
        else { return nil }
        var entry = TrashEntry(id: id, name: name, path: RemotePath(Array(parts[own.count...])))
        let isFolder =
            response.properties[.dav("resourcetype")]?.child(.dav("collection")) != nil
        entry.kind = isFolder ? .folder : .file
        entry.deletedTime = response.text(.owncloud("trashbin-delete-timestamp"))
            .flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
        if !isFolder {
            entry.size = response.text(.dav("getcontentlength")).flatMap { Int64($0) }
        }
        return entry
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        let wished = place.folder.path.appending(place.name)
        try client.check(wished)
        try client.checkDestination(wished)
        let isFolder = entry.kind == .folder
        var request = HTTPRequest(
            method: "MOVE",
            url: url([entry.id]),
            headers: [client.api.destination(wished, isFolder: isFolder), ("Overwrite", "F")],
            repetition: .onlyIfNotDone
        )
        request.answerTimeout = .seconds(600)
        do throws(ProviderError) {
            _ = try await client.api.send(request, about: .item)
        } catch {
            switch error.kind {
            case .preconditionFailed: throw error.asKind(.nameTaken)
            case .badRequest, .outcomeUnknown, .malformedAnswer:
                if let parent = wished.parent, try await client.isMissing(parent) {
                    throw error.asKind(.parentNotFound)
                }
                guard error.isOutcomeUnknown, try await isGone(entry) else { throw error }
                // It has left the trash, and nobody else empties that to this place.
                _ = try await client.afterwards(wished, isFolder ? .folder : .file)
            default: throw error
            }
        }
    }

    /// Whether an entry is in the trash no more.
    private func isGone(_ entry: TrashEntry) async throws(ProviderError) -> Bool {
        let all = try await entries(below: ItemReference(id: ItemID(""), path: .root), page: nil)
        return !all.entries.contains { $0.id.isSameText(as: entry.id) }
    }
}
