import OortModel
import OortTransport

/// Box's search of names, descriptions and contents, whose index is minutes late.
struct BoxSearch: ContentSearching {
    let provider: BoxProvider

    private static let pageSize = 200

    func search(
        for words: [String],
        page: PageToken?
    ) async throws(ProviderError) -> ListingPage {
        let offset = page.flatMap { Int($0.rawValue) } ?? 0
        var query = [
            ("query", words.joined(separator: " ")), ("limit", String(Self.pageSize)),
            ("offset", String(offset)), ("fields", BoxWire.Item.fields),
        ]
        if !provider.isWhole { query.append(("ancestor_folder_ids", provider.top.id)) }
        let answer: BoxWire.Listing = try await provider.api.send(
            provider.api.get("search", query)
        )
        let me = try await provider.me()
        let entries = answer.entries ?? []
        let end = offset + entries.count
        let total = answer.total_count?.value ?? 0
        return ListingPage(
            items: entries.compactMap(\.item).filter { !$0.isGone }.compactMap { $0.item(me: me) },
            next: entries.isEmpty || Int64(end) >= total ? nil : PageToken(String(end))
        )
    }
}
