import Foundation

/// What glibc's `renameat2` does beyond `rename`.
///
/// Swift's module of glibc is made without `_GNU_SOURCE`, so the function is asked for by its name.
enum FileExchange {
    private typealias Rename =
        @convention(c) (
            CInt, UnsafePointer<CChar>, CInt, UnsafePointer<CChar>, CUnsignedInt
        ) -> CInt

    /// `RENAME_EXCHANGE` of linux/fs.h.
    private static let exchanging: CUnsignedInt = 2

    /// Has two files change their places in one step.
    ///
    /// - Returns: whether they did; else `errno` says why not.
    static func exchange(_ one: String, _ other: String) -> Bool {
        guard let symbol = unsafe dlsym(nil, "renameat2") else {
            errno = ENOSYS
            return false
        }
        let rename = unsafe unsafeBitCast(symbol, to: Rename.self)
        return unsafe rename(AT_FDCWD, one, AT_FDCWD, other, exchanging) == 0
    }
}
