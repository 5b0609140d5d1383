import Logging
import OortCatalog
import OortModel

/// Whether a file at the service has the bytes that were sent.
extension SyncEngine {
    /// The file with the hash of what an intent sent, where it has exactly those bytes; nil where it
    /// does not.
    ///
    /// Where the service tells no hash of the file, its bytes are read and compared: that size and time
    /// are equal proves nothing, and what is taken for ours by mistake is lost. Who sent bytes that are
    /// equal does not matter.
    ///
    /// - Throws: `ProviderError` when the service did not answer; it has to be asked again.
    func confirmed(_ item: Item, as intent: Intent) async throws(ProviderError) -> Item? {
        guard let hash = intent.hash else { return nil }
        if let size = intent.size, item.size != size { return nil }
        if let told = item.contentHash { return told.description == hash ? item : nil }
        do throws(ProviderError) {
            guard let read = try await readHash(of: item), read.description == hash else {
                return nil
            }
            var confirmed = item
            confirmed.contentHash = read
            return confirmed
        } catch {
            // What cannot be read, or is another by now, is not taken for ours: both are kept.
            guard error.isLastingRefusal else { throw error }
            return nil
        }
    }

    /// The hash of a revision's bytes as they are read; nil where they are not as many as the item has.
    private func readHash(of item: Item) async throws(ProviderError) -> ContentHash? {
        guard let size = item.size else { return nil }
        var hasher = provider.makeHasher()
        var count: Int64 = 0
        if size > 0 {
            logger.info("a file is read to be compared", metadata: ["item": "\(item.id)"])
            let reference = ItemReference(id: item.id, path: item.path ?? .root)
            let stream = try await provider.read(reference, revision: item.rev, range: 0..<size)
            while let part = try await stream.next() {
                hasher.update(part[...])
                count += Int64(part.count)
            }
        }
        return count == size ? hasher.finalize() : nil
    }
}
