import OortModel

/// Keeps known what the contents of a folder are, where a move gives them other revisions: a server that
/// copies what it moves gives each file below another time.
extension PlaceMoves {
    /// The files of a folder whose contents are known.
    struct KnownContents: Sendable {
        /// The folder's row.
        var folder: Int64
        /// Where it lies below the folder that is moved.
        var place: [String]
        var files: [PlaceRow]
    }

    /// The files below a folder whose content is known by its hash, and that the service has in the revision
    /// of it now; none where a move changes no revision.
    ///
    /// What cannot be looked at is news after the move, as what somebody else wrote.
    func knownContents(below folder: Int64, at path: RemotePath) async -> [KnownContents] {
        guard client.traits.provider.moveChangesRevision else { return [] }
        var known: [KnownContents] = []
        var folders = [(id: folder, place: [String]())]
        while let (id, place) = folders.popLast() {
            guard
                let children = try? await map.read({
                    try PlaceTransaction(database: $0).children(of: id)
                })
            else { continue }
            for child in children where child.entry.kind == .folder {
                folders.append((child.id, place + [child.entry.name]))
            }
            let files = children.filter {
                $0.entry.kind == .file && $0.entry.hash != nil && !$0.isMissing
            }
            guard !files.isEmpty,
                let there = await shownFiles(in: RemotePath(path.parts + place))
            else { continue }
            known.append(
                KnownContents(
                    folder: id,
                    place: place,
                    files: files.filter { row in
                        let now = there[ExactText(row.entry.name)]
                        return now?.revision == row.entry.revision && now?.isYoung == false
                    }
                )
            )
        }
        return known
    }

    /// Gives files below a folder that was just moved the revisions that they have now, with the contents that
    /// are known of them.
    ///
    /// To be called before the folder's row is at its new place: until then no listing says anything of it.
    func renewRevisions(of known: [KnownContents], below path: RemotePath) async {
        for contents in known where !contents.files.isEmpty {
            guard let there = await shownFiles(in: RemotePath(path.parts + contents.place)) else {
                continue
            }
            try? await map.write { database in
                let transaction = PlaceTransaction(database: database)
                for old in contents.files {
                    guard let row = try transaction.row(old.id), row.parent == contents.folder,
                        row.entry.revision == old.entry.revision,
                        var entry = there[ExactText(row.entry.name)], entry.size == row.entry.size
                    else { continue }
                    entry.hash = row.entry.hash
                    try transaction.rewrite(row, as: entry)
                }
                // A content of the same second and size would have the same revision.
                try transaction.makeDue(contents.folder)
            }
        }
    }

    private func shownFiles(in folder: RemotePath) async -> [ExactText: PlaceEntry]? {
        guard let listing = try? await client.listing(of: folder) else { return nil }
        return Dictionary(
            listing.entries.filter { $0.kind == .file }.map { (ExactText($0.name), $0) }
        ) { first, _ in first }
    }
}
