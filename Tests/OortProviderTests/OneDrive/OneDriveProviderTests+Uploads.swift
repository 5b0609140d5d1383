import Foundation
import OortModel
import OortSimulators
import OortTesting
import Synchronization
import Testing

@testable import OortOneDrive

/// Uploads: simple ones, sessions that are interrupted, lost or begun anew, a full drive.
extension OneDriveProviderTests {
    @Test("a file has its time and one version after its upload", arguments: [0, 5, 1_000_000])
    func upload(size: Int) async throws {
        try await OneDriveWorld.with { world in
            let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 * 7) }
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "#1 100%+'é'.bin", reservedID: nil),
                time: time
            )
            #expect(item.size == Int64(size) && item.clientModifiedTime == time)
            #expect(item.fileName == "#1 100%+'é'.bin")
            let kept = world.service.account.withTree { $0.item(at: ["#1 100%+'é'.bin"]) }
            #expect(kept?.head?.content.bytes == bytes)
            if size > 0 { #expect(kept?.revisions.count == 1) }
            #expect(world.service.openUploadSessions == 0)
            #expect(
                await kind {
                    _ = try await world.upload(
                        bytes,
                        to: .create(parent: world.root, name: "#1 100%+'É'.bin", reservedID: nil)
                    )
                } == .nameTaken
            )
            #expect(world.service.openUploadSessions == 0)
        }
    }

    @Test(
        "replacing gives a new revision of the same item, and refuses a stale one",
        arguments: [0, 3]
    )
    func replace(falsePreconditions: Int) async throws {
        try await OneDriveWorld.with { world in
            let item = try await world.create("a.txt", "one")
            world.service.habits.falsePreconditions = falsePreconditions
            let new = try await world.upload(
                Array("two".utf8),
                to: .replace(world.reference(item), revision: item.rev),
                time: time
            )
            #expect(new.id == item.id && new.rev != item.rev && new.clientModifiedTime == time)
            world.service.habits.falsePreconditions = 0
            for bytes in [[UInt8]("three".utf8), []] {
                let stale = await kind {
                    _ = try await world.upload(
                        bytes,
                        to: .replace(world.reference(item), revision: item.rev)
                    )
                }
                #expect(stale == .preconditionFailed)
            }
            #expect(try await world.text(new) == "two")
            let emptied = try await world.upload(
                [],
                to: .replace(world.reference(item), revision: new.rev)
            )
            #expect(emptied.id == item.id && emptied.size == 0)
            // Only its name changed meanwhile: no conflict.
            _ = SimulatorEdit.move(from: ["a.txt"], to: ["b.txt"]).apply(to: world.service)
            let after = try await world.upload(
                Array("four".utf8),
                to: .replace(world.reference(item), revision: emptied.rev)
            )
            #expect(after.fileName == "b.txt")
            world.service.account.withTree {
                $0.trash(item.id.rawValue.components(separatedBy: "/")[1])
            }
            let gone = await kind {
                _ = try await world.upload(
                    Array("five".utf8),
                    to: .replace(world.reference(item), revision: after.rev)
                )
            }
            #expect(gone == .notFound)
        }
    }

    @Test("an interrupted upload goes on where it stopped")
    func resume() async throws {
        try await OneDriveWorld.with { world in
            let bytes = (0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
            let observer = SessionRecorder()
            // The third part and everything after it fails.
            world.simulator.add(
                FaultRule(.noAnswer, at: "upload/*", skipping: 2, times: nil)
            )
            let target = UploadTarget.create(
                parent: try await world.root,
                name: "big",
                reservedID: nil
            )
            let first = Task {
                try await world.upload(bytes, to: target, time: time, observer: observer)
            }
            await observer.waitForSession(confirming: 2 * OneDriveProvider.partMultiple)
            first.cancel()
            _ = await first.result
            world.simulator.clearFaults()
            world.simulator.clearCalls()
            let session = try #require(observer.last)
            let item = try await world.upload(
                bytes,
                to: target,
                time: time,
                session: session,
                observer: observer
            )
            #expect(item.size == 1_500_000 && item.clientModifiedTime == time)
            #expect(
                world.simulator.counts["upload/put"]?.bytesIn
                    == 1_500_000 - 2 * OneDriveProvider.partMultiple
            )
            #expect(observer.last == nil)
        }
    }

    @Test("parts grow with what the service has, of which at most an eighth goes again")
    func growingParts() async throws {
        try await OneDriveWorld.with { world in
            let multiple = OneDriveProvider.partMultiple
            let bytes = SimulatedContent(seed: 2, size: 40 * multiple).bytes
            _ = try await world.upload(
                bytes,
                to: .create(parent: try await world.root, name: "big", reservedID: nil)
            )
            let parts = world.simulator.calls.filter { $0.route == "upload/put" }.map(\.bytesIn)
            #expect(parts.reduce(0, +) == 40 * multiple)
            var before: Int64 = 0
            for part in parts {
                #expect(part % multiple == 0 && part <= max(multiple, before / 8))
                before += part
            }
            // 16 of one multiple, 4 of two, 3 of three, one of four, and the rest.
            #expect(parts.count == 25)
        }
    }

    @Test(
        "whatever happens to a part, the file arrives once",
        arguments: [
            Fault.status(500, retryAfterSeconds: nil), .status(429, retryAfterSeconds: 0),
            .status(503, retryAfterSeconds: 0), .doneButNoAnswer, .noAnswer, .doneButStatus(500),
            .cutUpload(afterBytes: 100_000), .truncatedAnswer(bytes: 10), .html(status: 502),
            .status(416, retryAfterSeconds: nil),
        ],
        [0, 1, 2]
    )
    func partFaults(fault: Fault, part: Int) async throws {
        try await OneDriveWorld.with { world in
            let bytes = (0..<800_000).map { UInt8(truncatingIfNeeded: $0 / 5) }
            world.simulator.add(FaultRule(fault, at: "upload/put", skipping: part))
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "f", reservedID: nil),
                time: time
            )
            let kept = world.service.account.withTree { tree in
                (tree.children(of: tree.rootID).count, tree.item(at: ["f"])?.revisions.count)
            }
            #expect(kept.0 == 1 && kept.1 == 1)
            #expect(item.size == 800_000)
        }
    }

    @Test("a session that is gone is begun anew, or found to have done its work")
    func lostSession() async throws {
        try await OneDriveWorld.with { world in
            let gone = UploadSession(
                state: "{\"url\":\"\(world.simulator.url(host: "my.microsoftpersonalcontent.com"))"
                    + "/x/uploadSession?tempauth=v1e.999\",\"size\":5}",
                confirmedBytes: 0,
                expires: nil
            )
            let root = try await world.root
            let target = UploadTarget.create(parent: root, name: "a.txt", reservedID: nil)
            let item = try await world.upload(Array("hello".utf8), to: target, session: gone)
            #expect(try await world.text(item) == "hello")
            let again = try await world.upload(Array("hello".utf8), to: target, session: gone)
            #expect(again.id == item.id && again.rev == item.rev)
            let other = await kind {
                _ = try await world.upload(Array("other".utf8), to: target, session: gone)
            }
            #expect(other == .nameTaken)
        }
    }

    @Test("a full drive says so")
    func quota() async throws {
        try await OneDriveWorld.with(OneDriveSimulator(totalBytes: 1000)) { world in
            #expect(try await world.provider.quota() == Quota(used: 0, total: 1000))
            let target = UploadTarget.create(
                parent: try await world.root,
                name: "a",
                reservedID: nil
            )
            let full = await kind {
                _ = try await world.upload([UInt8](repeating: 1, count: 2000), to: target)
            }
            #expect(full == .quotaExceeded)
        }
    }
}

/// Keeps what an upload reported.
final class SessionRecorder: UploadObserver {
    private struct State {
        var session: UploadSession?
        var waiting: [(Int64, CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var last: UploadSession? { state.withLock { $0.session } }

    func sessionChanged(_ session: UploadSession?) async {
        let woken = state.withLock { state in
            state.session = session
            let bytes = session?.confirmedBytes ?? .max
            let woken = state.waiting.filter { $0.0 <= bytes }
            state.waiting.removeAll { $0.0 <= bytes }
            return woken
        }
        for (_, waiter) in woken { waiter.resume() }
    }

    func sent(_ bytes: Int64) {}

    /// Returns when so many bytes are confirmed.
    func waitForSession(confirming bytes: Int64) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if let session = state.session, session.confirmedBytes >= bytes { return true }
                state.waiting.append((bytes, continuation))
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
