import OortModel

/// OneDrive's recycle bin, which Microsoft lets no program list: an item of a personal drive comes back by
/// its id (https://learn.microsoft.com/en-us/graph/api/driveitem-restore).
struct OneDriveUndeletion: Undeletion {
    let provider: OneDriveProvider

    var restoresFolders: Bool { true }

    func restore(
        _ item: ItemID,
        revision: Revision?,
        to place: Placement
    ) async throws(ProviderError) {
        let id = try OneDriveItemID(item)
        let folder = try OneDriveItemID(place.folder.id)
        guard OneDriveSpelling.isPersonal(drive: id.entry.drive) else {
            throw ProviderError(
                .unsupported,
                detail: "only personal drives give back; the recycle bin is on the web page"
            )
        }
        var change = ItemChangeWire()
        change.name = place.name
        change.parentReference = ItemChangeWire.Parent(id: folder.target.item)
        _ = try await provider.api.send(
            provider.api.request("POST", "\(id.entry.path)/restore", json: change),
            about: .item
        )
    }
}
