import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises, whichever service it speaks to; picked by its traits.
@Suite("provider conformance", .timeLimit(.minutes(15)))
struct ProviderConformance {
    // MARK: Account

    @Test("the identity has a root and a name, the quota counts", arguments: conformingServices)
    func account(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let identity = try await world.provider.identity()
            #expect(!identity.id.isEmpty)
            #expect(identity.displayName == "Ada Example")
            #expect(identity.email == "ada@example.com")
            let before = try await world.provider.quota()
            _ = try await world.upload("12345", as: "five.txt")
            let after = try await world.provider.quota()
            #expect(after.used == before.used + 5)
            #expect(after.total == 2_000_000_000_000)
        }
    }

    @Test(
        "an expired token is refreshed, a revoked one is signed out",
        arguments: conformingServices
    )
    func tokens(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            world.simulator.account.tokens.expireAccessTokens()
            _ = try await world.provider.quota()
            world.simulator.account.tokens.revokeAll()
            #expect(
                await world.failure { _ = try await world.provider.quota() } == .signedOut
            )
        }
    }

    // MARK: Feed

    @Test("the enumeration names every file with its size and hash", arguments: conformingServices)
    func enumeration(_ service: ConformingService) async throws {
        try await service.withWorld(.sample) { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let expected = world.simulator.account.withTree { tree in
                tree.descendants(of: tree.rootID)
            }
            let byName = Dictionary(grouping: replica.items.values, by: \.fileName)
            for item in expected {
                #expect(byName[item.name] != nil, "\(item.name) is missing")
                guard item.kind == .file, let found = byName[item.name]?.first else { continue }
                guard byName[item.name]?.count == 1 else { continue }
                #expect(found.kind == .file)
                #expect(found.size == item.size)
                #expect(found.contentHash != nil)
                #expect(found.rev != nil)
            }
            #expect(replica.items.count >= expected.count)
            #expect(!replica.items.keys.contains(world.rootID))
        }
    }

    @Test("somebody else's changes come by the feed", arguments: conformingServices)
    func foreignChanges(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            world.somebodyElse(
                .write(path: ["a", "one.txt"], SimulatedContent("1"), modifiedTime: nil)
            )
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let one = try #require(replica.named("one.txt").first)

            world.somebodyElse(.move(from: ["a", "one.txt"], to: ["b", "two.txt"]))
            world.somebodyElse(
                .write(path: ["c", "new.txt"], SimulatedContent("new"), modifiedTime: nil)
            )
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("one.txt").isEmpty)
            #expect(replica.named("two.txt").map(\.id) == [one.id])
            #expect(replica.named("new.txt").first?.size == 3)

            world.somebodyElse(
                .write(path: ["c", "new.txt"], SimulatedContent("newer"), modifiedTime: nil)
            )
            world.somebodyElse(.trash(path: ["b"]))
            try await replica.catchUp(with: world.provider)
            #expect(replica.named("two.txt").isEmpty)
            #expect(replica.named("b").isEmpty)
            #expect(replica.named("new.txt").first?.size == 5)

            let calls = world.simulator.calls.count
            try await replica.catchUp(with: world.provider)
            #expect(world.simulator.calls.count == calls + 1)
        }
    }

    @Test(
        "waiting ends when something changes, and when it does not",
        arguments: conformingServices
    )
    func waiting(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let cursor = try #require(replica.cursor)
            let news = try await world.provider.waitForChanges(
                since: cursor,
                atMost: .milliseconds(50)
            )
            if world.provider.traits.feed == .longPoll {
                #expect(news == .quiet(backoff: nil))
                async let later = world.provider.waitForChanges(
                    since: cursor,
                    atMost: .seconds(60)
                )
                world.somebodyElse(.makeFolder(path: ["news"]))
                #expect(try await later == .changed)
            }
        }
    }

    @Test("a lost cursor says so, and a new enumeration follows", arguments: conformingServices)
    func lostCursor(_ service: ConformingService) async throws {
        guard service.losesCursors else { return }
        try await service.withWorld { world in
            world.somebodyElse(.makeFolder(path: ["kept"]))
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            world.simulator.service.loseCursors()
            let cursor = replica.cursor
            #expect(
                await world.failure { _ = try await world.provider.changes(since: cursor) }
                    == .cursorLost
            )
            var again = FeedReplica(of: world.provider)
            try await again.catchUp(with: world.provider)
            #expect(again.named("kept").count == 1)
        }
    }

    @Test(
        "a large folder is listed whole, by name and without doubles",
        arguments: conformingServices
    )
    func listing(_ service: ConformingService) async throws {
        try await service.withWorld(.sample) { world in
            let archive = try #require(
                try await world.provider.items(named: "Archive", in: world.root).first
            )
            let place = world.reference(archive)
            let receipts = try #require(
                try await world.provider.items(named: "Receipts", in: place).first
            )
            let names = try await world.names(in: world.reference(receipts, in: place))
            #expect(names.count == 2400)
            #expect(Set(names).count == 2400)
        }
    }

    // MARK: Content

    @Test("what is uploaded is read back, whole and in ranges", arguments: conformingServices)
    func roundTrip(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let bytes = SimulatedContent(seed: 3, size: 100_000).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "Grüße 🌋.bin", reservedID: nil)
            )
            #expect(item.size == 100_000)
            #expect(item.fileName == "Grüße 🌋.bin")
            #expect(item.contentHash == world.hash(bytes))
            #expect(item.clientModifiedTime?.seconds == 1_700_000_000)
            let place = world.reference(item)
            #expect(try await world.read(place, revision: item.rev) == bytes)
            #expect(
                try await world.read(place, revision: item.rev, range: 500..<777)
                    == Array(bytes[500..<777])
            )
            #expect(
                try await world.read(place, revision: item.rev, range: 99_990..<200_000)
                    == Array(bytes[99_990...])
            )
            #expect(
                try await world.read(place, revision: item.rev, range: 100_000..<100_010) == []
            )
            #expect(try await world.provider.item(place).id == item.id)
            #expect(try await world.names() == ["Grüße 🌋.bin"])
        }
    }

    @Test("an empty file is a file", arguments: conformingServices)
    func emptyFile(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let item = try await world.upload("", as: "empty")
            #expect(item.size == 0)
            #expect(item.contentHash == world.hash([]))
            #expect(try await world.read(world.reference(item), revision: item.rev) == [])
        }
    }

    @Test("a revision is replaced, a stale one is not", arguments: conformingServices)
    func replacing(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let first = try await world.upload("first", as: "note.txt")
            let place = world.reference(first)
            let second = try await world.upload(
                Array("second".utf8),
                to: .replace(place, revision: first.rev)
            )
            #expect(second.id == first.id)
            #expect(second.rev != first.rev)
            #expect(try await world.read(place, revision: second.rev) == Array("second".utf8))

            world.somebodyElse(
                .write(path: ["note.txt"], SimulatedContent("theirs"), modifiedTime: nil)
            )
            #expect(
                await world.failure {
                    _ = try await world.upload(
                        Array("mine".utf8),
                        to: .replace(place, revision: second.rev)
                    )
                } == .preconditionFailed
            )
            #expect(try await world.read(place) == Array("theirs".utf8))
            // An old revision is given as it was, or not at all.
            do {
                #expect(
                    try await world.read(place, revision: first.rev) == Array("first".utf8)
                )
            } catch let error as ProviderError {
                #expect(error.kind == .preconditionFailed)
            }
        }
    }

    @Test("a large content goes in parts and is resumed", arguments: conformingServices)
    func resuming(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let size = Int64(30 << 20)
            let content = SimulatedContent(seed: 8, size: size)
            let bytes = content.bytes
            let target = UploadTarget.create(parent: world.root, name: "large", reservedID: nil)
            var upload = world.entry(bytes, to: target)
            upload.content = BreakingSource(bytes: bytes, breaksAt: 20 << 20)
            let observer = RecordingObserver()
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(upload, observer: observer)
                } == .localContent
            )
            let session = try #require(observer.session)
            #expect(session.confirmedBytes <= 20 << 20)
            func received() -> Int64 {
                world.simulator.counts.values.reduce(0) { $0 + $1.bytesIn }
            }
            // What was sent before the break may still be on its way.
            while received() <= 16 << 20 { await Task.yield() }

            upload.content = BytesSource(bytes)
            upload.session = session
            let item = try await world.provider.upload(upload, observer: observer)
            #expect(item.contentHash == world.hash(bytes))
            #expect(observer.session == nil)
            // Of all bytes that ever arrived at most a part came twice.
            #expect(received() < size + (4 << 20))
            #expect(
                world.simulator.account.withTree { tree in
                    tree.item(at: ["large"])?.head?.content.sha256
                } == content.sha256
            )
        }
    }

    @Test(
        "a session that the service forgot says so or is begun anew",
        arguments: conformingServices
    )
    func lostSession(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let bytes = SimulatedContent(seed: 8, size: 30 << 20).bytes
            var upload = world.entry(
                bytes,
                to: .create(parent: world.root, name: "large", reservedID: nil)
            )
            upload.content = BreakingSource(bytes: bytes, breaksAt: 20 << 20)
            let observer = RecordingObserver()
            _ = await world.failure {
                _ = try await world.provider.upload(upload, observer: observer)
            }
            let session = try #require(observer.session)
            upload.session = session
            world.simulator.service.loseUploadSessions()
            upload.content = BytesSource(bytes)
            do {
                let item = try await world.provider.upload(upload, observer: observer)
                #expect(item.contentHash == world.hash(bytes))
            } catch let error as ProviderError {
                #expect(error.kind == .sessionLost)
                upload.session = nil
                let item = try await world.provider.upload(upload, observer: observer)
                #expect(item.contentHash == world.hash(bytes))
            }
            #expect(try await world.names() == ["large"])
        }
    }

    @Test("a native document is exported", arguments: conformingServices)
    func exporting(_ service: ConformingService) async throws {
        try await service.withWorld(.sample) { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let documents = replica.items.values.filter {
                $0.kind == .nativeDocument && $0.fileName.hasPrefix("Travel plan")
            }
            for document in documents {
                let format = try #require(document.exports.first)
                #expect(format.fileExtension == "docx")
                let bytes = try await world.provider.export(
                    ItemReference(id: document.id, path: document.path ?? .root),
                    to: format
                ).collect(atMost: 1 << 20)
                #expect(bytes.starts(with: Array("PK".utf8)))
            }
        }
    }

    @Test("a photo has a thumbnail", arguments: conformingServices)
    func thumbnail(_ service: ConformingService) async throws {
        try await service.withWorld(.sample) { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let photo = try #require(replica.named("IMG_0001.jpg").first)
            let bytes = try await world.provider.thumbnail(
                of: ItemReference(id: photo.id, path: photo.path ?? .root),
                edge: 128
            ).collect(atMost: 1 << 20)
            let isPicture = bytes.starts(with: [0xFF, 0xD8]) || bytes.starts(with: [0x89, 0x50])
            #expect(isPicture)
        }
    }
}
