import DequeModule
import OortModel

/// Decides which requests of an account may be in flight.
///
/// A value without clock or I/O: times are given, and what may start is returned.
///
/// The limit halves when the service complains and grows by one for each round of good answers
/// (additive increase, multiplicative decrease). Interactive requests start before background
/// ones, each kind in its order; the last free place is kept for interactive ones. Attendants take
/// no place that others could have.
struct RequestQueue {
    typealias ID = UInt64

    private let largestLimit: Double
    private var limit: Double
    private var inFlight: [ID: Int] = [:]
    private var attendants: Deque<ID> = []
    private var interactive: Deque<ID> = []
    private var background: Deque<ID> = []
    private var lastID: ID = 0
    /// Counts complaints, so that answers to requests from before one do not halve again.
    private var era = 0
    private(set) var blockedUntil: Duration?

    init(limit: Int) {
        largestLimit = Double(max(1, limit))
        self.limit = largestLimit
    }

    var currentLimit: Int { Int(limit) }
    var isIdle: Bool { attendants.isEmpty && interactive.isEmpty && background.isEmpty }

    /// A number for a request that will be taken in.
    mutating func newID() -> ID {
        lastID += 1
        return lastID
    }

    /// Takes a request in; it starts when `startable` names it.
    mutating func enqueue(_ id: ID, _ priority: RequestPriority) {
        switch priority {
        case .attendant: attendants.append(id)
        case .interactive: interactive.append(id)
        case .background: background.append(id)
        }
    }

    /// A waiting request was given up; false when it was not waiting.
    mutating func withdraw(_ id: ID) -> Bool {
        if let index = attendants.firstIndex(of: id) {
            attendants.remove(at: index)
        } else if let index = interactive.firstIndex(of: id) {
            interactive.remove(at: index)
        } else if let index = background.firstIndex(of: id) {
            background.remove(at: index)
        } else {
            return false
        }
        return true
    }

    /// The requests that start now, in order.
    mutating func startable(at now: Duration) -> [ID] {
        if let until = blockedUntil {
            guard now >= until else { return [] }
            blockedUntil = nil
        }
        var started: [ID] = []
        while let id = attendants.popFirst() { started.append(id) }
        while inFlight.count < currentLimit, let id = interactive.popFirst() {
            inFlight[id] = era
            started.append(id)
        }
        while inFlight.count < max(1, currentLimit - 1), let id = background.popFirst() {
            inFlight[id] = era
            started.append(id)
        }
        return started
    }

    /// A request's head came: the limit follows what it means.
    mutating func judge(_ id: ID, _ meaning: AnswerRules.Meaning, at now: Duration) {
        switch meaning {
        case .final, .tokenRejected:
            limit = min(largestLimit, limit + 1 / limit)
        case .notDone(let retryAfter), .unknown(let retryAfter):
            if inFlight[id] == era {
                limit = max(1, limit / 2)
                era += 1
            }
            guard let retryAfter else { return }
            blockedUntil = max(blockedUntil ?? .zero, now + retryAfter)
        }
    }

    /// A request is over, its body too: its place is free.
    mutating func finish(_ id: ID) { inFlight[id] = nil }
}
