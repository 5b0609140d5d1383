import Foundation

/// The process that repeats on the mount what happened elsewhere, so that the kernel reports it.
///
/// It does everything on its main thread, by whose number the mount knows it, and follows no link:
/// elsewhere its changes would be real.
enum KernelEventsHelper {
    /// The only argument by which this program becomes the helper.
    static let word = "kernel-events-helper"
    /// The descriptor of its socket.
    static let descriptor: Int32 = 3

    /// Whether this process was started as the helper.
    static var isAsked: Bool { CommandLine.arguments.dropFirst().elementsEqual([word]) }

    /// Carries out orders until the mount ends; must be called on the main thread before any other
    /// exists.
    static func run() -> Never {
        let process = getpid()
        guard link("/proc/thread-self") == "\(process)/task/\(process)" else { exit(2) }
        var lines = KernelEventLines()
        var isKnown = false
        while let order = lines.receive(KernelEventOrder.self, descriptor) {
            let error = isKnown || order.action == .begin ? carryOut(order) : EPERM
            if order.action == .begin { isKnown = error == 0 }
            guard lines.send(KernelEventAnswer(error: error), descriptor) else { break }
        }
        exit(0)
    }

    /// The error that the system gave; zero for none.
    private static func carryOut(_ order: KernelEventOrder) -> Int32 {
        var folder = unsafe open(order.mountPoint, pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return errno }
        defer { close(folder) }
        for name in order.folder {
            guard isName(name) else { return EINVAL }
            let next = unsafe openat(
                folder,
                name,
                pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
            )
            guard next >= 0 else { return errno }
            close(folder)
            folder = next
        }
        var found = stat()
        guard unsafe fstat(folder, &found) == 0 else { return errno }
        guard device(found.st_dev) == order.device, UInt64(found.st_ino) == order.folderInode,
            isName(order.name)
        else { return ESTALE }
        return act(order, in: folder) == 0 ? 0 : errno
    }

    private static func act(_ order: KernelEventOrder, in folder: Int32) -> Int32 {
        switch order.action {
        case .begin:
            var found = stat()
            return unsafe fstatat(folder, order.name, &found, AT_SYMLINK_NOFOLLOW)
        case .makeFile: return unsafe mknodat(folder, order.name, S_IFREG | 0o600, 0)
        case .makeFolder: return unsafe mkdirat(folder, order.name, 0o700)
        case .makeLink: return unsafe symlinkat(".", folder, order.name)
        case .removeFile: return unsafe unlinkat(folder, order.name, 0)
        case .removeFolder: return unsafe unlinkat(folder, order.name, AT_REMOVEDIR)
        case .touch:
            // Only the modified time: the kernel reports that as a change of content.
            let omitted = 0x3FFF_FFFE  // UTIME_OMIT, which Glibc's module does not show
            let times = [
                timespec(tv_sec: 0, tv_nsec: omitted),
                timespec(tv_sec: Int(order.seconds), tv_nsec: Int(order.nanoseconds)),
            ]
            return unsafe utimensat(folder, order.name, times, AT_SYMLINK_NOFOLLOW)
        }
    }

    /// Whether it is the name of something in a folder, and leads nowhere else.
    private static func isName(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && !name.utf8.contains(UInt8(ascii: "/"))
            && !name.utf8.contains(0)
    }

    /// A device as /proc/self/mountinfo has it.
    private static func device(_ number: dev_t) -> String {
        let number = UInt64(number)
        let major = number >> 8 & 0xFFF | number >> 32 & 0xFFFF_F000
        let minor = number & 0xFF | number >> 12 & 0xFFFF_FF00
        return "\(major):\(minor)"
    }

    private static func link(_ path: String) -> String? {
        try? FileManager.default.destinationOfSymbolicLink(atPath: path)
    }

    /// O_PATH, which Glibc's module does not show: the folder is not opened, only found.
    private static let pathOnly: Int32 = 0o10_000_000
}
