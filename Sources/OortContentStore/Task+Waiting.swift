import Synchronization

extension Task where Failure == Never {
    /// The task's value, or `given` as soon as the caller is cancelled; the task itself continues, for
    /// other callers.
    package func value(orWhenCancelled given: Success) async -> Success {
        let waiter = Waiter<Success>()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiter.begin(continuation)
                if Task<Never, Never>.isCancelled {
                    waiter.end(with: given)
                } else {
                    // Owned by the waiter; ends with the awaited task.
                    Task<Void, Never> { waiter.end(with: await value) }
                }
            }
        } onCancel: {
            waiter.end(with: given)
        }
    }
}

/// A caller that is answered once, by whichever answer comes first.
private final class Waiter<Value: Sendable>: Sendable {
    private let continuation = Mutex<CheckedContinuation<Value, Never>?>(nil)

    func begin(_ continuation: CheckedContinuation<Value, Never>) {
        self.continuation.withLock { $0 = continuation }
    }

    func end(with value: Value) {
        let continuation = continuation.withLock { continuation in
            defer { continuation = nil }
            return continuation
        }
        continuation?.resume(returning: value)
    }
}
