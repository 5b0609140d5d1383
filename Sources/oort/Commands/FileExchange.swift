import Foundation

/// What glibc's `renameat2` does beyond `rename`.
///
/// Swift's module of glibc is made without `_GNU_SOURCE`, so the function is asked for by its name.
enum FileExchange {
    private typealias Rename =
        @convention(c) (
            CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, CUnsignedInt
        ) -> CInt

    /// `RENAME_NOREPLACE` and `RENAME_EXCHANGE` of linux/fs.h.
    private static let notReplacing: CUnsignedInt = 1
    private static let exchanging: CUnsignedInt = 2

    /// Has two files change their places in one step.
    ///
    /// - Returns: whether they did; else `errno` says why not.
    static func exchange(_ one: String, _ other: String) -> Bool {
        rename(one, other, exchanging)
    }

    /// Gives a file another name that nothing has.
    ///
    /// - Returns: whether it has it; else `errno` says why not, `EEXIST` where something has the name.
    static func moveToFreeName(_ path: String, _ name: String) -> Bool {
        if rename(path, name, notReplacing) { return true }
        // Not each file system has that; a hard link does not replace anything either.
        guard errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP else { return false }
        if unsafe link(path, name) == 0 {
            _ = unsafe unlink(path)
            return true
        }
        // Nor has each of them hard links (FAT).
        guard errno == EPERM || errno == ENOSYS || errno == EOPNOTSUPP else { return false }
        if FileIdentity(name) != nil {
            errno = EEXIST
            return false
        }
        return unsafe Glibc.rename(path, name) == 0
    }

    private static func rename(_ one: String, _ other: String, _ flags: CUnsignedInt) -> Bool {
        guard let symbol = unsafe dlsym(nil, "renameat2") else {
            errno = ENOSYS
            return false
        }
        let rename = unsafe unsafeBitCast(symbol, to: Rename.self)
        return unsafe rename(AT_FDCWD, one, AT_FDCWD, other, flags) == 0
    }
}
