import OortModel

/// Drive's pages, whose addresses it reports with each file and folder.
struct GoogleDriveWebPages: WebPages {
    let provider: GoogleDriveProvider

    private struct Shown: Decodable, Sendable {
        var webViewLink: String?
    }

    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        if let folder = SyntheticFolder(item.id) { return folder.page }
        let shown: Shown = try await provider.api.get(
            provider.api.file(item.id),
            [("supportsAllDrives", "true"), ("fields", "webViewLink")]
        )
        guard let address = shown.webViewLink else {
            throw ProviderError(.unsupported, detail: "Drive names no page of it")
        }
        return address
    }
}
