public import OortModel
import OortTransport

extension BoxProvider {
    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let id = try folderID(folder)
        let answer: BoxWire.Listing
        do throws(ProviderError) {
            answer = try await api.list(id.id, marker: page?.rawValue)
        } catch { throw try await inTree(error) }
        let entries = try await entries(of: answer, in: id)
        // What a listing leaves out is taken for gone.
        if let refusal = entries.refusals.first { throw refusal.error }
        return ListingPage(
            items: entries.items,
            next: answer.next.map { PageToken($0) }
        )
    }

    /// The content of a page of a folder's listing.
    struct Entries {
        var items: [Item] = []
        /// What could not be read, the folder where an entry does not even say what it is of.
        var refusals: [(of: BoxID, error: ProviderError)] = []
    }

    /// The items on a page of a folder's listing; one that cannot be read there is asked for by
    /// itself.
    func entries(
        of page: BoxWire.Listing,
        in folder: BoxID
    ) async throws(ProviderError) -> Entries {
        guard let all = page.entries else {
            throw ProviderError(.malformedAnswer, detail: "a listing without entries")
        }
        let me = try await me()
        var entries = Entries()
        for entry in all {
            if let wire = entry.item {
                // Of no kind that a tree holds, or in the trash.
                if wire.boxID == nil || wire.isGone { continue }
                if let item = wire.item(me: me, listedIn: folder) {
                    entries.items.append(item)
                    continue
                }
            }
            guard let id = entry.id else {
                let error = ProviderError(.malformedAnswer, detail: "an entry that cannot be read")
                entries.refusals.append((folder, error))
                continue
            }
            do throws(ProviderError) {
                let wire = try await api.item(id)
                if wire.isGone { continue }
                guard let item = wire.item(me: me, listedIn: folder) else {
                    throw ProviderError(.malformedAnswer, detail: "an item without its fields")
                }
                entries.items.append(item)
            } catch {
                switch error.kind {
                // It went between the two answers.
                case .notFound: break
                case .noPermission, .malformedAnswer: entries.refusals.append((id, error))
                default: throw error
                }
            }
        }
        return entries
    }

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        let id = try BoxID(reference.id)
        do throws(ProviderError) {
            let wire = try await api.item(id)
            guard !wire.isGone else {
                throw ProviderError(.notFound, detail: "Box has it in its trash")
            }
            return try await item(wire)
        } catch { throw try await inTree(error) }
    }

    /// Asks as an upload of this name would: Box names the item that has the name.
    ///
    /// Where that says neither yes nor no, the folder is listed.
    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        let id = try folderID(folder)
        switch try await preflight(name, in: id) {
        case .success: return []
        case .refused(let failure):
            switch failure.error.kind {
            case .nameTaken:
                guard
                    let other = failure.conflicts.lazy
                        .compactMap({ BoxID(type: $0.type, id: $0.id) }).first
                else { break }
                do throws(ProviderError) {
                    return [try await item(ItemReference(id: other.itemID, path: .root))]
                } catch {
                    // It went between the two questions: looked for once more.
                    guard error.kind == .notFound else { throw error }
                }
            case .notFound: throw ProviderError(.parentNotFound, detail: failure.error.detail)
            case .noPermission, .badRequest, .quotaExceeded, .nameRefused, .nameTooLong: break
            default: throw failure.error
            }
        }
        return try await listedItems(named: name, in: folder)
    }

    private func preflight(
        _ name: String,
        in folder: BoxID
    ) async throws(ProviderError) -> BoxAPI.Answer {
        try await api.perform(
            try api.request(
                "OPTIONS",
                api.url("files/content"),
                BoxWire.Preflight(name: name, parent: .init(folder.id), size: 0),
                repetition: .harmless
            )
        )
    }

    private func listedItems(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        var found: [Item] = []
        var page: PageToken?
        var walk = PageWalk()
        let key = traits.names.key(name)
        repeat {
            if let page { try walk.goOn(to: page.rawValue) }
            let listing: ListingPage
            do throws(ProviderError) {
                listing = try await children(of: folder, page: page)
            } catch {
                guard error.kind == .notFound else { throw error }
                throw ProviderError(.parentNotFound, detail: error.detail)
            }
            found += listing.items.filter { traits.names.key($0.fileName).isSameText(as: key) }
            page = listing.next
        } while page != nil
        return found
    }

    /// The id of a folder.
    ///
    /// - Throws: `.notAFolder`.
    func folderID(_ folder: ItemReference) throws(ProviderError) -> BoxID {
        let id = try BoxID(folder.id)
        guard id.kind == .folder else {
            throw ProviderError(.notAFolder, detail: "a file holds nothing")
        }
        return id
    }

    /// The id of a file.
    ///
    /// - Throws: `.notAFile`.
    func fileID(_ file: ItemReference) throws(ProviderError) -> BoxID {
        let id = try BoxID(file.id)
        switch id.kind {
        case .file: return id
        case .folder: throw ProviderError(.notAFile, detail: "a folder has no content")
        case .webLink: throw ProviderError(.unsupported, detail: "a web link has no content")
        }
    }
}
