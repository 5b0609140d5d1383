internal import CFUSE
import Glibc

/// What the kernel asks and waits for: exactly one answer is owed, from any thread, at any time.
///
/// The compiler sees to it that there is no second one; a request that is dropped without an answer
/// answers EIO, or the calling program would hang for ever.
@safe
public struct Request: ~Copyable, Sendable {
    // nonisolated(unsafe) because libfuse lets any thread answer a request; nil once that is done.
    private nonisolated(unsafe) var raw: fuse_req_t?
    // Keeps the session until the last request is answered: libfuse reaches it through `raw`.
    let core: SessionCore
    // The registration of a handler for interrupts; nil without one.
    private var interruption: Interruptions.Token?

    init(_ raw: fuse_req_t?) {
        unsafe self.raw = raw
        core = unsafe SessionCore.of(raw)
    }

    /// Who asks.
    public var caller: Caller {
        guard let raw = unsafe raw, let context = unsafe fuse_req_ctx(raw) else {
            return Caller(userID: 0, groupID: 0, threadID: 0, umask: 0)
        }
        return unsafe Caller(
            userID: context.pointee.uid,
            groupID: context.pointee.gid,
            threadID: context.pointee.pid,
            umask: context.pointee.umask
        )
    }

    /// Has `handler` called once if the caller is interrupted by a signal while it waits.
    ///
    /// The caller goes on waiting until it is answered, even if it was killed: so slow work must stop then
    /// and answer EINTR. The handler runs on a FUSE thread, or at once on this one if the interrupt has
    /// already come; it must be quick. A later handler replaces an earlier one. After the answer it is not
    /// called any more, but a call that has begun may still be going on.
    public mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
        guard let raw = unsafe raw else { return }
        if let interruption { Interruptions.remove(interruption) }
        interruption = unsafe Interruptions.register(handler, for: raw)
    }

    /// Answers by `send`, a `fuse_reply_…` function.
    ///
    /// - Returns: whether the kernel took the answer; it does not when the mount is gone or when the
    ///   caller was interrupted before the request was read.
    @discardableResult
    consuming func answer(_ send: (fuse_req_t) -> CInt) -> Bool {
        guard let raw = unsafe raw else { return false }
        unsafe self.raw = nil
        if let interruption { Interruptions.remove(interruption) }
        return unsafe send(raw) == 0
    }

    consuming func fail(_ error: Errno) {
        unsafe answer { unsafe fuse_reply_err($0, error.rawValue) }
    }

    deinit {
        guard let raw = unsafe raw else { return }
        if let interruption { Interruptions.remove(interruption) }
        _ = unsafe fuse_reply_err(raw, EIO)
    }
}
