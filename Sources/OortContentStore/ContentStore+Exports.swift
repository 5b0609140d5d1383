public import OortCatalog
import OortModel
import Synchronization

extension ContentStore {
    /// A native document in the form under whose extension it is shown, whole: from the cache when
    /// it was exported before under the same key, else from the service.
    ///
    /// One export at a time for each key, shared by all callers; it continues when one of them gives up,
    /// for the others and the next opening. Two exports of one document differ, so while a program has one
    /// open, later openings get the same.
    ///
    /// - Parameter key: names the item, and in place of a revision whatever tells its states apart.
    /// - Returns: the document, complete; `close` lets it go.
    /// - Throws: `.fetch`, of kind `.cancelled` when the calling task is cancelled; what the disk and the
    ///   catalog throw when it cannot be kept.
    public func export(_ key: ContentKey) async throws(ContentError) -> CachedContent {
        while true {
            if let content = try exported(key) { return content }
            let task = state.withLock { state in
                if let task = state.exports[key] { return task }
                // Owned by the store; ends with the export, or with `stop`.
                let task = Task { () -> Result<Void, ContentError> in
                    let result: Result<Void, ContentError>
                    do throws(ContentError) {
                        result = .success(try await self.bring(key))
                    } catch { result = .failure(error) }
                    self.state.withLock { $0.exports[key] = nil }
                    return result
                }
                state.exports[key] = task
                return task
            }
            let cancelled = ProviderError(.cancelled, detail: "the caller no longer waits")
            try await task.value(orWhenCancelled: .failure(.fetch(cancelled))).get()
        }
    }

    /// An earlier export that is here, used once more.
    private func exported(_ key: ContentKey) throws(ContentError) -> CachedContent? {
        let content: CachedContent
        if let open = use(key) {
            content = open
        } else {
            guard let row = try cachedRow(of: key), row.isComplete else { return nil }
            content = try open(key, size: row.size, hash: nil)
        }
        if content.isComplete, let id = content.id, DiskFile.exists(paths.cached(id)) {
            return content
        }
        close(content)
        return nil
    }

    /// Exports a document, and keeps that under its key.
    private func bring(_ key: ContentKey) async throws(ContentError) {
        // Another caller exported it meanwhile.
        if let content = try exported(key) { return close(content) }
        guard let fetcher = fetcher(of: key.account) else {
            throw .fetch(ProviderError(.offline, detail: "the account is not connected"))
        }
        let temporary = temporaryPath()
        DiskFile.remove(temporary)
        let file = try DiskFile.open(temporary, creates: true)
        defer { DiskFile.remove(temporary) }
        var size: Int64 = 0
        let stream: ByteStream
        do throws(ProviderError) { stream = try await fetcher.export(key.item) } catch {
            throw .fetch(error)
        }
        while true {
            let bytes: [UInt8]?
            do throws(ProviderError) { bytes = try await stream.next() } catch {
                throw .fetch(error)
            }
            guard let bytes else { break }
            try await keepReserve(for: Int64(bytes.count))
            try file.write(bytes[...], at: size)
            size += Int64(bytes.count)
        }
        try await keep(temporary, file, key: key, size: size)
    }

    /// Makes room, from cached contents, for an export: its length is not known before its end, and it must
    /// not use the catalog's room.
    ///
    /// - Throws: `.noSpace` when the disk has no room but the reserve.
    private func keepReserve(for bytes: Int64) async throws(ContentError) {
        guard !room.hasRoom(for: bytes) else { return }
        await makeCacheRoom(for: bytes)
        guard room.hasRoom(for: bytes) else { throw .noSpace }
    }

    /// Makes a complete file the cached content of a key: of the one that is open, where its own bytes are
    /// gone, or a new one.
    private func keep(
        _ path: String,
        _ file: DiskFile,
        key: ContentKey,
        size: Int64
    ) async throws(ContentError) {
        let known = use(key)
        if let known, known.size == size {
            defer { close(known) }
            return try await known.take(path, file)
        }
        if let known {
            await supersede(known)
            close(known)
        }
        try await forget(key, isCounted: known == nil)
        // It is in use before it has a row, so that it is not evicted.
        let content = try open(key, size: size, hash: nil)
        defer { close(content) }
        try await content.take(path, file)
    }

    /// Ends an open content whose bytes are gone: the document was exported anew, in another size.
    private func supersede(_ content: CachedContent) async {
        state.withLock { state in
            guard state.cached[content.filed]?.content === content else { return }
            state.cached[content.filed] = nil
            state.unsaved.remove(content.filed)
        }
        await content.supersede()
    }

    /// Removes the content that the catalog has under a key and that is not open; `isCounted` says whether
    /// the room counts its bytes as the catalog does.
    private func forget(_ key: ContentKey, isCounted: Bool) async throws(ContentError) {
        guard let row = try cachedRow(of: key) else { return }
        do throws(CatalogError) {
            // If it was evicted just now, the eviction counts it.
            let removed = try await catalog.removeContents([row.id], areStaged: false)
            guard let bytes = removed[row.id] else { return }
            remove([paths.cached(row.id)])
            if isCounted { room.addCached(-bytes) }
        } catch { throw .catalog(detail: "\(error)") }
    }

    func endExports() async {
        let exports = state.withLock { Array($0.exports.values) }
        for export in exports { export.cancel() }
        for export in exports { _ = await export.value }
    }
}
