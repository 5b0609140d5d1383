/// Why the catalog could not do what it was asked.
public enum CatalogError: Error, Hashable, Sendable {
    /// No such inode, or no such name in the folder.
    case notFound
    /// The name is taken.
    case exists
    /// The folder is not empty.
    case notEmpty
    /// A folder is needed and the inode is none.
    case notAFolder
    /// The inode is a folder and must not be.
    case isAFolder
    /// A folder cannot go below itself.
    case moveIntoItself
    /// Source and target lie in different accounts.
    case otherAccount
    /// What the service has, or is to have, cannot go into a folder that stays here.
    case staysHere
    /// What is asked cannot be done to the mount's root or an account's root.
    case isARoot
    /// No account of this name or number.
    case noAccount
    /// The account is somebody else's.
    case otherPerson
    /// The database file is damaged or no database; `detail` says what SQLite said.
    case corrupt(detail: String)
    /// The database was made by a newer Oort.
    case tooNew
    /// The disk is full.
    case diskFull
    /// Another failure of SQLite or the disk; `detail` says what SQLite said.
    case storage(detail: String)
}
