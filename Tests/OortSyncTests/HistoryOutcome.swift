import Foundation
import OortTesting
import Synchronization

/// What went otherwise than it must in a random history, and all that happened.
struct HistoryOutcome: Sendable {
    /// Nil where all was as it must be.
    var failure: String?
    var story: String

    /// What a history comes to whose order and time a seed chooses, run on the calling thread.
    static func ofRun(
        seed: UInt64,
        _ body: @escaping @Sendable (SeededTime) async -> HistoryOutcome
    ) -> HistoryOutcome {
        let executor = SeededExecutor(seed: seed)
        let time = executor.time
        let outcome = Mutex(HistoryOutcome(story: ""))
        do throws(SeededExecutor.Failure) {
            try executor.run {
                let result = await body(time)
                outcome.withLock { $0 = result }
            }
        } catch { outcome.withLock { $0.failure = "the run ends: \(error)" } }
        let result = outcome.withLock(\.self)
        if environment["OORT_STORY"] != nil { print(result.story) }
        return result
    }

    private static let environment = ProcessInfo.processInfo.environment

    /// The steps that `OORT_STEPS` names; nil for all.
    static let chosenSteps = environment["OORT_STEPS"].map { steps in
        steps.split(separator: ",").compactMap { Int($0) }
    }

    /// The first of so many histories that fails, in words, with as few of its steps as make it fail.
    static func shortestFailure(
        from seed: UInt64,
        count: Int,
        steps: [Int],
        run: (UInt64, [Int]) -> HistoryOutcome
    ) -> String? {
        for number in 0..<count {
            let own = seed &+ UInt64(number)
            guard let failure = run(own, steps).failure else { continue }
            print("OORT_SEED=\(own) fails: \(failure). Steps are left out ...")
            fflush(nil)
            let few = shrunk(steps) { run(own, $0).failure != nil }
            let shortest = run(own, few)
            let list = few.map(String.init).joined(separator: ",")
            return """
                OORT_SEED=\(own) OORT_STEPS=\(list): \(shortest.failure ?? "")
                  \(shortest.story)
                """
        }
        return nil
    }

    /// The fewest steps with which a history still fails: it is run without smaller and smaller pieces of
    /// them.
    private static func shrunk(_ steps: [Int], _ fails: ([Int]) -> Bool) -> [Int] {
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
}

extension SeededNumbers {
    /// The numbers of one step of a history, which do not depend on its other steps.
    init(seed: UInt64, step: Int) {
        self.init(seed: seed ^ (UInt64(step) + 1) &* 0x9E37_79B9_7F4A_7C15)
    }
}

/// Runs `body` on a thread of its own, since it takes that thread for itself.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        let thread = Thread { continuation.resume(returning: body()) }
        thread.stackSize = 16 << 20
        thread.start()
    }
}
