import Foundation
import OortProcesses
import SwiftFUSE
import struct SystemPackage.Errno

/// The folder on which the file system is mounted.
struct MountPoint: Hashable, Sendable {
    /// The absolute path.
    let path: String

    /// The mount point at a path that is absolute and free of links; looks at nothing.
    init(standardized path: String) { self.path = path }

    /// The mount point at a path as typed: relative to the current folder, `~` for the home folder.
    init(_ path: String) {
        let expanded = (path as NSString).expandingTildeInPath
        let absolute =
            expanded.hasPrefix("/")
            ? expanded : FileManager.default.currentDirectoryPath + "/" + expanded
        self.path = (absolute as NSString).standardizingPath
    }

    /// Whether a path is this one, or lies below; looks at nothing.
    func holds(_ other: String) -> Bool {
        other == path || other.utf8.starts(with: (path == "/" ? path : path + "/").utf8)
    }

    /// Makes the folder ready to be mounted on: makes it when it is missing.
    ///
    /// A mount whose process died stays until the moment of mounting: a program that goes on gets an error
    /// there until then, and does not write into a folder that the mount will hide.
    ///
    /// - Throws: `Failure` naming the path and what is wrong with it.
    func prepare() throws(Failure) {
        switch state() {
        case .missing: try make()
        case .stale: break
        default: if let obstacle = obstacle() { throw obstacle }
        }
    }

    /// Why nothing can be mounted there, nor a folder for it be made; nil when it can.
    func obstacle() -> Failure? {
        switch state() {
        case .free, .missing: nil
        case .stale:
            Failure(
                "\(path) still shows a mount whose process is gone.",
                advice: "Free it with: fusermount3 -u -z \(Shell.quoted(path))"
            )
        case .mounted(let type):
            Failure(
                "\(path) is in use: a file system (\(type)) is mounted there.",
                advice: "Unmount it first, or name another folder."
            )
        case .notEmpty:
            Failure(
                "\(path) is not empty; a mount would hide what is in it.",
                advice: """
                    Move its files away, or name another folder. What a program wrote there while \
                    nothing was mounted can be moved into its account afterwards.
                    """
            )
        case .notAFolder:
            Failure(
                "\(path) is not a folder.",
                advice: "Name a folder, or a path that does not exist yet."
            )
        case .unreadable(let reason):
            Failure(
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
        do throws(Errno) {
            Program.reap(try Program("fusermount3", ["-u", "-z", "--", path]).spawn())
        } catch {
            throw Failure(
                "fusermount3 cannot be started: \(POSIXText.of(error.rawValue))",
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
        if let mount = (try? MountTable.current())?.mount(at: path) { return .mounted(mount.type) }
        do {
            let entries = try FileManager.default.contentsOfDirectory(atPath: path)
            return entries.isEmpty ? .free : .notEmpty
        } catch {
            return .unreadable(error.reason)
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
                "The mount point \(path) cannot be made: \(error.reason)",
                advice: "Check the folder above it, or name another folder."
            )
        }
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
