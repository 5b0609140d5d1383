import Foundation
import Synchronization

/// A thread for what blocks, one job after the other: libcurl ends FTP's transfers so.
///
/// The thread begins with the first job. It ends with `stop`, or with the program (`stopAll`): what
/// uses OpenSSL has to be gone before `exit`.
// Unchecked because `condition` guards all that changes.
package final class BlockingWorker: @unchecked Sendable {
    /// A job, which begins or is given up.
    private struct Job {
        let number: UInt64
        let body: @Sendable () -> Void
        let giveUp: @Sendable () -> Void
    }

    private let name: String
    private let idleLimit: TimeInterval
    private let interrupt: @Sendable () -> Void
    private let idle: @Sendable () -> Void
    private let condition = NSCondition()
    private var jobs: [Job] = []
    private var lastNumber: UInt64 = 0
    private var thread: JoinableThread?
    private var isStopping = false
    private var hasEnded = false

    /// The workers whose threads are not joined yet.
    private static let running = Mutex<[ObjectIdentifier: BlockingWorker]>([:])

    /// A worker without a thread yet.
    ///
    /// - Parameters:
    ///   - name: the thread's.
    ///   - idleLimit: after how long without a job `idle` is called.
    ///   - interrupt: has the job under way end soon; called by `stop`, from any thread.
    ///   - idle: called on the thread when there was no job for a while, and at its end.
    package init(
        name: String,
        idleLimit: Duration,
        interrupt: @escaping @Sendable () -> Void,
        idle: @escaping @Sendable () -> Void
    ) {
        self.name = name
        self.idleLimit = idleLimit / .seconds(1)
        self.interrupt = interrupt
        self.idle = idle
    }

    /// Runs `body` on the thread and returns what it made; nil where it was given up before it began,
    /// by a cancellation or by `stop`.
    package func run<Value: Sendable>(
        _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let number = Mutex<UInt64?>(nil)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
                let added = add(
                    { continuation.resume(returning: body()) },
                    giveUp: { continuation.resume(returning: nil) }
                )
                number.withLock { $0 = added }
                if Task.isCancelled { drop(added) }
            }
        } onCancel: {
            if let number = number.withLock(\.self) { drop(number) }
        }
    }

    private func add(
        _ body: @escaping @Sendable () -> Void,
        giveUp: @escaping @Sendable () -> Void
    ) -> UInt64 {
        condition.lock()
        lastNumber += 1
        let number = lastNumber
        var isRefused = isStopping
        if !isRefused, thread == nil {
            thread = try? JoinableThread(name: name) { [self] in loop() }
            isRefused = thread == nil
            if !isRefused { register() }
        }
        if !isRefused {
            jobs.append(Job(number: number, body: body, giveUp: giveUp))
            condition.broadcast()
        }
        condition.unlock()
        if isRefused { giveUp() }
        return number
    }

    /// Puts the worker on the list, and takes those off whose threads are through.
    private func register() {
        let others = Self.running.withLock { running in
            defer { running[ObjectIdentifier(self)] = self }
            return Array(running.values)
        }
        for other in others where other.isThrough { other.join() }
    }

    private var isThrough: Bool {
        condition.lock()
        defer { condition.unlock() }
        return hasEnded
    }

    /// Gives up a job that has not begun.
    private func drop(_ number: UInt64) {
        condition.lock()
        let index = jobs.firstIndex { $0.number == number }
        let job = index.map { jobs.remove(at: $0) }
        condition.unlock()
        job?.giveUp()
    }

    /// Ends the job under way, gives up the others and takes no more; does not wait.
    package func stop() {
        condition.lock()
        isStopping = true
        let left = jobs
        jobs = []
        condition.broadcast()
        condition.unlock()
        for job in left { job.giveUp() }
        interrupt()
    }

    /// Stops all workers that there are and blocks until nothing is left of their threads.
    static func stopAll() {
        let all = running.withLock { Array($0.values) }
        for worker in all { worker.stop() }
        for worker in all { worker.join() }
    }

    private func join() {
        condition.lock()
        let thread = thread
        condition.unlock()
        thread?.join()
        Self.running.withLock { $0[ObjectIdentifier(self)] = nil }
    }

    // MARK: On the thread

    private func loop() {
        // A connection that the server has closed is an error of the write, and no end of the program.
        var set = sigset_t()
        unsafe sigemptyset(&set)
        unsafe sigaddset(&set, SIGPIPE)
        _ = unsafe pthread_sigmask(SIG_BLOCK, &set, nil)
        while let job = next() { job.body() }
        idle()
        condition.lock()
        hasEnded = true
        condition.unlock()
    }

    /// The next job; nil when the thread is to end.
    private func next() -> Job? {
        condition.lock()
        defer { condition.unlock() }
        var wasIdle = false
        while true {
            if isStopping { return nil }
            if !jobs.isEmpty { return jobs.removeFirst() }
            if wasIdle {
                condition.wait()
            } else if !condition.wait(until: Date(timeIntervalSinceNow: idleLimit)) {
                wasIdle = true
                condition.unlock()
                idle()
                condition.lock()
            }
        }
    }
}
