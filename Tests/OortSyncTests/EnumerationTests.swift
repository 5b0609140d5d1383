import OortCatalog
import OortModel
import OortSync
import Testing

/// What programs do while the pages of an enumeration come in.
@Suite("local changes between the pages of an enumeration", .timeLimit(.minutes(15)))
struct EnumerationTests {
    /// A machine whose first enumeration has named the report, and waits before it names the rest.
    private func amidEnumeration(
        _ cloud: MemoryCloud = MemoryCloud(),
        _ body: (World) async throws -> Void
    ) async throws {
        // The newest are named first.
        for number in 0..<4 { cloud.put("other \(number)", "other") }
        cloud.put("docs", nil)
        cloud.put("docs/report.txt", "first")
        cloud.holdEnumeration(afterPages: 1)
        try await World.run(cloud) { world in
            try await until { cloud.isWaiting(.feed) }
            #expect(try world.catalog.account(world.account.id)?.isEnumerated == false)
            try await body(world)
        }
    }

    private func save(_ text: String, in world: World) throws {
        try world.write("docs/report.tmp", text)
        try world.rename("docs/report.tmp", to: "docs/report.txt")
    }

    @Test("a file that was saved by a rename over it stays, as the item that it was")
    func saved() async throws {
        let cloud = MemoryCloud()
        try await amidEnumeration(cloud) { world in
            let id = cloud.id("docs/report.txt")
            try save("second", in: world)
            let inode = try world.node("docs/report.txt").inode
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.tree["docs/report.txt"] == "second" }
            _ = await push.value
            cloud.release(.feed)
            try await until { try world.catalog.account(world.account.id)?.isEnumerated == true }
            #expect(try world.node("docs/report.txt").inode == inode)
            try await world.settle()
            #expect(try world.node("docs/report.txt").inode == inode)
            #expect(cloud.tree["docs/report.txt"] == "second")
            #expect(cloud.id("docs/report.txt") == id)
            #expect(cloud.tree.count == 6)
        }
    }

    @Test("what is made, changed and moved between the pages stays")
    func madeMeanwhile() async throws {
        let cloud = MemoryCloud()
        try await amidEnumeration(cloud) { world in
            try world.makeFolder("new")
            try world.write("new/file", "new")
            try world.rename("docs/report.txt", to: "new/moved.txt")
            let before = try ["new", "new/file", "new/moved.txt"].map { try world.node($0).inode }
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until {
                cloud.tree["new/file"] == "new" && cloud.tree["new/moved.txt"] != nil
            }
            _ = await push.value
            cloud.release(.feed)
            try await world.settle()
            let after = try ["new", "new/file", "new/moved.txt"].map { try world.node($0).inode }
            #expect(after == before)
        }
    }

    @Test("what somebody moved out of a folder before he removed it, between the pages, stays")
    func movedOutMeanwhile() async throws {
        let cloud = MemoryCloud()
        cloud.put("old", nil)
        cloud.put("old/keep", "keep")
        try await World.run(cloud) { world in
            try await world.agree()
            let inode = try world.node("old/keep").inode
            // The file is the newer one, and named with the first page.
            cloud.loseCursors()
            cloud.holdEnumeration(afterPages: 1)
            try await until { cloud.isWaiting(.feed) }
            cloud.move("old/keep", to: "keep")
            cloud.remove("old")
            cloud.release(.feed)
            try await world.agree()
            #expect(try world.node("keep").inode == inode)
        }
    }

    @Test("an upload that was under way when an enumeration began is not taken for gone")
    func uploadAcrossBegin() async throws {
        let cloud = MemoryCloud()
        for number in 0..<4 { cloud.put("other \(number)", "other") }
        try await World.run(cloud) { world in
            try await world.agree()
            try world.write("new", "new")
            let inode = try world.node("new").inode
            cloud.stall(MemoryCloud.Stall(call: 0, isDone: false))
            let engine = world.engine
            let push = Task { await engine.sync(timeout: .seconds(600)) }
            try await until { cloud.isStalled }
            cloud.holdEnumeration(afterPages: 1)
            cloud.loseCursors()
            try await until { cloud.isWaiting(.feed) }
            cloud.stall(nil)
            _ = await push.value
            cloud.release(.feed)
            try await world.settle()
            #expect(try world.node("new").inode == inode)
        }
    }
}
