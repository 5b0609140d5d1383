public import OortModel

extension DropboxProvider {
    public var contentSearch: (any ContentSearching)? { DropboxSearch(provider: self) }
}

/// Dropbox's search of names and, as far as the plan has it, of contents.
struct DropboxSearch: ContentSearching {
    let provider: DropboxProvider

    /// Characters of the longest query.
    private static let longestQuery = 1000

    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let answer: DropboxWire.SearchResult
        if let page {
            answer = try await provider.api.call(
                "files/search/continue_v2",
                DropboxWire.CursorArgument(cursor: page.rawValue)
            )
        } else {
            let query = words.joined(separator: " ")
            guard query.unicodeScalars.count <= Self.longestQuery else {
                throw ProviderError(
                    .badRequest,
                    detail: "Dropbox looks for \(Self.longestQuery) characters at most"
                )
            }
            answer = try await provider.api.call(
                "files/search_v2",
                DropboxWire.Search(query: query)
            )
        }
        guard !answer.has_more || answer.cursor != nil else {
            throw ProviderError(.malformedAnswer, detail: "more results without a cursor")
        }
        return ListingPage(
            items: answer.matches.compactMap { $0.metadata.metadata.flatMap { Item($0) } },
            next: answer.has_more ? answer.cursor.map { PageToken($0) } : nil
        )
    }
}
