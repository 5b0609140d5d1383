import OortCatalog
import OortModel

extension ContentStore {
    /// A native document in the form under whose extension it is shown, whole: from the cache when
    /// it was exported before under the same key, else from the service.
    ///
    /// `close` lets it go.
    ///
    /// `key` names the item, and in place of a revision whatever tells its states apart.
    public func export(_ key: ContentKey) async throws(ContentError) -> CachedContent {
        if let row = try cachedRow(of: key), row.isComplete, DiskFile.exists(paths.cached(row.id)) {
            return try open(key, size: row.size, hash: nil)
        }
        guard let fetcher = fetcher(of: key.account) else {
            throw .fetch(ProviderError(.offline, detail: "the account is not connected"))
        }
        let temporary = temporaryPath()
        DiskFile.remove(temporary)
        let file = try DiskFile.open(temporary, creates: true)
        defer { DiskFile.remove(temporary) }
        var size: Int64 = 0
        do throws(ProviderError) {
            let stream = try await fetcher.export(key.item)
            while let bytes = try await stream.next() {
                do throws(ContentError) { try file.write(bytes[...], at: size) } catch {
                    throw ProviderError(.localContent, detail: "\(error)")
                }
                size += Int64(bytes.count)
            }
        } catch { throw .fetch(error) }
        return try await keep(temporary, file, key: key, size: size)
    }

    /// Makes a complete file the cached content of a key.
    private func keep(
        _ path: String,
        _ file: DiskFile,
        key: ContentKey,
        size: Int64
    ) async throws(ContentError) -> CachedContent {
        do {
            if let old = try catalog.cachedContent(
                account: key.account,
                item: key.item,
                revision: key.revision
            ) {
                try await catalog.removeContents([old.id])
                pool.forget(paths.cached(old.id))
                DiskFile.remove(paths.cached(old.id))
            }
            let id = try await catalog.insertCachedContent(
                account: key.account,
                item: key.item,
                revision: key.revision,
                size: size,
                hash: nil
            )
            let target = paths.cached(id)
            pool.forget(target)
            if !DiskFile.move(path, to: target) {
                let copy = try pool.create(target)
                try await copy.becomeCopy(of: file)
            }
            var present = RangeSet<Int64>()
            if size > 0 { present.insert(contentsOf: 0..<size) }
            room.addCached(size)
            try await catalog.saveCache([
                CacheRecord(
                    id: id,
                    present: present.record,
                    isComplete: true,
                    bytesOnDisk: size
                )
            ])
        } catch let error as ContentError {
            throw error
        } catch { throw .catalog(detail: "\(error)") }
        return try open(key, size: size, hash: nil)
    }
}
