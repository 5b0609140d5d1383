import Logging
public import OortModel
public import OortSimulators
public import OortTransport
import Synchronization

/// A provider and the simulated service behind it.
public struct SimulatedWorld: ProviderWorld {
    public let provider: any Provider
    /// The service that it talks to.
    public let simulator: Simulator
    public let rootID: ItemID

    public func somebodyElse(_ edit: SimulatorEdit) { edit.apply(to: simulator.service) }

    public func truth() -> [RemotePath: TrueItem] {
        simulator.account.withTree { tree in
            var found: [RemotePath: TrueItem] = [:]
            for item in tree.descendants(of: tree.rootID) {
                guard let path = tree.path(of: item.id) else { continue }
                found[RemotePath(path)] =
                    switch item.kind {
                    case .file: .file(size: item.size)
                    case .folder: .folder
                    default: .other
                    }
            }
            return found
        }
    }

    public func bytes(at path: RemotePath) -> [UInt8]? {
        simulator.account.withTree { $0.item(at: path.parts)?.head?.content }?.bytes
    }

    public var traffic: Traffic {
        simulator.counts.values.reduce(into: Traffic(calls: 0, bytesIn: 0, bytesOut: 0)) {
            $0.calls += $1.calls
            $0.bytesIn += $1.bytesIn
            $0.bytesOut += $1.bytesOut
        }
    }

    public func add(_ fault: Fault, times: Int?) {
        simulator.add(FaultRule(fault, at: "*", times: times))
    }

    public func clearFaults() { simulator.clearFaults() }

    public func befall(_ misfortune: Misfortune) throws {
        switch misfortune {
        case .expiredAccess: simulator.account.tokens.expireAccessTokens()
        case .revokedAccess: simulator.account.tokens.revokeAll()
        case .lostCursors: simulator.service.loseCursors()
        case .lostSessions: simulator.service.loseUploadSessions()
        case .cutConnections: throw NoSuchAbility()
        }
    }
}

/// One service as its simulator shows it.
public struct SimulatedKind: Sendable, CustomStringConvertible {
    /// Does something with a provider over a client of the simulator, and ends what it needed.
    public typealias Provide =
        @Sendable (
            any HTTPClient, Simulator, (any Provider) async throws -> Void
        ) async throws -> Void

    /// The service's name.
    public let description: String
    private let abilities: Set<WorldAbility>
    private let rules: AnswerRules
    private let signer: any RequestSigner
    private let simulate: @Sendable (WorldContent) -> any SimulatedService
    private let provide: Provide

    /// What a sign-in by OAuth and a simulator bring, but for cursors that get lost.
    public static let usualAbilities: Set<WorldAbility> = [
        .counts, .faults, .suffers(.expiredAccess), .suffers(.revokedAccess),
        .suffers(.lostSessions), .thumbnails, .person,
    ]

    /// A service by its name, its simulator and its provider, which is to use parts of an upload
    /// session of at most 4 MiB, so that small contents show them.
    public init(
        _ name: String,
        abilities: Set<WorldAbility> = Self.usualAbilities,
        rules: AnswerRules = .standard,
        simulate: @escaping @Sendable (WorldContent) -> any SimulatedService,
        provide: @escaping @Sendable (any HTTPClient, Simulator) -> any Provider
    ) {
        self.init(name, abilities: abilities, rules: rules, simulate: simulate) {
            client,
            simulator,
            body in
            try await body(provide(client, simulator))
        }
    }

    /// A service whose provider needs something that ends with it.
    public init(
        _ name: String,
        abilities: Set<WorldAbility>,
        rules: AnswerRules,
        signer: any RequestSigner = BearerSigner(),
        simulate: @escaping @Sendable (WorldContent) -> any SimulatedService,
        provide: @escaping Provide
    ) {
        description = name
        self.abilities = abilities
        self.rules = rules
        self.signer = signer
        self.simulate = simulate
        self.provide = provide
    }

    /// The service as the conformance suite takes it.
    public var conforming: ConformingKind {
        ConformingKind(description, abilities: abilities) { content, body in
            try await withWorld(content) { try await body($0) }
        }
    }

    /// Runs a test in a world of its own, which is stopped afterwards.
    ///
    /// `onTheWire` may put something between the provider's stack and the network; `patience` is
    /// how long a request is tried again: long, because tests share the machine, and faults that do
    /// not end are not for retries.
    public func withWorld(
        _ content: WorldContent = .empty,
        patience: Duration = .seconds(600),
        onTheWire: (any HTTPClient) -> any HTTPClient = { $0 },
        _ body: (SimulatedWorld) async throws -> Void
    ) async throws {
        let simulator = try await Simulator.start(simulate(content))
        let wire = try CurlClient()
        let client = AccountClient.make(
            wire: onTheWire(wire),
            tokens: SimulatedSignIn(simulator),
            signer: signer,
            rules: rules,
            requests: RequestLimit(RequestBounds(first: 8, most: 8)),
            policy: .hasty(patience: patience),
            logger: Logger(label: "conformance") { _ in SwiftLogNoOpLogHandler() }
        )
        let outcome: Result<Void, any Error>
        do {
            try await provide(client, simulator) { provider in
                let rootID = try await provider.identity().rootID
                try await body(
                    SimulatedWorld(provider: provider, simulator: simulator, rootID: rootID)
                )
            }
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        await wire.shutdown()
        await simulator.stop()
        try outcome.get()
    }
}

extension RetryPolicy {
    /// Retries that come at once, and go on for as long as a person would wait.
    public static func hasty(patience: Duration) -> RetryPolicy {
        var policy = RetryPolicy()
        policy.firstDelay = .milliseconds(10)
        policy.longestDelay = .milliseconds(50)
        policy.interactivePatience = patience
        return policy
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
