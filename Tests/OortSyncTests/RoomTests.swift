import OortModel
import Testing

@testable import OortSync

/// How often the service is asked for the account's room.
@Suite("asking for the account's room", .timeLimit(.minutes(15)))
struct RoomTests {
    @Test("while nothing changes the room is not asked for, and once after news")
    func idle() async throws {
        let cloud = MemoryCloud()
        cloud.put("f", "theirs")
        try await World.run(cloud) { world in
            try await world.agree()
            // Each read of the feed shows whether there was something to ask for.
            try await waits(cloud, reads: 2)
            let before = cloud.quotaCalls
            try await waits(cloud, reads: 5)
            #expect(cloud.quotaCalls == before)
            try world.write("g", "mine")
            try await world.settle()
            try await until { cloud.quotaCalls > before }
        }
    }

    @Test("a look at the room asks the service only when what is known is old")
    func shown() async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            try await waits(cloud, reads: 2)
            let before = cloud.quotaCalls
            for _ in 0..<100 { world.engine.roomIsShown() }
            try await waits(cloud, reads: 5)
            #expect(cloud.quotaCalls == before)
        }
    }

    @Test("as long as something waits for room, each look at the feed asks for it")
    func refused() async throws {
        let cloud = MemoryCloud()
        try await World.run(cloud) { world in
            try await world.agree()
            cloud.refuse("upload", with: .quotaExceeded, times: 10_000)
            try world.write("f", "big")
            _ = try await world.pushUntilRefused()
            let before = cloud.quotaCalls
            try await until { cloud.quotaCalls > before + 3 }
            // What waited is deleted here: nothing waits any more.
            cloud.refuse("upload", with: .quotaExceeded, times: 0)
            try world.remove("f")
            try await world.settle()
            try await waits(cloud, reads: 3)
            let after = cloud.quotaCalls
            try await waits(cloud, reads: 5)
            #expect(cloud.quotaCalls == after)
        }
    }

    @Test("an answer is believed for an hour, for a minute when shown, and never after news")
    func ages() {
        let hour: Int64 = 3_600_000
        var watch = RoomWatch()
        #expect(watch.isDue(at: 0) && watch.isDueWhenShown(at: 0))
        watch.asks(at: 1000)
        #expect(!watch.isDue(at: 1000) && !watch.isDueWhenShown(at: 1000))
        #expect(!watch.isDueWhenShown(at: 60_999) && watch.isDueWhenShown(at: 61_000))
        #expect(!watch.isDue(at: 999 + hour) && watch.isDue(at: 1000 + hour))
        // A clock that was set back.
        #expect(watch.isDue(at: 999))
        watch.heardNews()
        #expect(watch.isDue(at: 1001))
        watch.asks(at: 1001)
        watch.failed()
        #expect(watch.isDue(at: 1002))
    }

    /// Waits until the service was asked for news so often.
    private func waits(_ cloud: MemoryCloud, reads: Int) async throws {
        let before = cloud.looksForNews
        try await until { cloud.looksForNews >= before + reads }
    }
}
