import OortModel

/// One service's wire protocol over one simulated account.
///
/// Isolation: called from any task, many at once.
public protocol SimulatedService: Sendable {
    /// The service's name as on the command line: `dropbox`, `drive`, `onedrive`.
    var name: String { get }
    /// The real host names that the simulator stands for.
    var hosts: [String] { get }
    /// The account that it serves.
    var account: SimulatedAccount { get }

    /// The name of the operation that a request asks for, by which calls are counted and faults
    /// are placed, such as `files/list_folder`; without ids or other values.
    func route(of request: SimulatorRequest) -> String

    /// Does what the request asks for.
    func answer(_ request: SimulatorRequest) async -> SimulatorAnswer

    /// Takes note of a request of which the body is still on its way, or was cut off: `bytes` is what
    /// came of it so far.
    func arriving(_ request: SimulatorRequest)

    /// The service's words for a fault that hits `request` before anything is done.
    func answer(to request: SimulatorRequest, for trouble: SimulatedTrouble) -> SimulatorAnswer

    /// The names from the root for an edit by another client (`/_oort/edit`): a plain path unless the
    /// service has names with slashes.
    func parts(ofEditPath path: String) -> [String]

    /// What is said over a WebSocket that a request asks for: of the client's texts it makes the service's;
    /// nil for no such address.
    func webSocket(
        _ request: SimulatorRequest
    ) -> (@Sendable (AsyncStream<String>) -> AsyncStream<String>)?

    /// Forgets all cursors of the change feed, as services do now and then.
    func loseCursors()

    /// Forgets all open upload sessions, as services do after some days.
    func loseUploadSessions()

    /// Sets the service's own habits; false where it has none such.
    func set(habits: JSON) -> Bool
}

extension SimulatedService {
    public func arriving(_ request: SimulatorRequest) {}

    public func webSocket(
        _ request: SimulatorRequest
    ) -> (@Sendable (AsyncStream<String>) -> AsyncStream<String>)? { nil }

    public func parts(ofEditPath path: String) -> [String] {
        path.parts(between: "/").filter { !$0.isEmpty }.map(String.init)
    }

    public func loseCursors() {}

    public func set(habits: JSON) -> Bool { false }
}

/// Trouble that each service puts into its own words.
public enum SimulatedTrouble: Sendable, Hashable {
    /// Too many requests; how long to wait, where the service says so.
    case rateLimited(status: Int, retryAfterSeconds: Int?)
    /// A fault of the service's: 500, 502, 503, 504.
    case serverError(status: Int, retryAfterSeconds: Int?)
    /// The access token is no longer good.
    case expiredToken
}
