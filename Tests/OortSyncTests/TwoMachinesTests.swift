import OortCatalog
import OortModel
import OortSync
import OortTesting
import Testing

@Suite("two machines on one account", .timeLimit(.minutes(15)))
struct TwoMachinesTests {
    /// Both push and hear of each other until there is nothing more to hear.
    private func settle(_ one: World, _ other: World) async throws {
        for world in [one, other] {
            let outcome = await world.engine.sync(timeout: .seconds(600))
            #expect(outcome.isComplete, "\(outcome)")
        }
        try await one.agree()
        try await other.agree()
    }

    @Test("a fresh machine sees the whole tree as soon as the account is enumerated")
    func fresh() async throws {
        let cloud = MemoryCloud()
        let first = try World(cloud)
        first.start()
        for folder in ["tree", "tree/a", "tree/a/b", "tree/c"] { try first.makeFolder(folder) }
        for number in 0..<40 { try first.write("tree/a/b/\(number)", "\(number)") }
        try await first.settle()
        let second = try World(cloud)
        second.start()
        try await until {
            try second.catalog.account(second.account.id)?.isEnumerated == true
        }
        #expect(try await second.tree() == cloud.tree)
        await first.end()
        await second.end()
    }

    @Test("edits of both at once are all kept, round after round")
    func edits() async throws {
        let seed = UInt64.random(in: 0..<1 << 40)
        var numbers = SeededNumbers(seed: seed)
        let cloud = MemoryCloud()
        let (one, other) = (try World(cloud), try World(cloud))
        one.start()
        other.start()
        let names = ["a.txt", "b.txt", "c.txt"]
        for name in names { try one.write(name, "first") }
        try await settle(one, other)
        var copies: Set<String> = []
        for round in 0..<12 {
            let texts = ["one \(round)", "other \(round)"]
            let hears = numbers.next() % 2 == 0
            if !hears { await other.stop() }
            for (world, text) in zip([one, other], texts) {
                try world.write(names[Int(numbers.next() % 3)], text)
                if hears || world === one, numbers.next() % 2 == 0 {
                    _ = await world.engine.sync(timeout: .milliseconds(Int(numbers.next() % 20)))
                }
            }
            if !hears { await other.restart() }
            try await settle(one, other)
            let tree = cloud.tree
            // One that hears of the other may have replaced what it saw.
            for text in hears ? [texts[1]] : texts {
                #expect(tree.values.contains(text), "seed \(seed), round \(round): \(tree)")
            }
            let now = Set(tree.keys.filter { $0.contains("(conflicted copy ") })
            #expect(now.isSuperset(of: copies), "seed \(seed), round \(round)")
            copies = now
        }
        await one.end()
        await other.end()
    }

    @Test("one file edited on both before either hears of the other: both texts, one copy")
    func conflict() async throws {
        let cloud = MemoryCloud()
        let (one, other) = (try World(cloud), try World(cloud))
        one.start()
        other.start()
        try one.write("f.txt", "first")
        try await settle(one, other)
        await other.stop()
        try one.write("f.txt", "one")
        try await one.settle()
        try other.write("f.txt", "other")
        await other.restart()
        try await settle(one, other)
        #expect(cloud.tree["f.txt"] == "one")
        let copies = cloud.tree.filter { $0.key.hasPrefix("f (conflicted copy ") }
        #expect(Array(copies.values) == ["other"])
        #expect(cloud.tree.count == 2)
        #expect(await other.engine.status().conflicts.count == 1)
        #expect(await one.engine.status().conflicts.isEmpty)
        await one.end()
        await other.end()
    }
}
