import OortModel
import OortTransport

/// Bringing back an entry of the trash: the server puts it where it lay, and from there it is moved.
///
/// A `MOVE` straight to a place among the files is refused for folders (400, "Incompatible node
/// types"), and a file comes as a copy with another id, without its versions (nextcloud/server,
/// `apps/dav/lib/Connector/Sabre/Directory.php`, `apps/files_trashbin/lib/Sabre/RestoreFolder.php`).
extension NextcloudTrash {
    /// How often a request whose answer is lost is sent.
    private static let tries = 4

    /// The number of an item, which it keeps in the trash and over moves.
    private typealias FileID = String

    func restore(_ entry: TrashEntry, to place: Placement) async throws(ProviderError) {
        let wished = place.folder.path.appending(place.name)
        try client.check(wished)
        try await wantRoom(at: wished)
        guard let id = try await id(of: entry) else {
            throw ProviderError(.notFound, detail: "it is in the trash no more")
        }
        let found = try await takeOut(entry, id)
        let target = client.address.folder + wished.parts
        guard !found.isSame(as: target) else { return }
        try await move(found, id, to: target, isFolder: entry.kind == .folder)
    }

    /// - Throws: `.nameTaken`, `.parentNotFound`: nothing leaves the trash unless its new place is free.
    private func wantRoom(at wished: RemotePath) async throws(ProviderError) {
        do throws(ProviderError) {
            _ = try await client.unconfirmedEntry(at: wished)
        } catch  where error.kind == .notFound {
            guard let parent = wished.parent, try await !client.isMissing(parent) else {
                throw ProviderError(.parentNotFound, detail: "the folder is not there")
            }
            return
        }
        throw ProviderError(.nameTaken, detail: "something is there already")
    }

    // MARK: Looking

    /// The id of what is in the trash; nil where it is there no more.
    private func id(of entry: TrashEntry) async throws(ProviderError) -> FileID? {
        let responses: [DAVResponse]
        do throws(ProviderError) {
            (responses, _) = try await client.api.look(
                at: url([entry.id]),
                depth: 0,
                properties: [.owncloud("fileid")]
            )
        } catch  where error.kind == .notFound {
            return nil
        }
        guard let response = responses.first, response.status != 404 else { return nil }
        guard let id = CloudItem(response).number else {
            throw ProviderError(.malformedAnswer, detail: "an entry of the trash has no number")
        }
        return id
    }

    /// The address of a place among all of the person's files.
    private func address(_ names: [String], isFolder: Bool) -> String {
        let address = client.address
        return address.origin + "/" + PercentEncoding.path(address.files + names)
            + (isFolder ? "/" : "")
    }

    /// The items at a place, or in a folder: their ids by name; empty where there is nothing.
    private func ids(
        at names: [String],
        depth: Int
    ) async throws(ProviderError) -> [(names: [String], id: FileID)] {
        let responses: [DAVResponse]
        do throws(ProviderError) {
            (responses, _) = try await client.api.look(
                at: address(names, isFolder: depth > 0),
                depth: depth,
                properties: [.owncloud("fileid")]
            )
        } catch  where error.kind == .notFound {
            return []
        }
        let above = client.address.files.count
        return responses.compactMap { response in
            guard let id = CloudItem(response).number,
                let place = PercentEncoding.names(ofReference: response.href),
                place.count >= above
            else { return nil }
            return (Array(place[above...]), id)
        }
    }

    private func lies(_ id: FileID, at names: [String]) async throws(ProviderError) -> Bool {
        try await ids(at: names, depth: 0).contains { $0.id == id && $0.names.isSame(as: names) }
    }

    /// Where the server put an item that had lain at a path, in the person's files; nil where it is in none
    /// of the folders that it may come to.
    ///
    /// If its name is taken, the server adds something in its own language; if its folder is gone, the item
    /// comes to the top, or to the top of the storage in which it lay.
    private func whereabouts(
        of id: FileID,
        _ lay: [String]
    ) async throws(ProviderError) -> [String]? {
        if try await lies(id, at: lay) { return lay }
        var folder = lay
        while !folder.isEmpty {
            folder.removeLast()
            let inside = try await ids(at: folder, depth: 1)
            if let found = inside.first(where: { $0.id == id && $0.names.count > folder.count }) {
                return found.names
            }
        }
        return nil
    }

    // MARK: Moving

    /// Has the server put an entry back.
    ///
    /// - Returns: where it is now.
    private func takeOut(
        _ entry: TrashEntry,
        _ id: FileID
    ) async throws(ProviderError) -> [String] {
        let lay = client.address.folder + (entry.path?.parts ?? [entry.name])
        var round = 0
        while true {
            round += 1
            var request = HTTPRequest(
                method: "MOVE",
                url: url([entry.id]),
                headers: [("Destination", program(["restore", entry.id]))],
                repetition: .onlyIfNotDone
            )
            // Between storages the server copies everything that is moved.
            request.answerTimeout = .seconds(600)
            var doubt = "it came back to a place that was not found"
            do throws(ProviderError) {
                _ = try await client.api.send(request, about: .item)
            } catch {
                doubt = error.detail
                switch error.kind {
                case .outcomeUnknown, .malformedAnswer, .locked: break
                case .notFound where round > 1: break
                default: throw round > 1 ? error.afterMove : error
                }
            }
            do throws(ProviderError) {
                if let found = try await whereabouts(of: id, lay) { return found }
            } catch {
                throw error.afterMove
            }
            guard round < Self.tries else {
                throw ProviderError(.outcomeUnknown(retryAfter: nil), detail: doubt)
            }
            // The server may still be working on it.
            try await client.pause(.seconds(round * round))
        }
    }

    /// Moves a restored item to the wished place.
    ///
    /// - Throws: `.outcomeUnknown` for any failure: the item is restored, though elsewhere.
    private func move(
        _ found: [String],
        _ id: FileID,
        to target: [String],
        isFolder: Bool
    ) async throws(ProviderError) {
        var round = 0
        while true {
            round += 1
            var request = HTTPRequest(
                method: "MOVE",
                url: address(found, isFolder: isFolder),
                headers: [
                    ("Destination", address(target, isFolder: isFolder)), ("Overwrite", "F"),
                ],
                repetition: .onlyIfNotDone
            )
            request.answerTimeout = .seconds(600)
            do throws(ProviderError) {
                _ = try await client.api.send(request, about: .item)
                return
            } catch {
                if error.kind == .cancelled { throw error }
                let elsewhere = ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "it came back to where it lay, and did not go on from there: "
                        + error.detail
                )
                do throws(ProviderError) {
                    if try await lies(id, at: target) { return }
                    guard round < Self.tries, try await lies(id, at: found) else {
                        throw elsewhere
                    }
                } catch {
                    throw error.afterMove
                }
                switch error.kind {
                case .outcomeUnknown, .malformedAnswer, .locked, .offline, .rateLimited: break
                default: throw elsewhere
                }
                try await client.pause(.seconds(round * round))
            }
        }
    }
}

extension [String] {
    /// Whether two paths have the same names, scalar for scalar.
    fileprivate func isSame(as other: [String]) -> Bool {
        count == other.count && zip(self, other).allSatisfy { $0.isSameText(as: $1) }
    }
}

extension ProviderError {
    /// The same once a MOVE was sent, which may have restored the item: whatever was asked after that, its
    /// refusal says nothing about the item.
    fileprivate var afterMove: ProviderError {
        kind == .cancelled ? self : ProviderError(.outcomeUnknown(retryAfter: nil), detail: detail)
    }
}
