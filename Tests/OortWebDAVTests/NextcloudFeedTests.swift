import OortModel
import OortPlaces
import OortSimulators
import OortTesting
import OortWebDAV
import Synchronization
import Testing

@Suite("news of a Nextcloud", .timeLimit(.minutes(5)))
struct NextcloudFeedTests {
    /// Has the provider look, and reads what it found.
    private func look(_ replica: inout FeedReplica, _ provider: PlaceProvider) async throws {
        if let cursor = replica.cursor {
            _ = try await provider.waitForChanges(since: cursor, atMost: .zero)
        }
        try await replica.catchUp(with: provider)
    }

    @Test(
        "what changes in a storage whose tags tell nothing is seen all the same",
        arguments: [false, true]
    )
    func external(isOwnCloud: Bool) async throws {
        try await Cloud.with(isOwnCloud: isOwnCloud) { cloud in
            cloud.write("1", to: ["mount", "deep", "one"])
            cloud.write("2", to: ["mine", "two"])
            cloud.service.mount(["mount"], as: "external")
            cloud.service.habits.overlooksStorages = true
            try await cloud.client().withProvider { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                cloud.write("changed", to: ["mount", "deep", "one"])
                cloud.write("new", to: ["mount", "deep", "below", "three"])
                for _ in 0..<3 { try await look(&replica, provider) }
                #expect(replica.named("one").first?.size == 7)
                #expect(replica.named("three").first?.size == 3)
                cloud.simulator.clearCalls()
                try await look(&replica, provider)
                // The root is asked for its tag, and the mount's three folders have their turn.
                #expect(cloud.calls == 4)
            }
        }
    }

    @Test(
        "a storage that its folder does not name is never gone, a share after a while; both keep their ids",
        arguments: ["external", "shared"]
    )
    func vanished(_ type: String) async throws {
        try await Cloud.with { cloud in
            cloud.write("1", to: ["mount", "deep", "one"])
            cloud.write("2", to: ["mine"])
            cloud.service.mount(["mount"], as: type)
            let passed = Mutex<Int64>(0)
            let now: @Sendable () -> Timestamp = {
                Timestamp(seconds: Timestamp.now.seconds + passed.withLock { $0 })
            }
            try await cloud.client().withProvider(now: now) { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                let one = try #require(replica.named("one").first)
                for isBack in [true, false] {
                    cloud.service.habits.down = ["/mount": .vanished]
                    cloud.write("news", to: ["news \(isBack)"])
                    for _ in 0..<5 {
                        try await look(&replica, provider)
                        passed.withLock { $0 += 100 }
                    }
                    #expect(replica.named("news \(isBack)").count == 1)
                    #expect(replica.named("one").map(\.id) == [one.id])
                    if isBack { cloud.service.habits.down = [:] }
                    passed.withLock { $0 += 200 }
                    for _ in 0..<2 { try await look(&replica, provider) }
                    let isThere = isBack || type.isSameText(as: "external")
                    #expect(replica.named("one").map(\.id) == (isThere ? [one.id] : []))
                }
                #expect(replica.named("mine").count == 1)
            }
        }
    }

    @Test("a storage that is away can be deleted here, and comes back with all that is in it")
    func deletedWhileAway() async throws {
        try await Cloud.with { cloud in
            cloud.write("1", to: ["mount", "deep", "one"])
            cloud.service.mount(["mount"], as: "external")
            try await cloud.client().withProvider { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                let mount = try #require(replica.named("mount").first)
                cloud.service.habits.down = ["/mount": .vanished]
                cloud.write("news", to: ["news"])
                for _ in 0..<2 { try await look(&replica, provider) }
                // A server does not let the folder of a storage be removed that is there.
                #expect(!mount.permissions.contains(.delete))
                let away = try #require(replica.named("mount").first)
                #expect(away.id == mount.id && away.permissions.contains(.delete))
                let one = try #require(replica.named("one").first)
                cloud.simulator.clearCalls()
                for (id, path) in [
                    (one.id, ["mount", "deep", "one"]), (mount.id, ["mount"]),
                ] {
                    let reference = ItemReference(id: id, path: RemotePath(path))
                    try await provider.delete(Deletion(item: reference, revision: nil))
                }
                #expect(!cloud.simulator.calls.contains { $0.method == "DELETE" })
                try await look(&replica, provider)
                #expect(replica.named("one").isEmpty)
                cloud.service.habits.down = [:]
                cloud.write("more", to: ["more"])
                for _ in 0..<2 { try await look(&replica, provider) }
                #expect(replica.named("one").first?.size == 1)
                #expect(cloud.item("mount/deep/one") != nil)
                #expect(replica.named("mount").first?.permissions.contains(.delete) == false)
            }
        }
    }

    @Test("a server whose trash is switched off keeps nothing that is deleted, and is not said to")
    func noTrash() async throws {
        let service = NextcloudSimulator()
        service.habits.hasTrash = false
        try await Cloud.with(service) { cloud in
            let client = cloud.client()
            #expect(client.trash == nil && !client.keepsDeleted && !client.traits.deletesToTrash)
            cloud.write("ciphertext", to: ["folder", "vault", "0123456789abcdef"])
            cloud.service.account.withTree { tree in
                guard let vault = tree.item(at: ["folder", "vault"]) else { return }
                tree.update(vault.id) { $0.extra["is-encrypted"] = .bool(true) }
            }
            try await client.withProvider { provider in
                var replica = FeedReplica(of: provider)
                try await replica.catchUp(with: provider)
                let folder = try #require(replica.named("folder").first)
                // What was never seen here would be gone for good.
                let reference = ItemReference(id: folder.id, path: .init(["folder"]))
                let kind = await failure {
                    try await provider.delete(Deletion(item: reference, revision: nil))
                }
                #expect(kind == .noPermission)
                #expect(cloud.item("folder/vault/0123456789abcdef") != nil)
            }
        }
        try await Cloud.with { cloud in
            #expect(cloud.client().trash != nil && cloud.client().keepsDeleted)
        }
    }
}
