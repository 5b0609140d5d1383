import OortModel
import OortOneDrive
import OortSimulators
import Testing

/// An answer to what follows an accepted copy.
struct AnswerAfterCopy: Sendable, CustomTestStringConvertible {
    let route: String
    let status: Int
    var retryAfterSeconds: Int?

    var testDescription: String { "\(route) \(status)" }

    static let all =
        [401, 403, 404, 410].map { Self(route: "copy/monitor", status: $0) }
        + [Self(route: "copy/monitor", status: 429, retryAfterSeconds: 100)]
        + [403, 404, 409, 507].map { Self(route: "item/patch", status: $0) }
        + [Self(route: "item/patch", status: 429, retryAfterSeconds: 100)]
        + [403, 404].map { Self(route: "item/get", status: $0) }
}

extension OneDriveProviderTests {
    @Test(
        "a copy whose end is not told is not somebody's file of that name",
        arguments: [401, 403, 404, 410, nil]
    )
    func copyOfUntoldEnd(_ status: Int?) async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let item = try await world.create("a.txt", "one")
            let theirs = try await world.create("b.txt", "two", time: time)
            if let status {
                world.simulator.add(
                    FaultRule(
                        .status(status, retryAfterSeconds: nil),
                        at: "copy/monitor",
                        times: nil
                    )
                )
            } else {
                world.service.habits.copyEnd = ["status": "completed"]
            }
            let refusal = await kind {
                _ = try await world.provider.copy(
                    Copy(
                        item: world.reference(item),
                        parent: root,
                        name: "b.txt",
                        modifiedTime: Timestamp(seconds: 1_600_000_000)
                    )
                )
            }
            #expect(refusal == .outcomeUnknown(retryAfter: nil))
            let now = try await world.provider.item(world.reference(theirs))
            #expect(now.clientModifiedTime == time && now.rev == theirs.rev)
        }
    }

    @Test(
        "no refusal of what follows an accepted copy says that there is none",
        arguments: AnswerAfterCopy.all
    )
    func refusalAfterCopy(_ answer: AnswerAfterCopy) async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let item = try await world.create("a.txt", "one")
            world.simulator.add(
                FaultRule(
                    .status(answer.status, retryAfterSeconds: answer.retryAfterSeconds),
                    at: answer.route,
                    times: nil
                )
            )
            let refusal = await kind {
                _ = try await world.provider.copy(
                    Copy(
                        item: world.reference(item),
                        parent: root,
                        name: "b.txt",
                        modifiedTime: answer.route == "item/get" ? nil : time
                    )
                )
            }
            let wait = answer.retryAfterSeconds.map { Duration.seconds($0) }
            #expect(refusal == .outcomeUnknown(retryAfter: wait))
            let copies = world.service.account.withTree { tree in
                tree.items(named: "b.txt", in: tree.rootID).count
            }
            #expect(copies == 1)
        }
    }

    @Test("a copy that failed for a reason that nobody knows will not be made")
    func failedCopy() async throws {
        let ends: [JSON] = [
            ["status": "failed", "error": ["code": "generalException"]],
            ["status": "failed", "errorCode": "unheardOf"],
            ["status": "cancelled"],
        ]
        for end in ends {
            try await OneDriveWorld.with { world in
                let root = try await world.root
                let item = try await world.create("a.txt", "one")
                world.service.habits.copyEnd = end
                let refusal = await kind {
                    _ = try await world.provider.copy(
                        Copy(item: world.reference(item), parent: root, name: "b.txt")
                    )
                }
                #expect(refusal == .unsupported)
            }
        }
    }
}
