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
        environment["OORT_STEPS"]?.split(separator: ",").compactMap { Int($0) }
        ?? Array(0..<ShippedHistory.length)

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
        #expect(lines[0].count >= ShippedHistory.length / 2)
        let same = zip(lines[0], lines[1]).prefix { $0 == $1 }.count
        #expect(
            stories[0] == stories[1],
            """
            OORT_SEED=\(seed) OORT_KIND=\(kind.rawValue), after \(same) lines: \
            \(lines.map { $0.dropFirst(same).first ?? "nothing" })
            """
        )
    }

    /// The first history that fails, with as few of its steps as make it fail.
    private static func failure(_ kind: HistoryServiceKind, seed: UInt64) -> String? {
        for number in 0..<histories {
            let own = seed &+ UInt64(number)
            let outcome = ShippedHistory.run(kind, seed: own, steps: steps)
            if environment["OORT_STORY"] != nil { print(outcome.story) }
            guard outcome.failure != nil else { continue }
            let few = shrunk(steps) {
                ShippedHistory.run(kind, seed: own, steps: $0).failure != nil
            }
            let shortest = ShippedHistory.run(kind, seed: own, steps: few)
            let list = few.map(String.init).joined(separator: ",")
            return """
                OORT_SEED=\(own) OORT_SHIPPED=1 OORT_KIND=\(kind.rawValue) OORT_STEPS=\(list): \
                \(shortest.failure ?? "")
                  \(shortest.story)
                """
        }
        return nil
    }
}

/// Runs `body` on a thread of its own, since it takes that thread for itself.
private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        let thread = Thread { continuation.resume(returning: body()) }
        thread.stackSize = 16 << 20
        thread.start()
    }
}

/// Fewer steps that still fail: pieces are left out, smaller and smaller ones, as long as what is left does.
private func shrunk(_ steps: [Int], _ fails: ([Int]) -> Bool) -> [Int] {
    var steps = steps
    var size = max(1, steps.count / 2)
    while true {
        var start = 0
        var isShorter = false
        while start < steps.count {
            var fewer = steps
            fewer.removeSubrange(start..<min(start + size, steps.count))
            if fails(fewer) { (steps, isShorter) = (fewer, true) } else { start += size }
        }
        if size == 1, !isShorter { return steps }
        size = max(1, size / 2)
    }
}
