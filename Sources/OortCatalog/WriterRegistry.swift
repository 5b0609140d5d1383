public import OortModel
import Synchronization

/// Which files programs have open for writing, and which of these they have written to.
///
/// A file that is being written is not sent before it is closed. A file that is only open, as an office
/// program keeps its document, is sent; but it is neither taken away nor given another content.
public final class WriterRegistry: Sendable {
    private struct State {
        var counts: [Inode: (open: Int, writing: Int)] = [:]
        var listener: @Sendable (Inode) -> Void = { _ in }
        /// The files that the transaction under way has asked about; nil when there is none.
        var asked: Set<Inode>?
    }

    private let state = Mutex(State())

    /// No file is open.
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

    /// Notes that a transaction of the catalog begins; there is one at a time.
    func transactionBegan() { state.withLock { $0.asked = [] } }

    /// Notes that the transaction is over.
    func transactionEnded() { state.withLock { $0.asked = nil } }

    /// Sets the listener for files that are no longer open for writing, or no longer written; called on the
    /// thread that closed the file, and must return at once.
    public func setListener(_ listener: @escaping @Sendable (Inode) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Counts one more writer; for a file that exists already, `Catalog.opened(forWriting:)` does.
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

    /// Counts one writer less; `hasWritten` says whether `beganWriting` was called for it.
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
