import OortModel
import OortTransport

/// One connection of an account: a handle of libcurl's on a thread of its own.
final class FTPLine: Sendable {
    private let handle: FTPHandle
    private let worker: BlockingWorker

    /// A line that connects with its first transfer.
    init(_ address: FTPAddress, settings: FTPSettings, name: String) {
        let handle = FTPHandle(address, settings: settings)
        self.handle = handle
        worker = BlockingWorker(
            name: name,
            idleLimit: settings.idleLimit,
            interrupt: { handle.interrupt() },
            idle: { handle.close() }
        )
    }

    deinit { worker.stop() }

    /// Ends the transfer under way and the connection, for good; does not wait.
    func stop() { worker.stop() }

    /// Runs transfers on the line's thread, after those that were asked for before.
    ///
    /// A cancellation of the task ends the transfer.
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (FTPHandle, FTPCancellation) throws(FTPFailure) -> Value
    ) async throws(FTPFailure) -> Value {
        let cancellation = FTPCancellation()
        let (worker, handle) = (worker, handle)
        let result = await withTaskCancellationHandler {
            await worker.run { () -> Result<Value, FTPFailure> in
                do throws(FTPFailure) {
                    return .success(try body(handle, cancellation))
                } catch { return .failure(error) }
            }
        } onCancel: {
            cancellation.cancel()
        }
        guard let result else { throw FTPFailure(.cancelled, "ended") }
        return try result.get()
    }

    /// Sends commands that change nothing, a second time where the server had ended the connection.
    func ask(_ commands: [[UInt8]], password: String) async throws(FTPFailure) -> [FTPReply] {
        try await run { handle, cancellation throws(FTPFailure) in
            try again { () throws(FTPFailure) in
                try handle.control(commands, password: password, cancellation)
            }
        }
    }

    /// Sends commands that change something, never a second time.
    func tell(_ commands: [[UInt8]], password: String) async throws(FTPFailure) -> [FTPReply] {
        try await run { handle, cancellation throws(FTPFailure) in
            try wake(handle, password, cancellation)
            return try handle.control(commands, password: password, cancellation)
        }
    }
}

/// Does something harmless once more where the connection was one that the server had ended.
func again<Value>(
    _ body: () throws(FTPFailure) -> Value
) throws(FTPFailure) -> Value {
    do throws(FTPFailure) { return try body() } catch {
        guard error.isOfOldConnection else { throw error }
        return try body()
    }
}

/// Has an unused connection made anew where the server has ended it: what changes something is sent
/// once only, so it must not be lost on a dead one.
func wake(
    _ handle: FTPHandle,
    _ password: String,
    _ cancellation: FTPCancellation
) throws(FTPFailure) {
    guard handle.isOld else { return }
    _ = try again { () throws(FTPFailure) in
        try handle.control([Array("NOOP".utf8)], password: password, cancellation)
    }
}
