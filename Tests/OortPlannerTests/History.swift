import OortModel
import OortPlanner
import OortTesting

/// One thing that happens in a history.
///
/// The numbers choose among what there is at that moment, so that a history stays one when steps
/// are taken out of it.
struct HistoryStep: Hashable, CustomStringConvertible {
    enum Kind: Int, CaseIterable {
        case localCreate, localFolder, localWrite, localRename, localDelete, localExchange,
            saveDance
        case backupDance
        case remoteCreate, remoteFolder, remoteWrite, remoteMove, remoteDelete
        case settle, feed, staleFeed, lostCursor, look, plan, start, perform, performFailing
        case answer, answerLost, restart, retry, goOn
        case localOpen, localClose
        case sentDance, sentBackupDance
        case halfRun
        case remoteReplace
        case localCopy

        var isSomebodyElse: Bool {
            switch self {
            case .remoteCreate, .remoteFolder, .remoteWrite, .remoteMove, .remoteDelete,
                .remoteReplace:
                true
            default: false
            }
        }
    }

    var kind: Kind
    var one: Int
    var two: Int
    var three: Int

    /// As it stands in a test.
    var description: String {
        var numbers = [one, two, three]
        while numbers.last == 0 { numbers.removeLast() }
        return ".init(.\(kind)\(numbers.map { ", \($0)" }.joined()))"
    }

    init(_ kind: Kind, _ one: Int = 0, _ two: Int = 0, _ three: Int = 0) {
        self.kind = kind
        self.one = one
        self.two = two
        self.three = three
    }
}

/// Who makes the plans: the planner, or a broken one that histories must find out.
typealias Planning = @Sendable (Planner, [ItemState]) -> Plan

/// A history: what happened to one account from its empty beginning to quiescence.
struct History: Equatable {
    var service: SimulatedService.Kind
    var steps: [HistoryStep]

    static let names = ["a", "b", "c", "B", "a~"]

    /// A history from a seed: half of them without anybody else, where the local tree must end
    /// exactly as the user left it.
    static func random(seed: UInt64) -> History {
        var numbers = SeededNumbers(seed: seed)
        func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &numbers) }
        let kind = SimulatedService.Kind.allCases[below(3)]
        let isAlone = below(2) == 0
        var steps: [HistoryStep] = []
        for _ in 0..<(4 + below(22)) {
            var step = HistoryStep.Kind.allCases[below(HistoryStep.Kind.allCases.count)]
            if step.isSomebodyElse, isAlone { step = .goOn }
            steps.append(HistoryStep(step, below(64), below(64), below(64)))
        }
        return History(service: kind, steps: steps)
    }

    /// Runs the history and lets everything settle; what is wrong at the end, or nil.
    func failure(
        recording: Bool = false,
        planning: @escaping Planning = { $0.plan($1) }
    ) -> String? {
        var run = HistoryRun(service, planning: planning)
        run.client.recordsCalls = recording
        for step in steps { run.take(step) }
        let failure = run.finish(isAlone: !steps.contains { $0.kind.isSomebodyElse })
        return failure.map { failure in
            recording ? failure + "\n" + run.client.calls.joined(separator: "\n") : failure
        }
    }
}
