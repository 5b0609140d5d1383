import Foundation
import OortModel
import OortSimulators
import OortTesting
import Testing

@testable import OortGoogleDrive

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

    @Test("with whom an item is shared is read from all pages of its permissions")
    func shares() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let shares = try #require(world.provider.shares)
            let item = try await world.upload("x", as: "lent.txt")
            #expect(try await shares.sharedWith(world.reference(item)).isEmpty)
            let people = (1...150).map { SimulatedSharee(id: "p\($0)", name: "Person \($0)") }
            let staff = SimulatedSharee(id: "staff", name: "Staff", isGroup: true)
            world.somebodyElse(.lend(path: ["lent.txt"], to: [staff] + people))
            let told = try await shares.sharedWith(world.reference(item)).joined
            #expect(told.hasPrefix("Staff (group); Person 1; Person 2; "))
            #expect(told.hasSuffix("Person 99; and 51 more"))
        }
    }

    @Test(
        "each kind of permission has its name, and the owner's none",
        arguments: [
            (#"{"type":"user","role":"owner","displayName":"Me"}"#, nil),
            (#"{"type":"user","role":"reader","displayName":"Bob"}"#, "Bob"),
            (#"{"type":"user","role":"writer","displayName":"","emailAddress":"b@x"}"#, "b@x"),
            (#"{"type":"user","role":"reader","displayName":"Bob","deleted":true}"#, nil),
            (#"{"type":"group","role":"reader","displayName":"Staff"}"#, "Staff (group)"),
            (#"{"type":"domain","role":"reader","domain":"x.org"}"#, "everyone at x.org"),
            (#"{"type":"anyone","role":"reader"}"#, "anyone with the link"),
            (#"{"type":"user","role":"reader"}"#, nil), ("{}", nil),
        ] as [(String, String?)]
    )
    func names(_ json: String, _ name: String?) throws {
        let permission = try JSONDecoder().decode(
            GoogleDriveShares.Permission.self,
            from: Data(json.utf8)
        )
        #expect(permission.name == name)
    }
}
