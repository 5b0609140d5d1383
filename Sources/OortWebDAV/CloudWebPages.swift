import OortModel

/// A cloud's pages: a Nextcloud's by the number that it has for each file and folder, an OpenCloud's by its id.
struct CloudWebPages: WebPages {
    let client: WebDAVClient

    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        let (own, _, _) = try await client.ownEntry(of: item.path, depth: 0, isFolder: isFolder)
        if client.dialect == .infinitescale, let id = CloudItem(own).id {
            return client.address.program(["f", id])
        }
        guard let number = CloudItem(own).number, Int64(number) != nil else {
            throw ProviderError(.unsupported, detail: "the server names no number of it")
        }
        return client.address.program(["index.php", "f", number])
    }
}
