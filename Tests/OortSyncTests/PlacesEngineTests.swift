import Foundation
import Logging
import OortModel
import OortPlaces
import OortSync
import OortTesting
import Testing

/// The whole of it on services without ids, feed and hashes: catalog, engine, map of places.
@Suite("an engine on a service of places", .timeLimit(.minutes(15)))
struct PlacesEngineTests {
    @Test(
        "what programs do arrives, once, whatever answers get lost and however often we die",
        arguments: MemoryPlaces.Kind.allCases
    )
    func histories(kind: MemoryPlaces.Kind) async throws {
        let environment = ProcessInfo.processInfo.environment["OORT_SEED"]
        let first = environment.flatMap { UInt64($0) } ?? .random(in: 0..<1 << 40)
        for seed in first..<first + (environment == nil ? 4 : 1) {
            try await history(kind, seed: seed)
        }
    }

    private func history(_ kind: MemoryPlaces.Kind, seed: UInt64) async throws {
        let client = kind.client
        let path = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        var map = try PlaceMap(path: path)
        defer {
            map.close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
        }
        func provider() -> PlaceProvider {
            PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        var settings = SyncSettings()
        settings.settle = .milliseconds(10)
        settings.longestBackoff = .milliseconds(20)
        settings.longestOfflineWait = .milliseconds(20)
        settings.refusalInterval = .milliseconds(50)
        let world = try World(provider: provider(), settings: settings)
        world.start()
        var numbers = SeededNumbers(seed: seed)
        var wanted: [String: String] = [:]
        // Everything is known before the first answer gets lost.
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        client.fail(oneIn: 6, seed: seed)
        for step in 0..<40 {
            try Self.act(&numbers, step, in: world, &wanted)
            for _ in 0..<Int.random(in: 0...200, using: &numbers) { await Task.yield() }
            guard Int.random(in: 0..<6, using: &numbers) == 0 else { continue }
            // What is under way at the service ends there, without an answer.
            await world.stop()
            map.close()
            map = try PlaceMap(path: path)
            await world.restart(with: provider())
        }
        client.fail(oneIn: 0, seed: seed)
        let outcome = await world.engine.sync(timeout: .seconds(300))
        #expect(outcome.isComplete, "\(kind) OORT_SEED=\(seed): \(outcome)")
        let there = Dictionary(
            uniqueKeysWithValues: client.contents.map { (String($0.key.dropFirst()), $0.value) }
        )
        #expect(there == wanted, "\(kind) OORT_SEED=\(seed)")
        #expect(try await world.tree() == wanted, "\(kind) OORT_SEED=\(seed)")
        #expect(await world.engine.status().conflicts.isEmpty, "\(kind) OORT_SEED=\(seed)")
        await world.end()
    }

    /// Runs a test with an engine on an empty account of a kind.
    private static func run(
        on kind: MemoryPlaces.Kind,
        _ body: (World, MemoryPlaces) async throws -> Void
    ) async throws {
        let client = kind.client
        let path = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        let map = try PlaceMap(path: path)
        defer {
            map.close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
        }
        var settings = SyncSettings()
        settings.settle = .milliseconds(10)
        settings.longestOfflineWait = .milliseconds(20)
        let world = try World(
            provider: PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            ),
            settings: settings
        )
        world.start()
        try await body(world, client)
        await world.end()
    }

    @Test(
        "a copy whose time could not be set is no second file, removed meanwhile or not",
        arguments: MemoryPlaces.Kind.allCases,
        [false, true]
    )
    func copiedWithoutTime(kind: MemoryPlaces.Kind, isRemoved: Bool) async throws {
        try await Self.run(on: kind) { world, client in
            try world.write("a", "ours")
            try world.setModified("a", Timestamp(seconds: 1_000_000_000))
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            client.failNext("setModifiedTime")
            if isRemoved { client.holdUp("setModifiedTime") }
            try world.copy("a", to: "b")
            if isRemoved {
                while client.waitingCalls == 0 { await Task.yield() }
                try world.remove("b")
                client.letGo()
            }
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(client.contents == (isRemoved ? ["/a": "ours"] : ["/a": "ours", "/b": "ours"]))
            #expect(try await world.tree().keys.sorted() == (isRemoved ? ["a"] : ["a", "b"]))
            #expect(client.calls["copy"] == 1)
        }
    }

