import Synchronization

/// A reply that is given later, by whichever caller takes it out first.
///
/// A caller that is interrupted meanwhile is answered EINTR at once. A pending reply that is let go
/// answers EIO.
public final class PendingReply<Answer>: Sendable {
    private let reply: Mutex<Reply<Answer>?>

    /// Keeps a reply.
    ///
    /// - Parameters:
    ///   - reply: what is kept.
    ///   - onInterrupt: called after an interrupted caller was answered, to stop work that is no longer
    ///     needed; see `Request.onInterrupt` for its limits.
    public init(_ reply: consuming Reply<Answer>, onInterrupt: (@Sendable () -> Void)? = nil) {
        let slot = Slot()
        reply.onInterrupt {
            slot.owner.withLock { $0.interrupt() }
            onInterrupt?()
        }
        self.reply = Mutex(reply)
        // No other thread has this object yet, so the reply cannot have been given.
        let wasInterrupted = slot.owner.withLock { $0.set(self) }
        if wasInterrupted { interrupt() }
    }

    /// The reply, if it was not taken before.
    public func take() -> Reply<Answer>? {
        reply.withLock { reply in
            var taken: Reply<Answer>?
            swap(&taken, &reply)
            return taken
        }
    }

    private func interrupt() {
        guard let reply = take() else { return }
        reply.fail(.interrupted)
    }

    /// Where the interrupt handler finds the pending reply, which does not exist yet when the handler
    /// is registered.
    ///
    /// Weak, so that a pending reply answers when its last reference goes.
    private final class Slot: Sendable {
        struct Owner {
            weak var pending: PendingReply?
            var wasInterrupted = false

            mutating func set(_ pending: PendingReply) -> Bool {
                self.pending = pending
                return wasInterrupted
            }

            mutating func interrupt() {
                wasInterrupted = true
                pending?.interrupt()
            }
        }

        let owner = Mutex(Owner())
    }
}

extension Reply {
    /// Answers in a task of its own, which is cancelled when the caller is interrupted.
    ///
    /// Owner of the task is the request: it ends when `work` does, which has to give up on
    /// cancellation (and then answer EINTR). For what must wait; an answer that is at hand is given
    /// on the FUSE thread, which is three times cheaper.
    public consuming func answer(
        priority: TaskPriority? = nil,
        in work: @escaping @Sendable @concurrent (consuming Reply<Answer>) async -> Void
    ) {
        let cancellation = Cancellation()
        onInterrupt { cancellation.cancel() }
        let handover = Handover(self)
        let task = Task(priority: priority) { @concurrent in
            guard let reply = handover.take() else { return }
            await work(reply)
        }
        cancellation.set(task)
    }
}

/// Carries a reply into a task: a closure cannot give away what it has captured.
private final class Handover<Answer>: Sendable {
    private let reply: Mutex<Reply<Answer>?>

    init(_ reply: consuming Reply<Answer>) { self.reply = Mutex(reply) }

    func take() -> Reply<Answer>? {
        reply.withLock { reply in
            var taken: Reply<Answer>?
            swap(&taken, &reply)
            return taken
        }
    }
}

/// Cancels a task that may not have been started yet.
private final class Cancellation: Sendable {
    private struct State {
        var task: Task<Void, Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())

    func set(_ task: Task<Void, Never>) {
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }
}
