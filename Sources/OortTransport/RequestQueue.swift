import DequeModule
import OortModel

/// Decides which requests of an account may be in flight.
///
/// A value without clock or I/O: times are given, and what may start is returned.
///
/// The limit follows what the service answers (`RequestLimit`). Interactive requests start before
/// others, each kind in its order; a quarter of the places is kept for them. Where there is both to
/// be read ahead and background work to be done, each of the two has half of the places. Attendants
/// take no place that others could have.
struct RequestQueue {
    typealias ID = UInt64

    /// A request that has a place.
    private struct Flight {
        let priority: RequestPriority
        /// When it started, in counts of complaints.
        let era: Int
        /// When it started, in counts of starts.
        let number: Int
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

    private var limit: RequestLimit
    private var inFlight: [ID: Flight] = [:]
    private var attendants: Deque<ID> = []
    private var interactive: Deque<ID> = []
    private var ahead = Share()
    private var background = Share()
    private var lastID: ID = 0
    /// Counts complaints, so that answers to requests from before one do not halve again.
    private var era = 0
    /// Counts starts.
    private var starts = 0
    /// What started up to this was in flight while all places were taken that it might have: only then
    /// an answer says that the service bears so many.
    private var pressedStarts = 0
    private(set) var blockedUntil: Duration?

    init(limit: RequestLimit) { self.limit = limit }

    var currentLimit: Int { limit.places }
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
            begin(id, .interactive)
            started.append(id)
        }
        while inFlight.count < sharedPlaces, let id = nextOfShares() { started.append(id) }
        let room = ahead.isActive || background.isActive ? sharedPlaces : currentLimit
        if inFlight.count >= room { pressedStarts = starts }
        return started
    }

    private mutating func begin(_ id: ID, _ priority: RequestPriority) {
        starts += 1
        inFlight[id] = Flight(priority: priority, era: era, number: starts)
    }

    /// The places that interactive requests leave to others.
    private var sharedPlaces: Int { max(1, currentLimit - max(1, currentLimit / 4)) }

    /// The next request that no system call waits for: of the kind that has fewer places.
    private mutating func nextOfShares() -> ID? {
        let isShared = ahead.isActive && background.isActive
        let half = max(1, currentLimit / 2)
        let mayAhead = !ahead.waiting.isEmpty && (!isShared || ahead.inFlight < half)
        let mayBackground =
            !background.waiting.isEmpty && (!isShared || background.inFlight < half)
        guard mayAhead || mayBackground else { return nil }
        let isAhead = mayAhead && (!mayBackground || ahead.inFlight < background.inFlight)
        let next = isAhead ? ahead.start() : background.start()
        guard let next else { return nil }
        begin(next, isAhead ? .ahead : .background)
        return next
    }

    /// A request's head came: the limit follows what it means.
    mutating func judge(_ id: ID, _ meaning: AnswerRules.Meaning, at now: Duration) {
        switch meaning {
        case .final, .tokenRejected:
            if let flight = inFlight[id], flight.number <= pressedStarts { limit.answeredWell() }
        case .notDone(let retryAfter), .unknown(let retryAfter):
            if inFlight[id]?.era == era {
                limit.complained()
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
