import CLinux
import Foundation

/// What the page shows of the mount's files, read through the mount as any program reads them.
///
/// Each path is walked name by name from the mount point, no link is followed, and nothing of another
/// file system is shown: a link that lies in a folder, or is put there meanwhile, never leads out.
///
/// Isolation: every method blocks, and belongs on a thread of `BlockingWork`.
struct MountFiles: Sendable {
    /// Where it is mounted.
    let mountPoint: String

    /// Bytes of the most that is shown of a text.
    static let longestText = 256 << 10
    /// `FUSE_SUPER_MAGIC` of linux/magic.h.
    private static let fuse = 0x6573_5546

    /// `O_PATH` of fcntl.h, which Glibc's module does not show: a place, without opening what is there.
    private static let pathOnly: CInt = 0o10_000_000
    /// Where the name begins in a `dirent` of Linux (`man 3 readdir`): after inode, offset, length, kind.
    private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 19

    /// One thing in a folder, or what a path leads to.
    struct Entry: Hashable, Sendable {
        /// What it is.
        enum Kind: Hashable, Sendable {
            case folder
            case file
            /// Its text; it is not known whether its target exists.
            case link([UInt8])
            case other
        }

        var path: SitePath
        var kind: Kind
        /// Bytes of content.
        var size: Int64
        /// When its content was modified.
        var modified: Date
        /// `online`, `cached`, `pinned` or `partly`; nil where the mount does not say.
        var availability: String?
        /// Whether the service renders a small picture of it.
        var hasThumbnail: Bool
    }

    /// A part of a folder's entries.
    struct Listing: Sendable {
        /// The entries, folders first, then by name.
        var entries: [Entry]
        /// How many there are in all.
        var count: Int
    }

    /// What a path leads to.
    ///
    /// - Throws: `Failure` where nothing lies there.
    func entry(at path: SitePath) throws(Failure) -> Entry {
        guard let name = path.names.last else {
            return Entry(
                path: path,
                kind: .folder,
                size: 0,
                modified: Date(),
                availability: nil,
                hasThumbnail: false
            )
        }
        let folder = try self.folder(path.folder)
        guard let entry = entry(name, in: folder, path: path) else { throw Self.notThere(path) }
        return entry
    }

    /// Entries of a folder, `count` from the `first` on; only of these more than the name is asked.
    ///
    /// - Throws: `Failure` where it is no folder, or cannot be read.
    func listing(
        _ path: SitePath,
        from first: Int,
        count: Int
    ) throws(Failure) -> Listing {
        let folder = try self.folder(path)
        let names = try names(in: folder, path)
        let last = min(max(first, 0) + count, names.count)
        let entries = names[min(max(first, 0), last)..<last].compactMap { name in
            entry(name, in: folder, path: path.appending(name))
        }
        return Listing(entries: entries, count: names.count)
    }

    /// A file to read from.
    ///
    /// - Throws: `Failure` where it is none, or cannot be read now.
    func open(_ path: SitePath) throws(Failure) -> OpenedFile {
        guard let name = path.names.last else { throw Self.notAFile(path) }
        let folder = try self.folder(path.folder)
        // A pipe is not waited for.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
        let file = Descriptor(unsafe openat(folder.number, Self.text(name), flags))
        guard let file else { throw Self.refused(path) }
        var status = stat()
        guard unsafe fstat(file.number, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Self.notAFile(path)
        }
        guard status.st_dev == folder.device else { throw Self.notThere(path) }
        return OpenedFile(file, status: status)
    }

