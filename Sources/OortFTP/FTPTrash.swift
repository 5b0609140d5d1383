import OortModel

/// What was deleted on a server: Oort's own `.oort-trash` in the account's folder.
///
/// Each deletion has a folder of its own there, whose name is a `TrashFolder`'s. An entry's id is that
/// folder's name and the thing's, with a slash between.
struct FTPTrash: Trash {
    let client: FTPClient

    func entries(
        below folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> TrashPage {
        TrashPage(entries: try await entries { _ in true }, next: nil)
    }

    func entry(marked mark: String) async throws(ProviderError) -> TrashEntry? {
        try await entries { $0.mark.map { $0.isSameText(as: mark) } ?? false }.first
    }

    /// What lies in the folders of those deletions that are wanted.
    private func entries(
        of isWanted: (TrashFolder.Deletion) -> Bool
    ) async throws(ProviderError) -> [TrashEntry] {
        let trash = RemotePath([FTPClient.trash])
        var found: [TrashEntry] = []
        for folder in try await client.trashFacts(of: trash) ?? [] where folder.kind == .folder {
            let name = ByteNames.text(folder.name)
            guard let deletion = TrashFolder.deletion(name), isWanted(deletion) else { continue }
            for facts in try await client.trashFacts(of: trash.appending(name)) ?? [] {
                guard facts.kind == .file || facts.kind == .folder else { continue }
                let own = ByteNames.text(facts.name)
                var entry = TrashEntry(
                    id: "\(name)/\(own)",
                    name: own,
                    path: deletion.folder.map { $0.appending(own) }
                )
                entry.deletedTime = deletion.time
                entry.mark = deletion.mark
                entry.kind = facts.kind == .folder ? .folder : .file
                entry.size = facts.kind == .file ? facts.size : nil
                found.append(entry)
            }
        }
        return found
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        guard let (folder, name) = entry.id.cut(atFirst: "/"), !name.has("/"), name != "..",
            name != ".", TrashFolder.deletion(String(folder)) != nil
        else { throw ProviderError(.notFound, detail: "no entry of the trash: \(entry.id)") }
        let deletion = RemotePath([FTPClient.trash, String(folder)])
        // Moved as anything else; a rename replaces nothing.
        _ = try await client.move(
            entry.kind == .folder ? .folder : .file,
            from: deletion.appending(String(name)),
            to: place.folder.path.appending(place.name)
        )
        // One that stays does no harm.
        let emptied = try await client.path(deletion)
        _ = try? await client.tell([client.command("RMD", emptied)], "\(deletion)")
    }
}
