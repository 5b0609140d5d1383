public import OortModel

/// What a person asks of the service outside the tree: deleted items, earlier versions, links.
extension SyncEngine {
    /// The service's trash; nil where it has none that can be listed.
    public nonisolated var trash: (any Trash)? { provider.trash }

    /// Whether the service keeps this item when it is deleted, where it keeps others.
    public nonisolated func keepsDeleted(_ id: ItemID) -> Bool { provider.keepsDeleted(id) }

    /// What tells the item's entry in the trash from every other; nil where its id does, or nothing.
    public nonisolated func trashMark(of id: ItemID) -> String? { provider.trashMark(of: id) }

    /// Restores deleted items without a look at the trash; nil where that cannot be done.
    public nonisolated var undeletion: (any Undeletion)? { provider.undeletion }

    /// Earlier contents of files; nil where the service keeps none.
    public nonisolated var versions: (any VersionHistory)? { provider.versions }

    /// Links to share by; nil where the service has none.
    public nonisolated var links: (any LinkSharing)? { provider.links }

    /// Pages that show items in a browser; nil where the service has none.
    public nonisolated var webPages: (any WebPages)? { provider.webPages }

    /// Makes sure once that the sign-in is that of the person whose files are here.
    ///
    /// - Throws: `.signedOut` where it is another's, or what asking threw.
    public func checkPerson() async throws(ProviderError) { try await identify() }

    /// Whether anything at the service has this name in a folder now.
    public nonisolated func hasItem(
        named name: String,
        in folder: ItemReference
    ) async throws(ProviderError) -> Bool {
        try await !provider.items(named: name, in: folder).isEmpty
    }

    /// Shows what came into a folder at the service: the folder is listed now, and the feed, which has
    /// what lies deeper, is read without waiting for news.
    public func show(newIn folder: Inode) async throws(ProviderError) {
        readFeedSoon()
        try await list(folder)
    }

    /// The bytes of a file as it is at the service now, as many as `size` says; all where that is nil.
    public nonisolated func currentContent(
        of item: ItemReference,
        size: Int64?
    ) async throws(ProviderError) -> ByteStream {
        try await provider.read(item, revision: nil, range: 0..<max(size ?? .max, 0))
    }
}
