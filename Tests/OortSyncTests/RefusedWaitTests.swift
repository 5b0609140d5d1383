import OortModel
import Testing

@testable import OortSync

/// At Dropbox and Box another host than the service's tells that there are news.
@Suite("a service that does not say whether there are news", .timeLimit(.minutes(5)))
struct RefusedWaitTests {
    @Test("is read all the same, if seldom, and nothing is wrong with it")
    func refused() async throws {
        let cloud = MemoryCloud()
        var settings = SyncSettings()
        settings.settle = .zero
        settings.longestBackoff = .milliseconds(20)
        try await World.run(cloud, settings: settings) { world in
            try await world.agree()
            cloud.refuseWaits()
            await world.engine.readFeedSoon()
            let before = cloud.looksForNews
            try await until { cloud.looksForNews > before + 5 }
            #expect(await world.engine.status().trouble == nil)
            cloud.put("theirs", "theirs")
            try world.write("mine", "mine")
            try await until { try await world.tree() == cloud.tree && cloud.tree.count == 2 }
            #expect(await world.engine.status().trouble == nil)
            // Sent at once, and not as to a service that cannot be reached.
            #expect(cloud.tree == ["mine": "mine", "theirs": "theirs"])
        }
    }
}
