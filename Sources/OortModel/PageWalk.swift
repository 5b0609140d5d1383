/// A walk over the pages of a list, which ends also where the service names a page again and again.
public struct PageWalk: Sendable {
    /// Of each page's token a hash: a token may be as long as a cursor with hundreds of folders.
    private var seen: Set<Int> = []

    /// A walk that begins at the list's first page.
    public init() {}

    /// Notes that the page at `token` is to be read next.
    ///
    /// - Throws: `.malformedAnswer` when this walk came by the page before.
    public mutating func goOn(to token: String) throws(ProviderError) {
        guard seen.insert(token.hashValue).inserted else {
            throw ProviderError(.malformedAnswer, detail: "a list's pages lead back to themselves")
        }
    }
}
