import OortSync
import Testing

@Suite("a feed that stands still", .timeLimit(.minutes(15)))
struct StandstillTests {
    @Test("it is asked again now and then, files go up meanwhile, and it is read on when it moves")
    func standstill() async throws {
        try await World.run { world in
            try await until { world.cloud.pages > 0 }
            world.cloud.standStill(true)
            world.cloud.put("theirs", "text")
            let asked = world.cloud.pages
            try await until { world.cloud.pages > asked }
            for number in 0..<5 {
                try world.write("f", "text \(number)")
                #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            }
            // Twice a try, of which each `sync` may begin one.
            #expect(world.cloud.pages - asked <= 40)
            world.cloud.standStill(false)
            try await world.agree()
        }
    }
}
