import Foundation
import Testing

/// `OORT_SHIPPED` in the environment says how many histories each kind of service gets, `OORT_KIND` names
/// the only kind that is to get any, `OORT_SEED` repeats them.
@Suite("random histories of what ships", .timeLimit(.minutes(15)))
struct ShippedHistoryTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let kinds = HistoryServiceKind.allCases.filter { kind in
        environment["OORT_KIND"].map { $0 == kind.rawValue } ?? true
    }
    private static let histories = environment["OORT_SHIPPED"].flatMap { Int($0) } ?? 3

    @Test(
        "machines end with what the service has, and nothing that was written is missing",
        arguments: kinds
    )
    func atRandom(kind: HistoryServiceKind) async throws {
        let seed =
            Self.environment["OORT_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        print("\(kind.rawValue): \(Self.histories) shipped histories from OORT_SEED=\(seed)")
        for number in 0..<Self.histories {
            let history = ShippedHistory(kind, seed: seed &+ UInt64(number))
            guard try await history.run() else { return }
        }
    }
}
