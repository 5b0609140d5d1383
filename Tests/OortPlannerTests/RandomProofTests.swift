import Foundation
import Testing

/// Histories from seeds: `OORT_HISTORIES` and `OORT_SEED` in the environment make a long run, or
/// repeat one.
@Suite("random histories end in three equal trees")
struct RandomProofTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["OORT_HISTORIES"].flatMap { Int($0) } ?? 100_000
    private static let seed =
        environment["OORT_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0..<1 << 40)

    @Test("nothing is lost, nothing is doubled, nothing stays unequal")
    func histories() async {
        let (seed, count) = (Self.seed, Self.count)
        print("planner: \(count) histories from OORT_SEED=\(seed)")
        let workers = 2
        let failures = await withTaskGroup(of: UInt64?.self, returning: [UInt64].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    for number in stride(from: worker, to: count, by: workers) {
                        let own = seed &+ UInt64(number)
                        if History.random(seed: own).failure() != nil { return own }
                    }
                    return nil
                }
            }
            var failures: [UInt64] = []
            for await failed in group {
                if let failed { failures.append(failed) }
            }
            return failures
        }
        for failed in failures {
            let history = History.random(seed: failed).shrunk { $0.failure() != nil }
            Issue.record(
                """
                OORT_SEED=\(failed) failed. Its shrunk history, for FoundHistoriesTests:

                \(history.test(named: "seed\(failed)"))

                \(history.failure(recording: true) ?? "")
                """
            )
        }
    }
}
