import Foundation
import Logging
import OortCatalog
import OortModel
import Synchronization

extension CloudMount {
    func conflicts() async throws(Failure) -> [ConflictReport] {
        do throws(CatalogError) {
            var found: [ConflictReport] = []
            for account in try catalog.accounts() {
                for conflict in try await catalog.conflicts(account.id) {
                    found.append(
                        ConflictReport(
                            conflict,
                            account: account.name,
                            below: "\(mountPoint)/\(account.name)",
                            author: try catalog.details(of: conflict.original.inode)?.modifiedBy
                        )
                    )
                }
            }
            return found
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    func endConflict(_ id: UInt64) async throws(Failure) {
        do throws(CatalogError) {
            try await catalog.endConflict(Inode(id))
        } catch {
            throw CatalogTrouble.failure(error, path: options.folders.catalogFile)
        }
    }

    /// Ends for good what a person has ended by a rename or a deletion, so that a new file of the old
    /// name does not bring it back.
    ///
    /// `before` are the conflicts that were over a while ago: in the midst of an editor's save a file
    /// is gone for a moment.
    ///
    /// - Returns: those that are over now.
    func endLeftConflicts(_ before: Set<Inode>) async -> Set<Inode> {
        do throws(CatalogError) {
            let left = try await catalog.leftConflicts()
            for id in left.intersection(before) { try await catalog.endConflict(id) }
            return left.subtracting(before)
        } catch {
            logger.warning("conflicts were not looked through", metadata: ["cause": "\(error)"])
            return []
        }
    }
}

extension ConflictReport {
    /// A conflict of an account whose folder has this path; `author` wrote what has the name, where that
    /// is known.
    init(_ conflict: Conflict, account: String, below folder: String, author: String?) {
        func version(_ version: Conflict.Version, author: String?) -> Version {
            Version(
                path: ([folder] + version.path).joined(separator: "/"),
                size: version.size,
                modified: version.modified.date,
                author: author
            )
        }
        self.init(
            id: conflict.id.rawValue,
            account: account,
            made: Date(timeIntervalSince1970: Double(conflict.made) / 1000),
            mine: version(conflict.copy, author: "this machine"),
            theirs: version(conflict.original, author: author)
        )
    }
}
