import OortSimulators
import OortTransport
import Testing

@Suite("the simulators' control", .timeLimit(.minutes(15)))
struct ControlTests {
    @Test(
        "edits by somebody else show in the tree, and their bytes are read",
        arguments: Endpoints.all
    )
    func edits(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            for edit: JSON in [
                ["op": "write", "path": "/a/b.txt", "text": "text"],
                ["op": "move", "path": "/a/b.txt", "to": "/c/d.txt"],
                ["op": "write", "path": "/gone", "text": ""], ["op": "trash", "path": "/gone"],
            ] {
                #expect(try await world.control("POST", "edit", edit).head.status == 200)
            }
            let tree = JSON(parsing: try await world.control("GET", "tree").body)?.elements ?? []
            #expect(tree.compactMap { $0["path"]?.text }.sorted() == ["/a", "/c", "/c/d.txt"])
            let content = try await world.control("GET", "content?path=/c/d.txt")
            #expect(content.body == Array("text".utf8))

            let unfit: JSON = ["op": "move", "path": "/nowhere", "to": "/x"]
            #expect(try await world.control("POST", "edit", unfit).head.status == 409)
            #expect(try await world.control("POST", "edit", ["op": "x"]).head.status == 400)
            #expect(try await world.control("GET", "nothing").head.status == 404)
        }
    }

    @Test("calls are counted, without those of the control", arguments: Endpoints.all)
    func counting(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            for _ in 0..<3 { _ = try await world.whoAmI() }
            let counts = JSON(parsing: try await world.control("GET", "counts").body)
            #expect(counts?.fields?.keys.sorted() == [endpoints.route])
            #expect(counts?[endpoints.route]?["calls"]?.integer == 3)
            let calls = JSON(parsing: try await world.control("GET", "calls").body)?.elements
            #expect(calls?.map { $0["number"]?.integer } == [1, 2, 3])
            _ = try await world.control("DELETE", "calls")
            #expect(world.simulator.calls.isEmpty)
        }
    }

    @Test("every content is told, whether current, replaced or trashed", arguments: Endpoints.all)
    func contents(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            for edit: JSON in [
                ["op": "write", "path": "/a/b.txt", "text": "one"],
                ["op": "write", "path": "/a/b.txt", "text": "two"],
                ["op": "write", "path": "/gone", "text": "three"],
                ["op": "trash", "path": "/gone"],
            ] {
                #expect(try await world.control("POST", "edit", edit).head.status == 200)
            }
            let items =
                JSON(parsing: try await world.control("GET", "contents").body)?.elements ?? []
            let kept = Dictionary(
                uniqueKeysWithValues: items.map { ($0["path"]?.text ?? "", $0) }
            )
            #expect(kept.keys.sorted() == ["/a/b.txt", "/gone"])
            let hashes = ["one", "two"].map { JSON.string(SimulatedContent($0).sha256) }
            #expect(kept["/a/b.txt"]?["hashes"] == .array(hashes))
            #expect(kept["/a/b.txt"]?["trashed"] == .bool(false))
            #expect(kept["/gone"]?["trashed"] == .bool(true))
        }
    }

    @Test("faults are counted by kind, and a seed repeats those of chance")
    func faultCounts() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            func statuses() async throws -> [Int] {
                let seed: JSON = ["seed": 11]
                #expect(try await world.control("PUT", "faults/seed", seed).head.status == 200)
                var statuses: [Int] = []
                for _ in 0..<12 { statuses.append(try await world.whoAmI().head.status) }
                return statuses
            }
            let fault: JSON = [
                "route": "*", "fault": "status", "status": 503, "times": nil,
                "probability": .number(0.5),
            ]
            _ = try await world.control("POST", "faults", fault)
            let first = try await statuses()
            #expect(try await statuses() == first)
            let failed = first.count { $0 == 503 }
            #expect((1..<12).contains(failed))
            let counts = JSON(parsing: try await world.control("GET", "faults").body)
            #expect(counts?["status 503"]?.integer == Int64(2 * failed))
        }
    }

    @Test("faults and weather are set from outside, and what is not one is refused")
    func trouble() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            let fault: JSON = ["route": "*", "fault": "status", "status": 503]
            #expect(try await world.control("POST", "faults", fault).head.status == 200)
            #expect(try await world.whoAmI().head.status == 503)
            let limit: JSON = ["rate_limit": ["requests": 0]]
            #expect(try await world.control("PUT", "weather", limit).head.status == 200)
            #expect(try await world.whoAmI().head.status == 429)
            #expect(try await world.control("PUT", "weather", "fair").head.status == 400)
            let strange: JSON = ["route": "*", "fault": "strange"]
            #expect(try await world.control("POST", "faults", strange).head.status == 400)
        }
    }
}
