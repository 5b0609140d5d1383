import OortCatalog
import OortModel
import OortSync
import Testing

@Suite("links in the folders of others", .timeLimit(.minutes(15)))
struct StrangersLinkTests {
    @Test("somebody else's link is a plain file; one that the person put in its place is a link")
    func replaced() async throws {
        let cloud = MemoryCloud()
        cloud.share("l.rclonelink", "/etc/passwd")
        try await World.run(cloud) { world in
            try await until { try world.catalog.node(atPath: ["work", "l.rclonelink"]) != nil }
            let theirs = try world.node("l.rclonelink")
            #expect(theirs.kind == .file && theirs.isStrangers)
            try world.remove("l.rclonelink")
            try world.makeLink("l", to: "mine")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(cloud.tree == ["l.rclonelink": "mine"])
            let mine = try world.node("l")
            #expect(mine.kind == .symlink && !mine.isStrangers)
        }
    }

    @Test("a link that was made here stays one, until somebody else writes another target")
    func kept() async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            try world.makeLink("l", to: "mine")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            cloud.disown("l.rclonelink")
            cloud.loseCursors()
            cloud.put("later", "text")
            try await until { try world.catalog.node(atPath: ["work", "later"]) != nil }
            let mine = try world.node("l")
            #expect(mine.kind == .symlink && mine.target == "mine" && !mine.isStrangers)
            cloud.put("l.rclonelink", "/etc/passwd")
            try await until { try world.catalog.node(atPath: ["work", "l.rclonelink"]) != nil }
            #expect(try world.node("l.rclonelink").kind == .file)
            #expect(try world.catalog.node(atPath: ["work", "l"]) == nil)
        }
    }
}
