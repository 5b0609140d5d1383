private import CSwiftJobs
import Foundation
public import OortModel
import Synchronization

/// Runs asynchronous code on one thread, in an order that a seed chooses among all that could go on, and in
/// a time that passes at once when nothing can: what depends on nothing else is repeated by its seed.
///
/// All tasks that the code begins run here, on whichever actor. It must not wait for other threads: work
/// that they hand back never comes. `Timestamp.now` and the clock `time` say the same.
public final class SeededExecutor {
    /// What ended a run before its code had ended.
    public enum Failure: Error {
        /// All of its tasks wait, and none of them for a moment.
        case standstill
        /// It did not end within so many steps.
        case endless(steps: Int)
    }

    /// Shared by the run and by the clocks that its code holds; only the run's thread touches it.
    fileprivate final class State: Sendable {
        struct Sleeper {
            let moment: Duration
            let number: Int
            let wake: CheckedContinuation<Void, any Error>
        }

        struct Jobs {
            var ready: [UnownedJob] = []
            /// The latest moment first; of one moment, what came last.
            var sleepers: [Sleeper] = []
            var numbers: SeededNumbers
            /// Since the run began.
            var now = Duration.zero
            var count = 0
            var hasEnded = false
        }

        let jobs: Mutex<Jobs>

        init(seed: UInt64) { jobs = Mutex(Jobs(numbers: SeededNumbers(seed: seed))) }

        /// The next job; nil when all wait for something that is not here.
        func next() -> UnownedJob? {
            while true {
                let (job, due) = jobs.withLock { jobs -> (UnownedJob?, Sleeper?) in
                    if jobs.ready.isEmpty, let first = jobs.sleepers.last {
                        jobs.now = max(jobs.now, first.moment)
                    }
                    if let first = jobs.sleepers.last, first.moment <= jobs.now {
                        return (nil, jobs.sleepers.removeLast())
                    }
                    guard !jobs.ready.isEmpty else { return (nil, nil) }
                    // Each job takes a while.
                    jobs.now += .microseconds(20)
                    let index = Int(jobs.numbers.next() % UInt64(jobs.ready.count))
                    return (jobs.ready.remove(at: index), nil)
                }
                guard let due else { return job }
                // This makes a job ready.
                due.wake.resume()
            }
        }

        func sleep(until moment: Duration) async throws {
            let number = jobs.withLock { jobs in
                jobs.count += 1
                return jobs.count
            }
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    add(Sleeper(moment: moment, number: number, wake: continuation))
                }
            } onCancel: {
                let sleeper = jobs.withLock { jobs in
                    jobs.sleepers.firstIndex { $0.number == number }
                        .map { jobs.sleepers.remove(at: $0) }
                }
                sleeper?.wake.resume(throwing: CancellationError())
            }
        }

        private func add(_ sleeper: Sleeper) {
            // Cancelled before it slept, the task was not found among the sleepers.
            if Task.isCancelled { return sleeper.wake.resume(throwing: CancellationError()) }
            jobs.withLock { jobs in
                let key = (sleeper.moment, sleeper.number)
                let index = jobs.sleepers.lastIndex { ($0.moment, $0.number) > key }
                jobs.sleepers.insert(sleeper, at: index.map { $0 + 1 } ?? 0)
            }
        }
    }

    /// What jobs run on.
    private final class Runner: TaskExecutor {
        private let state: State

        init(_ state: State) { self.state = state }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            state.jobs.withLock { $0.ready.append(job) }
        }
    }

    private let state: State
    private let runner: Runner

    /// An executor for one run.
    public init(seed: UInt64) {
        state = State(seed: seed)
        runner = Runner(state)
    }

    /// The run's time, for what asks for a clock.
    public var time: SeededTime { SeededTime(state: state) }

    /// Runs `body` and all that it begins, on the calling thread, until it ends.
    ///
    /// What `body` began and left behind goes on for a while, so that it can let go of what it holds.
    ///
    /// - Parameters:
    ///   - start: what `Timestamp.now` says at the beginning.
    ///   - steps: how many jobs may be run.
    ///   - body: what is run.
    /// - Throws: `Failure`.
    public func run(
        from start: Timestamp = Timestamp(seconds: 1_800_000_000),
        steps: Int = 20_000_000,
        _ body: @escaping @Sendable () async -> Void
    ) throws(Failure) {
        unsafe swift_jobs_take(
            { context, job in
                let state = unsafe Unmanaged<State>.fromOpaque(context).takeUnretainedValue()
                let job = unsafe unsafeBitCast(job, to: UnownedJob.self)
                state.jobs.withLock { $0.ready.append(job) }
            },
            Unmanaged.passUnretained(state).toOpaque()
        )
        defer { swift_jobs_take(nil, nil) }
        let (state, time) = (state, time)
        let surroundings = SystemInputs(
            time: { Timestamp(start.date.addingTimeInterval(time.now.offset / .seconds(1))) },
            number: { state.jobs.withLock { $0.numbers.next() } },
            sleep: { try await time.sleep(for: $0) }
        )
        SystemInputs.$given.withValue(surroundings) {
            _ = Task {
                await body()
                state.jobs.withLock { $0.hasEnded = true }
            }
        }
        let executor = unsafe runner.asUnownedTaskExecutor()
        var count = 0
        while !state.jobs.withLock(\.hasEnded) {
            guard let job = state.next() else { throw .standstill }
            unsafe job.runSynchronously(on: executor)
            count += 1
            guard count < steps else { throw .endless(steps: steps) }
        }
        // Tasks that were cancelled at the end let go of what they hold.
        for _ in 0..<100_000 {
            guard let job = state.next() else { return }
            unsafe job.runSynchronously(on: executor)
        }
    }
}

/// The time of a `SeededExecutor`'s run.
public struct SeededTime: Clock {
    /// So long after the run began.
    public typealias Instant = SleptTime.Instant

    fileprivate let state: SeededExecutor.State

    public var now: Instant {
        Instant(offset: state.jobs.withLock { $0.now })
    }
    public var minimumResolution: Duration { .nanoseconds(1) }

    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        try await state.sleep(until: deadline.offset)
    }
}

/// The time of a run, which for each task passes as its surroundings have it: what sleeps by it wakes only
/// where those let it.
public struct TaskClock: Clock {
    private let time: SeededTime

    /// The clock of the run that has this time.
    public init(time: SeededTime) { self.time = time }

    public var now: SeededTime.Instant { time.now }
    public var minimumResolution: Duration { time.minimumResolution }

    public func sleep(until deadline: SeededTime.Instant, tolerance: Duration?) async throws {
        try Task.checkCancellation()
        try await SystemInputs.sleep(for: max(.zero, deadline.offset - now.offset))
    }
}
