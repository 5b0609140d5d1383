import GRDB

/// The stamps by which a catalog and the folders of its contents know each other.
///
/// The folders bear the stamp of the run that used them last. A catalog that does not know it is another
/// one, or an older copy of itself: what it says of the folders' files is not true.
extension Catalog {
    /// The stamps that the folders may bear.
    public func stamps() throws(CatalogError) -> Set<String> {
        try read { database in
            Set(try database.all("SELECT value FROM stamp", []) { $0[0] as String })
        }
    }

    /// Has the catalog know these stamps and no others, safe from the death of the machine.
    public func setStamps(_ stamps: Set<String>) throws(CatalogError) {
        try mutate { transaction in
            try transaction.database.run("DELETE FROM stamp", [])
            for stamp in stamps {
                try transaction.database.run("INSERT INTO stamp (value) VALUES (?)", [stamp])
            }
        }
        try persist()
    }
}
