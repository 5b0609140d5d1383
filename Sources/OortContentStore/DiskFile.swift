import Glibc
import OortModel

/// A file that is open on the local disk; closed when the last reference to the value goes.
///
/// All system calls on content are here, and with them all that is `unsafe` in this module.
public final class DiskFile: Sendable {
    /// The descriptor, for `splice`; belongs to this value.
    public let descriptor: CInt

    private init(descriptor: CInt) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Opens the file at a path for reading and writing.
    ///
    /// Where `creates` is set the file is made, with the folder that it lies in, and must not exist.
    static func open(_ path: String, creates: Bool = false) throws(ContentError) -> DiskFile {
        guard creates else { return try open(path, flags: O_RDWR) }
        return try naming(path) { () throws(ContentError) in
            try open(path, flags: O_RDWR | O_CREAT | O_EXCL)
        }
    }

    /// Opens the file at a path for reading and writing; nil when there is none.
    ///
    /// - Throws: any other failure, as of the disk, or for lack of descriptors.
    static func openIfPresent(_ path: String) throws(ContentError) -> DiskFile? {
        do throws(ContentError) { return try open(path) } catch .disk(ENOENT, _) { return nil }
    }

    private static func open(_ path: String, flags: CInt) throws(ContentError) -> DiskFile {
        let flags = flags | O_CLOEXEC
        let descriptor = unsafe path.withCString { unsafe Glibc.open($0, flags, 0o600) }
        guard descriptor >= 0 else { throw failure("open \(path)") }
        return DiskFile(descriptor: descriptor)
    }

    /// Bytes of the file, holes among them.
    func size() throws(ContentError) -> Int64 { try status().size }

