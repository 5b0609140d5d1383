import CCurl
import Foundation
import Synchronization

/// A thread that can be waited for until the last of its own data is freed, as Foundation's cannot.
final class JoinableThread: Sendable {
    /// The thread until it is joined; the lock is held meanwhile, so that a second caller waits, too.
    private let thread: Mutex<pthread_t?>

    /// Starts a thread.
    ///
    /// - Throws: `.unreachable` when the system has no room for another one.
    init(name: String, _ body: @escaping @Sendable () -> Void) throws(TransportError) {
        let start = unsafe Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        let error = unsafe pthread_create(
            &thread,
            nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                unsafe oort_name_thread(pthread_self(), start.name)
                start.body()
                return nil
            },
            start.toOpaque()
        )
        guard error == 0 else {
            unsafe start.release()
            throw .unreachable("no thread can be started (error \(error))")
        }
        self.thread = Mutex(thread)
    }

    /// Blocks until the thread is gone; from any other thread, more than once if need be.
    func join() {
        thread.withLock { thread in
            guard let running = thread else { return }
            pthread_join(running, nil)
            thread = nil
        }
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
