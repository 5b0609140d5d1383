import Foundation
import OortModel
import OortSimulators
import OortTesting
import Testing

/// Answers that no service should send: each call ends, in a typed error or in sane items.
///
/// `OORT_FUZZ_SEED` repeats a run, `OORT_FUZZ_SECONDS` makes it longer.
@Suite("hostile answers", .timeLimit(.minutes(15)))
struct HostileAnswersTests {
    @Test("no call traps, hangs or gives nonsense", arguments: servicesWithIDs)
    func survives(_ service: SimulatedKind) async throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["OORT_FUZZ_SEED"].flatMap { UInt64($0) } ?? .random(in: 0...(.max))
        let seconds = environment["OORT_FUZZ_SECONDS"].flatMap { Double($0) } ?? 8
        // At once, because a trap leaves no other trace.
        try FileHandle.standardError.write(
            contentsOf: Data("hostile answers, \(service): OORT_FUZZ_SEED=\(seed)\n".utf8)
        )
        var random = RandomSource(seed: seed)
        let end = ContinuousClock.now + .seconds(seconds)
        var mutated = 0
        repeat {
            // A world for some time only: hostile answers make a provider believe strange things.
            mutated += try await round(
                service,
                seed: random.next(),
                until: end,
                whole: seed
            )
        } while ContinuousClock.now < end
        #expect(mutated > 0)
    }

    /// A row of calls in one world; how many answers were hostile.
    private func round(
        _ service: SimulatedKind,
        seed: UInt64,
        until end: ContinuousClock.Instant,
        whole: UInt64
    ) async throws -> Int {
        var client: MutatingClient?
        try await service.withWorld(patience: .milliseconds(100)) { wire in
            let mutating = MutatingClient(wire)
            client = mutating
            return mutating
        } _: { world in
            let client = try #require(client)
            let calls = HostileCalls(world: world, place: try await HostileCalls.prepare(world))
            var random = RandomSource(seed: seed)
            for count in 0..<60 where count < 10 || ContinuousClock.now < end {
                let call = calls.all[Int(random.next() % UInt64(calls.all.count))]
                client.use(seed: random.next())
                await expectSane(call, of: service, seed: whole)
                client.use(seed: nil)
            }
        }
        return client?.mutated ?? 0
    }

    private func expectSane(
        _ call: HostileCalls.Call,
        of service: SimulatedKind,
        seed: UInt64
    ) async {
        do {
            let items = try await within(seconds: 60) { try await call.body() }
            for item in items {
                #expect(!item.id.rawValue.isEmpty, "\(service), \(call.name), seed \(seed)")
                #expect((item.size ?? 0) >= 0, "\(service), \(call.name), seed \(seed)")
            }
        } catch is ProviderError {
            // Said as it is.
        } catch {
            Issue.record("\(service), \(call.name), seed \(seed): \(error)")
        }
    }

    private struct NotEnded: Error {}

    private func within(
        seconds: Double,
        _ body: @escaping @Sendable () async throws -> [Item]
    ) async throws -> [Item] {
        try await withThrowingTaskGroup(of: [Item].self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(for: .seconds(seconds))
                throw NotEnded()
            }
            defer { group.cancelAll() }
            return try await group.next() ?? []
        }
    }
}
