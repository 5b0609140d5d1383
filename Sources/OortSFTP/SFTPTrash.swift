import OortModel
import SwiftSFTP

/// Oort's own trash on a server: `.oort-trash` in the account's folder.
///
/// Each deletion has a folder of its own there (`TrashFolder`). An entry's id is the names of that folder, of
/// those in it with which its name goes on, and of the thing, with slashes between.
struct SFTPTrash: Trash {
    let client: SFTPClient

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
        let place = RemotePath([SFTPClient.trash])
        let trash = try await client.path(place)
        return try await client.onSession(place) { session throws(SFTPError) in
            let folders: [SFTPEntry]
            do throws(SFTPError) { folders = try await session.entries(of: trash) } catch {
                // Nothing was ever deleted here.
                guard error.kind == .status(.noSuchFile) else { throw error }
                return [TrashEntry]()
            }
            let wanted = folders.filter { folder in
                folder.attributes.kind == .folder
                    && (TrashFolder.deletion(ByteNames.text(folder.name.bytes)).map(isWanted)
                        ?? false)
            }
            return try await Self.entries(in: wanted.map(\.name), of: trash, session)
        }
    }

    /// How many deletions are looked into at once.
    private static let listingsInFlight = 64

    /// What lies in the folders of deletions, some looked into at once: each costs a round trip or two.
    private static func entries(
        in folders: [SFTPPath],
        of trash: SFTPPath,
        _ session: SFTPSession
    ) async throws(SFTPError) -> [TrashEntry] {
        typealias Looked = (index: Int, result: Result<[TrashEntry], SFTPError>)
        var results: [Int: Result<[TrashEntry], SFTPError>] = [:]
        await withTaskGroup(of: Looked.self) { group in
            for (index, folder) in folders.enumerated() {
                if index >= listingsInFlight, let looked = await group.next() {
                    results[looked.index] = looked.result
                }
                group.addTask {
                    do throws(SFTPError) {
                        return (index, .success(try await entries(in: folder, of: trash, session)))
                    } catch { return (index, .failure(error)) }
                }
            }
            for await looked in group { results[looked.index] = looked.result }
        }
        var found: [TrashEntry] = []
        for index in folders.indices {
            if let result = results[index] { found += try result.get() }
        }
        return found
    }

    /// What lies in the folder of a deletion.
    private static func entries(
        in folder: SFTPPath,
        of trash: SFTPPath,
        _ session: SFTPSession
    ) async throws(SFTPError) -> [TrashEntry] {
        var names = [ByteNames.text(folder.bytes)]
        var place = trash.appending(folder)
        var deletion = TrashFolder.deletion(names[0])
        var inside: [SFTPEntry] = []
        do throws(SFTPError) {
            inside = try await session.entries(of: place)
            while deletion?.goesOn == true, names.count < TrashFolder.mostNames,
                let more = inside.first(where: {
                    $0.attributes.kind == .folder
                        && TrashFolder.isMore(ByteNames.text($0.name.bytes))
                })
            {
                names.append(ByteNames.text(more.name.bytes))
                place = place.appending(more.name)
                deletion = TrashFolder.deletion(names[0], Array(names.dropFirst()))
                inside = try await session.entries(of: place)
            }
        } catch {
            // It was removed meanwhile.
            guard error.kind == .status(.noSuchFile) else { throw error }
            return []
        }
        guard let deletion else { return [] }
        let id = names.joined(separator: "/")
        return inside.map { entry in
            var own = ByteNames.text(entry.name.bytes)
            if entry.attributes.kind == .link { own = LinkName.file(own) }
            var trashed = TrashEntry(
                id: "\(id)/\(own)",
                name: own,
                path: deletion.folder.map { $0.appending(own) }
            )
            trashed.deletedTime = deletion.time
            trashed.mark = deletion.mark
            trashed.kind = entry.attributes.kind == .folder ? .folder : .file
            if trashed.kind == .file {
                trashed.size = entry.attributes.size.map { Int64(clamping: $0) }
            }
            return trashed
        }
    }

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        guard let names = TrashFolder.names(ofEntry: entry.id) else {
            throw ProviderError(.notFound, detail: "no entry of the trash: \(entry.id)")
        }
        let source = RemotePath([SFTPClient.trash] + names)
        let target = place.folder.path.appending(place.name)
        // A restore is an ordinary move; a rename replaces nothing.
        _ = try await client.move(
            entry.kind == .folder ? .folder : .file,
            from: source,
            to: target
        )
        // A folder that stays does no harm, and is removed after 30 days.
        for count in (1..<names.count).reversed() {
            let emptied = try await client.path(
                RemotePath([SFTPClient.trash] + names.prefix(count))
            )
            _ = try? await client.onSession(target) { session throws(SFTPError) in
                try await session.send(.removeFolder(emptied)).answer()
            }
        }
    }
}