    /// The beginning of a file as text; nil where it is none.
    ///
    /// - Throws: `Failure` where it cannot be read now.
    func text(_ path: SitePath) throws(Failure) -> (text: String, isWhole: Bool)? {
        let file = try open(path)
        var data = Data()
        while data.count <= Self.longestText {
            let wanted = Int64(Self.longestText + 1 - data.count)
            let part = try file.readNow(wanted, at: Int64(data.count))
            if part.isEmpty { break }
            data += part
        }
        let isWhole = data.count <= Self.longestText
        var bytes = data.prefix(Self.longestText)
        guard !bytes.contains(0) else { return nil }
        if !isWhole {
            // A character that is cut in two is not damaged.
            for _ in 0..<3 where String(validating: bytes, as: UTF8.self) == nil {
                bytes = bytes.dropLast()
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        return (text.replacing("\r\n", with: "\n"), isWhole)
    }

    // MARK: The walk

    /// The folder at a path.
    private func folder(_ path: SitePath) throws(Failure) -> Folder {
        let flags = Self.pathOnly | O_DIRECTORY | O_CLOEXEC
        guard var current = Descriptor(unsafe Glibc.open(mountPoint, flags)) else {
            throw Self.notMounted(mountPoint)
        }
        var system = statfs()
        guard unsafe fstatfs(current.number, &system) == 0, Int(system.f_type) == Self.fuse else {
            throw Self.notMounted(mountPoint)
        }
        let device = try Self.device(of: current, path)
        for name in path.names {
            let next = Descriptor(
                unsafe openat(current.number, Self.text(name), flags | O_NOFOLLOW)
            )
            guard let next else {
                if errno == ENOTDIR || errno == ELOOP {
                    throw Failure(
                        "\(TerminalText.line(path.shown)) is not a folder.",
                        advice: "It may have been replaced: look at the folder above."
                    )
                }
                throw Self.refused(path)
            }
            guard try Self.device(of: next, path) == device else { throw Self.notThere(path) }
            current = next
        }
        return Folder(current, device: device)
    }

    private static func device(
        of descriptor: Descriptor,
        _ path: SitePath
    ) throws(Failure) -> dev_t {
        var status = stat()
        guard unsafe fstat(descriptor.number, &status) == 0 else { throw refused(path) }
        return status.st_dev
    }

    /// All names in a folder, folders first, then without regard to case.
    private func names(in folder: Folder, _ path: SitePath) throws(Failure) -> [[UInt8]] {
        let number = unsafe openat(folder.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw Self.refused(path) }
        guard let stream = unsafe fdopendir(number) else {
            _ = close(number)
            throw Self.refused(path)
        }
        defer { unsafe closedir(stream) }
        var found: [(key: String, isFolder: Bool, name: [UInt8])] = []
        errno = 0
        while let entry = unsafe readdir(stream) {
            // The record ends with its name, long before the structure does.
            let start = unsafe UnsafeRawPointer(entry) + Self.nameOffset
            let length = unsafe strlen(start.assumingMemoryBound(to: CChar.self))
            let name = unsafe Array(UnsafeRawBufferPointer(start: start, count: length))
            guard name != [0x2E], name != [0x2E, 0x2E] else { continue }
            let isFolder = unsafe entry.pointee.d_type == UInt8(DT_DIR)
            found.append((String(decoding: name, as: UTF8.self).lowercased(), isFolder, name))
            errno = 0
        }
        guard errno == 0 else { throw Self.refused(path) }
        found.sort { one, other in
            if one.isFolder != other.isFolder { return one.isFolder }
            if one.key != other.key { return one.key < other.key }
            return one.name.lexicographicallyPrecedes(other.name)
        }
        return found.map(\.name)
    }

    private func entry(_ name: [UInt8], in folder: Folder, path: SitePath) -> Entry? {
        var status = stat()
        let text = Self.text(name)
        guard unsafe fstatat(folder.number, text, &status, AT_SYMLINK_NOFOLLOW) == 0,
            status.st_dev == folder.device
        else { return nil }
        var kind = Entry.Kind.other
        switch status.st_mode & S_IFMT {
        case S_IFDIR: kind = .folder
        case S_IFREG: kind = .file
        case S_IFLNK: kind = .link(Self.target(text, in: folder))
        default: break
        }
        // By the folder's descriptor, so that no link on the way is followed.
        let place = Self.text(Array("/proc/self/fd/\(folder.number)/".utf8) + name)
        return Entry(
            path: path,
            kind: kind,
            size: Int64(status.st_size),
            modified: Date(
                timeIntervalSince1970: Double(status.st_mtim.tv_sec)
                    + Double(status.st_mtim.tv_nsec) / 1e9
            ),
            availability: kind == .file ? Self.attribute("availability", of: place) : nil,
            hasThumbnail: kind == .file && Self.attribute("thumbnail", of: place) == "yes"
        )
    }

    private static func target(_ name: [CChar], in folder: borrowing Folder) -> [UInt8] {
        var bytes = [CChar](repeating: 0, count: 4096)
        let count = unsafe readlinkat(folder.number, name, &bytes, bytes.count)
        return bytes.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }
    }

    /// An attribute of Oort's, of which none is longer than a word.
    private static func attribute(_ name: String, of place: [CChar]) -> String? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe lgetxattr(place, "user.oort." + name, &bytes, bytes.count)
        return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : nil
    }

