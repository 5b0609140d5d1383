import OortSimulators
import OortTransport
import Testing

@Suite("weather and faults", .timeLimit(.minutes(15)))
struct WeatherTests {
    @Test("requests above the limit are told to wait, and until when", arguments: Endpoints.all)
    func rateLimit(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            var weather = Weather()
            weather.rateLimit = Weather.RateLimit(
                requests: 2,
                seconds: 3600,
                status: 429,
                retryAfterSeconds: 7
            )
            world.simulator.weather = weather
            var statuses: [Int] = []
            for _ in 0..<3 { statuses.append(try await world.whoAmI().head.status) }
            #expect(statuses == [200, 200, 429])
            #expect(try await world.whoAmI().head.header("Retry-After") == "7")
            world.simulator.weather = Weather()
            #expect(try await world.whoAmI().head.status == 200)
        }
    }

    @Test("latency and bandwidth take their time", arguments: Endpoints.all)
    func slowness(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            var weather = Weather()
            weather.latency = .milliseconds(200)
            world.simulator.weather = weather
            let elapsed = try await ContinuousClock().measure { _ = try await world.whoAmI() }
            #expect(elapsed >= .milliseconds(200))
        }
    }

    @Test("a fault hits its route, after those it lets pass, as often as it says")
    func rules() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            world.simulator.add(
                FaultRule(
                    .status(503, retryAfterSeconds: nil),
                    at: world.endpoints.route,
                    skipping: 1,
                    times: 2
                )
            )
            world.simulator.add(FaultRule(.status(500, retryAfterSeconds: nil), at: "elsewhere"))
            var statuses: [Int] = []
            for _ in 0..<5 { statuses.append(try await world.whoAmI().head.status) }
            #expect(statuses == [200, 503, 503, 200, 200])
            world.simulator.add(FaultRule(.html(status: 502), at: "users/*", times: nil))
            let page = try await world.whoAmI()
            #expect(page.head.status == 502)
            #expect(page.head.header("Content-Type")?.hasPrefix("text/html") == true)
            world.simulator.clearFaults()
            #expect(try await world.whoAmI().head.status == 200)
        }
    }

    @Test("a chance is taken by its seed: equal seeds, equal faults")
    func chances() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            var rows: [[Int]] = []
            for _ in 0..<2 {
                world.simulator.clearFaults()
                world.simulator.seedFaults(5)
                world.simulator.add(
                    FaultRule(
                        .status(500, retryAfterSeconds: nil),
                        at: "*",
                        times: nil,
                        probability: 0.5
                    )
                )
                var statuses: [Int] = []
                for _ in 0..<20 { statuses.append(try await world.whoAmI().head.status) }
                rows.append(statuses)
            }
            #expect(rows[0] == rows[1])
            #expect(Set(rows[0]) == [200, 500])
        }
    }

    @Test(
        "a cut connection is no answer, a short body is whole as a message",
        arguments: Endpoints.all
    )
    func cuts(_ endpoints: Endpoints) async throws {
        try await SimulatedWorld.with(endpoints) { (world) async throws in
            for fault in [
                Fault.noAnswer, .doneButNoAnswer, .cutDownload(afterBytes: 3),
                .stall(seconds: 0.05),
            ] {
                world.simulator.add(FaultRule(fault, at: "*"))
                await #expect(throws: TransportError.self) { _ = try await world.whoAmI() }
            }
            world.simulator.add(FaultRule(.truncatedAnswer(bytes: 3), at: "*"))
            #expect(try await world.whoAmI().body.count == 3)
            world.simulator.add(FaultRule(.expiredToken, at: "*"))
            #expect(try await world.whoAmI().head.status == 401)
            #expect(try await world.whoAmI().head.status == 200)
        }
    }

    @Test("work whose answer is lost is done, work that is refused is not")
    func lostAnswers() async throws {
        try await SimulatedWorld.with(Endpoints.all[0]) { (world) async throws in
            func create(_ name: String, _ fault: Fault) async throws {
                world.simulator.add(FaultRule(fault, at: "files/create_folder_v2"))
                _ = try? await world.send(
                    "POST",
                    "api.dropboxapi.com",
                    "/2/files/create_folder_v2",
                    json: ["path": .string("/" + name)],
                    token: world.tokens.access
                )
            }
            try await create("a", .doneButNoAnswer)
            try await create("b", .doneButStatus(500))
            try await create("c", .noAnswer)
            try await create("d", .status(500, retryAfterSeconds: nil))
            let names = world.simulator.account.withTree { tree in
                tree.children(of: tree.rootID).map(\.name).sorted()
            }
            #expect(names == ["a", "b"])
        }
    }
}
