public import OortCatalog
public import OortModel

/// Gets an account's bytes from the service.
public protocol ContentFetcher: Sendable {
    /// The most bytes that are worth asking for at once.
    var largestRangeRequest: Int64 { get }
    /// The most requests of one file for bytes that no program waits for yet.
    var rangesAhead: Int { get }

    /// The bytes of a range of a revision.
    ///
    /// - Throws: `ProviderError`; `.preconditionFailed` when the service can no longer give this
    ///   revision.
    func fetch(_ key: ContentKey, range: Range<Int64>) async throws(ProviderError) -> ByteStream

    /// A native document, exported to the form under whose extension it is shown.
    func export(_ item: ItemID) async throws(ProviderError) -> ByteStream

    /// A new hasher of the service's algorithm.
    func makeHasher() -> any ContentHasher
}
