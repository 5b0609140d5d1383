import Foundation
import Logging
import OortCatalog
import OortContentStore
import OortModel
import OortSync
import Synchronization

extension CloudMount {
    func conflicts(_ wish: ConflictsRequest) async throws(Failure) -> [ConflictReport] {
        guard let path = wish.path else { return try await conflicts() }
        // A path of no account, or where nothing lies, is an error.
        _ = try targets(of: path)
        let place = MountPoint(standardized: path)
        return try await conflicts().filter {
            place.holds($0.theirs.path) || place.holds($0.mine.path)
        }
    }

    private func conflicts() async throws(Failure) -> [ConflictReport] {
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

    /// Sees to it that the service has all of the file that a choice gives up: it can be had back then,
    /// from the service's trash or versions.
    ///
    /// - Throws: `Failure` when the service does not have it, or a program has it open for writing.
    func prepareChoice(_ choice: ConflictChoice) async throws(Failure) {
        guard let conflict = try await conflicts().first(where: { $0.id == choice.id }) else {
            throw Failure("This conflict is over already.")
        }
        let lost: ConflictReport.Version
        switch choice.keep {
        case .mine: lost = conflict.theirs
        case .theirs: lost = conflict.mine
        case .both: return
        }
        let (place, node) = try existing(lost.path)
        if !store.writers.isOpen(node.inode), await !place.account.engine.isPaused {
            _ = await place.account.engine.sync(node.inode, timeout: Self.longestSending)
        }
        try await refusePending(try existing(lost.path).node, place, "both files are as they were")
    }

    /// How long a file that is given up may take to reach the service.
    private static var longestSending: Duration { .seconds(20) }

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
