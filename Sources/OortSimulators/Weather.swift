import Foundation

/// How the network and the service behave; may be changed at any time.
public struct Weather: Sendable, Hashable {
    /// A bound on requests in a time.
    public struct RateLimit: Sendable, Hashable {
        /// Requests allowed in `seconds`.
        public var requests: Int
        /// The length of the window.
        public var seconds: Double
        /// The status that reports it: 429, or 503.
        public var status: Int
        /// What `Retry-After` says.
        public var retryAfterSeconds: Int

        /// A bound of so many requests in so many seconds.
        public init(
            requests: Int,
            seconds: Double,
            status: Int = 429,
            retryAfterSeconds: Int = 1
        ) {
            self.requests = requests
            self.seconds = seconds
            self.status = status
            self.retryAfterSeconds = retryAfterSeconds
        }
    }

    /// Added before each answer.
    public var latency: Duration = .zero
    /// Bytes a second from the client, each request by itself; nil for no limit.
    public var uploadBytesPerSecond: Int64?
    /// Bytes a second to the client, each answer by itself; nil for no limit.
    public var downloadBytesPerSecond: Int64?
    /// A bound on requests.
    public var rateLimit: RateLimit?

    /// Fair weather: no latency, no limits.
    public init() {}
}

/// One kind of fault.
public enum Fault: Sendable, Hashable {
    /// An error before anything is done, in the service's words.
    case status(Int, retryAfterSeconds: Int?)
    /// The work is done, and an error says otherwise.
    case doneButStatus(Int)
    /// The work is done, and the connection is cut before the first byte of the answer.
    case doneButNoAnswer
    /// The connection is cut before anything is done.
    case noAnswer
    /// The connection is cut after so many bytes of the request's body; nothing is done, but that a
    /// service may keep those bytes in an upload session.
    case cutUpload(afterBytes: Int)
    /// The connection is cut after so many bytes of the answer's body.
    case cutDownload(afterBytes: Int)
    /// The answer's body ends early in a well-formed message.
    case truncatedAnswer(bytes: Int)
    /// Nothing happens for a while, then the connection is cut.
    case stall(seconds: Double)
    /// A page of HTML with this status, as front ends send it.
    case html(status: Int)
    /// Bytes that are no UTF-8 stand in the middle of the answer's body.
    case brokenText
    /// The access token is said to have expired.
    case expiredToken

    /// What the control calls it.
    public var name: String {
        switch self {
        case .status(let status, _): "status \(status)"
        case .doneButStatus: "done_but_status"
        case .doneButNoAnswer: "done_but_no_answer"
        case .noAnswer: "no_answer"
        case .cutUpload: "cut_upload"
        case .cutDownload: "cut_download"
        case .truncatedAnswer: "truncated"
        case .stall: "stall"
        case .html: "html"
        case .brokenText: "broken_text"
        case .expiredToken: "expired_token"
        }
    }
}

/// Where and how often a fault happens.
public struct FaultRule: Sendable, Hashable {
    /// The route that it hits; `*` at the end stands for anything.
    public var route: String
    /// What happens.
    public var fault: Fault
    /// Requests of the route that pass first.
    public var skipping: Int
    /// How often it happens; nil without end.
    public var times: Int?
    /// The chance that it happens at all, 0...1.
    public var probability: Double

    /// A fault at a route: once, at the next request, unless said otherwise.
    public init(
        _ fault: Fault,
        at route: String,
        skipping: Int = 0,
        times: Int? = 1,
        probability: Double = 1
    ) {
        self.route = route
        self.fault = fault
        self.skipping = skipping
        self.times = times
        self.probability = probability
    }

    func matches(_ name: String) -> Bool {
        route.hasSuffix("*") ? name.hasPrefix(route.dropLast()) : name == route
    }
}

/// The weather and the faults of one simulator at one time: a value that decides, and does nothing.
struct Climate: Sendable {
    var weather = Weather()
    private(set) var rules: [FaultRule] = []
    /// How often each kind of fault happened, by its name; the rate limit as `limit`.
    private(set) var hits: [String: Int] = [:]
    private var random = RandomSource(seed: 7)
    private var recent: [ContinuousClock.Instant] = []

    mutating func add(_ rule: FaultRule) { rules.append(rule) }
    mutating func clearFaults() { rules = [] }
    mutating func seed(_ seed: UInt64) { random = RandomSource(seed: seed) }

    /// The fault that hits the next request of a route, if any; the first rule that fits counts.
    mutating func fault(at route: String) -> Fault? {
        for index in rules.indices where rules[index].matches(route) {
            if rules[index].skipping > 0 {
                rules[index].skipping -= 1
                continue
            }
            if rules[index].probability < 1 {
                let chance = Double(random.next() >> 11) / Double(UInt64(1) << 53)
                guard chance < rules[index].probability else { continue }
            }
            let fault = rules[index].fault
            if let times = rules[index].times {
                rules[index].times = times - 1
                if times <= 1 { rules.remove(at: index) }
            }
            hits[fault.name, default: 0] += 1
            return fault
        }
        return nil
    }

    /// Counts a request against the rate limit; the limit, when it is over.
    mutating func limit(at now: ContinuousClock.Instant) -> Weather.RateLimit? {
        guard let limit = weather.rateLimit else { return nil }
        let window = Duration.seconds(limit.seconds)
        recent.removeAll { now - $0 > window }
        guard recent.count < limit.requests else {
            hits["limit", default: 0] += 1
            return limit
        }
        recent.append(now)
        return nil
    }
}
