import Foundation

/// The process's signals.
enum Signals {
    /// What asks a mount to stop: `kill`, Ctrl-C, a closed terminal.
    private static let stop = [SIGTERM, SIGINT, SIGHUP]

    /// Sets what signals do, whatever the program that started this one has set.
    ///
    /// Writing to a closed connection, or past the limit for files (`ulimit -f`), shall be an error, not
    /// the end. A child keeps its number until it is waited for, which it does not where SIGCHLD is
    /// ignored.
    static func begin() {
        _ = signal(SIGPIPE, SIG_IGN)
        _ = signal(SIGXFSZ, SIG_IGN)
        _ = signal(SIGCHLD, SIG_DFL)
    }

    /// Keeps the stop signals from being delivered; must run before any thread is made, since
    /// threads inherit the mask.
    static func blockStopSignals() {
        var set = stopSet
        unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Calls `body` on a thread of its own for each stop signal that arrives from now on.
    static func onStop(_ body: @escaping @Sendable () -> Void) {
        let thread = Thread {
            while true {
                var set = stopSet
                var signal: Int32 = 0
                guard unsafe sigwait(&set, &signal) == 0 else { return }
                body()
            }
        }
        thread.name = "oort-signals"
        thread.start()
    }

    private static var stopSet: sigset_t {
        var set = sigset_t()
        unsafe sigemptyset(&set)
        for signal in stop { unsafe sigaddset(&set, signal) }
        return set
    }
}
