import OortModel
import OortSimulators
import OortTesting
import Testing

@testable import OortGoogleDrive

/// What is known of the type of a content that is to be `notes.txt`, and what Drive then has.
struct KnownType: Sendable {
    let known: String?
    let stored: String

    static let all = [
        KnownType(known: nil, stored: "text/plain"),
        KnownType(known: "image/png", stored: "image/png"),
        KnownType(known: "application/octet-stream", stored: "text/plain"),
        // It would make a document of the content.
        KnownType(known: "application/vnd.google-apps.document", stored: "text/plain"),
    ]
}

/// Uploads that are repeated, resumed or refused.
@Suite("Uploads to Google Drive", .timeLimit(.minutes(15)))
struct GoogleDriveUploadTests {
    @Test(
        "a create of which the answer was lost makes one item",
        arguments: [0, 600_000, 6_000_000]
    )
    func lostCreate(_ size: Int) async throws {
        try await GoogleDriveWorld.with { world, service in
            world.simulator.add(
                FaultRule(.doneButNoAnswer, at: "uploads", skipping: size > 5_000_000 ? 1 : 0)
            )
            let content = SimulatedContent(seed: 5, size: Int64(size)).bytes
            var upload = world.entry(
                content,
                to: .create(parent: world.root, name: "n", reservedID: nil)
            )
            let time = Timestamp(seconds: 1_700_000_000, nanoseconds: 123_000_000)
            upload.modifiedTime = time
            let item = try await world.provider.upload(upload, observer: SilentUploadObserver())
            #expect(item.size == Int64(size))
            #expect(item.clientModifiedTime == time)
            let listing = try await world.provider.children(of: world.root, page: nil)
            #expect(listing.items.map(\.id) == [item.id])
        }
    }

    @Test("a replacement keeps the id and names the revision that it replaces")
    func replacement() async throws {
        try await GoogleDriveWorld.with { world, service in
            let first = try await world.upload("one", as: "f.txt")
            _ = try await world.provider.setAttributes(
                of: world.reference(first),
                to: AttributeChange(description: "kept")
            )
            let second = try await world.upload(
                Array("two".utf8),
                to: .replace(world.reference(first), revision: first.rev)
            )
            #expect(second.id == first.id)
            #expect(second.rev != first.rev)
            #expect(second.fileName == "f.txt")
            #expect(second.description == "kept")
            #expect(second.clientModifiedTime?.seconds == 1_700_000_000)
            let refusal = await world.failure {
                _ = try await world.upload(
                    Array("three".utf8),
                    to: .replace(world.reference(first), revision: first.rev)
                )
            }
            #expect(refusal == .preconditionFailed)
            let revisions = service.account.withTree { $0.item(first.id.rawValue)?.revisions.count }
            #expect(revisions == 2)
        }
    }

    @Test("a lost answer to a replacement makes one revision", arguments: [3, 6_000_000])
    func lostReplacement(_ size: Int) async throws {
        try await GoogleDriveWorld.with { world, service in
            let first = try await world.upload("one", as: "f.txt")
            // A large one is begun, and sent in two requests.
            world.simulator.add(
                FaultRule(
                    .doneButNoAnswer,
                    at: "v2.uploads",
                    skipping: size > 5_000_000 ? 2 : 0
                )
            )
            let content = SimulatedContent(seed: 6, size: Int64(size)).bytes
            let item = try await world.upload(
                content,
                to: .replace(world.reference(first), revision: first.rev)
            )
            #expect(item.size == Int64(size))
            #expect(service.account.withTree { $0.item(first.id.rawValue)?.revisions.count } == 2)
        }
    }

    @Test("content that arrives damaged twice goes by a session", arguments: [1, 2, 3])
    func damaged(_ times: Int) async throws {
        try await GoogleDriveWorld.with { world, service in
            service.account.withTree { $0.conditions.damagedContents = times }
            let failure = await world.failure { _ = try await world.upload("one", as: "f.txt") }
            #expect(failure == (times == 3 ? .contentDamaged : nil))
            let revisions = service.account.withTree { tree in
                tree.items(named: "f.txt", in: tree.rootID).first?.revisions
            }
            #expect(revisions?.count == min(times + 1, 3))
            #expect((revisions?.last?.content.bytes == Array("one".utf8)) == (times < 3))
            let counts = world.simulator.counts
            #expect(counts["uploads"]?.calls == 1)
            // By a session it is one call to begin it, and one for its only part.
            #expect(counts["v2.uploads"]?.calls == (times == 1 ? 1 : 3))
        }
    }

