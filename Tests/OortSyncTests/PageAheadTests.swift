import Foundation
import OortCatalog
import OortModel
import OortSync
import Synchronization
import Testing

/// The next page of the feed is asked for while a large one is applied.
@Suite("a page that is asked for ahead", .timeLimit(.minutes(15)))
struct PageAheadTests {
    private static var settings: SyncSettings {
        var settings = SyncSettings()
        (settings.settle, settings.largePage) = (.seconds(60), 1)
        return settings
    }

    /// Keeps all transactions of a catalog waiting until it is asked to end.
    private final class Blocker: Sendable {
        private let isOver = Atomic(false)
        private let isThere = Atomic(false)

        /// Begins; returns when transactions wait.
        func begin(in world: World, over file: Inode) async throws {
            let (catalog, account) = (world.catalog, world.account.id)
            // A thread of its own, which waits.
            Thread.detachNewThread {
                // Nothing of it stays.
                let outcome = Result {
                    try catalog.stage(
                        NewStagedContent(size: 0),
                        account: account,
                        modified: .now,
                        of: file
                    ) { _ in
                        self.isThere.store(true, ordering: .releasing)
                        while !self.isOver.load(ordering: .acquiring) { usleep(1000) }
                        throw CatalogError.exists
                    }
                }
                if case .success = outcome { Issue.record("a transaction was not rolled back") }
            }
            try await until { self.isThere.load(ordering: .acquiring) }
        }

        func end() { isOver.store(true, ordering: .releasing) }
    }

    /// A cloud of three pages of an enumeration, two items each, the newest first, and the engine's
    /// first request held.
    private func atFirstPage(
        _ body: (World, MemoryCloud, Blocker) async throws -> Void
    ) async throws {
        let cloud = MemoryCloud()
        for name in ["1", "2", "3", "4", "5", "6"] { cloud.put(name, name) }
        cloud.hold(.feed)
        let blocker = Blocker()
        defer { blocker.end() }
        try await World.run(cloud, settings: Self.settings) { world in
            defer { blocker.end() }
            try await until { cloud.isWaiting(.feed) }
            try await body(world, cloud, blocker)
        }
    }

    @Test("it is asked for before the page that leads to it is applied")
    func isAskedFor() async throws {
        try await atFirstPage { world, cloud, blocker in
            try world.write("own", "x")
            let own = try world.node("own")
            try await blocker.begin(in: world, over: own.inode)
            cloud.release(.feed)
            try await until { cloud.pages == 2 }
            let newest = try #require(cloud.id("6"))
            #expect(
                try world.catalog.node(remoteID: newest, account: world.account.id) == nil
            )
            blocker.end()
            try await until { try world.catalog.account(world.account.id)?.isEnumerated == true }
            for name in ["1", "2", "3", "4", "5", "6"] { _ = try world.node(name) }
            // Each once: the enumeration's three, and one that is looked for behind them.
            #expect(cloud.pages >= 3)
        }
    }

    @Test("what changed here since it was asked for is asked for again")
    func isOfBefore() async throws {
        try await atFirstPage { world, cloud, blocker in
            try await world.engine.list(world.account.root)
            let id = try #require(cloud.id("3"))
            let inode = try world.node("3").inode
            try world.rename("3", to: "three")
            cloud.stall(MemoryCloud.Stall(call: 0, isDone: false))
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.isStalled }
            try await blocker.begin(in: world, over: inode)
            cloud.release(.feed)
            // The second page still calls it "3".
            try await until { cloud.pages == 2 }
            cloud.hold(.feed)
            cloud.stall(nil)
            try await until { cloud.tree["three"] != nil }
            blocker.end()
            try await until {
                try world.catalog.account(world.account.id)?.cursor?.rawValue
                    .hasSuffix("|\(id.rawValue)") == true
            }
            #expect(try world.node("three").inode == inode)
            cloud.release(.feed)
            _ = await push.value
            try await world.settle()
            #expect(try world.node("three").inode == inode)
            #expect(cloud.id("three") == id)
            #expect(cloud.count == 6)
        }
    }
}
