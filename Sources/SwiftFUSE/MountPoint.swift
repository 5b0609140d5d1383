internal import CFUSE
import Glibc

/// The folder on which a file system is mounted.
struct MountPoint: Sendable {
    /// The path without symbolic links, as the mount table has it.
    let path: String

    /// Finds the folder and makes it free: what a daemon that died has left there is unmounted.
    ///
    /// - Throws: `.alreadyMounted`, `.notAFolder`, `.notEmpty`, or what the system says.
    init(_ path: String, coversFiles: Bool) throws(MountError) {
        // A dead mount has no real path: its parent's and its name are used.
        self.path = try Self.realPath(path)
        try removeDeadMounts()
        if let row = try table().mount(at: self.path), row.isFUSE {
            throw .alreadyMounted(path: self.path, source: row.source)
        }
        try checkFolder(coversFiles: coversFiles)
    }

    /// Has `mount` cover the folder, and leaves what is then beneath without permission to write where it is
    /// to be sealed.
    ///
    /// A folder that cannot be sealed (somebody else's, a file system without modes) is left as it is.
    func cover(
        sealing seals: Bool,
        _ mount: () throws(MountError) -> Void
    ) throws(MountError) {
        guard seals else { return try mount() }
        // By its descriptor the folder beneath is reached when it is covered.
        let folder = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { throw .system(.current, "open", path: path) }
        defer { close(folder) }
        var status = stat()
        guard unsafe fstat(folder, &status) == 0 else { return try mount() }
        let mode = status.st_mode & 0o7777
        // The helper mounts for a plain user on what that user may write.
        if mode & S_IWUSR == 0 { fchmod(folder, mode | S_IWUSR) }
        try mount()
        fchmod(folder, mode & ~(S_IWUSR | S_IWGRP | S_IWOTH))
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

    private func checkFolder(coversFiles: Bool) throws(MountError) {
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
