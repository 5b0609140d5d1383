import OortModel

/// Revisions as the core knows them: one names one content of its item for good, since the cache believes
/// that.
///
/// A client's revision that is only size and second can come back with another content, which another
/// machine saved: it is then `REVISION~NUMBER`, with the number of the map's change that brought it back.
extension PlaceProvider {
    private static let mark: Character = "~"

    /// The revision of a file's row; nil of a folder.
    func revision(of row: PlaceRow) -> Revision? {
        guard client.traits.hasRevisionsOfTimes, row.recurrence > 0, let own = row.entry.revision
        else { return row.entry.revision }
        return Revision("\(own.rawValue)\(Self.mark)\(row.recurrence)")
    }

    /// The client's revision for one that the core names of a row.
    ///
    /// - Throws: `.preconditionFailed` for another revision than the row's: the file may be of that again,
    ///   with another content.
    func clientRevision(
        _ revision: Revision?,
        of row: PlaceRow
    ) throws(ProviderError) -> Revision? {
        guard client.traits.hasRevisionsOfTimes, let revision else { return revision }
        guard revision == self.revision(of: row) else {
            throw ProviderError(
                .preconditionFailed,
                detail: "\(row.entry.name) has another revision"
            )
        }
        return row.entry.revision
    }
}
