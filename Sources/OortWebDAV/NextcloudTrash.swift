import OortModel
import OortTransport

/// The trash of a person's Nextcloud; of a deleted folder only the folder itself is an entry.
///
/// An entry's id is its name there, `NAME.dSECONDS`, its mark the number that the item had and keeps. What came from outside of the account's folder is
/// left out.
struct NextcloudTrash: Trash {
    let client: WebDAVClient

    private static let properties: [XMLName] = [
        .dav("resourcetype"), .dav("getcontentlength"), .owncloud("size"),
        .nextcloud("trashbin-filename"), .nextcloud("trashbin-original-location"),
        .nextcloud("trashbin-deletion-time"), .owncloud("fileid"),
    ]

    /// The address of what lies in the trash.
    func url(_ names: [String]) -> String {
        program(["trash"] + names)
    }

    /// The address of something in the person's trash program.
    func program(_ names: [String]) -> String {
        let person = client.address.userID ?? client.address.user ?? ""
        return client.address.program(["remote.php", "dav", "trashbin", person] + names)
    }

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        let responses: [DAVResponse]
        do throws(ProviderError) {
            (responses, _) = try await client.api.look(
                at: url([]) + "/",
                depth: 1,
                properties: Self.properties
            )
        } catch {
            guard error.kind == .notFound else { throw error }
            throw ProviderError(.unsupported, detail: "the server's trash is switched off")
        }
        return TrashPage(entries: responses.compactMap { entry($0) }, next: nil)
    }

    private func entry(_ response: DAVResponse) -> TrashEntry? {
        guard let id = PercentEncoding.names(ofReference: response.href)?.last,
            let name = response.text(.nextcloud("trashbin-filename")),
            let location = response.text(.nextcloud("trashbin-original-location"))
        else { return nil }
        let parts = location.parts(between: "/").map(String.init).filter { !$0.isEmpty }
        let own = client.address.folder
        guard parts.count > own.count,
            zip(parts, own).allSatisfy({ $0.isSameText(as: $1) })
        else { return nil }
        var entry = TrashEntry(id: id, name: name, path: RemotePath(Array(parts[own.count...])))
        entry.mark = CloudItem(response).number
        let isFolder =
            response.properties[.dav("resourcetype")]?.child(.dav("collection")) != nil
        entry.kind = isFolder ? .folder : .file
        entry.deletedTime = response.text(.nextcloud("trashbin-deletion-time"))
            .flatMap { Int64($0) }.map { Timestamp(seconds: $0) }
        if !isFolder {
            let size = response.text(.dav("getcontentlength")) ?? response.text(.owncloud("size"))
            entry.size = size.flatMap { Int64($0) }
        }
        return entry
    }
}
