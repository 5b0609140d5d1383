import Foundation
public import OortModel
import OortTransport

extension GoogleDriveProvider {
    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        let id = try await idForCreation(folder.reservedID)
        let request = try creation(of: folder, id: id)
        switch try await api.perform(request) {
        case .success(let response):
            return try await created(api.decode(response), in: folder.parent)
        case .refused(let failure):
            return try await createdBefore(failure, id: id, parent: folder.parent)
        }
    }

    private func creation(of folder: NewFolder, id: ItemID) throws(ProviderError) -> HTTPRequest {
        try refuseSynthetic(folder.parent)
        return try api.request(
            "POST",
            "/drive/v3/files",
            GoogleDriveAPI.fileQuery,
            DriveMetadata(
                id: id.rawValue,
                name: folder.name,
                parents: [folder.parent.id.rawValue],
                mimeType: DriveType.folder,
                modifiedTime: Self.spelled(folder.modifiedTime)
            ),
            repetition: .harmless
        )
    }

    /// A created file as an item.
    ///
    /// Drive creates in a trashed folder, too, and trashes at once.
    func created(
        _ file: DriveFile,
        in parent: ItemReference
    ) async throws(ProviderError) -> Item {
        guard file.trashed != true else {
            throw ProviderError(.parentNotFound, detail: "the folder is in Drive's trash")
        }
        return file.item(parent: file.parents?.first.map { ItemID($0) } ?? parent.id)
    }

    /// What a refused create means: "id in use" is an earlier try that succeeded.
    func createdBefore(
        _ failure: DriveFailure,
        id: ItemID,
        parent: ItemReference
    ) async throws(ProviderError) -> Item {
        let file = try await fileCreatedBefore(failure, id: id)
        return try await created(file, in: parent)
    }

    func fileCreatedBefore(
        _ failure: DriveFailure,
        id: ItemID
    ) async throws(ProviderError) -> DriveFile {
        switch failure.error.kind {
        case .nameTaken:
            do throws(ProviderError) { return try await api.metadata(id) } catch {
                throw error.asUnknownOutcome
            }
        case .notFound: throw ProviderError(.parentNotFound, detail: failure.error.detail)
        default: throw failure.error
        }
    }

    public func move(_ move: Move) async throws(ProviderError) -> Item {
        switch try await api.perform(try request(for: move)) {
        case .success(let response): return try moved(api.decode(response))
        case .refused(let failure): throw await refusal(failure, of: move)
        }
    }

    /// One atomic call for the place, the name and the time; absolute, so it can be repeated.
    private func request(for move: Move) throws(ProviderError) -> HTTPRequest {
        try refuseSynthetic(move.item)
        try refuseSynthetic(move.parent)
        var query = GoogleDriveAPI.fileQuery
        if move.parent.id != move.oldParent.id {
            query.append(("addParents", move.parent.id.rawValue))
            if SyntheticFolder(move.oldParent.id) == nil {
                query.append(("removeParents", move.oldParent.id.rawValue))
            }
        }
        return try api.request(
            "PATCH",
            api.file(move.item.id),
            query,
            DriveMetadata(name: move.name, modifiedTime: Self.spelled(move.modifiedTime)),
            repetition: .harmless
        )
    }

    private func moved(_ file: DriveFile) throws(ProviderError) -> Item {
        guard file.trashed != true else { throw Self.inTrash }
        return file.item(parent: file.parents?.first.map { ItemID($0) })
    }

    /// Drive says 404 for the item and for the folder, and 400 for a cycle.
    private func refusal(_ failure: DriveFailure, of move: Move) async -> ProviderError {
        let error = failure.error
        switch error.kind {
        case .badRequest where move.parent.id != move.oldParent.id:
            return ProviderError(.moveIntoItself, detail: error.detail)
        case .notFound where move.parent.id != move.oldParent.id:
            return await missing(error, item: move.item)
        default: return error
        }
    }

    /// Whether it is the item or the folder that is not there.
    private func missing(_ error: ProviderError, item: ItemReference) async -> ProviderError {
        do throws(ProviderError) {
            _ = try await api.metadata(item.id)
            return ProviderError(.parentNotFound, detail: error.detail)
        } catch {
            return error
        }
    }

    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        if isGuarded(deletion) {
            // v3 knows no precondition; what goes is in the trash, so a race loses nothing.
            do throws(ProviderError) {
                if let objection = try await objection(to: deletion) { throw objection }
            } catch {
                if error.kind == .notFound { return }
                throw error
            }
        }
        switch try await api.perform(try request(for: deletion)) {
        case .success: return
        case .refused(let failure):
            if failure.status != 404 { throw failure.error }
        }
    }

    /// Whether a deletion depends on how its item is.
    private func isGuarded(_ deletion: Deletion) -> Bool {
        deletion.revision != nil || deletion.expectsNothing
    }

    /// Why a deletion is not to be carried out; nil if nothing speaks against it.
    private func objection(to deletion: Deletion) async throws(ProviderError) -> ProviderError? {
        if let revision = deletion.revision {
            return Self.objection(try await api.metadata(deletion.item.id), revision)
        }
        var page: String?
        var walk = PageWalk()
        // A page may be empty and still not be the last.
        repeat {
            if let page { try walk.goOn(to: page) }
            let contents = try await api.list(
                GoogleDriveAPI.children(of: deletion.item.id),
                page: page,
                pageSize: 1
            )
            if contents.files?.isEmpty == false { return Self.isFilled }
            page = contents.nextPageToken
        } while page != nil
        return nil
    }

    private static func objection(_ file: DriveFile, _ revision: Revision) -> ProviderError? {
        guard file.trashed != true, file.headRevisionId != revision.rawValue else { return nil }
        return ProviderError(.preconditionFailed, detail: "Drive has a newer revision")
    }

    /// Drive takes a folder into the trash with all that lies in it.
    private static let isFilled = ProviderError(
        .preconditionFailed,
        detail: "something lies in the folder"
    )

    private func request(for deletion: Deletion) throws(ProviderError) -> HTTPRequest {
        try refuseSynthetic(deletion.item)
        return try api.request(
            "PATCH",
            api.file(deletion.item.id),
            [("supportsAllDrives", "true"), ("fields", "id")],
            DriveMetadata(trashed: true),
            repetition: .harmless
        )
    }

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        try refuseSynthetic(copy.parent)
        let id = try await idForCreation(copy.reservedID)
        let file: DriveFile
        switch try await api.perform(try request(for: copy, id: id)) {
        case .success(let response): file = try api.decode(response)
        case .refused(let failure):
            switch failure.error.kind {
            case .badRequest: file = try await copyNative(copy, failure)
            case .notFound: throw await missing(failure.error, item: copy.item)
            default: file = try await copiedBefore(copy, failure, id: id)
            }
        }
        let item = try await created(file, in: copy.parent)
        // Copies of native documents ignore the time.
        guard let time = copy.modifiedTime?.truncated(to: .milliseconds),
            item.clientModifiedTime?.truncated(to: .milliseconds) != time
        else { return item }
        do throws(ProviderError) {
            return try await setAttributes(
                of: ItemReference(id: item.id, path: .root),
                to: AttributeChange(modifiedTime: time)
            )
        } catch { throw error.asUnknownOutcome }
    }

    /// What an earlier try of a copy made, as long as it is what would be copied now.
    ///
    /// It never is a native document, whose copy has no id of ours.
    ///
    /// - Throws: `.preconditionFailed` where either file has changed since: only a caller that knows which
    ///   bytes were meant can find out what became of them.
    private func copiedBefore(
        _ copy: Copy,
        _ failure: DriveFailure,
        id: ItemID
    ) async throws(ProviderError) -> DriveFile {
        let file = try await fileCreatedBefore(failure, id: id)
        let original: DriveFile?
        do throws(ProviderError) { original = try await api.metadata(copy.item.id) } catch {
            guard error.isLastingRefusal else { throw error.asUnknownOutcome }
            original = nil
        }
        guard let original, let hash = original.md5Checksum, file.md5Checksum == hash,
            file.size == original.size
        else {
            throw ProviderError(
                .preconditionFailed,
                detail: "an earlier try's item, or what it was copied from, has changed since"
            )
        }
        return file
    }

    private func request(for copy: Copy, id: ItemID?) throws(ProviderError) -> HTTPRequest {
        try api.request(
            "POST",
            api.file(copy.item.id, "/copy"),
            GoogleDriveAPI.fileQuery,
            DriveMetadata(
                id: id?.rawValue,
                name: copy.name,
                parents: [copy.parent.id.rawValue],
                modifiedTime: Self.spelled(copy.modifiedTime)
            ),
            repetition: id == nil ? .onlyIfNotDone : .harmless
        )
    }

    /// Copies of native documents cannot be given an id.
    private func copyNative(
        _ copy: Copy,
        _ failure: DriveFailure
    ) async throws(ProviderError) -> DriveFile {
        let source = try await api.metadata(copy.item.id)
        guard source.item(parent: nil).kind == .nativeDocument else { throw failure.error }
        return try await api.send(try request(for: copy, id: nil))
    }

    public func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        try refuseSynthetic(item)
        let file: DriveFile = try await api.send(
            try api.request(
                "PATCH",
                api.file(item.id),
                GoogleDriveAPI.fileQuery,
                DriveMetadata(
                    modifiedTime: Self.spelled(change.modifiedTime),
                    description: change.description
                ),
                repetition: .harmless
            )
        )
        return try moved(file)
    }

    // MARK: Many at once

    public func createFolders(_ folders: [NewFolder]) async -> [Result<Item, ProviderError>] {
        var named = folders
        do throws(ProviderError) {
            let missing = named.indices.filter { named[$0].reservedID == nil }
            for (index, id) in zip(missing, try await reserveIDs(missing.count)) {
                named[index].reservedID = id
            }
        } catch { return folders.map { _ in .failure(error) } }
        return await inBatch(named) { folder throws(ProviderError) in
            try creation(of: folder, id: try await idForCreation(folder.reservedID))
        } result: { folder, response throws(ProviderError) in
            try await created(api.decode(response), in: folder.parent)
        } alone: { folder throws(ProviderError) in
            try await createFolder(folder)
        }
    }

    public func move(_ moves: [Move]) async -> [Result<Item, ProviderError>] {
        await inBatch(moves) { move throws(ProviderError) in
            try request(for: move)
        } result: { _, response throws(ProviderError) in
            try moved(api.decode(response))
        } alone: { entry throws(ProviderError) in
            try await move(entry)
        }
    }

    public func delete(_ deletions: [Deletion]) async -> [Result<Void, ProviderError>] {
        let refused = await refusals(of: deletions)
        let pending = deletions.indices.filter { refused[$0] == nil }
        let results: [Result<Void, ProviderError>] = await inBatch(
            pending.map { Deletion(item: deletions[$0].item) }
        ) { deletion throws(ProviderError) in
            try request(for: deletion)
        } result: { _, _ in
            ()
        } alone: { deletion throws(ProviderError) in
            try await delete(deletion)
        }
        var all = refused.map { $0 ?? .success(()) }
        for (index, result) in zip(pending, results) { all[index] = result }
        return all
    }

    /// For each deletion that is not to be carried out, how it ends.
    private func refusals(of deletions: [Deletion]) async -> [Result<Void, ProviderError>?] {
        let guarded = deletions.indices.filter { isGuarded(deletions[$0]) }
        var refused = [Result<Void, ProviderError>?](repeating: nil, count: deletions.count)
        guard !guarded.isEmpty else { return refused }
        let objections: [Result<ProviderError?, ProviderError>] = await inBatch(
            guarded.map { deletions[$0] }
        ) { deletion in
            let id = deletion.item.id
            let url =
                deletion.revision == nil
                ? api.listing(GoogleDriveAPI.children(of: id), page: nil, pageSize: 1)
                : api.url(api.file(id), GoogleDriveAPI.fileQuery)
            return HTTPRequest(method: "GET", url: url, repetition: .harmless)
        } result: { deletion, response throws(ProviderError) in
            if let revision = deletion.revision {
                return Self.objection(try api.decode(response), revision)
            }
            let contents: DriveFileList = try api.decode(response)
            if contents.files?.isEmpty == false { return Self.isFilled }
            return contents.nextPageToken == nil ? nil : try await objection(to: deletion)
        } alone: { deletion throws(ProviderError) in
            try await objection(to: deletion)
        }
        for (index, objection) in zip(guarded, objections) {
            do throws(ProviderError) {
                if let objection = try objection.get() { refused[index] = .failure(objection) }
            } catch {
                refused[index] = error.kind == .notFound ? .success(()) : .failure(error)
            }
        }
        return refused
    }

    // MARK: Spelling

    static func spelled(_ time: Timestamp?) -> String? { time?.rfc3339(.milliseconds) }

    func refuseSynthetic(_ item: ItemReference) throws(ProviderError) {
        if SyntheticFolder(item.id) != nil {
            throw ProviderError(.noPermission, detail: "Drive itself has no such folder")
        }
    }
}