    @Test("no content is cut by what divides the parts of a request")
    func boundaries() async throws {
        #expect(MultipartBoundary().description != MultipartBoundary().description)
        try await GoogleDriveWorld.with { world, service in
            let lines = "\r\n--oort-upload-boundary-5b7e90--\r\n\r\n--oort--\r\n--\r\n"
            let item = try await world.upload("before" + lines + "after", as: "f.txt")
            #expect(item.size == Int64(("before" + lines + "after").utf8.count))
        }
    }

    @Test("another's edit of the metadata does not spoil a replacement")
    func replacementBesideRename() async throws {
        try await GoogleDriveWorld.with { world, service in
            let first = try await world.upload("one", as: "f.txt")
            // The ETag changes with any change of the item; the head revision has not.
            world.simulator.add(FaultRule(.status(412, retryAfterSeconds: nil), at: "v2.uploads"))
            let second = try await world.upload(
                Array("two".utf8),
                to: .replace(world.reference(first), revision: first.rev)
            )
            #expect(second.rev != first.rev)
            #expect(service.account.withTree { $0.item(first.id.rawValue)?.revisions.count } == 2)
            #expect(world.simulator.counts["v2.uploads"]?.calls == 2)
        }
    }

    @Test(
        "a content has the same type whether it is sent whole or in parts",
        arguments: [600, 6_000_000],
        KnownType.all
    )
    func contentType(_ size: Int, _ type: KnownType) async throws {
        try await GoogleDriveWorld.with { world, _ in
            let content = SimulatedContent(seed: 7, size: Int64(size)).bytes
            var upload = world.entry(
                content,
                to: .create(parent: world.root, name: "notes.txt", reservedID: nil)
            )
            upload.mimeType = type.known
            let new = try await world.provider.upload(upload, observer: SilentUploadObserver())
            #expect(new.kind == .file)
            #expect(new.mimeType == type.stored)
            // A new content of which nothing is known keeps what the file had.
            upload.target = .replace(world.reference(new), revision: new.rev)
            upload.content = BytesSource(content)
            upload.mimeType = "application/octet-stream"
            let replaced = try await world.provider.upload(
                upload,
                observer: SilentUploadObserver()
            )
            #expect(replaced.mimeType == type.stored)
        }
    }

