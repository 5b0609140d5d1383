internal import CFUSE
import Glibc

/// A thread of this module's own: blocking is its purpose, so it is never a task's.
@safe
struct OwnThread: Sendable {
    /// Wakes a thread out of a blocking `read` of the device.
    ///
    /// Its handler does nothing; the call returns EINTR because the handler is installed without
    /// SA_RESTART.
    static let wakeSignal = lastRealTimeSignal - 3

    private let thread: pthread_t

    /// Starts a thread that takes no signal but `wakeSignal`, so that the process's own stay where
    /// they are waited for.
    ///
    /// - Throws: EAGAIN when the system has no room for another thread.
    init(named name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let error = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                OwnThread.blockSignals()
                unsafe swiftfuse_pthread_setname(pthread_self(), start.name)
                start.body()
                return nil
            },
            start.toOpaque()
        )
        guard error == 0 else {
            unsafe start.release()
            throw Errno(rawValue: error)
        }
        self.thread = thread
    }

    /// Blocks until the thread has ended.
    func join() { pthread_join(thread, nil) }

    /// Lets the thread's remains go by themselves when it ends; it can then not be joined.
    func detach() { pthread_detach(thread) }

    /// Interrupts the system call in which the thread waits.
    ///
    /// Only before `join` or `detach`.
    func wake() { pthread_kill(thread, Self.wakeSignal) }

    /// Makes `wakeSignal` harmless for this process.
    ///
    /// May be called more than once.
    static func prepareWaking() {
        var action = sigaction()
        unsafe action.__sigaction_handler.sa_handler = { _ in }
        unsafe sigaction(wakeSignal, &action, nil)
    }

    private static func blockSignals() {
        var signals = sigset_t()
        unsafe sigfillset(&signals)
        for signal in [SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, wakeSignal] {
            unsafe sigdelset(&signals, signal)
        }
        unsafe pthread_sigmask(SIG_SETMASK, &signals, nil)
    }

    private final class Start: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }
}

/// `SIGRTMAX`, which is a macro around this function.
private let lastRealTimeSignal = __libc_current_sigrtmax()
