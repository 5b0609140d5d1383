import Logging
import OortFileSystem
import SwiftFUSE

/// How outcomes become replies, and failures log lines.
struct Answering: Sendable {
    let log: Logger

    /// Answers on this thread if the outcome is here, else from a task that an interrupt of the
    /// calling program cancels.
    func answer<Answer, Value>(
        _ reply: consuming Reply<Answer>,
        with outcome: Outcome<Value>,
        _ send: @escaping @Sendable (consuming Reply<Answer>, Value) -> Void
    ) {
        switch outcome {
        case .now(.success(let value)): send(reply, value)
        case .now(.failure(let error)): fail(reply, error)
        case .later(let body):
            reply.answer { [self] reply in
                switch await body() {
                case .success(let value): send(reply, value)
                case .failure(let error): fail(reply, error)
                }
            }
        }
    }

    func fail<Answer>(_ reply: consuming Reply<Answer>, _ error: FileSystemError) {
        // Only what EIO hides is worth a line: other errors speak for themselves, and are frequent
        // (ENOENT).
        if error.errno == .inputOutput {
            log.error("input/output error", metadata: ["cause": "\(error)"])
        }
        reply.fail(error.errno)
    }
}
