public import OortModel

extension OneDriveProvider {
    public var contentSearch: (any ContentSearching)? { OneDriveSearch(provider: self) }
}

/// Graph's search of the account's drive: names, metadata and contents.
struct OneDriveSearch: ContentSearching {
    let provider: OneDriveProvider

    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let drive = try await provider.drive()
        let request =
            if let page {
                try provider.api.request(
                    following: page.rawValue,
                    headers: [OneDriveAPI.sharedFolders]
                )
            } else {
                provider.api.request(
                    "GET",
                    "\(drive.root.path)/search(q='\(Self.quoted(words))')",
                    query: [("$top", "100"), ("$select", OneDriveAPI.itemFields)],
                    headers: [OneDriveAPI.sharedFolders]
                )
            }
        let answer = try await provider.api.send(request, for: ItemPageWire.self, about: .item)
        return ListingPage(
            items: answer.value.compactMap { provider.canonical($0, drive: drive.id) },
            next: answer.nextLink.map { PageToken($0) }
        )
    }

    /// Words as the text of a function's argument in a path: quotes are doubled.
    private static func quoted(_ words: [String]) -> String {
        PercentEncoding.segment(
            words.joined(separator: " ").replacing("'", with: "''")
        )
    }
}
