import OortModel
import OortTransport

/// Box's trash, which keeps deleted items for 30 days unless an administrator set another time; each item
/// keeps its id, a folder everything that lay in it.
struct BoxTrash: Trash, Undeletion {
    let provider: BoxProvider

    private static let fields =
        "type,id,name,size,parent,trashed_at,item_status,file_version,modified_at"

    let restoresFolders = true

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        var query = [("fields", Self.fields), ("limit", "1000"), ("usemarker", "true")]
        if let page { query.append(("marker", page.rawValue)) }
        let answer: BoxWire.Listing = try await provider.api.send(
            provider.api.get("folders/trash/items", query)
        )
        return TrashPage(
            entries: (answer.entries ?? []).compactMap { $0.item.flatMap { TrashEntry($0) } },
            next: answer.next.map { PageToken($0) }
        )
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        try await restore(try BoxID(ItemID(entry.id)), to: place)
    }

    func restore(
        _ item: ItemID,
        revision: Revision?,
        to place: Placement
    ) async throws(ProviderError) {
        try await restore(try BoxID(item), to: place)
    }

    /// Restores an item under its new name, and moves it where it was not put there: the folder that is
    /// named counts only where the former one is gone.
    private func restore(_ id: BoxID, to place: Placement) async throws(ProviderError) {
        guard id.kind != .webLink else {
            throw ProviderError(.unsupported, detail: "web links come back on Box's website")
        }
        let api = provider.api
        let folder = try provider.folderID(place.folder)
        let request = try api.request(
            "POST",
            api.url(id.path, BoxProvider.itemQuery),
            BoxWire.Change(name: place.name, parent: .init(folder.id)),
            repetition: .onlyIfNotDone
        )
        let wire: BoxWire.Item = try await api.send(request)
        let back = try await provider.item(wire)
        guard back.parentID != folder.itemID || !back.fileName.isSameText(as: place.name) else {
            return
        }
        let reference = ItemReference(id: back.id, path: .root)
        do throws(ProviderError) {
            _ = try await provider.move(
                Move(
                    item: reference,
                    oldParent: ItemReference(id: back.parentID ?? folder.itemID, path: .root),
                    parent: place.folder,
                    name: place.name,
                    modifiedTime: nil
                )
            )
        } catch { throw error.asUnknownOutcome }
    }
}

extension TrashEntry {
    /// An entry as Box lists it; nil for what is no item.
    fileprivate init?(_ wire: BoxWire.Item) {
        guard let id = wire.boxID, let name = wire.name, id.kind != .webLink else { return nil }
        self.init(id: id.itemID.rawValue, name: name)
        item = id.itemID
        kind = id.kind == .folder ? .folder : .file
        size = id.kind == .file ? wire.size?.value : nil
        deletedTime = wire.trashed_at.flatMap { Timestamp(rfc3339: $0) }
        folder = wire.parent.map { BoxID(kind: .folder, id: $0.id.text).itemID }
    }
}
