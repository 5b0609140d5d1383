public import OortModel

/// Small pictures of items, which change nothing in the tree.
extension SyncEngine {
    /// A picture that the service renders, its longer edge near `edge` pixels.
    ///
    /// - Throws: `.unsupported` when the service has none of this item.
    public nonisolated func thumbnail(
        of item: ItemReference,
        edge: Int
    ) async throws(ProviderError) -> ByteStream {
        try await provider.thumbnail(of: item, edge: edge)
    }
}
