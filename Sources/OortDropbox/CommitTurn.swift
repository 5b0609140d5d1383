import OortModel

/// Runs an account's commits one after the other: each takes the account's one lock at Dropbox, which
/// refuses commits that find it taken.
///
/// A caller that is cancelled while it waits gets its turn all the same, and does nothing in it.
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
