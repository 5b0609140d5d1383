import GRDB
import OortModel
import Synchronization

/// Folders that a person does not want to see on this machine.
///
/// The catalog knows all that is in them, since the services' feeds tell of it, and the engine treats it as all
/// else. `lookup`, `children`, searches, pins and whoever watches the tree pass them over.
extension Catalog {
    /// Sets which folders of an account are not shown, each by the names from the account's top down.
    public func setLeftOut(_ paths: [[String]], of account: AccountID) {
        let folders = LeftOutFolders(paths, comparedBy: nameRules(of: account).comparison)
        leavingOut.withLock { $0[account] = folders.isEmpty ? nil : folders }
    }

    func leftOut(of account: AccountID) -> LeftOutFolders? {
        leavingOut.withLock { $0[account] }
    }

    /// Whether what is at a path, of shown names from the account's top down, is not shown.
    public func leavesOut(_ names: [String], of account: AccountID) -> Bool {
        leftOut(of: account)?.include(names) ?? false
    }

    /// Whether what has, or would have, a name in a folder is not shown.
    public func leavesOut(_ name: String, in folder: Node) throws(CatalogError) -> Bool {
        guard let left = leftOut(of: folder.account), left.mayInclude(named: name) else {
            return false
        }
        guard let above = try shownPath(of: folder.inode) else { return false }
        return left.include(above + [name])
    }

    /// Whether a folder has something in it, however deep, that is not shown.
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

    /// Whether something is not shown that lies below a place, or would.
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

    /// What is at a path of names as their account's service compares them.
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
