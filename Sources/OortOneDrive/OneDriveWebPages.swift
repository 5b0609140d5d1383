import OortModel

/// OneDrive's pages, whose addresses Graph reports with each item.
struct OneDriveWebPages: WebPages {
    let provider: OneDriveProvider

    private struct Shown: Decodable, Sendable {
        var webUrl: String?
    }

    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        let id = try OneDriveItemID(item.id)
        let shown = try await provider.api.send(
            provider.api.request("GET", id.target.path, query: [("$select", "id,webUrl")]),
            for: Shown.self,
            about: .item
        )
        guard let address = shown.webUrl else {
            throw ProviderError(.unsupported, detail: "OneDrive names no page of it")
        }
        return address
    }
}
