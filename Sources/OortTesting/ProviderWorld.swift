public import OortModel
public import OortSimulators

/// A provider and the simulated service behind it: where each conformance test lives.
public struct ProviderWorld: Sendable {
    /// The provider under test.
    public let provider: any Provider
    /// The service that it talks to.
    public let simulator: Simulator
    /// The id of the account's root, as the provider names it.
    public let rootID: ItemID
    /// Ends what the provider's transport holds open.
    private let shutdown: @Sendable () async -> Void

    /// A world of one provider; `shutdown` ends its transport.
    public init(
        provider: any Provider,
        simulator: Simulator,
        shutdown: @escaping @Sendable () async -> Void = {}
    ) async throws {
        self.provider = provider
        self.simulator = simulator
        self.shutdown = shutdown
        rootID = try await provider.identity().rootID
    }

    /// The account's root.
    public var root: ItemReference { ItemReference(id: rootID, path: .root) }

    /// Somebody else changes the account, past the protocol; the id of what was touched.
    @discardableResult
    public func somebodyElse(_ edit: SimulatorEdit) -> String? {
        edit.apply(to: simulator.service)
    }

    /// Stops the service and the transport.
    public func stop() async {
        await shutdown()
        await simulator.stop()
    }
}

/// One service as the conformance suite knows it: one line a service in `ConformingServices`.
public struct ConformingService: Sendable, CustomStringConvertible {
    /// The service's name.
    public let description: String
    /// Starts a simulator with an account of the given content and a provider on it.
    private let make: @Sendable (Content) async throws -> ProviderWorld

    /// What the account holds at first.
    public enum Content: Sendable, Hashable {
        /// Nothing.
        case empty
        /// `SampleAccount`.
        case sample
    }

    /// A service by its name and by how its world is made.
    public init(
        _ name: String, make: @escaping @Sendable (Content) async throws -> ProviderWorld
    ) {
        description = name
        self.make = make
    }

    /// Runs a test in a world of its own, which is stopped afterwards.
    public func withWorld(
        _ content: Content = .empty, _ body: (ProviderWorld) async throws -> Void
    ) async throws {
        let world = try await make(content)
        do {
            try await body(world)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }
}
