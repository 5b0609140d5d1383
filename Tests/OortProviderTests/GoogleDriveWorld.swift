import Logging
import OortGoogleDrive
import OortModel
import OortSimulators
import OortTesting
import OortTransport

extension ConformingService {
    /// Google Drive.
    static let googleDrive = ConformingService("drive") { content in
        try await GoogleDriveWorld.make(content == .sample ? .sample() : .empty())
    }
}

/// A Drive provider with all its decorators, on a simulated Drive.
enum GoogleDriveWorld {
    static func endpoints(of simulator: Simulator) -> GoogleDriveEndpoints {
        GoogleDriveEndpoints(
            api: simulator.url(host: "www.googleapis.com"),
            accounts: simulator.url(host: "accounts.google.com"),
            oauth: simulator.url(host: "oauth2.googleapis.com"))
    }

    static func make(
        _ service: GoogleDriveSimulator, patience: Duration = .seconds(60)
    ) async throws -> ProviderWorld {
        let simulator = try await Simulator.start(service)
        let wire = try CurlClient()
        var policy = RetryPolicy()
        policy.firstDelay = .milliseconds(1)
        policy.longestDelay = .milliseconds(10)
        policy.interactivePatience = patience
        let client = AccountClient.make(
            wire: wire, tokens: FixedToken(service.account.tokens.issue().access),
            rules: .googleDrive, requestsInFlight: 8, policy: policy,
            logger: Logger(label: "drive") { _ in SwiftLogNoOpLogHandler() })
        let provider = GoogleDriveProvider(
            client: client, endpoints: endpoints(of: simulator), partSize: 256 << 10)
        return try await ProviderWorld(provider: provider, simulator: simulator) {
            await wire.shutdown()
        }
    }

    /// Runs a test in a world of its own, which is stopped afterwards.
    static func with(
        _ service: GoogleDriveSimulator = .empty(), patience: Duration = .seconds(60),
        _ body: (ProviderWorld, GoogleDriveSimulator) async throws -> Void
    ) async throws {
        let world = try await make(service, patience: patience)
        do {
            try await body(world, service)
        } catch {
            await world.stop()
            throw error
        }
        await world.stop()
    }
}
