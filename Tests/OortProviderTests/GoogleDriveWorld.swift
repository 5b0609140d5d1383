import OortGoogleDrive
import OortSimulators
import OortTesting

extension ConformingService {
    /// Google Drive; its cursors keep for ever.
    static let googleDrive = googleDrive { $0 == .sample ? .sample() : .empty() }

    static func googleDrive(
        _ simulate: @escaping @Sendable (Content) -> GoogleDriveSimulator
    ) -> ConformingService {
        ConformingService("drive", losesCursors: false, rules: .googleDrive) {
            simulate($0)
        } provide: { client, simulator in
            GoogleDriveProvider(
                client: client,
                endpoints: GoogleDriveEndpoints(
                    api: simulator.url(host: "www.googleapis.com"),
                    accounts: simulator.url(host: "accounts.google.com"),
                    oauth: simulator.url(host: "oauth2.googleapis.com")
                ),
                partSize: 256 << 10
            )
        }
    }
}

/// A Drive provider with all its decorators, on a simulated Drive.
enum GoogleDriveWorld {
    /// Runs a test in a world of its own, which is stopped afterwards.
    static func with(
        _ service: GoogleDriveSimulator = .empty(),
        _ body: (ProviderWorld, GoogleDriveSimulator) async throws -> Void
    ) async throws {
        try await ConformingService.googleDrive { _ in service }.withWorld { world in
            try await body(world, service)
        }
    }
}
