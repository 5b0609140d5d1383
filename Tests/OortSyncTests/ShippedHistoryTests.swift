import Foundation
import OortTesting
import Testing

/// `OORT_SHIPPED` in the environment says how many histories each kind of service gets, `OORT_KIND` names
/// the only kind that is to get any, `OORT_SEED` repeats them, and `OORT_STEPS` (as `0,7,12`) some of their
/// steps; with `OORT_STORY` what happens in each is printed.
@Suite("random histories of what ships", .timeLimit(.minutes(15)))
struct ShippedHistoryTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let kinds = HistoryServiceKind.allCases.filter { kind in
        environment["OORT_KIND"].map { $0 == kind.rawValue } ?? true
    }
    private static let histories = environment["OORT_SHIPPED"].flatMap { Int($0) } ?? 3
    private static let steps =
        HistoryOutcome.chosenSteps ?? Array(0..<ShippedHistory.length)

    @Test(
        "machines end with what the service has, and nothing that was written is missing",
        arguments: kinds
    )
    func atRandom(kind: HistoryServiceKind) async throws {
        let seed =
            Self.environment["OORT_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        print("\(kind.rawValue): \(Self.histories) shipped histories from OORT_SEED=\(seed)")
        let failure = await onThread { Self.failure(kind, seed: seed) }
        if let failure { Issue.record("\(failure)") }
    }

    @Test("a seed repeats its history", arguments: kinds)
    func repeats(kind: HistoryServiceKind) async {
        let seed = UInt64.random(in: 0..<1 << 40)
        let stories = await onThread {
            (0..<2).map { _ in ShippedHistory.run(kind, seed: seed).story }
        }
        let lines = stories.map { $0.split(separator: "\n") }
        // Not each step does something.
        #expect(lines[0].count >= ShippedHistory.length / 4)
        let same = zip(lines[0], lines[1]).prefix { $0 == $1 }.count
        #expect(
            stories[0] == stories[1],
            """
            OORT_SEED=\(seed) OORT_KIND=\(kind.rawValue), after \(same) lines: \
            \(lines.map { $0.dropFirst(same).first ?? "nothing" })
            """
        )
    }

    private static func failure(_ kind: HistoryServiceKind, seed: UInt64) -> String? {
        let words = HistoryOutcome.shortestFailure(from: seed, count: histories, steps: steps) {
            ShippedHistory.run(kind, seed: $0, steps: $1)
        }
        return words.map { "OORT_SHIPPED=1 OORT_KIND=\(kind.rawValue) \($0)" }
    }
}
