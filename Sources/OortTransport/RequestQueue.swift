import DequeModule
import OortModel

/// Decides which requests of an account may be in flight.
///
/// A value without clock or I/O: times are given, and what may start is returned.
///
/// The limit halves when the service complains and grows by one for each round of good answers
/// (additive increase, multiplicative decrease). Interactive requests start before others, each kind
/// in its order; the last free place is kept for them. What is read ahead leaves a quarter of the
/// places free, and where background work is to be done, too, each of the two has half of the
/// places. Attendants take no place that others could have.
struct RequestQueue {
    typealias ID = UInt64

    /// A request that has a place.
    private struct Flight {
        let priority: RequestPriority
        /// When it started, in counts of complaints.
        let era: Int
    }

    /// Requests of one of the kinds that share what interactive ones leave.
    private struct Share {
        var waiting: Deque<ID> = []
        var inFlight = 0
        var isActive: Bool { inFlight > 0 || !waiting.isEmpty }

        /// Gives the one that waits longest a place.
        mutating func start() -> ID? {
            guard let id = waiting.popFirst() else { return nil }
            inFlight += 1
            return id
        }
    }

    private let largestLimit: Double
    private var limit: Double
    private var inFlight: [ID: Flight] = [:]
    private var attendants: Deque<ID> = []
    private var interactive: Deque<ID> = []
    private var ahead = Share()
    private var background = Share()
    private var lastID: ID = 0
    /// Counts complaints, so that answers to requests from before one do not halve again.
    private var era = 0
    private(set) var blockedUntil: Duration?

    init(limit: Int) {
        largestLimit = Double(max(1, limit))
        self.limit = largestLimit
    }

    var currentLimit: Int { Int(limit) }
    var isIdle: Bool {
        attendants.isEmpty && interactive.isEmpty && ahead.waiting.isEmpty
            && background.waiting.isEmpty
    }

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
        case .ahead: ahead.waiting.append(id)
        case .background: background.waiting.append(id)
        }
    }

    /// A waiting request was given up; false when it was not waiting.
    mutating func withdraw(_ id: ID) -> Bool {
        if let index = attendants.firstIndex(of: id) {
            attendants.remove(at: index)
        } else if let index = interactive.firstIndex(of: id) {
            interactive.remove(at: index)
        } else if let index = ahead.waiting.firstIndex(of: id) {
            ahead.waiting.remove(at: index)
        } else if let index = background.waiting.firstIndex(of: id) {
            background.waiting.remove(at: index)
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
            inFlight[id] = Flight(priority: .interactive, era: era)
            started.append(id)
        }
        while inFlight.count < max(1, currentLimit - 1), let id = nextOfShares() {
            started.append(id)
        }
        return started
    }

    /// The next request that nobody waits for in a system call: of the kind that has fewer places.
    private mutating func nextOfShares() -> ID? {
        let isShared = ahead.isActive && background.isActive
        let half = max(1, currentLimit / 2)
        let mayAhead =
            !ahead.waiting.isEmpty
            && ahead.inFlight < (isShared ? half : max(1, currentLimit * 3 / 4))
        let mayBackground =
            !background.waiting.isEmpty && (!isShared || background.inFlight < half)
        guard mayAhead || mayBackground else { return nil }
        let isAhead = mayAhead && (!mayBackground || ahead.inFlight < background.inFlight)
        let next = isAhead ? ahead.start() : background.start()
        guard let next else { return nil }
        inFlight[next] = Flight(priority: isAhead ? .ahead : .background, era: era)
        return next
    }

    /// A request's head came: the limit follows what it means.
    mutating func judge(_ id: ID, _ meaning: AnswerRules.Meaning, at now: Duration) {
        switch meaning {
        case .final, .tokenRejected:
            limit = min(largestLimit, limit + 1 / limit)
        case .notDone(let retryAfter), .unknown(let retryAfter):
            if inFlight[id]?.era == era {
                limit = max(1, limit / 2)
                era += 1
            }
            guard let retryAfter else { return }
            blockedUntil = max(blockedUntil ?? .zero, now + retryAfter)
        }
    }

    /// A request is over, its body too: its place is free.
    mutating func finish(_ id: ID) {
        switch inFlight.removeValue(forKey: id)?.priority {
        case .ahead: ahead.inFlight -= 1
        case .background: background.inFlight -= 1
        case .interactive, .attendant, nil: break
        }
    }
}
