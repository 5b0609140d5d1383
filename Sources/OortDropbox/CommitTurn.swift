import OortModel

/// Lets an account's commits go one after the other: each takes the account's one lock at Dropbox,
/// which refuses those that meet it taken.
///
/// Whoever is cancelled while it waits has its turn all the same, and nothing to do in it.
/// Source: developers.dropbox.com/developers/reference/data-ingress-guide.
actor CommitTurn {
    private var isTaken = false
    /// In the order of their coming; as few as the engine has operations under way.
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Runs `body` when no other one runs.
    nonisolated func run<Value>(
        _ body: () async throws(ProviderError) -> Value
    ) async throws(ProviderError) -> Value {
        await take()
        do throws(ProviderError) {
            let value = try await body()
            await pass()
            return value
        } catch {
            await pass()
            throw error
        }
    }

    private func take() async {
        guard isTaken else {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    private func pass() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
