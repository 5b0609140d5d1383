/// A walk over the pages of a list that ends even if the service repeats a page for ever.
public struct PageWalk: Sendable {
    /// A hash of each page's token: a token may be as long as a cursor with hundreds of folders.
    private var seen: Set<Int> = []

    /// A walk that begins at the list's first page.
    public init() {}

    /// Notes that the page at `token` is to be read next.
    ///
    /// - Throws: `.malformedAnswer` when this walk has read the page before.
    public mutating func goOn(to token: String) throws(ProviderError) {
        guard seen.insert(token.hashValue).inserted else {
            throw ProviderError(.malformedAnswer, detail: "a list's pages lead back to themselves")
        }
    }
}
