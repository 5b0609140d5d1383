import OortModel
import Synchronization

/// Keeps the number of an account's requests in flight where its service wants it, interactive ones
/// first; a request that no program waited for becomes interactive by its `RequestUrgency`.
///
/// A place is held until the answer's body was read to its end or let go. A request that has sent much of
/// its body, and may go on for hours, gives its place up: a limit counts the requests that a service gets
/// at a time.
public final class LimitingClient: HTTPClient {
    private struct State {
        var queue: RequestQueue
        var waiting: [RequestQueue.ID: CheckedContinuation<Bool, Never>] = [:]
        /// Wakes the queue when the service's Retry-After has passed; ends by itself.
        var alarm: Task<Void, Never>?
        /// The limit that `remember` was given last.
        var remembered: Int
    }

    private let next: any HTTPClient
    private let rules: AnswerRules
    private let time: Timekeeper
    private let remember: @Sendable (Int) -> Void
    private let state: Mutex<State>

    /// At most so many requests of an account go to `next` at one time as `limit` says, which follows
    /// the answers.
    ///
    /// `remember` is given the limit whenever it has moved by a quarter, from any thread; it must not
    /// block.
    public init(
        _ next: any HTTPClient,
        limit: RequestLimit,
        rules: AnswerRules = .standard,
        time: Timekeeper = .continuous,
        remember: @escaping @Sendable (Int) -> Void = { _ in }
    ) {
        self.next = next
        self.rules = rules
        self.time = time
        self.remember = remember
        state = Mutex(State(queue: RequestQueue(limit: limit), remembered: limit.places))
    }

    deinit { state.withLock { $0.alarm?.cancel() } }

    /// How many requests may be in flight at present.
    public var currentLimit: Int { state.withLock { $0.queue.currentLimit } }

    /// How many requests wait for their turn.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        guard !request.isLongPoll else { return try await next.stream(request) }
        let place = try await place()
        var request = request
        if request.weight == .bulk {
            request.onSent = { [weak place, onSent = request.onSent] bytes in
                onSent?(bytes)
                if bytes >= Self.longSending { place?.leave() }
            }
        }
        let (answer, meaning) = try await next.stream(request, by: rules)
        judge(place.id, meaning)
        guard answer.head.status < 400 else {
            // Its body is here already, and a wait for the next try needs no place.
            place.leave()
            return answer
        }
        return HTTPStreamedResponse(
            head: answer.head,
            body: ByteStream { () async throws(ProviderError) in
                do throws(ProviderError) {
                    let part = try await answer.body.next()
                    if part == nil { place.leave() }
                    return part
                } catch {
                    place.leave()
                    throw error
                }
            }
        )
    }

    // MARK: Places

    /// Bytes of a body after which a request needs no place any longer.
    static let longSending: Int64 = 4 << 20

    /// A request's place in flight; given back by `leave`, which may be called again, or when it is let
    /// go.
    private final class Place: Sendable {
        let id: RequestQueue.ID
        private let owner: LimitingClient
        private let hasLeft = Atomic<Bool>(false)

        init(id: RequestQueue.ID, owner: LimitingClient) {
            self.id = id
            self.owner = owner
        }

        func leave() {
            guard !hasLeft.exchange(true, ordering: .acquiringAndReleasing) else { return }
            owner.finish(id)
        }

        deinit { leave() }
    }

    private func place() async throws(TransportError) -> Place {
        let id = state.withLock { $0.queue.newID() }
        let priority = RequestPriority.current
        let urgency = priority < .interactive ? RequestUrgency.current : nil
        let isAdmitted = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { state in
                    state.queue.enqueue(id, priority)
                    state.waiting[id] = continuation
                }
                // A cancellation before this line found no waiter to wake.
                if Task.isCancelled { withdraw(id) }
                urgency?.whenRaised { [weak self] in self?.raise(id) }
                advance()
            }
        } onCancel: {
            withdraw(id)
        }
        guard isAdmitted else { throw .cancelled }
        return Place(id: id, owner: self)
    }

    private func withdraw(_ id: RequestQueue.ID) {
        let continuation = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            guard let continuation = state.waiting[id], state.queue.withdraw(id) else { return nil }
            state.waiting[id] = nil
            return continuation
        }
        continuation?.resume(returning: false)
    }

    private func raise(_ id: RequestQueue.ID) {
        state.withLock { state in
            if state.queue.withdraw(id) { state.queue.enqueue(id, .interactive) }
        }
        advance()
    }

    private func finish(_ id: RequestQueue.ID) {
        state.withLock { $0.queue.finish(id) }
        advance()
    }

    private func judge(_ id: RequestQueue.ID, _ meaning: AnswerRules.Meaning) {
        let news = state.withLock { state -> Int? in
            state.queue.judge(id, meaning, at: time.now)
            let limit = state.queue.currentLimit
            guard abs(limit - state.remembered) >= max(1, state.remembered / 4) else { return nil }
            state.remembered = limit
            return limit
        }
        if let news { remember(news) }
    }

    /// Starts what may start, and sets the alarm when the account is blocked.
    private func advance() {
        let started = state.withLock { state in
            let now = time.now
            let ids = state.queue.startable(at: now)
            if let until = state.queue.blockedUntil, !state.queue.isIdle, state.alarm == nil {
                let time = time
                state.alarm = Task { [weak self] in
                    try? await time.sleep(until - now)
                    self?.ring()
                }
            }
            return ids.compactMap { state.waiting.removeValue(forKey: $0) }
        }
        for continuation in started { continuation.resume(returning: true) }
    }

    private func ring() {
        state.withLock { $0.alarm = nil }
        advance()
    }
}
