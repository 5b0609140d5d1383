import Logging
public import OortModel
public import OortSimulators
public import OortTransport
import Synchronization

/// A provider and the simulated service behind it: where each conformance test lives.
public struct ProviderWorld: Sendable {
    /// The provider under test, over the whole stack of the transport.
    public let provider: any Provider
    /// The service that it talks to.
    public let simulator: Simulator
    /// The id of the account's root, as the provider names it.
    public let rootID: ItemID

    /// The account's root.
    public var root: ItemReference { ItemReference(id: rootID, path: .root) }

    /// Somebody else changes the account, past the protocol; the id of what was touched.
    @discardableResult
    public func somebodyElse(_ edit: SimulatorEdit) -> String? {
        edit.apply(to: simulator.service)
    }

    /// How an item is named in a further call.
    public func reference(_ item: Item, in parent: ItemReference? = nil) -> ItemReference {
        ItemReference(
            id: item.id,
            path: item.path ?? (parent ?? root).path.appending(item.fileName)
        )
    }
}

/// One service as the conformance suite knows it: one line a service in `conformingServices`.
public struct ConformingService: Sendable, CustomStringConvertible {
    /// What the account holds at first.
    public enum Content: Sendable, Hashable {
        /// Nothing.
        case empty
        /// `SampleAccount`.
        case sample
    }

    /// The service's name.
    public let description: String
    /// Whether the service may forget a cursor (`SimulatedService.loseCursors`).
    public let losesCursors: Bool
    private let rules: AnswerRules
    private let simulate: @Sendable (Content) -> any SimulatedService
    private let provide: @Sendable (any HTTPClient, Simulator) -> any Provider

    /// A service by its name, its simulator and its provider, which is to use parts of an upload
    /// session of at most 4 MiB, so that small contents show them.
    public init(
        _ name: String,
        losesCursors: Bool = true,
        rules: AnswerRules = .standard,
        simulate: @escaping @Sendable (Content) -> any SimulatedService,
        provide: @escaping @Sendable (any HTTPClient, Simulator) -> any Provider
    ) {
        description = name
        self.losesCursors = losesCursors
        self.rules = rules
        self.simulate = simulate
        self.provide = provide
    }

    /// Runs a test in a world of its own, which is stopped afterwards.
    ///
    /// `onTheWire` may put something between the provider's stack and the network; `patience` is
    /// how long a request is tried again: long, because tests share the machine, and faults that do
    /// not end are not for retries.
    public func withWorld(
        _ content: Content = .empty,
        patience: Duration = .seconds(600),
        onTheWire: (any HTTPClient) -> any HTTPClient = { $0 },
        _ body: (ProviderWorld) async throws -> Void
    ) async throws {
        let simulator = try await Simulator.start(simulate(content))
        let wire = try CurlClient()
        var policy = RetryPolicy()
        policy.firstDelay = .milliseconds(10)
        policy.longestDelay = .milliseconds(50)
        policy.interactivePatience = patience
        let client = AccountClient.make(
            wire: onTheWire(wire),
            tokens: SimulatedSignIn(simulator),
            rules: rules,
            requests: RequestLimit(RequestBounds(first: 8, most: 8)),
            policy: policy,
            logger: Logger(label: "conformance") { _ in SwiftLogNoOpLogHandler() }
        )
        let outcome: Result<Void, any Error>
        do {
            let provider = provide(client, simulator)
            let rootID = try await provider.identity().rootID
            try await body(
                ProviderWorld(provider: provider, simulator: simulator, rootID: rootID)
            )
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await wire.shutdown()
        await simulator.stop()
        try outcome.get()
    }
}

/// The tokens of a sign-in at a simulated service, refreshed past the protocol.
public final class SimulatedSignIn: AccessTokens {
    private let tokens: SimulatedTokens
    private let issued: Mutex<SimulatedTokens.Issued>

    /// Signs in at a simulator.
    public init(_ simulator: Simulator) {
        tokens = simulator.account.tokens
        issued = Mutex(simulator.account.tokens.issue())
    }

    public func token() async throws(TransportError) -> String { issued.withLock { $0.access } }

    public func refresh(afterRejectionOf rejected: String) async throws(TransportError) -> String {
        let current = issued.withLock { $0 }
        guard current.access == rejected else { return current.access }
        guard let refresh = current.refresh, let next = tokens.refresh(refresh) else {
            throw .signedOut("the refresh token is not good")
        }
        issued.withLock { $0 = next }
        return next.access
    }
}
