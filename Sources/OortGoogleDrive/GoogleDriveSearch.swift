public import OortModel

extension GoogleDriveProvider {
    public var contentSearch: (any ContentSearching)? { GoogleDriveSearch(provider: self) }
}

/// Drive's search of names, descriptions and contents, by whole words.
struct GoogleDriveSearch: ContentSearching {
    let provider: GoogleDriveProvider

    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let rootID = try await provider.rootID()
        let terms = words.map { "fullText contains \(GoogleDriveAPI.quoted($0))" }
        let condition = (terms + ["trashed=false"]).joined(separator: " and ")
        let answer = try await provider.api.search(condition, page: page?.rawValue)
        return ListingPage(
            items: (answer.files ?? []).map { $0.item(rootID: rootID) ?? $0.item(parent: nil) },
            next: answer.nextPageToken.map { PageToken($0) }
        )
    }
}
