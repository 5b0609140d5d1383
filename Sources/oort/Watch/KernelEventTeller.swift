import Foundation
import Logging
import OortFUSE
import OortModel
import OortProcesses
import struct SystemPackage.Errno
import struct SystemPackage.FileDescriptor

/// An event for the kernel to report: what the mount shows as done, and what the helper does.
struct KernelEvent: Sendable {
    /// What has happened.
    var announced: Announcements.Announced
    /// What the helper does, but where.
    var action: KernelEventOrder.Action
    /// The folder's inode, its names from the mount's top down, and the name in it.
    var parent: Inode
    var folder: [String]
    var name: String
    /// A file's modified time, where that is set to what it is.
    var modified = Timestamp(seconds: 0)
}

/// The helper process and its orders; used by one thread.
struct KernelEventTeller {
    private let mountPoint: String
    private let device: String
    private let announcements: Announcements
    private let logger: Logger
    private var helper: (process: pid_t, socket: Int32)?
    private var lines = KernelEventLines()
    private var failures = 0

    /// How often in a row the helper may fail before no event is reported any more.
    private static let mostFailures = 3
    /// How long it may take for one order, in seconds.
    private static let patience = 10

    init(mountPoint: String, device: String, announcements: Announcements, logger: Logger) {
        self.mountPoint = mountPoint
        self.device = device
        self.announcements = announcements
        self.logger = logger
    }

    /// Has the kernel report an event; returns the system's error, zero for none.
    mutating func tell(_ event: KernelEvent) -> Int32 {
        guard helper != nil || start() else { return ENOSYS }
        announcements.announce(event.announced)
        let error = carryOut(
            KernelEventOrder(
                action: event.action,
                mountPoint: mountPoint,
                device: device,
                folder: event.folder,
                folderInode: event.parent.rawValue,
                name: event.name,
                seconds: event.modified.seconds,
                nanoseconds: Int64(event.modified.nanoseconds)
            )
        )
        // A helper that did not answer may still be at it.
        guard let error else {
            fail("the helper does not answer")
            return ENOSYS
        }
        announcements.announce(nil)
        failures = 0
        return error
    }

    /// Ends the helper.
    mutating func end() {
        guard let (process, socket) = helper else { return }
        helper = nil
        // It ends by itself when it gets no more orders, or with the request that it waits for.
        close(socket)
        kill(process, SIGKILL)
        // Dismissed after it has ended and before it is reaped, while its number is still its own: so no
        // other process's requests are taken for its, nor its for another's.
        var info = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &info, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        announcements.dismiss()
        Program.reap(process)
    }

    /// Starts the helper, and makes sure that the mount knows it.
    private mutating func start() -> Bool {
        guard failures < Self.mostFailures else { return false }
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard unsafe socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return false }
        defer { close(ends[1]) }
        var limit = timeval(tv_sec: Self.patience, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(ends[0], SOL_SOCKET, option, &limit, size)
        }
        var program = Program.own([KernelEventsHelper.word], environment: [:])
        program.descriptors = [KernelEventsHelper.descriptor: FileDescriptor(rawValue: ends[1])]
        do throws(Errno) {
            let process = try program.spawn()
            helper = (process, ends[0])
            lines = KernelEventLines()
            announcements.admit(process)
        } catch {
            close(ends[0])
            failures += 1
            return false
        }
        let found = carryOut(
            KernelEventOrder(
                action: .begin,
                mountPoint: mountPoint,
                device: device,
                folder: [],
                folderInode: Inode.root.rawValue,
                name: announcements.sign
            )
        )
        guard found == 0 else {
            fail("the mount does not know its helper")
            return false
        }
        return true
    }

    private mutating func fail(_ what: String) {
        failures += 1
        end()
        logger.warning("programs that watch get no events", metadata: ["reason": "\(what)"])
    }

    /// Gives an order; the error that the system gave the helper, nil when it does not answer.
    private mutating func carryOut(_ order: KernelEventOrder) -> Int32? {
        guard let socket = helper?.socket, lines.send(order, socket) else { return nil }
        return lines.receive(KernelEventAnswer.self, socket)?.error
    }
}
