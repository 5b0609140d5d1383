/// What an operation answers: at once, or later from a task because something must be waited for.
///
/// The FUSE layer answers `.now` on its own thread and runs `.later` in a task; cancelling that task
/// ends the waiting with `.interrupted`.
public enum Outcome<Value: Sendable>: Sendable {
    /// The answer is local.
    case now(Result<Value, FileSystemError>)
    /// The answer must be waited for (network, room on the disk, a large local copy). The closure
    /// may be called once, from any task; it never waits for ever.
    case later(@Sendable () async -> Result<Value, FileSystemError>)

    /// An answer that is there, or its error.
    static func now(
        _ body: () throws(FileSystemError) -> Value
    ) -> Outcome<Value> {
        do throws(FileSystemError) { return .now(.success(try body())) } catch {
            return .now(.failure(error))
        }
    }

    /// A failure that is known at once.
    static func failure(_ error: FileSystemError) -> Outcome<Value> { .now(.failure(error)) }

    /// The answer, waited for if need be: for callers that are tasks themselves.
    public func value() async throws(FileSystemError) -> Value {
        switch self {
        case .now(let result): try result.get()
        case .later(let body): try await body().get()
        }
    }
}
