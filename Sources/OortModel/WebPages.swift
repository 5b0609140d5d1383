/// The pages by which a service shows items in a browser, to whoever is signed in there.
///
/// Isolation, cancellation and repetition are those of `Provider`. A client of places reads the paths
/// of references only.
public protocol WebPages: Sendable {
    /// The address of an item's page.
    ///
    /// - Throws: `.notFound`, `.unsupported` when this kind of item has none.
    func page(of item: ItemReference, isFolder: Bool) async throws(ProviderError) -> String
}
