import GRDB

/// The stamps by which a catalog and the folders of its contents recognise each other.
///
/// The folders bear the stamp of the run that last used them. A catalog that does not know that stamp is
/// another one, or an older copy: it does not describe the folders' files.
extension Catalog {
    /// The stamps that the catalog knows.
    public func stamps() throws(CatalogError) -> Set<String> {
        try read { database in
            Set(try database.all("SELECT value FROM stamp", []) { $0[0] as String })
        }
    }

    /// Makes the catalog know these stamps and no others, safe from the death of the machine.
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
