import OortModel

/// What was deleted on a server: Oort's own `.oort-trash` in the account's folder.
///
/// Each deletion has a folder of its own there (`TrashFolder`). An entry's id is the names of that folder, of
/// those in it with which its name goes on, and of the thing, with slashes between.
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
            guard TrashFolder.deletion(name).map(isWanted) ?? false else { continue }
            let (names, inside) = try await client.lookInto(name)
            guard let deletion = TrashFolder.deletion(name, Array(names.dropFirst())) else {
                continue
            }
            let id = names.joined(separator: "/")
            for facts in inside {
                guard facts.kind == .file || facts.kind == .folder else { continue }
                let own = ByteNames.text(facts.name)
                var entry = TrashEntry(
                    id: "\(id)/\(own)",
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
        guard let names = TrashFolder.names(ofEntry: entry.id) else {
            throw ProviderError(.notFound, detail: "no entry of the trash: \(entry.id)")
        }
        // Moved as anything else; a rename replaces nothing.
        _ = try await client.move(
            entry.kind == .folder ? .folder : .file,
            from: RemotePath([FTPClient.trash] + names),
            to: place.folder.path.appending(place.name)
        )
        var removals: [[UInt8]] = []
        for count in (1..<names.count).reversed() {
            let emptied = try await client.path(
                RemotePath([FTPClient.trash] + names.prefix(count))
            )
            removals.append(client.command("RMD", emptied))
        }
        // One that stays does no harm.
        _ = try? await client.tell(removals, names[0])
    }
}
