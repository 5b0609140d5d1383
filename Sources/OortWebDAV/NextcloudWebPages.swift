import OortModel

/// A Nextcloud's pages, by the number that it has for each file and folder.
struct NextcloudWebPages: WebPages {
    let client: WebDAVClient

    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        let (own, _, _) = try await client.ownEntry(of: item.path, depth: 0, isFolder: isFolder)
        guard let number = CloudItem(own).number, Int64(number) != nil else {
            throw ProviderError(.unsupported, detail: "the server names no number of it")
        }
        return client.address.program(["index.php", "f", number])
    }
}
