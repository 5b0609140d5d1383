internal import CFUSE
import Glibc

/// The folder on which a file system is mounted.
struct MountPoint: Sendable {
    /// The path without symbolic links, as the mount table has it.
    let path: String
    private let coversFiles: Bool

    /// Finds the folder and makes it free: what a daemon that died has left there is unmounted.
    ///
    /// - Throws: `.alreadyMounted`, `.notAFolder`, `.notEmpty`, or what the system says.
    init(_ path: String, coversFiles: Bool) throws(MountError) {
        // A dead mount has no real path: its parent's and its name are used.
        self.path = try Self.realPath(path)
        self.coversFiles = coversFiles
        try removeDeadMounts()
        if let row = try table().mount(at: self.path), row.isFUSE {
            throw .alreadyMounted(path: self.path, source: row.source)
        }
        try checkFolder()
    }

    /// Has `mount` cover the folder; if it is to be sealed, the folder beneath is left without permission
    /// to write.
    ///
    /// A folder that cannot be sealed (another user's, a file system without modes) is left as it is. In
    /// the moment of mounting, a plain user's folder has to be writable, and a program that waits for the
    /// mount, or goes on after a crash, may write there: those files are moved into a new folder beside the
    /// mount point.
    ///
    /// - Returns: the path of that folder; nil where nothing was written.
    func cover(
        sealing seals: Bool,
        _ mount: () throws(MountError) -> Void
    ) throws(MountError) -> String? {
        guard seals else {
            try mount()
            return nil
        }
        // By its descriptor the folder beneath is reached when it is covered.
        let folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .system(.current, "open", path: path) }
        defer { close(folder) }
        var status = stat()
        guard unsafe fstat(folder, &status) == 0 else {
            throw .system(.current, "fstat", path: path)
        }
        let mode = status.st_mode & 0o7777
        // The helper mounts for a plain user on what that user may write.
        if mode & S_IWUSR == 0, geteuid() != 0 { fchmod(folder, mode | S_IWUSR) }
        do throws(MountError) { try mount() } catch {
            fchmod(folder, mode)
            throw error
        }
        let found = coversFiles ? nil : moveAside(whatLiesIn: folder)
        fchmod(folder, mode & ~(S_IWUSR | S_IWGRP | S_IWOTH))
        return found
    }

    /// Moves what lies in the covered folder into a new one beside the mount point; its path, or nil where
    /// nothing lies there or can be moved.
    private func moveAside(whatLiesIn folder: CInt) -> String? {
        let names = Self.names(in: folder)
        guard !names.isEmpty else { return nil }
        var (aside, number) = ("\(path) (found beneath)", 2)
        while unsafe mkdir(aside, 0o700) != 0 {
            guard errno == EEXIST, number < 10_000 else { return nil }
            aside = "\(path) (found beneath \(number))"
            number += 1
        }
        let target = unsafe open(aside, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if target >= 0 { close(target) } }
        let moved = names.count { unsafe renameat(folder, $0, target, $0) == 0 }
        if moved > 0 { return aside }
        unsafe rmdir(aside)
        return nil
    }

    /// The names in an open folder, each with the zero at its end.
    private static func names(in folder: CInt) -> [[CChar]] {
        let copy = unsafe openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0 else { return [] }
        guard let stream = unsafe fdopendir(copy) else {
            close(copy)
            return []
        }
        defer { unsafe closedir(stream) }
        var names: [[CChar]] = []
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                unsafe Array(bytes.prefix { $0 != 0 }).map { CChar(bitPattern: $0) } + [0]
            }
            let dot = CChar(bitPattern: UInt8(ascii: "."))
            if name != [dot, 0], name != [dot, dot, 0] { names.append(name) }
        }
        return names
    }

    /// Unmounts what is at the path if its device is `device`: programs that have files of it open may
    /// go on with them, new ones do not find it.
    ///
    /// - Returns: false if something else, or nothing, is mounted there.
    func detach(device: String) throws(MountError) -> Bool {
        guard let row = try table().mount(at: path), row.device == device else { return false }
        try detach()
        return true
    }

    /// The device of the uppermost mount at the path.
    func device() throws(MountError) -> String? { try table().mount(at: path)?.device }

    /// Ends a FUSE connection from outside, if the control file system is there (root and the user who
    /// mounted may).
    static func abortConnection(device: String) {
        guard let minor = device.split(separator: ":").last else { return }
        let control = unsafe open("/sys/fs/fuse/connections/\(minor)/abort", O_WRONLY | O_CLOEXEC)
        guard control >= 0 else { return }
        _ = unsafe write(control, "1", 1)
        close(control)
    }

    private func table() throws(MountError) -> MountTable {
        do throws(Errno) { return try MountTable.current() } catch {
            throw .system(error, "read", path: "/proc/self/mountinfo")
        }
    }

    /// statvfs, not stat: the kernel answers stat from its cache for as long as the dead daemon allowed.
    private func removeDeadMounts() throws(MountError) {
        while let row = try table().mount(at: path), row.isFUSE {
            var result = statvfs()
            guard unsafe statvfs(path, &result) != 0, errno == ENOTCONN || errno == ECONNABORTED
            else { return }
            try detach()
        }
    }

    private func detach() throws(MountError) {
        if unsafe umount2(path, CInt(MNT_DETACH)) == 0 { return }
        guard errno == EPERM else { throw .system(.current, "umount", path: path) }
        try fusermount()
    }

    /// Unmounts by the helper that may do so for a plain user's own mounts.
    private func fusermount() throws(MountError) {
        let arguments = ["fusermount3", "-u", "-z", "-q", "--", path]
        var pointers = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe pointers.forEach { unsafe free($0) } }
        var process = pid_t()
        let error = unsafe posix_spawnp(&process, "fusermount3", nil, nil, &pointers, environ)
        guard error == 0 else { throw .system(Errno(rawValue: error), "fusermount3", path: path) }
        var status: CInt = 0
        while unsafe waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { throw .system(.current, "waitpid", path: path) }
        }
        guard status == 0 else { throw .system(.notPermitted, "fusermount3", path: path) }
    }

    private func checkFolder() throws(MountError) {
        guard let folder = unsafe opendir(path) else {
            guard errno != ENOTDIR else { throw .notAFolder(path: path) }
            throw .system(.current, "opendir", path: path)
        }
        defer { unsafe closedir(folder) }
        guard !coversFiles else { return }
        // `.` and `..` are always there.
        for _ in 0..<2 { _ = unsafe readdir(folder) }
        guard unsafe readdir(folder) == nil else { throw .notEmpty(path: path) }
    }

    private static func realPath(_ path: String) throws(MountError) -> String {
        if let resolved = unsafe realpath(path, nil) {
            defer { unsafe free(resolved) }
            return unsafe String(cString: resolved)
        }
        guard errno == ENOTCONN || errno == ECONNABORTED else {
            throw .system(.current, "realpath", path: path)
        }
        // By bytes: to Swift a slash with a combining mark behind it is another character.
        var parts = path.utf8.split(separator: UInt8(ascii: "/")).map { Substring($0) }
        guard let name = parts.popLast() else { throw .system(.current, "realpath", path: path) }
        let isAbsolute = path.utf8.first == UInt8(ascii: "/")
        let parent = (isAbsolute ? "/" : "./") + parts.joined(separator: "/")
        let resolved = try realPath(parent)
        return resolved == "/" ? "/\(name)" : "\(resolved)/\(name)"
    }
}
