public import OortModel
import OortTransport

extension DropboxProvider {
    // MARK: Folders

    public func createFolder(_ folder: NewFolder) async throws(ProviderError) -> Item {
        let argument = DropboxWire.CreateFolder(path: Self.path(folder))
        let wrapped: DropboxWire.Wrapped = try await api.call(
            "files/create_folder_v2",
            argument,
            repetition: .onlyIfNotDone
        )
        return try Self.folder(wrapped.metadata)
    }

    /// This route takes no ids; missing folders above are made by Dropbox.
    private static func path(_ folder: NewFolder) -> String {
        folder.parent.path.appending(folder.name).description
    }

    /// A folder from an answer without a tag.
    private static func folder(_ metadata: DropboxWire.Metadata) throws(ProviderError) -> Item {
        var metadata = metadata
        metadata.tag = "folder"
        guard let item = Item(metadata) else {
            throw ProviderError(.malformedAnswer, detail: "a folder without id or path")
        }
        return item
    }

    public func createFolders(_ folders: [NewFolder]) async -> [Result<Item, ProviderError>] {
        guard folders.count > 1 else { return await one(folders, createFolder) }
        let argument = DropboxWire.CreateFolders(paths: folders.map(Self.path))
        return await batch(folders.count) { () throws(ProviderError) in
            try await api.call(
                "files/create_folder_batch",
                argument,
                repetition: .onlyIfNotDone
            )
        } check: {
            "files/create_folder_batch/check"
        } read: { metadata throws(ProviderError) in
            try Self.folder(metadata)
        }
    }

    // MARK: Moving

    public func move(_ move: Move) async throws(ProviderError) -> Item {
        guard Self.isOnlyCase(move), let current = move.item.path.name else {
            return try await relocate(move, name: move.name)
        }
        // A change of case alone is answered as done, and is not: a name between makes it two
        // renames. When the second fails, the item is called back to what it was.
        let between = "\(current).oort-rename"
        _ = try await relocate(move, name: between)
        do throws(ProviderError) {
            return try await relocate(move, name: move.name)
        } catch {
            _ = try? await relocate(move, name: current)
            throw error
        }
    }

    private static func isOnlyCase(_ move: Move) -> Bool {
        guard let current = move.item.path.name, move.oldParent.id == move.parent.id else {
            return false
        }
        let rules = NameRules.dropbox
        return current != move.name && rules.key(current) == rules.key(move.name)
    }

    private func relocate(_ move: Move, name: String) async throws(ProviderError) -> Item {
        let argument = DropboxWire.Relocate(
            from_path: address(move.item),
            to_path: address(of: name, in: move.parent)
        )
        do throws(ProviderError) {
            let wrapped: DropboxWire.Wrapped = try await api.call(
                "files/move_v2",
                argument,
                repetition: .onlyIfNotDone
            )
            return try item(wrapped.metadata)
        } catch {
            throw Self.advising(await explain(error, parent: move.parent))
        }
    }

    /// What to do about a folder with more in it than Dropbox moves at once.
    ///
    /// It is not moved in parts here: in between there would be two folders, one of them with another id,
    /// and other users of it, such as another machine or the next start after a crash, would hold on to the
    /// wrong one.
    private static func advising(_ error: ProviderError) -> ProviderError {
        guard error.kind == .limitExceeded else { return error }
        var error = error
        error.detail =
            "Dropbox moves at most 10,000 files and folders at once: move it back, and what is in "
            + "it in parts; \(error.detail)"
        return error
    }

    public func move(_ moves: [Move]) async -> [Result<Item, ProviderError>] {
        // The batch and a look at its job are two calls already.
        guard moves.count > 2, !moves.contains(where: Self.isOnlyCase) else {
            return await one(moves, move)
        }
        let argument = DropboxWire.Entries(
            entries: moves.map {
                DropboxWire.Relocate(
                    from_path: address($0.item),
                    to_path: address(of: $0.name, in: $0.parent)
                )
            }
        )
        let results = await batch(moves.count) { () throws(ProviderError) in
            try await api.call("files/move_batch_v2", argument, repetition: .onlyIfNotDone)
        } check: {
            "files/move_batch/check_v2"
        } read: { metadata throws(ProviderError) in
            try item(metadata)
        }
        return results.map { $0.mapError(Self.advising) }
    }

