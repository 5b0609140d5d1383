import Foundation
import OortModel
import OortSimulators
import OortTesting
import Synchronization
import Testing

@testable import OortBox

/// Upload sessions, which make at Box what they were opened for, and nothing else.
@Suite("Box: upload sessions", .timeLimit(.minutes(5)))
struct BoxSessionTests {
    /// Keeps the session as the engine would over tries.
    private final class Kept: UploadObserver {
        let session = Mutex<UploadSession?>(nil)

        func sessionChanged(_ session: UploadSession?) async {
            self.session.withLock { $0 = session }
        }

        func sent(_ bytes: Int64) {}
    }

    private static let bytes = SimulatedContent(seed: 4, size: 450_000).bytes
    private static let commit = "files/upload_sessions/commit/post"

    private func with(_ body: (BoxWorld, Kept) async throws -> Void) async throws {
        var habits = BoxSimulator.Habits()
        habits.smallestSession = 1
        habits.partSize = 100_000
        try await BoxWorld.with(habits: habits, simpleUpload: 1) { try await body($0, Kept()) }
    }

    /// Sends with the session that is kept.
    private func send(_ box: BoxWorld, _ kept: Kept, to target: UploadTarget) async throws -> Item {
        var upload = box.world.entry(Self.bytes, to: target)
        upload.session = kept.session.withLock { $0 }
        return try await box.world.provider.upload(upload, observer: kept)
    }

    private func create(_ name: String, _ box: BoxWorld) -> UploadTarget {
        .create(parent: box.world.root, name: name, reservedID: nil)
    }

    @Test("a session is not used for another name, folder or file than it was opened for")
    func otherPurpose() async throws {
        try await with { box, kept in
            let world = box.world
            let folder = try await world.folder("folder")
            world.simulator.add(
                FaultRule(.status(500, retryAfterSeconds: nil), at: Self.commit)
            )
            _ = await world.failure { _ = try await send(box, kept, to: create("old.bin", box)) }
            let session = try #require(kept.session.withLock { $0 })
            for target in [
                create("new.bin", box),
                .create(parent: folder, name: "old.bin", reservedID: nil),
            ] {
                kept.session.withLock { $0 = session }
                let kind = await world.failure { _ = try await send(box, kept, to: target) }
                #expect(kind == .sessionLost)
                #expect(kept.session.withLock { $0 } == nil)
                #expect(try await world.names() == ["folder"])
            }
            let item = try await send(box, kept, to: create("new.bin", box))
            #expect(item.fileName == "new.bin")
            #expect(try await world.names() == ["folder", "new.bin"])
        }
    }

    @Test("a session whose commit is refused for good is given up, one that lacks room is kept")
    func refusedCommits() async throws {
        try await with { box, kept in
            let world = box.world
            let target = create("a.bin", box)
            world.simulator.add(
                FaultRule(.status(507, retryAfterSeconds: nil), at: Self.commit)
            )
            #expect(
                await world.failure { _ = try await send(box, kept, to: target) } == .quotaExceeded
            )
            #expect(kept.session.withLock { $0 } != nil)
            let other = SimulatedContent(Array("other".utf8))
            world.somebodyElse(.write(path: ["a.bin"], other, modifiedTime: nil))
            #expect(
                await world.failure { _ = try await send(box, kept, to: target) } == .nameTaken
            )
            #expect(kept.session.withLock { $0 } == nil)
            #expect(box.calls("files/upload_sessions/post") == 1)
            _ = try await send(box, kept, to: create("a (2).bin", box))
            #expect(try await world.names() == ["a (2).bin", "a.bin"])
        }
    }

    @Test("what arrived is not sent again when a commit is to be repeated")
    func repeatedCommit() async throws {
        try await with { box, kept in
            let world = box.world
            world.simulator.add(
                FaultRule(.status(503, retryAfterSeconds: 1), at: Self.commit)
            )
            let item = try await send(box, kept, to: create("a.bin", box))
            #expect(item.size == Int64(Self.bytes.count))
            #expect(box.calls("files/upload_sessions/post") == 1)
            #expect(box.calls("files/upload_sessions/put") == 5)
            #expect(kept.session.withLock { $0 } == nil)
        }
    }

    @Test("a session whose parts Box never knows is given up, and the next one works")
    func lastingMismatch() async throws {
        try await with { box, kept in
            let target = create("a.bin", box)
            box.box.habits.partsMismatches = 1000
            #expect(
                await box.world.failure { _ = try await send(box, kept, to: target) }
                    == .sessionLost
            )
            #expect(kept.session.withLock { $0 } == nil)
            box.box.habits.partsMismatches = 3
            let item = try await send(box, kept, to: target)
            #expect(item.size == Int64(Self.bytes.count))
            #expect(box.calls("files/upload_sessions/post") == 2)
        }
    }

    @Test("what arrived is not sent again when the file was renamed meanwhile")
    func renamedMeanwhile() async throws {
        try await with { box, kept in
            let world = box.world
            let small = SimulatedContent(seed: 5, size: 150_000).bytes
            let item = try await world.upload(small, to: create("a.bin", box))
            let (opened, sent) = (
                box.calls("files/upload_sessions/post"), box.calls("files/upload_sessions/put")
            )
            // The tag is another one at the commit.
            world.simulator.add(
                FaultRule(.status(412, retryAfterSeconds: nil), at: Self.commit)
            )
            let saved = try await send(
                box,
                kept,
                to: .replace(world.reference(item), revision: item.rev)
            )
            #expect(saved.id == item.id && saved.size == Int64(Self.bytes.count))
            #expect(box.calls("files/upload_sessions/post") == opened + 1)
            #expect(box.calls("files/upload_sessions/put") == sent + 5)
        }
    }

    @Test("a session of endlessly many parts is none")
    func tinyParts() async throws {
        var habits = BoxSimulator.Habits()
        habits.smallestSession = 1
        habits.partSize = 1
        try await BoxWorld.with(habits: habits, simpleUpload: 1) { box in
            let kind = await box.world.failure {
                _ = try await box.world.upload(
                    [UInt8](repeating: 1, count: 100_000),
                    to: create("a.bin", box)
                )
            }
            #expect(kind == .malformedAnswer)
            #expect(box.calls("files/upload_sessions/put") == 0)
        }
    }

    // MARK: Names and descriptions

    @Test("a name that changes in case alone goes by a detour that the planner knows of")
    func caseOnly() async throws {
        try await BoxWorld.with { box in
            #expect(box.world.provider.traits.caseRenameNeedsDetour)
        }
    }

    @Test("a description that Box would cut is refused")
    func longDescription() async throws {
        try await BoxWorld.with { box in
            let world = box.world
            let item = try await world.upload("x", as: "x.txt")
            func describe(_ text: String) async -> ProviderError.Kind? {
                await world.failure {
                    let changed = try await world.provider.setAttributes(
                        of: world.reference(item),
                        to: AttributeChange(description: text)
                    )
                    #expect(changed.description == text)
                }
            }
            #expect(await describe(String(repeating: "d", count: 255)) == nil)
            let calls = box.calls("files/put")
            #expect(await describe(String(repeating: "d", count: 256)) == .unsupported)
            #expect(box.calls("files/put") == calls)
        }
    }
}
