import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortWebDAV
import Testing

@Suite("news of an OpenCloud", .timeLimit(.minutes(5)))
struct InfiniteScaleFeedTests {
    /// Has the provider look, and reads what it found.
    private func look(_ replica: inout FeedReplica, _ provider: PlaceProvider) async throws {
        if let cursor = replica.cursor {
            _ = try await provider.waitForChanges(since: cursor, atMost: .zero)
        }
        try await replica.catchUp(with: provider)
    }

    @Test("one question says that nothing changed; others' changes come by the folders' tags")
    func feed() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "one"])
            try await cloud.client().withProvider { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                let one = try #require(replica.named("one").first)
                SimulatorEdit.move(from: ["a", "one"], to: ["b", "two"]).apply(to: cloud.service)
                cloud.write("new", to: ["c", "new"])
                try await look(&replica, provider)
                #expect(replica.named("two").map(\.id) == [one.id])
                #expect(replica.named("new").first?.size == 3)
                let calls = cloud.simulator.calls.count
                try await look(&replica, provider)
                #expect(cloud.simulator.calls.count == calls + 1)
            }
        }
    }

    @Test("a change comes although the folders above show another one first")
    func lateTags() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "deep", "one"])
            cloud.write("2", to: ["b", "two"])
            try await cloud.client(folderYouth: .seconds(3600)).withProvider { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                cloud.service.habits.lag = 2
                cloud.write("changed", to: ["a", "deep", "one"])
                cloud.write("new", to: ["b", "three"])
                SimulatorEdit.remove(path: ["b", "two"]).apply(to: cloud.service)
                for _ in 0..<12 { try await look(&replica, provider) }
                #expect(replica.named("one").first?.size == 7)
                #expect(replica.named("three").first?.size == 3)
                #expect(replica.named("two").isEmpty)
            }
        }
    }
}
