import OortModel
import OortSimulators
import OortTesting
import Testing

/// Links at Drive that others made.
@Suite("Links of Google Drive")
struct GoogleDriveLinksTests {
    @Test(
        "who may comment is told from who reads and who writes",
        arguments: ["reader", "commenter", "writer"]
    )
    func roles(role: String) async throws {
        try await GoogleDriveWorld.with { world, service in
            let sharing = try #require(world.provider.links)
            let item = try await world.upload("for all", as: "for all.txt")
            service.account.withTree { tree in
                _ = tree.update(item.id.rawValue) { $0.extra["isPublic"] = .string(role) }
            }
            let page = try await sharing.links(of: world.reference(item), page: nil)
            let link = try #require(page.links.first)
            #expect(link.mayEdit == (role == "writer"))
            #expect((link.access == .comment) == (role == "commenter"))
        }
    }
}
