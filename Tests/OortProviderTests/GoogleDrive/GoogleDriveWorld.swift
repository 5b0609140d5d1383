import OortGoogleDrive
import OortModel
import OortSimulators
import OortTesting
import Testing

extension SimulatedKind {
    /// Google Drive; its cursors keep for ever.
    static let googleDrive = googleDrive { $0 == .sample ? .sample() : .empty() }

    static func googleDrive(
        _ simulate: @escaping @Sendable (WorldContent) -> GoogleDriveSimulator
    ) -> SimulatedKind {
        SimulatedKind(
            "drive",
            abilities: usualAbilities.union([.documents]),
            rules: .googleDrive
        ) {
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
        _ body: (SimulatedWorld, GoogleDriveSimulator) async throws -> Void
    ) async throws {
        try await SimulatedKind.googleDrive { _ in service }.withWorld { world in
            try await body(world, service)
        }
    }
}

extension SimulatedWorld {
    /// All that the enumeration reports, and where the feed goes on.
    func everything() async throws -> (items: [ItemID: Item], cursor: Cursor) {
        var items: [ItemID: Item] = [:]
        var page = try await provider.changes(since: nil)
        while true {
            #expect(page.isEnumeration)
            for case .changed(let item) in page.changes { items[item.id] = item }
            guard page.hasMore else { return (items, page.cursor) }
            page = try await provider.changes(since: page.cursor)
        }
    }

    /// All that the feed reports since a cursor, which goes on to its end.
    func news(since cursor: inout Cursor) async throws -> [Change] {
        var changes: [Change] = []
        while true {
            let page = try await provider.changes(since: cursor)
            #expect(!page.isEnumeration)
            changes += page.changes
            cursor = page.cursor
            guard page.hasMore else { return changes }
        }
    }
}