    @Test(
        "a copy of a file that somebody rewrites meanwhile has our bytes in the end",
        arguments: MemoryPlaces.Kind.allCases
    )
    func copiedWhileRewritten(kind: MemoryPlaces.Kind) async throws {
        try await Self.run(on: kind) { world, client in
            try world.write("a", "ours")
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            client.holdUp("copy")
            try world.copy("a", to: "b")
            // A copy, or what the engine did in its place.
            while client.waitingCalls == 0, client.contents["/b"] == nil { await Task.yield() }
            client.write("/a", "them")
            client.letGo()
            #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
            #expect(client.contents == ["/a": "them", "/b": "ours"])
            #expect(await world.engine.status().conflicts.isEmpty)
        }
    }

    @Test(
        "other bytes of the size and time that were sent are not ours where no answer came",
        arguments: MemoryPlaces.Kind.allCases,
        [(false, false), (false, true), (true, false), (true, true)]
    )
    func damagedAndUnanswered(
        kind: MemoryPlaces.Kind,
        how: (isReplacement: Bool, dies: Bool)
    ) async throws {
        let (isReplacement, dies) = how
        let client = kind.client
        let path = NSTemporaryDirectory() + "oort-places-\(UUID().uuidString).sqlite"
        var map = try PlaceMap(path: path)
        defer {
            map.close()
            for ending in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: path + ending)
            }
        }
        func provider() -> PlaceProvider {
            PlaceProvider(
                client: client,
                map: map,
                logger: Logger(label: "places") { _ in SwiftLogNoOpLogHandler() }
            )
        }
        var settings = SyncSettings()
        settings.settle = .milliseconds(10)
        let world = try World(provider: provider(), settings: settings)
        world.start()
        if isReplacement { try world.write("a", "before") }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        client.forgetCalls()
        client.damageUploads(1)
        try world.write("a", "what is sent")
        if dies {
            while client.calls["upload"] == nil { await Task.yield() }
            await world.stop()
            map.close()
            map = try PlaceMap(path: path)
            await world.restart(with: provider())
        }
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        // Such a file is as another person's: both are there, and nothing goes out for ever.
        #expect(client.contents.values.count { $0 == "what is sent" } == 1)
        #expect(client.contents.count == 2)
        #expect(try await world.tree() == Self.tree(client))
        let uploads = client.calls["upload"]
        #expect(await world.engine.sync(timeout: .seconds(600)).isComplete)
        #expect(client.calls["upload"] == uploads)
        await world.end()
    }

    /// What is at the service, as `World.tree` names it.
    private static func tree(_ client: MemoryPlaces) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: client.contents.map { (String($0.key.dropFirst()), $0.value) }
        )
    }

    /// A program does something, and `wanted` is what there is to be then.
    private static func act(
        _ numbers: inout SeededNumbers,
        _ step: Int,
        in world: World,
        _ wanted: inout [String: String]
    ) throws {
        let folders = [""] + wanted.keys.filter { $0.hasSuffix("/") }.sorted()
        let place = folders[Int.random(in: 0..<folders.count, using: &numbers)]
        let name = place + ["a", "b", "c"][Int.random(in: 0..<3, using: &numbers)]
        let all = wanted.keys.sorted()
        let draw = Int.random(in: 0..<8, using: &numbers)
        guard let old = all.randomElement(using: &numbers), draw > 3 else {
            guard wanted[name] == nil, wanted[name + "/"] == nil else {
                guard wanted[name] != nil else { return }
                // Of one size, so that only times and revisions differ.
                try world.write(name, "text \(step % 10)")
                wanted[name] = "text \(step % 10)"
                return
            }
            if draw == 0 {
                try world.makeFolder(name)
                wanted[name + "/"] = ""
            } else {
                try world.write(name, "text \(step % 10)")
                wanted[name] = "text \(step % 10)"
            }
            return
        }
        let isFolder = old.hasSuffix("/")
        let bare = isFolder ? String(old.dropLast()) : old
        let below = wanted.filter { $0.key == old || isFolder && $0.key.hasPrefix(old) }
        if draw == 4 {
            try world.remove(bare)
            for key in below.keys { wanted[key] = nil }
        } else if wanted[name] == nil, wanted[name + "/"] == nil, !(name + "/").hasPrefix(old) {
            try world.rename(bare, to: name)
            for key in below.keys { wanted[key] = nil }
            for (key, text) in below { wanted[name + key.dropFirst(bare.count)] = text }
        }
    }
}
