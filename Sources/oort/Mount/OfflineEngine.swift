import OortCatalog
import OortContentStore
import OortModel

/// An account whose service is never reached: what is known can be used, all else is offline.
struct OfflineEngine: AccountEngine {
    /// The strategy, for what needs no network.
    let provider: any Provider

    var largestRangeRequest: Int64 { provider.traits.largestRangeRequest }
    func run() async {}
    func heardOfLocalChange() {}
    func hurry() {}
    func report() async -> EngineReport {
        EngineReport(state: .offline, transfers: [], conflicts: [])
    }
    func pending(below inode: Inode?) async -> PendingReport {
        PendingReport(count: 0, changes: [], isStuck: false)
    }
    func list(_ folder: Inode) async throws(ProviderError) { throw Self.offline }
    func fetch(_ key: ContentKey, range: Range<Int64>) async throws(ProviderError) -> ByteStream {
        throw Self.offline
    }
    func export(_ item: ItemID) async throws(ProviderError) -> ByteStream { throw Self.offline }
    func makeHasher() -> any ContentHasher { provider.makeHasher() }

    private static let offline = ProviderError(.offline, detail: "the account is not connected")
}
