import OortCatalog
import OortModel
import Testing

@testable import OortSync

@Suite("what is to be asked for after an operation", .timeLimit(.minutes(15)))
struct OwedLookTests {
    @Test(
        "is asked for again where that fails, though the feed tells no news",
        arguments: [ProviderError.Kind.offline, .outcomeUnknown(retryAfter: nil)]
    )
    func failedLook(kind: ProviderError.Kind) async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            try world.write("f", "text")
            try await world.settle()
            // The feed has reported everything by the second wait.
            let before = cloud.looksForNews
            try await until { cloud.looksForNews > before + 2 }
            cloud.fallSilent()
            let (catalog, account) = (world.catalog, world.account.id)
            let id = try #require(try world.node("f").remoteID)
            try await catalog.beUnsure(of: id, in: account)
            cloud.refuse("look", with: kind, times: 2)
            await world.engine.lookAtUnsureAfterwards()
            #expect(try await !catalog.unsureItems(of: account).isEmpty)
            try await until { try await catalog.unsureItems(of: account).isEmpty }
        }
    }
}
