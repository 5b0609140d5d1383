import OortCatalog
import OortModel
import OortSync
import OortTesting
import Testing

@Suite("a deletion that the service refuses", .timeLimit(.minutes(5)))
struct RefusedDeletionTests {
    private static let there = [
        "d/": "", "d/f": "f", "d/sub/": "", "d/sub/g": "g", "other": "other",
    ]

    private func with(_ body: (World, MemoryCloud) async throws -> Void) async throws {
        let cloud = MemoryCloud()
        var settings = SyncSettings()
        // The second try does not wait as long as other refused changes do.
        (settings.settle, settings.refusalInterval) = (.seconds(60), .seconds(100_000))
        settings.longestBackoff = .milliseconds(10)
        try await World.run(cloud, settings: settings) { world in
            for path in Self.there.keys.sorted() where path.hasSuffix("/") {
                try world.makeFolder(String(path.dropLast()))
            }
            for (path, text) in Self.there where !path.hasSuffix("/") {
                try world.write(path, text)
            }
            try await world.settle()
            try await body(world, cloud)
        }
    }

    @Test("brings back all that was removed, and says why", arguments: ["d", "d/sub", "other"])
    func broughtBack(path: String) async throws {
        try await with { world, cloud in
            let folder = try world.node("d").inode
            cloud.refuse("delete", with: .noPermission, times: 1000)
            try world.remove(path)
            let outcome = await world.engine.sync(timeout: .seconds(600))
            #expect(outcome.isComplete)
            #expect(try await world.tree() == Self.there)
            #expect(cloud.tree == Self.there)
            #expect(try world.node("d").inode == folder)
            let status = await world.engine.status()
            #expect(status.pending.isEmpty)
            #expect(status.remarks == ["\(path) was not deleted and is shown again: scripted"])
            // Deleted once more, it goes where the service takes it.
            cloud.refuse("delete", with: .noPermission, times: 0)
            try world.remove(path)
            try await world.settle()
            #expect(cloud.tree[path] == nil && cloud.tree[path + "/"] == nil)
        }
    }

    @Test("takes along what was changed before it, of which nothing is sent any more")
    func changedBefore() async throws {
        try await with { world, cloud in
            let before = try world.node("other")
            for operation in ["delete", "replace", "setAttributes"] {
                cloud.refuse(operation, with: .noPermission, times: 1000)
            }
            _ = try world.write(to: before, "changed")
            try world.setModified("other", Timestamp(seconds: 1_500_000_000))
            try world.remove("other")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(try await world.tree() == Self.there)
            // As far as the service keeps times.
            let time = try world.node("other").modified.truncated(to: .milliseconds)
            #expect(time == before.modified.truncated(to: .milliseconds))
            #expect(await world.engine.status().pending.isEmpty)
        }
    }

    @Test("is asked for once more before that: the service may have refused for a moment")
    func refusedOnce() async throws {
        try await with { world, cloud in
            cloud.refuse("delete", with: .noPermission)
            try world.remove("d")
            try await world.settle()
            #expect(cloud.tree == ["other": "other"])
            #expect(await world.engine.status().remarks.isEmpty)
        }
    }

    @Test(
        "is asked for once more, however often the service was not reached before, or not heard",
        arguments: [ProviderError.Kind.offline, .outcomeUnknown(retryAfter: nil)]
    )
    func refusedOnceAfterBadWeather(kind: ProviderError.Kind) async throws {
        try await with { world, cloud in
            cloud.refuse("delete", with: [.noPermission, kind, kind, kind])
            try world.remove("d")
            try await world.settle()
            #expect(cloud.tree == ["other": "other"])
            #expect(await world.engine.status().remarks.isEmpty)
        }
    }

    @Test(
        "brings back what the feed told of once more before, as it was",
        arguments: ["d", "other"]
    )
    func toldAgain(path: String) async throws {
        try await with { world, cloud in
            let id = try #require(cloud.id(path))
            cloud.hold(.feed)
            cloud.refuse("delete", with: .noPermission, times: 1000)
            try world.remove(path)
            let told = try await cloud.item(ItemReference(id: id, path: .root))
            _ = try await world.catalog.apply(
                Observations(changes: [.changed(told)]),
                to: world.account.id
            )
            cloud.release(.feed)
            #expect(await world.engine.sync(timeout: .seconds(120)).isComplete)
            #expect(try await world.tree() == Self.there)
        }
    }

    @Test("leaves what got the name meanwhile, and both are sent and seen")
    func nameTaken() async throws {
        try await with { world, cloud in
            cloud.refuse("delete", with: .noPermission, times: 1000)
            try world.remove("d")
            try world.write("d", "another")
            _ = await world.engine.sync(timeout: .seconds(600))
            try await world.settle()
            var contents = Set(try await world.tree().values)
            #expect(contents == Set(Self.there.values).union(["another"]))
            contents = Set(cloud.tree.values)
            #expect(contents == Set(Self.there.values).union(["another"]))
        }
    }

    @Test("is shown again by the next engine where this one ended before")
    func restart() async throws {
        try await with { world, cloud in
            cloud.refuse("delete", with: .noPermission, times: 1000)
            try world.remove("d")
            try await world.die(at: MemoryCloud.Stall(call: 0, isDone: false))
            await world.restart()
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(try await world.tree() == Self.there)
        }
    }
}
