import Foundation
public import SystemPackage

/// Files that only their owner can read, from their first moment on.
///
/// Foundation gives a file its mode after it has its bytes: a program that opens it in between keeps
/// reading.
public enum PrivateFile {
    /// Makes a file of mode 0600 where nothing is.
    ///
    /// - Throws: `Errno`; nothing is left of it then.
    public static func make(_ path: String, _ bytes: some Sequence<UInt8>) throws(Errno) {
        try make(path, bytes, isDurable: false)
    }

    /// Puts a file of mode 0600 in place of what is at a path: every reader, also after the machine died,
    /// finds all of the one or all of the other.
    ///
    /// - Throws: `Errno`; the file is as it was then.
    public static func replace(_ path: String, with bytes: some Sequence<UInt8>) throws(Errno) {
        // A name of its own, so that two writers never write into one file.
        let temporary = "\(path).\(RandomText.make()).new"
        try make(temporary, bytes, isDurable: true)
        // Unsafe only because C strings are passed, which live as long as the call.
        guard unsafe rename(temporary, path) == 0 else {
            let error = Errno(rawValue: errno)
            _ = unsafe unlink(temporary)
            throw error
        }
        do {
            let folder = FilePath(path).removingLastComponent()
            let names = try FileDescriptor.open(folder.isEmpty ? "." : folder, .readOnly)
            try names.closeAfter { try synchronize(names) }
        } catch { throw error as? Errno ?? .ioError }
    }

    private static func make(
        _ path: String,
        _ bytes: some Sequence<UInt8>,
        isDurable: Bool
    ) throws(Errno) {
        do {
            let file = try FileDescriptor.open(
                FilePath(path),
                .writeOnly,
                options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: .ownerReadWrite
            )
            do {
                try file.closeAfter {
                    try file.writeAll(bytes)
                    if isDurable { try synchronize(file) }
                }
            } catch {
                _ = unsafe unlink(path)
                throw error
            }
        } catch { throw error as? Errno ?? .ioError }
    }

    private static func synchronize(_ file: FileDescriptor) throws {
        guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
    }
}
