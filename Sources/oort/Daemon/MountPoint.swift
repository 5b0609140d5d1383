import Foundation

/// The folder on which the file system is mounted.
struct MountPoint: Hashable, Sendable {
    /// The absolute path.
    let path: String

    /// The mount point at a path as typed: relative to the current folder, `~` for the home folder.
    init(_ path: String) {
        let expanded = (path as NSString).expandingTildeInPath
        let absolute =
            expanded.hasPrefix("/")
            ? expanded : FileManager.default.currentDirectoryPath + "/" + expanded
        self.path = (absolute as NSString).standardizingPath
    }

    /// Makes the folder ready to be mounted on: makes it when it is missing, frees it of a mount
    /// whose process died.
    ///
    /// - Throws: `Failure` naming the path and what is wrong with it.
    func prepare() throws(Failure) {
        switch state() {
        case .free: return
        case .missing: try make()
        case .stale:
            try detach()
            guard case .free = state() else {
                throw Failure(
                    "\(path) still shows a mount whose process is gone.",
                    advice: "Free it with: fusermount3 -u -z \(Shell.quoted(path))"
                )
            }
        case .mounted(let type):
            throw Failure(
                "\(path) is in use: a file system (\(type)) is mounted there.",
                advice: "Unmount it first, or name another folder."
            )
        case .notEmpty:
            throw Failure(
                "\(path) is not empty; a mount would hide what is in it.",
                advice: "Move its files away, or name another folder."
            )
        case .notAFolder:
            throw Failure(
                "\(path) is not a folder.",
                advice: "Name a folder, or a path that does not exist yet."
            )
        case .unreadable(let reason):
            throw Failure(
                "\(path) cannot be used: \(reason).",
                advice: "Check its permissions, or name another folder."
            )
        }
    }

    /// Frees the path of a mount whose process died.
    ///
    /// - Returns: whether there was such a mount.
    func detachIfDead() throws(Failure) -> Bool {
        guard case .stale = state() else { return false }
        try detach()
        return true
    }

    /// Takes away a mount from the path, even one that is in use or dead.
    func detach() throws(Failure) {
        guard unsafe umount2(path, Int32(MNT_DETACH)) != 0 else { return }
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["fusermount3", "-u", "-z", path]
        process.standardError = FileHandle.nullDevice
        do {
            try process.run()
            process.waitUntilExit()
        } catch {
            throw Failure(
                "fusermount3 cannot be started: \(error.localizedDescription)",
                advice: "Install it: apt-get install fuse3"
            )
        }
    }

    /// What lies at the path.
    private enum State {
        case free, missing, stale, notEmpty, notAFolder
        case mounted(String)
        case unreadable(String)
    }

    private func state() -> State {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            switch errno {
            case ENOENT: return .missing
            case ENOTDIR: return .notAFolder
            case ENOTCONN, ECONNABORTED: return .stale
            default: return .unreadable(POSIXText.ofErrno())
            }
        }
        // The kernel answers `stat` from its cache after the mount's process died, `statvfs` never.
        var room = statvfs()
        if unsafe statvfs(path, &room) != 0, errno == ENOTCONN || errno == ECONNABORTED {
            return .stale
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { return .notAFolder }
        if let type = MountTable.type(at: path) { return .mounted(type) }
        do {
            let entries = try FileManager.default.contentsOfDirectory(atPath: path)
            return entries.isEmpty ? .free : .notEmpty
        } catch {
            return .unreadable(error.localizedDescription)
        }
    }

    private func make() throws(Failure) {
        do {
            try FileManager.default.createDirectory(
                atPath: path,
                withIntermediateDirectories: true
            )
        } catch {
            throw Failure(
                "The mount point \(path) cannot be made: \(error.localizedDescription)",
                advice: "Check the folder above it, or name another folder."
            )
        }
    }
}

/// The kernel's list of what is mounted.
enum MountTable {
    /// The type of the file system that is mounted exactly at this path; nil for none.
    static func type(at path: String) -> String? {
        guard let text = try? String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8) else {
            return nil
        }
        // `man 5 proc`: the fifth field is the mount point, the type follows the dash.
        for line in text.split(separator: "\n").reversed() {
            let fields = line.split(separator: " ")
            guard fields.count > 6, unescaped(fields[4]) == path,
                let dash = fields.firstIndex(of: "-"), dash + 1 < fields.count
            else { continue }
            return String(fields[dash + 1])
        }
        return nil
    }

    /// Blanks and the like are written as three octal digits.
    private static func unescaped(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = field.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"),
                let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
            {
                bytes.append(code)
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Words for the shell.
enum Shell {
    /// The text as one word.
    static func quoted(_ text: String) -> String {
        let plain = text.unicodeScalars.allSatisfy {
            $0.isASCII
                && ($0.properties.isAlphabetic || ("0"..."9").contains($0)
                    || "/._-+,:@~".unicodeScalars.contains($0))
        }
        return plain && !text.isEmpty
            ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
