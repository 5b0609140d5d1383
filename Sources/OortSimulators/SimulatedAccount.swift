import Synchronization

/// One account at a simulated service: its tree, its tokens and its room.
///
/// Isolation: may be used from any task. Whatever must be one step happens inside one `withTree`.
public final class SimulatedAccount: Sendable {
    /// Tokens, codes and sign-outs.
    public let tokens: SimulatedTokens

    private struct State: Sendable {
        var tree: SimulatedTree
        var totalBytes: Int64?
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        var nextWaiting = 0
    }

    private let state: Mutex<State>
    /// Apart from the state: asked for by who looks at the tree.
    private let owner = Mutex(SimulatedPerson.ada)
    private let fullPages = Atomic(false)

    /// An account around a tree.
    public init(
        tree: SimulatedTree,
        totalBytes: Int64? = 2_000_000_000_000
    ) {
        state = Mutex(State(tree: tree, totalBytes: totalBytes))
        tokens = SimulatedTokens(seed: 1)
    }

    /// Looks at the tree and changes it, in one step; wakes who waits for changes.
    public func withTree<Result: Sendable, Failure: Error>(
        _ body: (inout SimulatedTree) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        let (result, woken) = state.withLock { state in
            let before = state.tree.sequence
            let result: Swift.Result<Result, Failure>
            do throws(Failure) {
                result = .success(try body(&state.tree))
            } catch {
                result = .failure(error)
            }
            guard state.tree.sequence != before else {
                return (result, [CheckedContinuation<Void, Never>]())
            }
            let woken = Array(state.waiting.values)
            state.waiting = [:]
            return (result, woken)
        }
        for waiter in woken { waiter.resume() }
        return try result.get()
    }

    /// Whose account it is.
    public var person: SimulatedPerson {
        get { owner.withLock { $0 } }
        set { owner.withLock { $0 = newValue } }
    }

    /// The person's name.
    public var displayName: String { person.displayName }

    /// The person's e-mail address.
    public var email: String { person.email }

    /// Bytes that the account may hold; nil for no limit.
    public var totalBytes: Int64? {
        get { state.withLock { $0.totalBytes } }
        set { state.withLock { $0.totalBytes = newValue } }
    }

    /// Whether an enumeration of the whole account has as many items on a page as were asked for;
    /// else it has several pages wherever it names more than one item, as any service may do.
    public var givesFullPages: Bool {
        get { fullPages.load(ordering: .relaxed) }
        set { fullPages.store(newValue, ordering: .relaxed) }
    }

    /// How many items a page of an enumeration has.
    func pageSize(enumerating total: Int, atMost limit: Int) -> Int {
        givesFullPages ? limit : min(limit, max(1, (total + 2) / 3))
    }

    /// Whether so many more bytes have room.
    public func hasRoom(for bytes: Int64) -> Bool {
        state.withLock { state in
            state.totalBytes.map { state.tree.usedBytes + bytes <= $0 } ?? true
        }
    }

    /// Returns when anything changed after `sequence`, or `limit` has passed; true when it did.
    public func waitForChange(after sequence: Int, atMost limit: Duration) async -> Bool {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.change(after: sequence) }
            group.addTask { try? await Task.sleep(for: limit) }
            await group.next()
            group.cancelAll()
        }
        return withTree { $0.sequence > sequence }
    }

    private func change(after sequence: Int) async {
        let ticket = state.withLock { state in
            state.nextWaiting += 1
            return state.nextWaiting
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.tree.sequence <= sequence, !Task.isCancelled else { return true }
                    state.waiting[ticket] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: ticket) }?.resume()
        }
    }
}
