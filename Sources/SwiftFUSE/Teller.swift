internal import CFUSEGuard

/// Notifies the kernel of changes, on a thread whose descriptors are its own.
///
/// A notification waits for the pages and folders that requests in flight hold, and no signal ends that
/// wait. When the process is killed meanwhile, this thread stays in the kernel until those requests are
/// answered, and they never will be: the kernel fails them when the device is closed, and a thread that is
/// left keeps what it shares of descriptors, the device, locks and sockets. Programs would read for ever,
/// and the next mount would take this one for alive. So the thread shares none: it has a clone of the
/// device, and nothing else; and the mount's guard refuses what programs ask from then on.
/// Sources: fs/fuse/inode.c, fuse_reverse_inval_inode; fs/fuse/dev.c, fuse_dev_release, which fails
/// the requests that were read by the way that is closed.
///
/// It must start no thread, since that would share its descriptors, and so it resumes no task either:
/// the notifier's thread hands it the news and waits.
final class Teller: Sendable {
    private struct State {
        var batch: [News]?
        var hasEnded = false
    }

    private let state = Monitor(State())

    /// Returns when the news is passed on, or the thread is to end.
    func tell(_ batch: [News]) {
        state.update { $0.batch = batch }
        state.wait { $0.batch == nil || $0.hasEnded ? () : nil }
    }

    /// Has `run` return.
    func end() { state.update { $0.hasEnded = true } }

    /// Passes news on until `end` is called.
    func run(_ core: SessionCore) {
        // Where the system refuses, it goes on with what it shares.
        _ = fuse_guard_isolate_thread(core.device)
        while let batch = next() {
            for news in batch {
                // ENOENT: the kernel does not have it. Anything else says that the mount is going,
                // or that nothing is to be done about it.
                _ = core.tell(news)
            }
            state.update { $0.batch = nil }
        }
    }

    private func next() -> [News]? {
        state.wait { state -> [News]?? in
            if state.hasEnded { return .some(nil) }
            return state.batch.map { .some($0) }
        }
    }
}
