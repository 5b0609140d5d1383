import GRDB
public import OortModel

/// How far an item's way to the service is.
public enum ItemStatus: Hashable, Sendable {
    /// Here and at the service are the same.
    case synced
    /// Something waits to be sent, or to be taken over.
    case pending
    /// The service did not take it, or could not be asked; `detail` is for people.
    case failing(detail: String)
}

extension Catalog {
    /// How far an item's way to the service is.
    public func status(of inode: Inode) throws(CatalogError) -> ItemStatus {
        try read { database in
            try database.first(
                "SELECT error_kind, error_detail FROM motion WHERE inode = ?",
                [inode.column]
            ) { row in
                guard let kind = row[0] as String? else { return .pending }
                return .failing(detail: "\(kind): \(row[1] as String)")
            } ?? .synced
        }
    }
}
