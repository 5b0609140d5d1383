import Logging
public import OortCatalog
public import OortModel
import Synchronization

/// A staged content that is complete and frozen, to be uploaded.
///
/// Ends with `ContentStore.uploaded` or `ContentStore.release`.
public struct FrozenContent: ContentSource {
    let staged: StagedContent
    /// Bytes in all.
    public let size: Int64
    /// The hash by the service's algorithm.
    public let hash: ContentHash

    public func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
        do throws(ContentError) {
            let bytes = try await staged.bytes(offset..<offset + Int64(count))
            guard bytes.count == count else {
                throw ContentError.damaged(detail: "\(bytes.count) bytes instead of \(count)")
            }
            return bytes
        } catch { throw ProviderError(.localContent, detail: "\(error)") }
    }
}

extension ContentStore {
    /// Freezes a staged content, fetches what it lacks of its base, and hashes it: ready to be uploaded.
    ///
    /// A program that writes to the file from now on gets a clone.
    ///
    /// - Throws: `ProviderError`: `.localContent` when local bytes are lost, and whatever the base's
    ///   fetch throws; the content is then writable as before.
    public func freeze(_ id: ContentID) async throws(ProviderError) -> FrozenContent {
        let content: StagedContent
        do throws(ContentError) { content = try open(staged: id) } catch {
            throw Self.providerError(error)
        }
        let damage = content.state.withLock { state in
            // A damaged one is never frozen, or a writer would get a clone of it.
            if state.damage == nil { state.freezes += 1 }
            return state.damage
        }
        if let damage {
            close(content)
            throw Self.providerError(.damaged(detail: damage))
        }
        do throws(ContentError) {
            try await content.materialise()
            let hash = try await self.hash(of: content)
            roomless.withLock { _ = $0.remove(id) }
            return FrozenContent(staged: content, size: content.size, hash: hash)
        } catch {
            roomless.withLock { ids in
                if error == .noSpace { ids.insert(id) } else { ids.remove(id) }
            }
            unfreeze(content)
            throw Self.providerError(error)
        }
    }

    /// Whether the disk had no room for the whole content at the last attempt to freeze it: each upload
    /// that ends gives some back.
    public func lackedRoom(for id: ContentID) -> Bool { roomless.withLock { $0.contains(id) } }

    /// Records the hash of a frozen content, for the planner; the next write voids it.
    ///
    /// - Returns: false when no such content is staged any longer.
    public func recordHash(of frozen: FrozenContent) async throws(CatalogError) -> Bool {
        let isStored = try await catalog.setHash(
            frozen.hash,
            size: frozen.size,
            ofStaged: frozen.staged.id
        )
        // A program may have it open and may have written already.
        if isStored { frozen.staged.state.withLock { $0.isReopened = false } }
        return isStored
    }

    /// Lets go of a frozen content that was not uploaded.
    public func release(_ frozen: FrozenContent) { unfreeze(frozen.staged) }

    /// Makes a frozen content, which the service has as this revision, the cached content of the revision,
    /// without a copy.
    ///
    /// To be called after the catalog records that for the file.
    public func uploaded(_ frozen: FrozenContent, as key: ContentKey) async {
        let content = frozen.staged
        let id = content.id
        defer { unfreeze(content) }
        do throws(CatalogError) {
            // A file may have it still, written by a program in between; never while it is frozen.
            guard try !catalog.isStaged(id) else { return }
        } catch { return notCached(error) }
        var present = RangeSet<Int64>()
        if frozen.size > 0 { present.insert(contentsOf: 0..<frozen.size) }
        let cached = CachedContent(
            key: key,
            size: frozen.size,
            hash: frozen.hash,
            id: id,
            present: present,
            isVerified: true,
            store: self
        )
        // Before the catalog knows: a reader of the revision then gets these bytes, and makes no file of
        // its own under the same number.
        let isMoved = moveToCache(id)
        guard isMoved, adopt(cached) else {
            // The revision is being read already, or the cache is on another disk: the staged bytes go with
            // their last user.
            await forget(content, as: key, size: frozen.size, hash: frozen.hash, wasMoved: isMoved)
            return
        }
        content.state.withLock { state in
            state.cached = cached
            state.journal = nil
        }
        pool.forget(paths.journal(id))
        DiskFile.remove(paths.journal(id))
        room.addCached(frozen.size)
        room.set(0, of: id)
        await record(cached, as: id, present)
        await evict()
    }