    @Test("an interrupted upload goes on where it stopped")
    func resumedUpload() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let size = 6_000_000
            let content = SimulatedContent(seed: 9, size: Int64(size)).bytes
            var upload = world.entry(
                content,
                to: .create(parent: world.root, name: "big", reservedID: nil)
            )
            let ids = try await world.provider.reserveIDs(1)
            upload.target = .create(parent: world.root, name: "big", reservedID: ids[0])
            let sessions = RecordingObserver()
            upload.content = BreakingSource(bytes: content, breaksAt: 10 * 256 << 10)
            await #expect(throws: ProviderError.self) {
                _ = try await world.provider.upload(upload, observer: sessions)
            }
            // What was sent before the break may still be on its way; of what was read up to 1 MiB was not.
            while world.simulator.counts["uploads"]?.bytesIn ?? 0 < 6 * 256 << 10 {
                await Task.yield()
            }
            upload.content = BytesSource(content)
            let session = try #require(sessions.session)
            upload.session = session
            let item = try await world.provider.upload(upload, observer: sessions)
            #expect(item.contentHash == upload.hash)
            #expect(item.id == ids[0])
            #expect(sessions.session == nil)
            let sent = try #require(world.simulator.counts["uploads"]?.bytesIn)
            // Drive keeps whole multiples of 256 KiB.
            #expect(sent < Int64(size) + (256 << 10) + Self.metadata)
        }
    }

    /// Bytes that a session's opening takes at most.
    private static let metadata: Int64 = 1000

    @Test("a large new file travels in one request")
    func oneRequest() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let content = SimulatedContent(seed: 10, size: 6_000_000).bytes
            let item = try await world.upload(
                content,
                to: .create(parent: world.root, name: "big", reservedID: nil)
            )
            #expect(item.contentHash == world.hash(content))
            #expect(world.simulator.counts["uploads"]?.calls == 2)
        }
    }

    @Test("a request that breaks goes on where the service has its bytes", arguments: [1, 3])
    func brokenRequest(_ times: Int) async throws {
        try await GoogleDriveWorld.with { world, _ in
            let size: Int64 = 6_000_000
            let cut = 1_500_000
            for time in 1...times {
                // Each meets the request after the question that follows the one before.
                world.simulator.add(
                    FaultRule(.cutUpload(afterBytes: cut), at: "uploads", skipping: time)
                )
            }
            let content = SimulatedContent(seed: 11, size: size).bytes
            let item = try await world.upload(
                content,
                to: .create(parent: world.root, name: "big", reservedID: nil)
            )
            #expect(item.contentHash == world.hash(content))
            let counts = try #require(world.simulator.counts["uploads"])
            // Each time less than a multiple of 256 KiB was lost, and what was read of the next.
            #expect(counts.bytesIn < size + Int64(times) * (256 << 10) + Self.metadata)
            // One to begin it; for each break a request and a question; the rest.
            #expect(counts.calls == 2 + 2 * times)
        }
    }

    @Test("where nothing of a broken request is kept, the rest goes in parts")
    func keptNothing() async throws {
        try await GoogleDriveWorld.with { world, _ in
            world.simulator.add(FaultRule(.noAnswer, at: "uploads", skipping: 1))
            let content = SimulatedContent(seed: 12, size: 6_000_000).bytes
            let item = try await world.upload(
                content,
                to: .create(parent: world.root, name: "big", reservedID: nil)
            )
            #expect(item.contentHash == world.hash(content))
            let parts = 1 + (content.count - 1) / (256 << 10)
            #expect(world.simulator.counts["uploads"]?.calls == 3 + parts)
        }
    }

    /// A content that somebody else replaces at the service once its first bytes were read.
    private struct ReplacedMeanwhile: ContentSource {
        let bytes: [UInt8]
        let replace: @Sendable () -> Void
        var size: Int64 { Int64(bytes.count) }

        func read(at offset: Int64, count: Int) async throws(ProviderError) -> [UInt8] {
            if offset == 0 { replace() }
            return Array(bytes[Int(offset)..<Int(offset) + count])
        }
    }

    @Test("a large replacement looks at the revision once more before its small last part")
    func lastPart() async throws {
        try await GoogleDriveWorld.with { world, service in
            let first = try await world.upload("one", as: "f.txt")
            let content = SimulatedContent(seed: 13, size: 6_000_000).bytes
            let target = UploadTarget.replace(world.reference(first), revision: first.rev)
            var upload = world.entry(content, to: target)
            upload.content = ReplacedMeanwhile(bytes: content) {
                world.somebodyElse(
                    .write(path: ["f.txt"], SimulatedContent("theirs"), modifiedTime: nil)
                )
            }
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(upload, observer: SilentUploadObserver())
                } == .preconditionFailed
            )
            let counts = try #require(world.simulator.counts["v2.uploads"])
            #expect(counts.calls == 2)
            let multiple = 256 << 10
            let sent = (content.count - 1) / multiple * multiple
            #expect((sent..<sent + Int(Self.metadata)).contains(Int(counts.bytesIn)))
            let head = service.account.withTree { $0.item(first.id.rawValue)?.head?.content.bytes }
            #expect(head == Array("theirs".utf8))
        }
    }

    @Test("a session that the service has forgotten is said to be lost")
    func lostSession() async throws {
        try await GoogleDriveWorld.with { world, _ in
            var upload = world.entry(
                [UInt8](repeating: 1, count: 10),
                to: .create(parent: world.root, name: "x", reservedID: nil)
            )
            let uri =
                world.simulator.url(host: "www.googleapis.com")
                + "/upload/drive/v3/files?uploadType=resumable&upload_id=gone"
            upload.session = UploadSession(
                state: "{\"uri\":\"\(uri)\",\"id\":\"x\",\"isV2\":false}",
                confirmedBytes: 5,
                expires: nil
            )
            let refusal = await world.failure {
                _ = try await world.provider.upload(upload, observer: SilentUploadObserver())
            }
            #expect(refusal == .sessionLost)
        }
    }

    @Test("a full account refuses an upload before its bytes travel")
    func fullAccount() async throws {
        try await GoogleDriveWorld.with { world, service in
            service.account.totalBytes = 1000
            let refusal = await world.failure {
                _ = try await world.upload(
                    [UInt8](repeating: 0, count: 6_000_000),
                    to: .create(parent: world.root, name: "x", reservedID: nil)
                )
            }
            #expect(refusal == .quotaExceeded)
            #expect((world.simulator.counts["uploads"]?.bytesIn ?? 0) < 10_000)
        }
    }
}
