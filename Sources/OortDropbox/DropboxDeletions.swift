public import OortModel
import OortTransport

/// Deletions. Dropbox refuses a folder with more in it than it deletes at once: that one is deleted
/// in parts.
extension DropboxProvider {
    public func delete(_ deletion: Deletion) async throws(ProviderError) {
        try await finish(deletion, await remove(argument(deletion)))
    }

    public func delete(_ deletions: [Deletion]) async -> [Result<Void, ProviderError>] {
        var results: [Result<Void, ProviderError>] = []
        for (deletion, result) in zip(deletions, await remove(deletions.map(argument))) {
            do throws(ProviderError) {
                try await finish(deletion, result)
                results.append(.success(()))
            } catch { results.append(.failure(error)) }
        }
        return results
    }

    private func argument(_ deletion: Deletion) -> DropboxWire.Delete {
        DropboxWire.Delete(
            path: address(deletion.item),
            parent_rev: deletion.revision?.rawValue
        )
    }

    /// Deletes in parts what was refused as too much; any other result stands.
    private func finish(
        _ deletion: Deletion,
        _ result: Result<Void, ProviderError>
    ) async throws(ProviderError) {
        do throws(ProviderError) {
            try result.get()
        } catch {
            guard error.kind == .limitExceeded, deletion.revision == nil else { throw error }
            try await deleteInParts(deletion.item, refused: error)
        }
    }

    // MARK: Requests

    private func remove(_ entry: DropboxWire.Delete) async -> Result<Void, ProviderError> {
        Self.settled(await ask(for: entry))
    }

    /// At most 1000 entries.
    private func remove(
        _ entries: [DropboxWire.Delete]
    ) async -> [Result<Void, ProviderError>] {
        await ask(for: entries).map(Self.settled)
    }

    private func ask(for entry: DropboxWire.Delete) async -> Result<Void, ProviderError> {
        do throws(ProviderError) {
            let _: DropboxWire.Wrapped = try await api.call("files/delete_v2", entry)
            return .success(())
        } catch { return .failure(error) }
    }

    private func ask(
        for entries: [DropboxWire.Delete]
    ) async -> [Result<Void, ProviderError>] {
        guard entries.count > 2 else {
            var results: [Result<Void, ProviderError>] = []
            for entry in entries { results.append(await ask(for: entry)) }
            return results
        }
        return await batch(entries.count) {
            () throws(ProviderError) in
            try await api.call("files/delete_batch", DropboxWire.Entries(entries: entries))
        } check: {
            "files/delete_batch/check"
        } read: { _ throws(ProviderError) in
        }
    }

    /// What is gone already is deleted; a conflict is a stale revision.
    private static func settled(
        _ result: Result<Void, ProviderError>
    ) -> Result<Void, ProviderError> {
        guard case .failure(let error) = result else { return result }
        return switch error.kind {
        case .notFound: .success(())
        case .nameTaken: .failure(ProviderError(.preconditionFailed, detail: error.detail))
        default: .failure(error)
        }
    }

    // MARK: In parts

    /// A folder that is to go in parts, or what must be asked for alone.
    private struct LargeItem {
        var address: String
        /// Folders above it, up to the one that was to be deleted.
        var depth: Int
        /// Refused as too much since something was last deleted in it.
        var isRefused = true
    }

    /// What the deletion of some of a folder's children came to.
    private struct Part {
        /// How many are gone.
        var gone = 0
        /// What was refused as too much itself.
        var large: [LargeItem] = []
        /// What the service asked for patience with.
        var patience: ProviderError?
    }

    /// Deletes a folder that is too much for one request: what is in it, page by page, until the
    /// rest can go at once; of the folders in it those likewise that are too much themselves.
    ///
    /// Begun again it goes on with what is left, so that nothing has to be remembered. `refused` is
    /// the refusal of the whole, thrown where there is no way to do it in parts.
    private func deleteInParts(
        _ item: ItemReference,
        refused: ProviderError
    ) async throws(ProviderError) {
        guard try await mayBeDeletedInParts(item, refused: refused) else { return }
        var open = [LargeItem(address: address(item), depth: 0)]
        var isBegun = false
        // Listings in a row after which nothing could be deleted.
        var vain = 0
        do throws(ProviderError) {
            while var folder = open.popLast() {
                if !folder.isRefused {
                    guard case .failure(let error) = await remove(.init(path: folder.address))
                    else {
                        vain = 0
                        continue
                    }
                    guard error.kind == .limitExceeded else { throw error }
                }
                guard let entries = try await firstChildren(in: folder.address) else { continue }
                if !entries.isEmpty { isBegun = true }
                let part = try await remove(entries, in: folder, refused: refused)
                folder.isRefused = false
                open.append(folder)
                open += part.large
                vain = part.gone > 0 ? 0 : vain + 1
                // One further down is something new to try.
                guard vain <= folder.depth + 4, folder.depth < Self.deepest else {
                    throw part.patience ?? refused
                }
                guard part.patience != nil || part.gone == 0 && part.large.isEmpty else { continue }
                try await wait(part.patience?.retryAfter ?? .seconds(1 << min(vain, 4)))
            }
        } catch { throw isBegun ? error.asUnknownOutcome : error }
    }

