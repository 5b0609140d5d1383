public import OortCatalog
public import OortModel
import Synchronization

/// A name that a program wanted to give and the account's service does not accept.
///
/// The program gets EINVAL, which does not say what is wrong with the name.
public struct RefusedName: Hashable, Sendable {
    /// The account.
    public var account: AccountID
    /// The folder.
    public var folder: Inode
    /// The name.
    public var name: String
    /// Which rule it breaks, for people.
    public var reason: String
    /// When it was wanted last.
    public var time: Timestamp
}

/// The names that were refused lately: at most a few, the newest last.
final class NameRefusals: Sendable {
    private struct State {
        var names: [RefusedName] = []
        var listener: (@Sendable (RefusedName) -> Void)?
    }

    private static let most = 20
    private let state = Mutex(State())

    /// The names, the newest last.
    var names: [RefusedName] { state.withLock { $0.names } }

    /// Sets the listener, which gets each name once while it is remembered.
    func setListener(_ listener: @escaping @Sendable (RefusedName) -> Void) {
        state.withLock { $0.listener = listener }
    }

    /// Remembers one.
    ///
    /// - Returns: whether it was not remembered already.
    func note(_ refused: RefusedName) -> Bool {
        let listener = state.withLock { state -> (@Sendable (RefusedName) -> Void)?? in
            let known = state.names.firstIndex {
                $0.folder == refused.folder && $0.name == refused.name
            }
            if let known { state.names.remove(at: known) }
            state.names = state.names.suffix(Self.most - 1) + [refused]
            return known == nil ? .some(state.listener) : nil
        }
        guard let listener else { return false }
        listener?(refused)
        return true
    }
}
