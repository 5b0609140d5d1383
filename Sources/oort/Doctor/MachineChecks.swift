import Foundation
import SwiftFUSE

/// What the machine gives: FUSE, and room on its disks.
enum MachineChecks {
    /// The kernel's device, the program that mounts, and root's settings for it.
    static func fuse(_ needs: MountRequirements) async -> [Finding] {
        await TimeLimit.blocking { [device(needs), helper(needs), configuration(needs)] }
    }

    private static func device(_ needs: MountRequirements) -> Finding {
        let descriptor = unsafe open(needs.device, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        guard descriptor < 0 else {
            close(descriptor)
            return .ok("fuse", "\(needs.device) can be opened")
        }
        let error = errno
        let advice =
            switch error {
            case ENOENT, ENODEV, ENXIO:
                "Load the module (modprobe fuse), or start the container with "
                    + "--device /dev/fuse --cap-add SYS_ADMIN."
            case EACCES: "Root can allow it: chmod 666 \(needs.device), as it is on most machines."
            default: "Start the container with --device /dev/fuse --cap-add SYS_ADMIN."
            }
        return .trouble(
            "fuse",
            "\(needs.device) cannot be opened: \(POSIXText.of(error))",
            advice: advice
        )
    }

    private static func helper(_ needs: MountRequirements) -> Finding {
        guard let program = needs.helper else {
            return .trouble(
                "fuse",
                "the program fusermount3 is not installed",
                advice: "Install it: apt-get install fuse3"
            )
        }
        var status = stat()
        let isRoots =
            unsafe stat(program, &status) == 0 && status.st_uid == 0
            && status.st_mode & S_ISUID != 0
        guard needs.user == 0 || isRoots else {
            return .trouble(
                "fuse",
                "\(program) does not run as root, so that users cannot mount",
                advice: "Root can mend it: apt-get install --reinstall fuse3"
            )
        }
        guard needs.user == 0 || (unsafe access(needs.mountTable, R_OK)) == 0 else {
            return .trouble(
                "fuse",
                "\(needs.mountTable) cannot be read, so that users cannot unmount",
                advice: "Root can mend it: ln -sf ../proc/self/mounts \(needs.mountTable)"
            )
        }
        return .ok("fuse", "\(program) is installed")
    }

    private static func configuration(_ needs: MountRequirements) -> Finding {
        let limit = needs.mostMounts
        let mounts = (try? MountTable.current().rows.count(where: \.isFUSE)) ?? 0
        guard needs.user == 0 || mounts < limit else {
            return .trouble(
                "fuse",
                "\(mounts) FUSE file systems are mounted, and \(needs.configuration) allows \(limit)",
                advice: "Unmount some, or have root raise mount_max there."
            )
        }
        return .ok(
            "fuse",
            needs.letsUsersShare
                ? "\(needs.configuration) allows --allow-other"
                : "\(needs.configuration) does not allow --allow-other, which most people do not need"
        )
    }

    /// Whether the folders can be written to, and have room.
    static func disk(_ folders: Folders) async -> [Finding] {
        await TimeLimit.blocking {
            [
                ("the state", folders.state), ("the cache", folders.cache),
                ("the control socket", folders.runtime),
            ].map { folder(what: $0, path: $1) }
        }
    }

    private static func folder(what: String, path: String) -> Finding {
        var status = stat()
        if unsafe lstat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR, status.st_uid == getuid() else {
                return .trouble(
                    "disk",
                    "\(path), for \(what), is not a folder of yours",
                    advice: "Move it away; Oort makes its own."
                )
            }
        }
        // What is missing is made by the first mount, in the first folder above it that is there.
        var place = path
        while unsafe access(place, F_OK) != 0, errno == ENOENT, place.utf8.count > 1 {
            place = (place as NSString).deletingLastPathComponent
        }
        var room = statvfs()
        guard unsafe statvfs(place, &room) == 0 else {
            return .trouble(
                "disk",
                "\(place), for \(what), cannot be looked at: \(POSIXText.ofErrno())",
                advice: "Check its disk (dmesg) and the permissions of the folders above it."
            )
        }
        let isReadOnly = room.f_flag & UInt(ST_RDONLY) != 0
        guard !isReadOnly, unsafe access(place, W_OK | X_OK) == 0 else {
            return .trouble(
                "disk",
                "\(place), for \(what), cannot be written to"
                    + (isReadOnly ? ": its disk is read-only" : ""),
                advice: isReadOnly
                    ? "The disk may have failed (dmesg); mount it writable again."
                    : "Give yourself the right: chown \(NSUserName()) \(Shell.quoted(place))"
            )
        }
        let free = ByteSize(bytes: Int64(clamping: bytes(room)))
        guard free.bytes >= leastRoom else {
            return .trouble(
                "disk",
                "\(free) are free for \(what) (\(place))",
                advice: "Make room: below 64 MiB nothing can be written in the mount."
            )
        }
        return .ok("disk", "\(free) are free for \(what) (\(place))")
    }

    private static func bytes(_ room: statvfs) -> UInt64 {
        let (bytes, isOver) = UInt64(room.f_bavail).multipliedReportingOverflow(
            by: UInt64(room.f_frsize)
        )
        return isOver ? .max : bytes
    }

    /// What the catalog needs, and no written content takes.
    private static let leastRoom: Int64 = 64 << 20
}
