import OortCatalog
import Testing

/// Tasks read the catalog in both ways at once: by reads that block a thread, and by reads that do not.
@Suite("tasks that read", .timeLimit(.minutes(2)))
struct ReadingTasksTests {
    @Test("none waits for ever for a connection that another one holds, however many read")
    func connections() async throws {
        let fixture = try TemporaryAccount()
        let (catalog, account) = (fixture.catalog, fixture.account)
        let reads = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    for _ in 0..<100 {
                        _ = try await catalog.pendingCount(account.id)
                        _ = try catalog.account(account.id)
                    }
                    return 100
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(reads == 6400)
    }
}
