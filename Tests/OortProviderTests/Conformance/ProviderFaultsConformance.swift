import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises when calls fail.
@Suite("provider conformance: faults", .timeLimit(.minutes(15)))
struct ProviderFaultsConformance {
    @Test(
        "trouble that says it is passing is waited out",
        arguments: kinds(that: .faults),
        [Fault.status(429, retryAfterSeconds: 0), .status(503, retryAfterSeconds: 0)]
    )
    func patience(_ kind: ConformingKind, _ fault: Fault) async throws {
        try await kind.withWorld { world in
            let first = try await world.upload("first", as: "a.txt")
            try world.add(fault)
            _ = try await world.provider.item(world.reference(first))
            try world.add(fault)
            let folder = try await world.folder("folder")
            try world.add(fault)
            let second = try await world.upload("second", as: "b.txt", in: folder)
            try world.add(fault)
            #expect(
                try await world.read(world.reference(second, in: folder), revision: second.rev)
                    == Array("second".utf8)
            )
            try world.add(fault)
            try await world.provider.delete(Deletion(item: world.reference(first)))
            #expect(try await world.names() == ["folder"])
        }
    }

    @Test(
        "a fresh token that is refused in passing signs nobody out",
        arguments: kinds(that: .suffers(.expiredAccess))
    )
    func refusedTokens(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let cursor = try await world.provider.changes(since: nil).cursor
            try world.add(.expiredToken, times: 3)
            _ = try await world.provider.quota()
            try world.clearFaults()
            try world.add(.expiredToken)
            do throws(ProviderError) {
                // Asks by itself, without a token, where there is a long poll.
                _ = try await world.provider.waitForChanges(
                    since: cursor,
                    atMost: .milliseconds(300)
                )
            } catch {
                #expect(error.isTransient && error.kind != .signedOut, "\(error)")
            }
        }
    }

    @Test(
        "a write whose answer is lost is there once, whatever is said",
        arguments: kinds(that: .faults),
        [
            Fault.doneButNoAnswer, .doneButStatus(500), .truncatedAnswer(bytes: 10),
            .html(status: 200), .cutDownload(afterBytes: 5), .noAnswer,
        ]
    )
    func lostAnswers(_ kind: ConformingKind, _ fault: Fault) async throws {
        try await kind.withWorld { world in
            func attempt(_ body: () async throws -> Void) async throws {
                try world.add(fault)
                do {
                    try await body()
                } catch let error as ProviderError {
                    #expect(error.isTransient, "\(error)")
                } catch {
                    Issue.record("another error: \(error)")
                }
                try world.clearFaults()
            }
            try await attempt {
                _ = try await world.provider.createFolder(
                    NewFolder(parent: world.root, name: "folder")
                )
            }
            #expect(try await world.names().count <= 1)
            try await attempt { _ = try await world.upload("text", as: "a.txt") }
            let files = try await world.names().filter { $0 != "folder" }
            #expect(files.isEmpty || files == ["a.txt"])
            let item = try await world.upload("text", as: "b.txt")
            try await attempt {
                _ = try await world.upload(
                    Array("next".utf8),
                    to: .replace(world.reference(item), revision: item.rev)
                )
            }
            #expect(try await world.provider.items(named: "b.txt", in: world.root).count == 1)
        }
    }

    @Test("a body that breaks off is an error, not a short file", arguments: kinds(that: .faults))
    func brokenDownload(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let bytes = SimulatedContent(seed: 5, size: 3 << 20).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "a", reservedID: nil)
            )
            try world.add(.cutDownload(afterBytes: 1 << 20), times: nil)
            let kind = await world.failure {
                _ = try await world.read(world.reference(item), revision: item.rev)
            }
            #expect(kind.map { ProviderError($0, detail: "").isTransient } == true)
        }
    }
}
