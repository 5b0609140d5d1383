public import OortModel

extension GoogleDriveProvider {
    public func children(
        of folder: ItemReference,
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let rootID = try await rootID()
        switch SyntheticFolder(folder.id) {
        case .sharedDrives:
            return ListingPage(items: try await api.drives().map(\.item), next: nil)
        case .sharedWithMe:
            return try await listing("sharedWithMe=true and trashed=false", page, rootID: rootID) {
                $0.parentID == folder.id
            }
        case nil: break
        }
        let condition = GoogleDriveAPI.children(of: folder.id)
        var listing = try await listing(condition, page, rootID: rootID) { _ in true }
        if folder.id == rootID, page == nil {
            listing.items += try await syntheticFolders(in: rootID)
        } else if page == nil, listing.items.isEmpty, listing.next == nil {
            try await checkIsFolder(folder.id)
        }
        return listing
    }

    private func listing(
        _ condition: String,
        _ page: PageToken?,
        rootID: ItemID,
        where isIncluded: (Item) -> Bool
    ) async throws(ProviderError) -> ListingPage {
        let answer = try await api.list(condition, page: page?.rawValue)
        let items = (answer.files ?? []).compactMap { $0.item(rootID: rootID) }
        return ListingPage(
            items: items.filter(isIncluded),
            next: answer.nextPageToken.map { PageToken($0) }
        )
    }

    /// The synthetic folders in which there is something.
    private func syntheticFolders(in rootID: ItemID) async throws(ProviderError) -> [Item] {
        var folders: [Item] = []
        var page: String?
        var walk = PageWalk()
        // A page may be empty and still not be the last.
        repeat {
            if let page { try walk.goOn(to: page) }
            let shared = try await api.list(
                "sharedWithMe=true and trashed=false",
                page: page
            )
            let isThere = (shared.files ?? []).contains {
                $0.item(rootID: rootID)?.parentID == SyntheticFolder.sharedWithMe.id
            }
            if isThere { folders.append(SyntheticFolder.sharedWithMe.item(in: rootID)) }
            page = isThere ? nil : shared.nextPageToken
        } while page != nil
        if try await !api.drives().isEmpty {
            folders.append(SyntheticFolder.sharedDrives.item(in: rootID))
        }
        return folders
    }

    /// Throws unless the item is a folder: Drive lists files and trashed folders as empty, so only asking
    /// for the item shows it.
    private func checkIsFolder(_ id: ItemID) async throws(ProviderError) {
        let file = try await api.metadata(id)
        if file.trashed == true { throw Self.inTrash }
        guard file.mimeType == DriveType.folder else {
            throw ProviderError(.notAFolder, detail: "a file was listed")
        }
    }

    public func item(_ reference: ItemReference) async throws(ProviderError) -> Item {
        let rootID = try await rootID()
        if let synthetic = SyntheticFolder(reference.id) { return synthetic.item(in: rootID) }
        let file = try await api.metadata(reference.id)
        if file.trashed == true { throw Self.inTrash }
        if file.id == file.driveId {
            // Of a drive's root, `files` does not know the drive's name.
            let drive: DriveDrive = try await api.get(
                "/drive/v3/drives/\(GoogleDriveAPI.encoded(file.id))",
                [("fields", DriveDrive.fields)]
            )
            return drive.item
        }
        return file.item(rootID: rootID) ?? file.item(parent: nil)
    }

    public func items(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> [Item] {
        if SyntheticFolder(folder.id) != nil {
            return try await itemsOfSynthetic(folder, named: name)
        }
        let rootID = try await rootID()
        let condition =
            "\(GoogleDriveAPI.quoted(folder.id.rawValue)) in parents"
            + " and name = \(GoogleDriveAPI.quoted(name)) and trashed=false"
        var items: [Item] = []
        var page: PageToken?
        var walk = PageWalk()
        repeat {
            if let page { try walk.goOn(to: page.rawValue) }
            let answer: DriveFileList
            do throws(ProviderError) {
                answer = try await api.list(condition, page: page?.rawValue)
            } catch {
                throw error.kind == .notFound
                    ? ProviderError(.parentNotFound, detail: error.detail) : error
            }
            items += (answer.files ?? []).compactMap { $0.item(rootID: rootID) }
            page = answer.nextPageToken.map { PageToken($0) }
        } while page != nil
        // The service compares without case, and Swift by canonical equivalence; neither will do.
        let found = items.filter { $0.fileName.utf8.elementsEqual(name.utf8) }
        if found.isEmpty {
            do throws(ProviderError) {
                try await checkIsFolder(folder.id)
            } catch {
                guard error.kind == .notFound else { throw error }
                throw ProviderError(.parentNotFound, detail: error.detail)
            }
        }
        return found
    }

    private func itemsOfSynthetic(
        _ folder: ItemReference,
        named name: String
    ) async throws(ProviderError) -> [Item] {
        var items: [Item] = []
        var page: PageToken?
        var walk = PageWalk()
        repeat {
            if let page { try walk.goOn(to: page.rawValue) }
            let listing = try await children(of: folder, page: page)
            items += listing.items
            page = listing.next
        } while page != nil
        return items.filter { $0.fileName.utf8.elementsEqual(name.utf8) }
            .sorted { ($0.createdTime?.seconds ?? 0) < ($1.createdTime?.seconds ?? 0) }
    }

    static var inTrash: ProviderError {
        ProviderError(.notFound, detail: "Drive has it in its trash")
    }
}