    /// Records in the catalog that a content was moved to the cache.
    private func record(
        _ content: CachedContent,
        as id: ContentID,
        _ present: RangeSet<Int64>
    ) async {
        // Ends by itself, even if the caller no longer waits: the file is moved already.
        let result = await Task {
            try await self.catalog.makeCached(
                id,
                as: { content.filed },
                present: present.record,
                size: content.size
            )
        }.result
        switch result {
        case .success(let replaced?):
            pool.forget(paths.cached(replaced.id))
            DiskFile.remove(paths.cached(replaced.id))
            room.addCached(-replaced.bytesOnDisk)
        case .success(nil): break
        case .failure(let cause):
            notCached(cause)
            // Not before the catalog that records the upload is durable. If it is not, the content is
            // fetched again.
            do throws(CatalogError) { try catalog.persist() } catch { return notCached(error) }
            content.discard()
        }
    }

    private func notCached(_ cause: any Error) {
        logger.warning("an upload is not in the cache", metadata: ["cause": "\(cause)"])
    }

    /// Moves the file of a staged content to the cache's folder.
    private func moveToCache(_ id: ContentID) -> Bool {
        let moved = DiskFile.move(paths.staged(id), to: paths.cached(id))
        if moved { pool.forget(paths.staged(id)) }
        return moved
    }

    /// Ends a staged content that could not become cached content, because the revision is being read
    /// already or the cache is on another disk: its bytes go to the cache's content.
    ///
    /// It must be complete: the identity of a temporary file is given away only while its bytes are here.
    private func forget(
        _ content: StagedContent,
        as key: ContentKey,
        size: Int64,
        hash: ContentHash,
        wasMoved: Bool
    ) async {
        var successor: CachedContent?
        let place = wasMoved ? paths.cached(content.id) : paths.staged(content.id)
        do throws(ContentError) {
            let opened = try open(key, size: size, hash: hash)
            successor = opened
            try await opened.fill(from: try pool.file(place))
        } catch {
            // It is fetched when a program reads it.
            logger.info("bytes were not kept", metadata: ["cause": "\(error)"])
        }
        await save()
        content.state.withLock { [successor] state in
            state.cached = successor
            state.isDiscarded = true
        }
        guard wasMoved else { return }
        // It goes like all garbage: once the catalog that records the upload is durable.
        let isBack = DiskFile.move(paths.cached(content.id), to: paths.staged(content.id))
        pool.forget(paths.cached(content.id))
        if !isBack {
            logger.warning(
                "the file of an uploaded content could not be moved back",
                metadata: ["content": "\(content.id.rawValue)"]
            )
        }
    }

    private func unfreeze(_ content: StagedContent) {
        content.state.withLock { $0.freezes -= 1 }
        close(content)
    }

    /// Hashes a staged content.
    ///
    /// - Throws: as `StagedContent.checkNeed`; `.damaged`, `.fetch`.
    private func hash(of content: StagedContent) async throws(ContentError) -> ContentHash {
        if let hash = content.state.withLock({ $0.hash }) { return hash }
        guard let fetcher = fetcher(of: content.account) else {
            throw .fetch(ProviderError(.offline, detail: "the account is not connected"))
        }
        var hasher = fetcher.makeHasher()
        var position: Int64 = 0
        while position < content.size {
            try content.checkNeed(looking: position > 0 && position % (16 << 20) == 0)
            let bytes = try await content.bytes(position..<position + (1 << 20))
            guard !bytes.isEmpty else { break }
            hasher.update(bytes[...])
            position += Int64(bytes.count)
            await SystemInputs.yield()
        }
        let hash = hasher.finalize()
        let isRecorded = content.state.withLock { state in
            if let recorded = state.recordedHash, recorded.algorithm == hash.algorithm,
                recorded != hash
            {
                return false
            }
            (state.hash, state.isHashRemembered) = (hash, false)
            return true
        }
        guard isRecorded else {
            throw .damaged(detail: "the bytes on the disk are not those that were written")
        }
        return hash
    }

    private static func providerError(_ error: ContentError) -> ProviderError {
        switch error {
        case .fetch(let cause): return cause
        case .noSpace:
            return ProviderError(
                .localContent,
                detail: "the local disk has no room for all of it: make room there"
            )
        default: return ProviderError(.localContent, detail: "\(error)")
        }
    }
}
