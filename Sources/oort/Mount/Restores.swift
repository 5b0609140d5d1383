import OortCatalog
import OortContentStore
import OortModel
import Synchronization

/// Something of a trash that is to come back, and where.
struct Restore: Sendable {
    let account: MountedAccount
    let found: CloudMount.Placed
    let target: CloudMount.Destination
}

/// The restores that are under way, and those that stopped in the middle.
///
/// One goes on when its caller waits no longer: half a folder is of no use. Whoever wants the same waits
/// for the same one, and after it stopped goes on with it, into the folder that it made.
final class Restores: Sendable {
    private struct Key: Hashable {
        let account: AccountID
        let entry: ExactText
        let path: ExactText

        init(_ restore: Restore) {
            account = restore.account.id
            entry = ExactText(restore.found.entry.id)
            path = ExactText(restore.target.path)
        }
    }

    private struct State {
        let restore: Restore
        let progress: RestoreProgress
        var task: Task<Result<Bool, Failure>, Never>?
        /// Which of all restores it is; the oldest that stopped is forgotten first.
        let number: Int
    }

    private struct Table {
        var states: [Key: State] = [:]
        var last = 0
        var hasEnded = false
    }

    /// How many that stopped are remembered.
    private static let mostStopped = 100

    private let table = Mutex(Table())

    /// The first restore that fits, of those under way and those that stopped when a part was back.
    func begun(where fits: (Restore) -> Bool) -> Restore? {
        let begun = table.withLock { table in
            table.states.values
                .filter { $0.task != nil || $0.progress.hasBegun }
                .sorted { $0.number > $1.number }
                .map(\.restore)
        }
        return begun.first(where: fits)
    }

    /// Carries out a restore, or waits for the same one that is under way.
    ///
    /// - Throws: what `body` throws; `Failure` when the caller is cancelled, while the restore goes on.
    func run(
        _ restore: Restore,
        _ body: @escaping @Sendable (RestoreProgress) async throws(Failure) -> Bool
    ) async throws(Failure) -> Bool {
        let key = Key(restore)
        let left = Failure("The restore goes on, and nobody waits for it.")
        let task = table.withLock { table -> Task<Result<Bool, Failure>, Never>? in
            guard !table.hasEnded else { return nil }
            if let task = table.states[key]?.task { return task }
            table.last += 1
            var state =
                table.states[key]
                ?? State(
                    restore: restore,
                    progress: RestoreProgress(),
                    number: table.last
                )
            let progress = state.progress
            // Owned by this table, whose end cancels it.
            let task = Task { () -> Result<Bool, Failure> in
                let result: Result<Bool, Failure>
                do throws(Failure) { result = .success(try await body(progress)) } catch {
                    result = .failure(error)
                }
                self.ended(key, result)
                return result
            }
            state.task = task
            table.states[key] = state
            return task
        }
        guard let task else { throw Failure("The mount ends.") }
        return try await task.value(orWhenCancelled: .failure(left)).get()
    }

    private func ended(_ key: Key, _ result: Result<Bool, Failure>) {
        table.withLock { table in
            table.states[key]?.task = nil
            if case .success = result { table.states[key] = nil }
            if table.states[key]?.progress.hasBegun == false { table.states[key] = nil }
            let stopped = table.states.filter { $0.value.task == nil }
            if stopped.count > Self.mostStopped,
                let oldest = stopped.min(by: { $0.value.number < $1.value.number })
            {
                table.states[oldest.key] = nil
            }
        }
    }

    /// Ends all restores.
    func end() async {
        let tasks = table.withLock { table in
            table.hasEnded = true
            return table.states.values.compactMap(\.task)
        }
        for task in tasks { task.cancel() }
        for task in tasks { _ = await task.value }
    }
}
