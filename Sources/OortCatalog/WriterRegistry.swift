public import OortModel
import Synchronization

/// Which files programs have open for writing: the engine does not push these.
public final class WriterRegistry: Sendable {
    private struct State {
        var counts: [Inode: Int] = [:]
        var listener: @Sendable (Inode) -> Void = { _ in }
    }

    private let state = Mutex(State())

    /// Nobody writes.
    public init() {}

    /// Whether a file is open for writing.
    public func isOpen(_ inode: Inode) -> Bool { state.withLock { $0.counts[inode] != nil } }

    /// Who hears that the last writer of a file closed it; called on the thread that did, and must
    /// return at once.
    public func setListener(_ listener: @escaping @Sendable (Inode) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Notes one more writer; of a file that is there already, `Catalog.opened(forWriting:)` does.
    public func opened(_ inode: Inode) { state.withLock { $0.counts[inode, default: 0] += 1 } }

    /// Notes one writer less.
    public func closed(_ inode: Inode) {
        let listener = state.withLock { state -> (@Sendable (Inode) -> Void)? in
            let count = (state.counts[inode] ?? 1) - 1
            state.counts[inode] = count > 0 ? count : nil
            return count > 0 ? nil : state.listener
        }
        listener?(inode)
    }
}
