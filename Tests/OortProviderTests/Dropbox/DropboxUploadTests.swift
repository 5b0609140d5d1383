import OortModel
import OortSimulators
import OortTesting
import Synchronization
import Testing

@Suite("Dropbox: upload sessions", .timeLimit(.minutes(15)))
struct DropboxUploadTests {
    private static let part: Int64 = 4 << 20
    /// Seven parts and a rest.
    private static let bytes = SimulatedContent(seed: 4, size: 7 * part + 1000).bytes

    /// A content with a part that cannot be read.
    private struct GappedSource: ContentSource {
        let gap: Range<Int64>

        var size: Int64 { Int64(DropboxUploadTests.bytes.count) }

        func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
            guard !gap.overlaps(offset..<offset + Int64(count)) else {
                throw ProviderError(.localContent, detail: "scripted")
            }
            return Array(DropboxUploadTests.bytes[Int(offset)..<Int(offset) + count])
        }
    }

    /// Remembers all that would have been stored of a session.
    private final class SessionHistory: UploadObserver {
        private let state = Mutex<[UploadSession?]>([])

        var sessions: [UploadSession] { state.withLock { $0.compactMap { $0 } } }

        func sessionChanged(_ session: UploadSession?) async {
            state.withLock { $0.append(session) }
        }
        func sent(_ bytes: Int64) {}
    }

    private func appended(in world: SimulatedWorld) -> Int64 {
        world.simulator.counts["files/upload_session/append_v2"]?.bytesIn ?? 0
    }

    @Test("no part that arrived is sent again after one beside it failed")
    func failedPart() async throws {
        try await SimulatedKind.dropbox.withWorld { world in
            var upload = world.entry(
                Self.bytes,
                to: .create(parent: world.root, name: "large", reservedID: nil)
            )
            upload.content = GappedSource(gap: Self.part..<2 * Self.part)
            let observer = RecordingObserver()
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(upload, observer: observer)
                } == .localContent
            )
            // The parts that were begun beside the failed one are there as well.
            #expect(appended(in: world) >= 3 * Self.part)
            let session = try #require(observer.session)
            #expect(session.confirmedBytes == Self.part)

            upload.content = BytesSource(Self.bytes)
            upload.session = session
            let item = try await world.provider.upload(upload, observer: observer)
            #expect(item.contentHash == world.hash(Self.bytes))
            #expect(appended(in: world) == Int64(Self.bytes.count))
        }
    }

    @Test("a process that dies after any part arrived sends what is missing, and no more")
    func diedAfterEachPart() async throws {
        try await SimulatedKind.dropbox.withWorld { world in
            let target = UploadTarget.create(parent: world.root, name: "large", reservedID: nil)
            var upload = world.entry(Self.bytes, to: target)
            let history = SessionHistory()
            // Without its end: the session stays open for those that go on with it.
            upload.content = GappedSource(gap: 7 * Self.part..<Int64(Self.bytes.count))
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(upload, observer: history)
                } == .localContent
            )
            let sessions = history.sessions
            #expect(sessions.count == 8)
            for (arrived, session) in sessions.enumerated() {
                world.simulator.clearCalls()
                upload.session = session
                _ = await world.failure {
                    _ = try await world.provider.upload(upload, observer: history)
                }
                #expect(appended(in: world) == Int64(7 - arrived) * Self.part)
            }
        }
    }

    @Test(
        "what no session of Dropbox's was stored as begins anew",
        arguments: ["", "{}", "pid_upload_session:1", #"{"id":"a","partSize":0,"arrived":[]}"#]
    )
    func foreignState(_ state: String) async throws {
        try await SimulatedKind.dropbox.withWorld { world in
            var upload = world.entry(
                Self.bytes,
                to: .create(parent: world.root, name: "large", reservedID: nil)
            )
            upload.session = UploadSession(state: state, confirmedBytes: 0, expires: nil)
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(
                        upload,
                        observer: SilentUploadObserver()
                    )
                } == .sessionLost
            )
        }
    }
}