    /// A name as C has it.
    private static func text(_ name: [UInt8]) -> [CChar] {
        name.map { CChar(bitPattern: $0) } + [0]
    }

    // MARK: Words

    private static func notThere(_ path: SitePath) -> Failure {
        Failure(
            "\(TerminalText.line(path.shown)) is not there.",
            advice: "It may have been moved or deleted: look at the folder above."
        )
    }

    private static func notAFile(_ path: SitePath) -> Failure {
        Failure("\(TerminalText.line(path.shown)) is no file that can be read.")
    }

    private static func notMounted(_ mountPoint: String) -> Failure {
        Failure(
            "Nothing of Oort's is mounted at \(TerminalText.line(mountPoint)).",
            advice: "Mount it: oort mount"
        )
    }

    /// What the last call refused.
    private static func refused(_ path: SitePath) -> Failure {
        errno == ENOENT
            ? notThere(path)
            : Failure(
                "\(TerminalText.line(path.shown)) cannot be read: \(POSIXText.ofErrno()).",
                advice: "`oort status` says how the account is."
            )
    }

    /// A folder that was walked to.
    private struct Folder {
        private let descriptor: Descriptor
        /// The file system that it belongs to.
        let device: dev_t

        init(_ descriptor: Descriptor, device: dev_t) {
            self.descriptor = descriptor
            self.device = device
        }

        var number: CInt { descriptor.number }
    }
}

/// A descriptor that is closed with its last owner.
final class Descriptor: Sendable {
    /// Its number.
    let number: CInt

    /// What a call answered; nil where that refused.
    init?(_ number: CInt) {
        guard number >= 0 else { return nil }
        self.number = number
    }

    deinit { _ = close(number) }
}

/// A file of the mount that is open for reading.
struct OpenedFile: Sendable {
    private let descriptor: Descriptor
    /// Bytes of content.
    let size: Int64
    /// Another one for another content.
    let tag: String

    init(_ descriptor: Descriptor, status: stat) {
        self.descriptor = descriptor
        size = Int64(status.st_size)
        let time = status.st_mtim
        tag = "\"\(status.st_ino)-\(status.st_size)-\(time.tv_sec).\(time.tv_nsec)\""
    }

    /// Bytes from an offset on, fewer than `count` at the end.
    ///
    /// - Throws: `Failure` where they cannot be had now.
    func read(_ count: Int64, at offset: Int64) async throws(Failure) -> Data {
        try await BlockingWork.run { () throws(Failure) in try readNow(count, at: offset) }
    }

    /// The same, on a thread that may block.
    func readNow(_ count: Int64, at offset: Int64) throws(Failure) -> Data {
        var data = Data(count: Int(count))
        let read = unsafe data.withUnsafeMutableBytes { bytes in
            unsafe pread(descriptor.number, bytes.baseAddress, bytes.count, off_t(offset))
        }
        guard read >= 0 else {
            throw Failure("The file cannot be read on: \(POSIXText.ofErrno()).")
        }
        return data.prefix(read)
    }
}
