public import OortCatalog
public import OortContentStore
public import OortModel

/// Gets an account's bytes from its provider: by id, and by the path last reported.
public struct ProviderContentFetcher: ContentFetcher {
    private let account: AccountID
    private let provider: any Provider
    private let catalog: Catalog

    /// A fetcher for an account.
    public init(account: AccountID, provider: any Provider, catalog: Catalog) {
        self.account = account
        self.provider = provider
        self.catalog = catalog
    }

    public var largestRangeRequest: Int64 { provider.traits.largestRangeRequest }

    public var rangesAhead: Int { provider.traits.rangesAhead }

    public func fetch(
        _ key: ContentKey,
        range: Range<Int64>
    ) async throws(ProviderError) -> ByteStream {
        try await provider.read(
            try await reference(key.item),
            revision: key.revision,
            range: range
        )
    }

    public func export(_ item: ItemID) async throws(ProviderError) -> ByteStream {
        let reference = try await reference(item)
        let current = try await provider.item(reference)
        // The form that its shown extension names: the settings may have changed since.
        let shown: String?
        do throws(CatalogError) {
            shown = try catalog.node(remoteID: item, account: account)?.name
        } catch { throw ProviderError(.localContent, detail: "catalog: \(error)") }
        let asShown = current.exports.first { shown?.ends(with: "." + $0.fileExtension) == true }
        guard let format = asShown ?? current.exports.first else {
            throw ProviderError(.unsupported, detail: "the document has no form to export")
        }
        return try await provider.export(reference, to: format)
    }

    public func makeHasher() -> any ContentHasher { provider.makeHasher() }

    private func reference(_ item: ItemID) async throws(ProviderError) -> ItemReference {
        do throws(CatalogError) {
            // A service that needs more than the id says so; the path is the one last reported.
            return try await catalog.reference(to: item, in: account)
                ?? ItemReference(id: item, path: .root)
        } catch { throw ProviderError(.localContent, detail: "catalog: \(error)") }
    }
}