    /// No tree is deeper, but for one that is made up.
    private static let deepest = 1000

    /// Whether a folder is still there, and its own: of a shared folder that is mounted here only
    /// the mount would go, while its parts would be deleted for everybody.
    private func mayBeDeletedInParts(
        _ item: ItemReference,
        refused: ProviderError
    ) async throws(ProviderError) -> Bool {
        do throws(ProviderError) {
            let metadata: DropboxWire.Metadata = try await api.call(
                "files/get_metadata",
                DropboxWire.PathArgument(path: address(item))
            )
            guard !metadata.isSharedFolder else { throw Self.shared(metadata, refused) }
            guard metadata.tag == "folder" else { throw refused }
            return true
        } catch {
            guard error.kind == .notFound else { throw error }
            return false
        }
    }

    private static func shared(
        _ metadata: DropboxWire.Metadata,
        _ refused: ProviderError
    ) -> ProviderError {
        ProviderError(
            .limitExceeded,
            detail: "“\(metadata.name)” is a shared folder with more in it than Dropbox removes at "
                + "once: leave it on dropbox.com; \(refused.detail)"
        )
    }

    /// The first of a folder's children; nil when it is gone.
    ///
    /// The listing is not continued: what it named is deleted before more is wanted.
    private func firstChildren(
        in folder: String
    ) async throws(ProviderError) -> [DropboxWire.Metadata]? {
        do throws(ProviderError) {
            var listing: DropboxWire.Listing = try await api.call(
                "files/list_folder",
                DropboxWire.ListFolder(path: folder)
            )
            // A page may be empty although more follow.
            while true {
                let entries = listing.entries.filter { $0.tag == "file" || $0.tag == "folder" }
                guard entries.isEmpty, listing.has_more else { return entries }
                listing = try await api.call(
                    "files/list_folder/continue",
                    DropboxWire.CursorArgument(cursor: listing.cursor)
                )
            }
        } catch {
            guard error.kind == .notFound else { throw error }
            return nil
        }
    }

    /// Deletes children of a folder.
    ///
    /// - Throws: what is refused for another reason than that it is too much, or too soon.
    private func remove(
        _ children: [DropboxWire.Metadata],
        in folder: LargeItem,
        refused: ProviderError
    ) async throws(ProviderError) -> Part {
        var part = Part()
        for start in stride(from: 0, to: children.count, by: traits.batchSizes.delete) {
            let entries = children[start..<min(start + traits.batchSizes.delete, children.count)]
            let results = await ask(
                for: entries.map { .init(path: Self.address(of: $0, in: folder.address)) }
            )
            for (entry, result) in zip(entries, results) {
                guard case .failure(let error) = result else {
                    part.gone += 1
                    continue
                }
                switch error.kind {
                // Another client deleted it; if it is listed again and again, that is no progress.
                case .notFound: continue
                case .nameTaken: throw ProviderError(.preconditionFailed, detail: error.detail)
                case .limitExceeded where entry.isSharedFolder: throw Self.shared(entry, refused)
                case .limitExceeded:
                    part.large.append(
                        LargeItem(
                            address: Self.address(of: entry, in: folder.address),
                            depth: folder.depth + 1,
                            // A file is never too much: all that was asked for at once was.
                            isRefused: entry.tag == "folder"
                        )
                    )
                case .rateLimited: part.patience = error
                default: throw error
                }
            }
        }
        return part
    }

    /// A child is addressed by its path, and by its id only where its name cannot stand in such an address.
    ///
    /// An item that another client moves out of the folder meanwhile must not be deleted elsewhere.
    private static func address(of child: DropboxWire.Metadata, in folder: String) -> String {
        let isPlain =
            NameRules.dropbox.refusal(child.name, .file, 0) == nil
            && !child.name.unicodeScalars.contains("\n")
        guard !isPlain, let id = child.id else { return folder + "/" + child.name }
        return id
    }

    private func wait(_ duration: Duration) async throws(ProviderError) {
        do {
            try await clock.sleep(for: duration)
        } catch {
            throw ProviderError(.cancelled, detail: "cancelled")
        }
    }
}

extension DropboxWire.Metadata {
    /// Whether it is a shared folder itself, which is mounted here.
    fileprivate var isSharedFolder: Bool { sharing_info?.shared_folder_id != nil }
}