    /// Size and bytes that really take room on the disk.
    func status() throws(ContentError) -> (size: Int64, onDisk: Int64) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw Self.failure("stat") }
        return (Int64(status.st_size), Int64(status.st_blocks) * 512)
    }

    /// How many names it has.
    func linkCount() throws(ContentError) -> Int {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw Self.failure("stat") }
        return Int(status.st_nlink)
    }

    /// When the content was last written: seconds and nanoseconds since 1970.
    func modified() throws(ContentError) -> (seconds: Int64, nanoseconds: Int32) {
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw Self.failure("stat") }
        return (Int64(status.st_mtim.tv_sec), Int32(truncatingIfNeeded: status.st_mtim.tv_nsec))
    }

    /// At most `count` bytes from `offset`; fewer only at the end of the file.
    public func read(at offset: Int64, count: Int) throws(ContentError) -> [UInt8] {
        guard count > 0 else { return [] }
        var failed = false
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count, let start = buffer.baseAddress {
                let result = unsafe pread(
                    descriptor,
                    start + filled,
                    count - filled,
                    off_t(offset) + filled
                )
                if result < 0, errno == EINTR { continue }
                failed = result < 0
                guard result > 0 else { break }
                filled += result
            }
        }
        if failed { throw Self.failure("read") }
        return bytes
    }

    /// Writes all bytes at `offset`.
    func write(_ bytes: RawSpan, at offset: Int64) throws(ContentError) {
        let done = unsafe bytes.withUnsafeBytes { buffer in
            var written = 0
            while written < buffer.count, let start = buffer.baseAddress {
                let result = unsafe pwrite(
                    descriptor,
                    start + written,
                    buffer.count - written,
                    off_t(offset) + written
                )
                if result < 0, errno == EINTR { continue }
                guard result > 0 else { return false }
                written += result
            }
            return true
        }
        guard done else { throw Self.failure("write") }
    }

    /// Writes all bytes at `offset`.
    func write(_ bytes: ArraySlice<UInt8>, at offset: Int64) throws(ContentError) {
        try unsafe write(bytes.span.bytes, at: offset)
    }

    /// Cuts or extends the file.
    func resize(to size: Int64) throws(ContentError) {
        guard ftruncate(descriptor, off_t(size)) == 0 else { throw Self.failure("truncate") }
    }

    /// Makes the file's bytes survive the death of the machine.
    func synchronise() throws(ContentError) {
        guard fdatasync(descriptor) == 0 else { throw Self.failure("sync") }
    }

    /// Takes room on the disk for a range.
    func allocate(_ range: Range<Int64>) throws(ContentError) {
        let code = posix_fallocate(
            descriptor,
            off_t(range.lowerBound),
            off_t(range.upperBound - range.lowerBound)
        )
        guard code == 0 else {
            throw Self.failure("allocate", code: code)
        }
    }

    /// The ranges of the file that hold data, as the disk's file system tells.
    func dataRanges() throws(ContentError) -> RangeSet<Int64> {
        // `man 2 lseek`; the names are hidden without _GNU_SOURCE.
        let seekData: CInt = 3
        let seekHole: CInt = 4
        var ranges = RangeSet<Int64>()
        let size = try size()
        var position: Int64 = 0
        while position < size {
            let start = lseek(descriptor, off_t(position), seekData)
            guard start >= 0 else {
                if errno == ENXIO { break }
                return RangeSet(0..<size)
            }
            let end = lseek(descriptor, start, seekHole)
            guard end > start else { return RangeSet(0..<size) }
            ranges.insert(contentsOf: Int64(start)..<min(Int64(end), size))
            position = Int64(end)
        }
        return ranges
    }

    /// Makes this empty file a copy of another: sharing its blocks where the disk's file system
    /// can, else copied in the kernel, holes left out.
    ///
    /// Suspends between parts, and goes on only while the copy is needed.
    ///
    /// - Throws: `.fetch` of kind `.cancelled` when the calling task is cancelled or `isNeeded` says no.
    func becomeCopy(
        of source: DiskFile,
        while isNeeded: @Sendable () -> Bool
    ) async throws(ContentError) {
        // FICLONE, `man 2 ioctl_ficlone`: the macro is not imported.
        if ioctl(descriptor, 0x4004_9409, source.descriptor) == 0 { return }
        try resize(to: try source.size())
        for range in try source.dataRanges().ranges {
            var position = range.lowerBound
            while position < range.upperBound {
                guard !Task.isCancelled, isNeeded() else { throw .noLongerNeeded }
                // copy_file_range is hidden without _GNU_SOURCE; sendfile does the same. It writes at the
                // descriptor's position, which nothing else uses: this file is new.
                guard lseek(descriptor, off_t(position), SEEK_SET) >= 0 else {
                    throw Self.failure("seek")
                }
                var from = off_t(position)
                let part = Int(min(range.upperBound - position, 8 << 20))
                let copied = unsafe sendfile(descriptor, source.descriptor, &from, part)
                if copied < 0, errno == EINTR { continue }
                guard copied > 0 else { throw Self.failure("copy") }
                position += Int64(copied)
                await SystemInputs.yield()
            }
        }
    }

    /// Whether two folders lie on one file system; true when that cannot be told.
    static func areOnOneDisk(_ one: String, _ other: String) -> Bool {
        var first = stat()
        var second = stat()
        guard unsafe stat(one, &first) == 0, unsafe stat(other, &second) == 0 else { return true }
        return first.st_dev == second.st_dev
    }

    /// The error number of a disk that is mounted read-only.
    static let readOnlyCode = EROFS

    /// Bytes that are free for us on the disk that holds the file system of `path`.
    static func freeBytes(at path: String) -> Int64? {
        var status = statvfs()
        guard unsafe statvfs(path, &status) == 0 else { return nil }
        return Int64(clamping: status.f_bavail)
            .multipliedSaturating(by: Int64(clamping: status.f_frsize))
    }

    /// Whether the disk's file system keeps no blocks for written zeros (as ZFS does when it
    /// compresses), so that a hole says nothing; tried with a file of this path.
    static func makesHolesOfZeros(at path: String) -> Bool {
        remove(path)
        defer { remove(path) }
        guard let file = try? open(path, creates: true),
            (try? file.write([UInt8](repeating: 0, count: 65_536)[...], at: 0)) != nil,
            (try? file.synchronise()) != nil,
            let data = try? file.dataRanges()
        else { return true }
        return data.isEmpty
    }

    /// Makes a folder's names survive the death of the machine.
    static func synchroniseFolder(_ path: String) throws(ContentError) {
        let folder = try open(path, flags: O_RDONLY)
        guard fsync(folder.descriptor) == 0 else { throw failure("sync \(path)") }
    }

    /// The text of a small file; nil when it cannot be read.
    static func text(at path: String) -> String? {
        guard let file = try? open(path, flags: O_RDONLY),
            let bytes = try? file.read(at: 0, count: 4096)
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Writes a text to a small file.
    static func write(_ text: String, at path: String) throws(ContentError) {
        remove(path)
        try open(path, creates: true).write([UInt8](text.utf8)[...], at: 0)
    }

    /// Deletes a file; one that is not there is a success.
    static func remove(_ path: String) {
        _ = unsafe unlink(path)
    }

    /// Moves a file within one file system.
    ///
    /// - Returns: false when it could not be moved.
    static func move(_ path: String, to newPath: String) -> Bool {
        (try? rename(path, to: newPath)) != nil
    }

    /// Moves a file within one file system, or says what kept it from being moved; makes the folder
    /// that it goes into.
    static func rename(_ path: String, to newPath: String) throws(ContentError) {
        try naming(newPath) { () throws(ContentError) in
            guard unsafe Glibc.rename(path, newPath) == 0 else { throw failure("rename \(path)") }
        }
    }

    /// Gives a file a second name within one file system, and makes the new name's folder; where the file
    /// system has no second names, the new name replaces the old one.
    static func link(_ path: String, as newPath: String) throws(ContentError) {
        let isLinked = try naming(newPath) { () throws(ContentError) in
            if unsafe Glibc.link(path, newPath) == 0 { return true }
            guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK].contains(errno) else {
                throw failure("link \(path)")
            }
            return false
        }
        if !isLinked { try rename(path, to: newPath) }
    }

    /// Runs `act`, which gives a file the name `path`; if the name's folder is missing, makes it so that it
    /// survives the death of the machine, and runs `act` again.
    ///
    /// The folder above is not made: if that is gone, its disk may be, too, and files written in its place
    /// would be hidden once the disk is back.
    private static func naming<Result>(
        _ path: String,
        _ act: () throws(ContentError) -> Result
    ) throws(ContentError) -> Result {
        do throws(ContentError) { return try act() } catch {
            guard case .disk(ENOENT, _) = error, let folder = parent(of: path),
                let around = parent(of: folder)
            else { throw error }
            guard unsafe mkdir(folder, 0o700) == 0 || errno == EEXIST else {
                throw failure("make the folder \(folder)")
            }
            try synchroniseFolder(around)
            return try act()
        }
    }

    /// The folder that the file or folder of an absolute path lies in; nil for the root.
    private static func parent(of path: String) -> String? {
        guard let end = path.utf8.lastIndex(of: UInt8(ascii: "/")), end > path.startIndex
        else { return nil }
        return String(path[..<end])
    }

    /// Whether a file is there.
    static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    private static func failure(_ what: String, code: CInt = errno) -> ContentError {
        switch code {
        case ENOSPC, EDQUOT: .noSpace
        case EFBIG: .tooLarge
        default: .disk(code: code, detail: what)
        }
    }
}
