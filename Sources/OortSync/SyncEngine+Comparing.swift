import Logging
import OortCatalog
import OortContentStore
import OortModel

/// Whether a file at the service has the bytes that were sent.
extension SyncEngine {
    /// The file with the hash of what an intent sent, where it has exactly those bytes; nil where it
    /// does not.
    ///
    /// Where the service reports no hash of the file, or one that does not tell contents apart, its bytes
    /// are read and compared: equal size and time prove nothing, and a file that is taken for ours by
    /// mistake is lost. It does not matter who sent equal bytes.
    ///
    /// - Throws: `ProviderError` when the service did not answer; it has to be asked again.
    func confirmed(
        _ item: Item,
        as intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Item? {
        guard let hash = intent.hash.flatMap({ ContentHash(description: $0) }) else { return nil }
        if let size = intent.size, item.size != size { return nil }
        if let reported = item.contentHash {
            guard reported == hash else { return nil }
            if hash.algorithm.tellsContentsApart { return item }
        }
        do throws(ProviderError) {
            guard try await hasBytes(item, of: hash, sentAs: intent, of: inode) else { return nil }
            var confirmed = item
            confirmed.contentHash = hash
            return confirmed
        } catch {
            // A file that cannot be read, or has changed by now, is not taken for ours: both are kept.
            guard error.isLastingRefusal else { throw error }
            return nil
        }
    }

    /// Reads a file and compares it with what was sent, by the hash, and by the bytes where that does not
    /// tell contents apart.
    ///
    /// If the bytes that were sent have been replaced here since, the hash is compared, and in place of the bytes
    /// the modified time that was sent along: what replaced them goes over the file if it is taken for ours.
    private func hasBytes(
        _ item: Item,
        of hash: ContentHash,
        sentAs intent: Intent,
        of inode: Inode
    ) async throws(ProviderError) -> Bool {
        guard let size = item.size else { return false }
        let tellsApart = hash.algorithm.tellsContentsApart
        let frozen = tellsApart ? nil : await sent(intent, hash, of: inode)
        defer { if let frozen { store.release(frozen) } }
        guard tellsApart || frozen != nil || size == 0 || hasTime(item, sentBy: intent) else {
            return false
        }
        var hasher = provider.makeHasher()
        var count: Int64 = 0
        if size > 0 {
            queue.compares(size, of: inode)
            logger.info("a file is read to be compared", metadata: ["item": "\(item.id)"])
            let reference = ItemReference(id: item.id, path: item.path ?? .root)
            while count < size {
                let start = count
                do throws(ProviderError) {
                    let stream = try await provider.read(
                        reference,
                        revision: item.rev,
                        range: start..<size
                    )
                    while let part = try await stream.next() {
                        hasher.update(part[...])
                        if let frozen {
                            guard count + Int64(part.count) <= frozen.size,
                                try await frozen.read(at: count, count: part.count)
                                    .elementsEqual(part)
                            else { return false }
                        }
                        count += Int64(part.count)
                        queue.sent(count, of: inode)
                    }
                } catch {
                    // A connection that breaks now and then must not make a large file begin anew; only a
                    // revision proves that it is the same file still.
                    guard error.isTransient, item.rev != nil, count > start else { throw error }
                }
                guard count > start else { break }
            }
        }
        return count == size && hasher.finalize() == hash
    }

    /// Whether a file has the modified time that was sent along with its content.
    private func hasTime(_ item: Item, sentBy intent: Intent) -> Bool {
        let (traits, resolution) = (provider.traits, provider.traits.timeResolution)
        guard traits.setsModifiedTime, let sent = intent.modifiedTime?.truncated(to: resolution)
        else { return false }
        return item.clientModifiedTime?.truncated(to: resolution) == sent
    }

    /// The staged content that an intent sent, frozen; nil where its file has another one by now.
    private func sent(
        _ intent: Intent,
        _ hash: ContentHash,
        of inode: Inode
    ) async -> FrozenContent? {
        do {
            guard let staged = intent.staged, try catalog.node(inode).staged?.rawValue == staged
            else { return nil }
            let frozen = try await store.freeze(ContentID(staged))
            if frozen.hash == hash { return frozen }
            store.release(frozen)
        } catch {
            logger.info("no bytes are here to compare with", metadata: ["error": "\(error)"])
        }
        return nil
    }
}
