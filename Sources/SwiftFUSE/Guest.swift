import Synchronization

/// One thread whose requests another file system answers.
///
/// The kernel's inotify reports only what a program does on the mount. So a process of the daemon's own
/// repeats there what happened elsewhere, and must be answered without doing it: by a file system of its
/// own, which has nothing that it could change. Requests of all other programs never reach that.
public final class Guest: Sendable {
    let fileSystem: any LowLevelFileSystem
    private let thread = Atomic<Int32>(0)

    /// A guest that is not there yet.
    ///
    /// - Parameter fileSystem: answers it; must never answer ENOSYS, by which the kernel would take
    ///   an operation away from everybody.
    public init(_ fileSystem: some LowLevelFileSystem) { self.fileSystem = fileSystem }

    /// Has `fileSystem` answer a thread from now on, in place of the one before.
    ///
    /// - Parameter thread: its number as this process sees it; it must not end without being reaped
    ///   after `dismiss`, or another one may have the number.
    public func admit(_ thread: Int32) {
        self.thread.store(thread, ordering: .sequentiallyConsistent)
    }

    /// There is no such thread any longer.
    public func dismiss() { thread.store(0, ordering: .sequentiallyConsistent) }

    /// Whether a thread is the guest; zero, which is no thread's number, never is.
    func isAsking(_ thread: Int32) -> Bool {
        thread != 0 && self.thread.load(ordering: .sequentiallyConsistent) == thread
    }
}

extension Request {
    /// The file system that answers this thread.
    var fileSystem: any LowLevelFileSystem {
        guard let guest = core.guest, guest.isAsking(caller.threadID) else {
            return core.fileSystem
        }
        return guest.fileSystem
    }
}
