import OortModel

/// How long and how often a request is tried again.
public struct RetryPolicy: Sendable {
    /// The first wait lies between nothing and this; each further one may be twice as long.
    public var firstDelay: Duration = .milliseconds(500)
    /// No wait is longer, but for what the service asks for by Retry-After.
    public var longestDelay: Duration = .seconds(32)
    /// After this the answer or error is handed up, while a program waits in a system call.
    public var interactivePatience: Duration = .seconds(30)
    /// The same for the engine's own work.
    public var backgroundPatience: Duration = .seconds(300)
    /// The same, at most, while the service cannot be reached: the caller decides what to do without a
    /// network.
    public var unreachablePatience: Duration = .seconds(10)
    /// Part of the longest wait that is taken, 0 ..< 1: full jitter.
    public var jitter: @Sendable () -> Double = { .random(in: 0..<1) }

    /// The policy for a cloud.
    public init() {}

    /// How long to wait after `failures` tries in a row failed (at least one).
    func delay(afterFailures failures: Int) -> Duration {
        let doublings = min(failures - 1, 30)
        return min(longestDelay, firstDelay * (1 << doublings)) * jitter()
    }

    func patience(_ priority: RequestPriority) -> Duration {
        let patience =
            switch priority {
            case .ahead, .interactive, .attendant: interactivePatience
            case .background: backgroundPatience
            }
        return RequestPatience.longest.map { min($0, patience) } ?? patience
    }

    func patience(_ priority: RequestPriority, withoutNetwork: Bool) -> Duration {
        // A program in a system call gets its error when its own patience is over.
        guard withoutNetwork, priority == .background else { return patience(priority) }
        return min(unreachablePatience, patience(priority))
    }
}

/// Sends a request again where that may help and may be done: exponential back-off with full
/// jitter, never sooner than Retry-After says, obeying the request's `repetition`.
///
/// Where an earlier try may have been done, "certainly not done" is not what is handed up: `.broken`
/// takes its place.
public struct RetryingClient: HTTPClient {
    private let next: any HTTPClient
    private let policy: RetryPolicy
    private let rules: AnswerRules
    private let time: Timekeeper

    /// Retries what goes to `next`.
    public init(
        _ next: any HTTPClient,
        policy: RetryPolicy = RetryPolicy(),
        rules: AnswerRules = .standard,
        time: Timekeeper = .continuous
    ) {
        self.next = next
        self.policy = policy
        self.rules = rules
        self.time = time
    }

    public func stream(
        _ request: HTTPRequest
    ) async throws(TransportError) -> HTTPStreamedResponse {
        let start = time.now
        var failures = 0
        var unreachableSince: Duration?
        var lost: String?
        while true {
            let outcome = await attempt(request)
            guard let retryAfter = outcome.retryAfter(of: request) else {
                return try outcome.answer.get()
            }
            failures += 1
            if outcome.isUnreachable {
                unreachableSince = unreachableSince ?? time.now
            } else {
                unreachableSince = nil
            }
            if outcome.isUnknown, request.method != "GET" { lost = "no answer to an earlier try" }
            let delay = max(retryAfter, policy.delay(afterFailures: failures))
            let patience = policy.patience(.current, withoutNetwork: unreachableSince != nil)
            guard time.now - (unreachableSince ?? start) + delay <= patience,
                time.now - start + delay <= policy.patience(.current)
            else {
                if let lost, !outcome.isUnknown { throw .broken(lost) }
                return try outcome.answer.get()
            }
            try await time.sleep(delay)
        }
    }

    private struct Outcome {
        var answer: Result<HTTPStreamedResponse, TransportError>
        var meaning: AnswerRules.Meaning

        var isUnreachable: Bool {
            if case .failure(.unreachable) = answer { true } else { false }
        }

        /// Whether the request may have been done although it has no good answer.
        var isUnknown: Bool {
            if case .unknown = meaning { true } else { false }
        }

        /// The least wait before the request may be sent again; nil when it may not.
        func retryAfter(of request: HTTPRequest) -> Duration? {
            switch meaning {
            case .notDone(let after): after ?? .zero
            case .unknown(let after): request.repetition == .harmless ? after ?? .zero : nil
            // A brand-new token was refused: a passing fault of the service's, since a signed-out account
            // gets none.
            case .tokenRejected: request.isAuthorized ? .zero : nil
            case .final: nil
            }
        }
    }

    private func attempt(_ request: HTTPRequest) async -> Outcome {
        do throws(TransportError) {
            let (answer, meaning) = try await next.stream(request, by: rules)
            return Outcome(answer: .success(answer), meaning: meaning)
        } catch {
            return Outcome(answer: .failure(error), meaning: error.meaning)
        }
    }
}

extension TransportError {
    /// What follows from having no answer.
    fileprivate var meaning: AnswerRules.Meaning {
        switch self {
        case .unreachable: .notDone(retryAfter: nil)
        case .broken: .unknown(retryAfter: nil)
        case .untrusted, .tooLarge, .signedOut, .clientRefused, .localContent, .cancelled: .final
        }
    }
}
