import OortCatalog
import OortModel
import Testing

@Suite("A clock that is set back")
struct ClockTests {
    private static let day: Int64 = 86_400_000

    @Test("what changed before does not wait for the clock to come there again")
    func settling() async throws {
        let account = try TemporaryAccount()
        let new = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
        _ = try account.catalog.create(new, named: "d", in: account.account.root)
        let now = Timestamp.now.inMilliseconds
        let resting = try await account.planned(at: now, settle: 600_000)
        #expect(resting.operations.isEmpty && resting.nextMoment != nil)
        // A change that came while the plan was made is one of now.
        #expect(try await account.planned(at: now - 5000, settle: 600_000).operations.isEmpty)
        #expect(
            try await account.planned(at: now - Self.day, settle: 600_000).operations.count == 1
        )
    }

    @Test("what failed before is tried again, and what was given up is not")
    func failures() async throws {
        let account = try TemporaryAccount()
        let catalog = account.catalog
        let new = NewNode(kind: .folder, mode: 0o755, owner: 0, group: 0)
        let node = try catalog.create(new, named: "d", in: account.account.root)
        let now = Timestamp.now.inMilliseconds
        func fail(until moment: Int64) async throws {
            try await catalog.failed(
                node.inode,
                PushTrouble(kind: "nameRefused", detail: "", nextTry: moment),
                isUnknown: false
            )
        }
        try await fail(until: now + 600_000)
        let waiting = try await account.planned(at: now)
        #expect(waiting.operations.isEmpty && waiting.nextMoment == now + 600_000)
        #expect(try await account.planned(at: now - Self.day).operations.count == 1)
        try await fail(until: WaitMoment.never)
        for moment in [now - Self.day, now, now + 1000 * Self.day] {
            let plan = try await account.planned(at: moment)
            #expect(plan.operations.isEmpty && plan.nextMoment == nil)
        }
        let pending = try #require(try await catalog.pending(account.account.id).first)
        #expect(pending.wait(now: now) == .max)
    }
}
