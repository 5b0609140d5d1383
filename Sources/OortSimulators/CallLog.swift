/// One request that a simulator has seen.
public struct SimulatorCall: Sendable, Hashable {
    /// Its number, from 1.
    public var number: Int
    /// The operation, as the service names its routes.
    public var route: String
    /// GET, POST, PUT, PATCH, DELETE.
    public var method: String
    /// The status that was answered; 0 when the connection was cut without an answer.
    public var status: Int
    /// Bytes of the request's body.
    public var bytesIn: Int64
    /// Bytes of the answer's body.
    public var bytesOut: Int64
}

/// How often a route was called, and what went over the wire for it.
public struct SimulatorCount: Sendable, Hashable {
    /// Requests.
    public var calls = 0
    /// Bytes of the requests' bodies.
    public var bytesIn: Int64 = 0
    /// Bytes of the answers' bodies.
    public var bytesOut: Int64 = 0
}

/// What a simulator has seen since it started, or since the log was emptied.
struct CallLog: Sendable {
    private(set) var calls: [SimulatorCall] = []
    private(set) var counts: [String: SimulatorCount] = [:]
    private var number = 0
    /// The counts are exact; of the calls themselves the newest are kept.
    private static let mostCalls = 20_000

    mutating func add(_ request: SimulatorRequest, route: String, status: Int, bytesOut: Int64) {
        number += 1
        if calls.count >= Self.mostCalls { calls.removeFirst(Self.mostCalls / 2) }
        let bytesIn = Int64(request.bytes.count)
        calls.append(
            SimulatorCall(
                number: number,
                route: route,
                method: request.method,
                status: status,
                bytesIn: bytesIn,
                bytesOut: bytesOut
            )
        )
        counts[route, default: SimulatorCount()].calls += 1
        counts[route, default: SimulatorCount()].bytesIn += bytesIn
        counts[route, default: SimulatorCount()].bytesOut += bytesOut
    }

    mutating func clear() { self = CallLog() }
}
