import OortModel

/// Box's pages, by the item's id.
///
/// Source: developer.box.com/platform/appendix/locating-values.
struct BoxWebPages: WebPages {
    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String {
        let id = try BoxID(item.id)
        return switch id.kind {
        case .file: "https://app.box.com/file/\(BoxAPI.encoded(id.id))"
        case .folder: "https://app.box.com/folder/\(BoxAPI.encoded(id.id))"
        case .webLink:
            throw ProviderError(.unsupported, detail: "a web link's page is what it leads to")
        }
    }
}
