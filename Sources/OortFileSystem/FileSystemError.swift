/// Why an operation of the file system was not done.
///
/// Closed: `OortFUSE` gives each case its errno.
public enum FileSystemError: Error, Hashable, Sendable {
    /// No such inode or name. ENOENT.
    case notFound
    /// The name is taken. EEXIST.
    case exists
    /// The folder is not empty. ENOTEMPTY.
    case notEmpty
    /// A folder is needed. ENOTDIR.
    case notAFolder
    /// The operation is not for folders. EISDIR.
    case isAFolder
    /// Not possible here for any caller (hard links, device nodes, what the settings exclude). EPERM.
    case notPermitted
    /// The account may not do this with this item. EACCES.
    case noPermission
    /// The account must be signed in again. EACCES.
    case signedOut
    /// The mount, the top folder or this item cannot be written. EROFS.
    case readOnly
    /// Source and target lie in different accounts. EXDEV.
    case otherAccount
    /// The service's trash could not restore the item as it is: there is none, or the service does not have
    /// all of it. EXDEV, at which desktops offer to delete for good.
    case notInTrash
    /// A folder cannot go below itself. EINVAL.
    case moveIntoItself
    /// The service refuses the name; `reason` is for the log. EINVAL.
    case nameRefused(reason: String)
    /// The name is too long for the file system or the service. ENAMETOOLONG.
    case nameTooLong
    /// An argument makes no sense. EINVAL.
    case invalid
    /// The handle is not open, or not for this. EBADF.
    case badHandle
    /// No such extended attribute. ENODATA.
    case noAttribute
    /// Not supported here, and the caller must not believe that it was done. EOPNOTSUPP.
    case notSupported
    /// `lseek` past the last data. ENXIO.
    case noMoreData
    /// The content or value is larger than can be. EFBIG.
    case tooLarge
    /// The extended attribute's value is too long. E2BIG.
    case attributeTooLarge
    /// The local disk or the limit is full, and no upload made room. ENOSPC.
    case noSpace
    /// The account's room is used up. EDQUOT.
    case quotaExceeded
    /// What is needed is not here and the service cannot be reached. EHOSTUNREACH.
    case offline
    /// The service did not give what is needed within the time limit. ETIMEDOUT.
    case timedOut
    /// The calling program gave up. EINTR.
    case interrupted
    /// The service can no longer give the revision that the handle reads. ESTALE.
    case revisionGone
    /// The item is locked by another program at the service. EBUSY.
    case locked
    /// The content is not what the service said, or local bytes are lost. EIO.
    case contentDamaged(detail: String)
    /// Another failure; `detail` is for the log. EIO.
    case failed(detail: String)
}
