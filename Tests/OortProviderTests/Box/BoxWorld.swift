import OortBox
import OortModel
import OortSimulators
import OortTesting
import Testing

/// A Box account and a provider over it, with what only Box's tests need.
struct BoxWorld {
    let world: SimulatedWorld
    let box: BoxSimulator

    /// Runs a test in a world whose waits are slept through at once.
    static func with(
        _ content: WorldContent = .empty,
        habits: BoxSimulator.Habits = BoxSimulator.Habits(),
        clock: some Clock<Duration> = SleptTime(),
        simpleUpload: Int64 = 20_000_000,
        _ body: (BoxWorld) async throws -> Void
    ) async throws {
        let service = SimulatedKind("box", rules: .box) { content in
            let box = content == .sample ? BoxSimulator.sample() : BoxSimulator()
            box.habits = habits
            return box
        } provide: { client, simulator in
            BoxProvider(
                client: client,
                endpoints: .simulated(by: simulator),
                simpleUpload: simpleUpload,
                clock: clock
            )
        }
        try await service.withWorld(content) { world in
            let box = try #require(world.simulator.service as? BoxSimulator)
            try await body(BoxWorld(world: world, box: box))
        }
    }

    func calls(_ route: String) -> Int { world.simulator.counts[route]?.calls ?? 0 }

    /// An event of an item as the service has it, in the service's form, with some fields changed.
    func event(
        _ type: String,
        id: String,
        of item: ItemID,
        _ changes: [String: JSON] = [:]
    ) -> JSON {
        let number = String(item.rawValue.dropFirst())
        var source: [String: JSON] = [
            "type": item.rawValue.hasPrefix("d") ? "folder" : "file", "id": .string(number),
            "item_status": "active", "name": "told", "description": "",
            "parent": ["type": "folder", "id": "0"],
            "size": 3, "sha1": "a9993e364706816aba3e25717850c26c9cd0d89d",
            "file_version": ["type": "file_version", "id": "77"],
            "owned_by": ["type": "user", "id": "2000000000"],
        ]
        source.merge(changes) { $1 }
        return ["event_id": .string(id), "event_type": .string(type), "source": .object(source)]
    }
}
