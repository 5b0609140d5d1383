import Glibc
import OortFileSystem
import SwiftFUSE
import Testing

@testable import OortFUSE

@Suite("The errno table")
struct ErrnoTests {
    @Test(
        "each failure has the number that programs expect",
        arguments: [
            (FileSystemError.notFound, ENOENT),
            (.exists, EEXIST),
            (.notEmpty, ENOTEMPTY),
            (.notAFolder, ENOTDIR),
            (.isAFolder, EISDIR),
            (.notPermitted, EPERM),
            (.noPermission, EACCES),
            (.signedOut, EACCES),
            (.readOnly, EROFS),
            (.otherAccount, EXDEV),
            (.notInTrash, EXDEV),
            (.moveIntoItself, EINVAL),
            (.nameRefused(reason: "a colon"), EINVAL),
            (.nameTooLong, ENAMETOOLONG),
            (.invalid, EINVAL),
            (.badHandle, EBADF),
            (.noAttribute, ENODATA),
            (.notSupported, EOPNOTSUPP),
            (.noMoreData, ENXIO),
            (.tooLarge, EFBIG),
            (.attributeTooLarge, E2BIG),
            (.noSpace, ENOSPC),
            (.quotaExceeded, EDQUOT),
            (.offline, EHOSTUNREACH),
            (.timedOut, ETIMEDOUT),
            (.interrupted, EINTR),
            (.revisionGone, ESTALE),
            (.locked, EBUSY),
            (.contentDamaged(detail: "hash"), EIO),
            (.failed(detail: "anything"), EIO),
        ]
    )
    func number(_ error: FileSystemError, _ number: Int32) {
        #expect(error.errno.rawValue == number)
    }
}