    public func copy(_ copy: Copy) async throws(ProviderError) -> Item {
        let argument = DropboxWire.Relocate(
            from_path: address(copy.item),
            to_path: address(of: copy.name, in: copy.parent)
        )
        do throws(ProviderError) {
            let wrapped: DropboxWire.Wrapped = try await api.call(
                "files/copy_v2",
                argument,
                repetition: .onlyIfNotDone
            )
            return try item(wrapped.metadata)
        } catch {
            throw await explain(error, parent: copy.parent)
        }
    }

    /// A target that leads nowhere has several words at Dropbox: the folder itself is asked.
    func explain(
        _ error: ProviderError,
        parent: ItemReference
    ) async -> ProviderError {
        switch error.kind {
        case .nameRefused, .notAFolder, .notFound, .badRequest:
            do throws(ProviderError) {
                try await requireFolder(parent)
                return error
            } catch { return error.kind == .parentNotFound ? error : error }
        default: return error
        }
    }

    // MARK: Attributes

    public func setAttributes(
        of item: ItemReference,
        to change: AttributeChange
    ) async throws(ProviderError) -> Item {
        throw ProviderError(
            .unsupported,
            detail: "Dropbox sets times with content only, and has no descriptions"
        )
    }

    // MARK: Batches

    /// Few entries need no batch.
    func one<Entry, Answer>(
        _ entries: [Entry],
        _ body: (Entry) async throws(ProviderError) -> Answer
    ) async -> [Result<Answer, ProviderError>] {
        var results: [Result<Answer, ProviderError>] = []
        for entry in entries {
            do throws(ProviderError) {
                results.append(.success(try await body(entry)))
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    /// Launches a batch, waits for its job, and reads each entry's outcome.
    func batch<Answer>(
        _ count: Int,
        launch: () async throws(ProviderError) -> DropboxWire.Job,
        check: () -> String,
        read: (DropboxWire.Metadata) throws(ProviderError) -> Answer
    ) async -> [Result<Answer, ProviderError>] {
        do throws(ProviderError) {
            let entries = try await api.commits.run { () throws(ProviderError) in
                try await finished(try await launch(), check: check())
            }
            guard entries.count == count else {
                throw ProviderError(.malformedAnswer, detail: "a batch of another length")
            }
            return entries.map { entry in
                do throws(ProviderError) {
                    return .success(try read(try entry.outcome()))
                } catch { return .failure(error) }
            }
        } catch {
            return Array(repeating: .failure(error), count: count)
        }
    }

    private func finished(
        _ launched: DropboxWire.Job,
        check route: String
    ) async throws(ProviderError) -> [DropboxWire.BatchEntry] {
        var job = launched
        let id = launched.async_job_id
        var wait = Duration.milliseconds(100)
        var isFirst = true
        while true {
            switch job.tag {
            case "complete": return job.entries ?? []
            case "async_job_id", "in_progress":
                guard let id else {
                    throw ProviderError(.malformedAnswer, detail: "a job without id")
                }
                // Small jobs are done by the time that one can ask.
                if !isFirst {
                    do {
                        try await clock.sleep(for: wait)
                    } catch {
                        throw ProviderError(.cancelled, detail: "cancelled")
                    }
                    wait = min(wait * 2, .seconds(5))
                }
                isFirst = false
                do throws(ProviderError) {
                    job = try await api.call(route, DropboxWire.JobID(async_job_id: id))
                } catch { throw error.asUnknownOutcome }
            default:
                throw ProviderError(
                    .outcomeUnknown(retryAfter: nil),
                    detail: "the job ended as \(job.tag)"
                )
            }
        }
    }
}

extension DropboxWire.BatchEntry {
    /// The metadata of an entry that was done.
    func outcome() throws(ProviderError) -> DropboxWire.Metadata {
        if let metadata, tag == "success" { return metadata }
        if let failure { throw DropboxErrors.error(failure) }
        throw ProviderError(.malformedAnswer, detail: "an entry that is neither done nor failed")
    }
}
