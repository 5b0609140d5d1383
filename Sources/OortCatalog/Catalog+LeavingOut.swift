import GRDB
import OortModel
import Synchronization

/// Folders that a person does not want to see on this machine.
///
/// The catalog knows everything in them, since the feeds report it, and the engine treats it like
/// everything else. `lookup`, `children`, searches, pins and watchers of the tree skip it.
extension Catalog {
    /// Sets which folders of an account are not shown, each by the names from the account's top down.
    public func setLeftOut(_ paths: [[String]], of account: AccountID) {
        let folders = LeftOutFolders(paths, comparedBy: nameRules(of: account).comparison)
        leavingOut.withLock { $0[account] = folders.isEmpty ? nil : folders }
    }

    func leftOut(of account: AccountID) -> LeftOutFolders? {
        leavingOut.withLock { $0[account] }
    }

    /// Whether the item at a path, of shown names from the account's root down, is not shown.
    public func leavesOut(_ names: [String], of account: AccountID) -> Bool {
        leftOut(of: account)?.include(names) ?? false
    }

    /// Whether an item of this name in a folder is not, or would not be, shown.
    public func leavesOut(_ name: String, in folder: Node) throws(CatalogError) -> Bool {
        guard let left = leftOut(of: folder.account), left.mayInclude(named: name) else {
            return false
        }
        guard let above = try shownPath(of: folder.inode) else { return false }
        return left.include(above + [name])
    }

    /// Whether a folder has an item in it, however deep, that is not shown.
    public func hasLeftOut(below folder: Node) throws(CatalogError) -> Bool {
        guard folder.kind == .folder, let left = leftOut(of: folder.account) else { return false }
        return try read { database in
            guard let names = try Self.path(of: folder.inode, database)?.map(\.name) else {
                return false
            }
            let keys = left.below(names)
            return try keys.contains {
                try Self.inode(atKeys: $0, of: folder.account, database) != nil
            }
        }
    }

    /// Whether an item below a place is not, or would not be, shown.
    public func wouldLeaveOut(below name: String, in folder: Node) throws(CatalogError) -> Bool {
        guard let left = leftOut(of: folder.account),
            let above = try shownPath(of: folder.inode)
        else { return false }
        return !left.below(above + [name]).isEmpty
    }

    /// The numbers of all accounts' folders that are not shown.
    func leftOutInodes(_ database: Database) throws -> Set<Int64> {
        let all = leavingOut.withLock { $0 }
        var inodes: Set<Int64> = []
        for (account, left) in all {
            for keys in left.keys {
                if let inode = try Self.inode(atKeys: keys, of: account, database) {
                    inodes.insert(inode.column)
                }
            }
        }
        return inodes
    }

    /// The item at a path of names as their account's service compares them.
    private static func inode(
        atKeys keys: [String],
        of account: AccountID,
        _ database: Database
    ) throws -> Inode? {
        let root = try database.number(
            "SELECT root FROM account WHERE id = ?",
            [account.rawValue]
        )
        guard var inode = root.map({ Inode(column: $0) }) else { return nil }
        for key in keys {
            guard let next = try fetch(key: key, in: inode, database) else { return nil }
            inode = next.inode
        }
        return inode
    }
}
