public import OortModel
import Synchronization

/// Which files programs have open for writing: the engine does not push these.
public final class WriterRegistry: Sendable {
    private struct State {
        var counts: [Inode: Int] = [:]
        var listener: @Sendable (Inode) -> Void = { _ in }
        /// Which files a transaction that is under way has asked about; nil when there is none.
        var asked: Set<Inode>?
    }

    private let state = Mutex(State())

    /// Nobody writes.
    public init() {}

    /// Whether a file is open for writing.
    public func isOpen(_ inode: Inode) -> Bool {
        state.withLock { state in
            state.asked?.insert(inode)
            return state.counts[inode] != nil
        }
    }

    /// A transaction of the catalog begins; one at a time.
    func transactionBegan() { state.withLock { $0.asked = [] } }

    /// It is over.
    func transactionEnded() { state.withLock { $0.asked = nil } }

    /// Who hears that the last writer of a file closed it; called on the thread that did, and must
    /// return at once.
    public func setListener(_ listener: @escaping @Sendable (Inode) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Notes one more writer; of a file that is there already, `Catalog.opened(forWriting:)` does.
    ///
    /// - Returns: whether a transaction that is under way may take the file for unused.
    @discardableResult
    public func opened(_ inode: Inode) -> Bool {
        state.withLock { state in
            state.counts[inode, default: 0] += 1
            return state.asked?.contains(inode) == true
        }
    }

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
