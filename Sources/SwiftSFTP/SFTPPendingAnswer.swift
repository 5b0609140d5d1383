import Synchronization

/// A request that was given to a session, and its answer when there is one.
///
/// A request leaves whether or not a caller waits for it. A handle that no caller takes is closed.
public final class SFTPPendingAnswer: Sendable {
    typealias Outcome = Result<SFTPAnswer, SFTPError>

    private enum State {
        case open
        case awaited(CheckedContinuation<Outcome, Never>)
        case here(Outcome)
        /// Taken, or given up by who waited for it.
        case over
    }

    private let state = Mutex(State.open)
    private let abandon: @Sendable (SFTPHandle) -> Void

    /// `abandon` gets a handle that no caller takes.
    init(abandon: @escaping @Sendable (SFTPHandle) -> Void) { self.abandon = abandon }

    deinit {
        if case .here(.success(.handle(let handle))) = state.withLock(\.self) { abandon(handle) }
    }

    /// Waits for the answer, once; a status other than OK is an error.
    ///
    /// - Throws: `.status`, `.connectionLost`, `.malformedAnswer`, `.notSendable`, `.unsupported`;
    ///   `.cancelled` when the task is cancelled or the answer was taken before. What was asked for
    ///   may be done all the same.
    @discardableResult
    public func answer() async throws(SFTPError) -> SFTPAnswer {
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let atOnce: Outcome? = state.withLock { state in
                    switch state {
                    case .open where Task.isCancelled:
                        state = .over
                        return .failure(.givenUp)
                    case .open:
                        state = .awaited(continuation)
                        return nil
                    case .here(let outcome):
                        state = .over
                        return outcome
                    case .awaited, .over: return .failure(.givenUp)
                    }
                }
                if let atOnce { continuation.resume(returning: atOnce) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
                guard case .awaited(let continuation) = state else { return nil }
                state = .over
                return continuation
            }
            waiter?.resume(returning: .failure(.givenUp))
        }
        let answer = try outcome.get()
        if case .status(let status, let words) = answer, status != .ok {
            throw SFTPError(.status(status), detail: words)
        }
        return answer
    }

    /// Gives the answer to who waits for it, now or later.
    func deliver(_ outcome: Outcome) {
        let waiter = state.withLock { state -> CheckedContinuation<Outcome, Never>? in
            switch state {
            case .open:
                state = .here(outcome)
                return nil
            case .awaited(let continuation):
                state = .over
                return continuation
            case .here: return nil
            case .over:
                if case .success(.handle(let handle)) = outcome { abandon(handle) }
                return nil
            }
        }
        waiter?.resume(returning: outcome)
    }
}

extension SFTPError {
    fileprivate static var givenUp: SFTPError {
        SFTPError(.cancelled, detail: "no caller waits for the answer")
    }
}
