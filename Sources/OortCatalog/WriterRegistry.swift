public import OortModel
import Synchronization

/// Which files programs have open for writing, and which of these they write.
///
/// What is being written is not sent before it is closed. What is only open, as an office program keeps
/// its document, is; but nobody takes it away, nor gives it another content.
public final class WriterRegistry: Sendable {
    private struct State {
        var counts: [Inode: (open: Int, writing: Int)] = [:]
        var listener: @Sendable (Inode) -> Void = { _ in }
        /// Which files a transaction that is under way has asked about; nil when there is none.
        var asked: Set<Inode>?
    }

    private let state = Mutex(State())

    /// Nobody writes.
    public init() {}

    /// Whether a program has a file open for writing.
    public func isOpen(_ inode: Inode) -> Bool {
        state.withLock { state in
            state.asked?.insert(inode)
            return state.counts[inode] != nil
        }
    }

    /// Whether a program has a file open to which it has written since it opened it.
    public func isBeingWritten(_ inode: Inode) -> Bool {
        state.withLock { $0.counts[inode].map { $0.writing > 0 } ?? false }
    }

    /// A transaction of the catalog begins; one at a time.
    func transactionBegan() { state.withLock { $0.asked = [] } }

    /// It is over.
    func transactionEnded() { state.withLock { $0.asked = nil } }

    /// Who hears that a file is not open for writing, or not written, any more; called on the thread that
    /// closed it, and must return at once.
    public func setListener(_ listener: @escaping @Sendable (Inode) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Notes one more writer; of a file that is there already, `Catalog.opened(forWriting:)` does.
    ///
    /// - Returns: whether a transaction that is under way may take the file for unused.
    @discardableResult
    public func opened(_ inode: Inode) -> Bool {
        state.withLock { state in
            state.counts[inode, default: (0, 0)].open += 1
            return state.asked?.contains(inode) == true
        }
    }

    /// Notes that one of the writers is about to write for the first time.
    public func beganWriting(_ inode: Inode) {
        state.withLock { $0.counts[inode, default: (0, 0)].writing += 1 }
    }

    /// Notes one writer less; `hasWritten` says whether it was told of by `beganWriting`.
    public func closed(_ inode: Inode, hasWritten: Bool) {
        let listener = state.withLock { state -> (@Sendable (Inode) -> Void)? in
            var count = state.counts[inode] ?? (1, 0)
            count.open -= 1
            if hasWritten { count.writing -= 1 }
            state.counts[inode] = count.open > 0 ? count : nil
            return count.open <= 0 || hasWritten && count.writing <= 0 ? state.listener : nil
        }
        listener?(inode)
    }
}
