import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortWebDAV
import Synchronization
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

    @Test("a change that no tag shows comes within a day, by a few listings with each look")
    func lostChanges() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "deep", "one"])
            for number in 0..<40 { cloud.write("x", to: ["many", "\(number)", "file"]) }
            let passed = Mutex<Int64>(0)
            let now: @Sendable () -> Timestamp = {
                Timestamp(seconds: Timestamp.now.seconds + passed.withLock { $0 })
            }
            try await cloud.client().withProvider(now: now) { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                cloud.service.habits.losesChanges = true
                cloud.write("changed", to: ["a", "deep", "one"])
                cloud.simulator.clearCalls()
                try await look(&replica, provider)
                #expect(replica.named("one").first?.size == 1)
                #expect(cloud.calls == 1)
                // A day later the 44 folders have their turn, 32 with a look at most.
                passed.withLock { $0 = 86_401 }
                var looks: [Int] = []
                for _ in 0..<3 {
                    cloud.simulator.clearCalls()
                    try await look(&replica, provider)
                    looks.append(cloud.calls)
                }
                #expect(looks == [33, 13, 1])
                #expect(replica.named("one").first?.size == 7)
            }
        }
    }

    @Test("a folder that fails holds up no news where it is looked at for its age alone")
    func agedFolderFails() async throws {
        try await OpenCloud.with { cloud in
            cloud.write("1", to: ["a", "one"])
            cloud.write("2", to: ["b", "two"])
            let passed = Mutex<Int64>(0)
            let now: @Sendable () -> Timestamp = {
                Timestamp(seconds: Timestamp.now.seconds + passed.withLock { $0 })
            }
            try await cloud.client().withProvider(now: now) { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                cloud.service.habits.losesChanges = true
                cloud.write("changed", to: ["a", "one"])
                try await look(&replica, provider)
                cloud.service.habits.losesChanges = false
                cloud.service.habits.unlistable = [["b"]]
                passed.withLock { $0 = 86_401 }
                try await look(&replica, provider)
                #expect(replica.named("one").first?.size == 7)
                #expect(replica.named("two").count == 1)
                cloud.write("new", to: ["c", "three"])
                try await look(&replica, provider)
                #expect(replica.named("three").count == 1)
                // What a tag brings up is known before anything counts as gone.
                SimulatorEdit.move(from: ["a", "one"], to: ["b", "one"]).apply(to: cloud.service)
                await #expect(throws: ProviderError.self) { try await look(&replica, provider) }
                #expect(replica.named("one").count == 1)
                cloud.service.habits.unlistable = []
                try await look(&replica, provider)
                #expect(replica.named("one").count == 1)
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
