import OortCatalog
import OortSync
import Testing

@Suite("a catalog that cannot be read", .timeLimit(.minutes(15)))
struct FailingCatalogTests {
    @Test("an account of which nothing can be read is not up to date")
    func status() async throws {
        let world = try World()
        world.start()
        try world.write("f", "text")
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        await world.stop()
        #expect(await world.engine.status().trouble == nil)
        try world.catalog.close()
        guard case .unreadable = await world.engine.status().trouble else {
            Issue.record("a catalog that is closed reads as one of which all is known")
            return
        }
        let outcome = await world.engine.sync(timeout: .milliseconds(50))
        #expect(!outcome.isComplete)
        guard case .unreadable = outcome.trouble else {
            Issue.record("\(outcome)")
            return
        }
        #expect(outcome.missing.isEmpty)
    }
}
