/// The search of a service that looks inside files, too.
///
/// Isolation, cancellation and errors are those of `Provider`.
public protocol ContentSearching: Sendable {
    /// One page of the items in which the service finds all of the words, in names, descriptions or
    /// contents; the best first.
    ///
    /// Services search an index that lags behind: an item that is found may have been moved, changed or
    /// trashed since, may come twice, and may be another person's, outside the account.
    ///
    /// The words, at least one and none empty, are as a person typed them; a page goes with the words of
    /// the page before.
    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage
}
