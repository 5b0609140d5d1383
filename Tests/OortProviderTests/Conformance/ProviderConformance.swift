import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises, whichever service it speaks to; picked by its traits.
@Suite("provider conformance", .timeLimit(.minutes(15)))
struct ProviderConformance {
    // MARK: Account

    @Test("the identity has a root and a name, the quota counts", arguments: conformingKinds)
    func account(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let identity = try await world.provider.identity()
            #expect(!identity.id.isEmpty && !identity.displayName.isEmpty)
            guard kind.can(.person) else {
                do {
                    let quota = try await world.provider.quota()
                    #expect(quota.used >= 0 && quota.total ?? .max >= quota.used)
                } catch let error as ProviderError {
                    #expect(error.kind == .unsupported)
                }
                return
            }
            #expect(identity.displayName == "Ada Example")
            #expect(identity.email == "ada@example.com")
            let before = try await world.provider.quota()
            _ = try await world.upload("12345", as: "five.txt")
            let after = try await world.provider.quota()
            #expect(after.used == before.used + 5)
            #expect(after.total == 2_000_000_000_000)
        }
    }

    @Test("an expired token is refreshed", arguments: kinds(that: .suffers(.expiredAccess)))
    func expiredAccess(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            try await world.befall(.expiredAccess)
            _ = try await world.provider.changes(since: nil)
        }
    }

    @Test(
        "a sign-in that is taken back is signed out, at the second look at the latest",
        arguments: kinds(that: .suffers(.revokedAccess))
    )
    func revokedAccess(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            _ = try await world.provider.items(named: "any", in: world.root)
            try await world.befall(.revokedAccess)
            func look() async -> ProviderError.Kind? {
                await world.failure {
                    _ = try await world.provider.items(named: "any", in: world.root)
                }
            }
            let first = await look()
            guard first != .signedOut else { return }
            // One refusal may be a passing fault of the server's, and connections end with it.
            #expect(first.map { ProviderError($0, detail: "").isTransient } == true)
            #expect(await look() == .signedOut)
        }
    }

    @Test("connections that end are made anew", arguments: kinds(that: .suffers(.cutConnections)))
    func cutConnections(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let item = try await world.upload("first", as: "a.txt")
            let place = world.reference(item)
            /// What was about to be asked may be lost with them, and is said to be.
            func attempt(_ body: () async throws -> Void) async throws {
                try await world.befall(.cutConnections)
                for _ in 0..<2 {
                    do { return try await body() } catch let error as ProviderError {
                        #expect(error.isTransient, "\(error)")
                    }
                }
                try await body()
            }
            try await attempt {
                let found = try await world.provider.item(place)
                #expect(found.id == item.id)
            }
            try await attempt {
                let bytes = try await world.read(place, revision: item.rev)
                #expect(bytes == Array("first".utf8))
            }
            try await attempt { _ = try await world.upload("second", as: "b.txt") }
            try await attempt { try await world.provider.delete(Deletion(item: place)) }
            #expect(try await world.names() == ["b.txt"])
        }
    }

    // MARK: Feed

    @Test(
        "the enumeration names every file with its size and hash, and a large folder is listed whole",
        arguments: conformingKinds
    )
    func enumeration(_ kind: ConformingKind) async throws {
        try await kind.withWorld(.sample) { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let expected = try await world.truth()
            let large = RemotePath(["Archive", "Receipts"])
            let byName = Dictionary(grouping: replica.items.values, by: \.fileName)
            for (path, item) in expected {
                let name = path.name ?? ""
                #expect(byName[name] != nil, "\(path) is missing")
                guard case .file(let size) = item, byName[name]?.count == 1,
                    let found = byName[name]?.first
                else { continue }
                #expect(found.kind == .file)
                #expect(found.size == size)
                #expect(found.rev != nil)
                guard let hash = found.contentHash else {
                    // Whose feed is a scan may know it of what Oort sent alone.
                    #expect(world.provider.traits.feed == .scan)
                    continue
                }
                // Of the many in the large folder none is read.
                guard size < 100_000, path.parent != large else { continue }
                #expect(try await hash == world.bytes(at: path).map { world.hash($0) })
            }
            #expect(replica.items.count >= expected.count)
            #expect(!replica.items.keys.contains(world.rootID))

            // More than a page of the service.
            let archive = try #require(
                try await world.provider.items(named: "Archive", in: world.root).first
            )
            let place = world.reference(archive)
            let receipts = try #require(
                try await world.provider.items(named: "Receipts", in: place).first
            )
            let names = try await world.names(in: world.reference(receipts, in: place))
            let there = expected.keys.filter { $0.parent == large }
            #expect(there.count > 1000)
            #expect(names == there.compactMap(\.name).sorted())
        }
    }

    @Test("somebody else's changes come by the feed", arguments: conformingKinds)
    func foreignChanges(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            try await world.somebodyElse(
                .write(path: ["a", "one.txt"], SimulatedContent("1"), modifiedTime: nil)
            )
            var replica = FeedReplica(of: world.provider)
            try await world.expectNews(in: &replica)
            let one = try #require(replica.named("one.txt").first)

            try await world.somebodyElse(.move(from: ["a", "one.txt"], to: ["b", "two.txt"]))
            try await world.somebodyElse(
                .write(path: ["c", "new.txt"], SimulatedContent("new"), modifiedTime: nil)
            )
            try await world.expectNews(in: &replica)
            #expect(replica.named("one.txt").isEmpty)
            let two = replica.named("two.txt")
            #expect(two.count == 1)
            // A scan may report it as one that is gone and another that is new.
            #expect(two.map(\.id) == [one.id] || world.provider.traits.feed == .scan)

            try await world.somebodyElse(
                .write(path: ["c", "new.txt"], SimulatedContent("newer"), modifiedTime: nil)
            )
            try await world.somebodyElse(.trash(path: ["b"]))
            // Rewritten in place, it may show late to a scan, but not to who looks.
            let old = try #require(replica.named("new.txt").first)
            #expect(try await world.provider.item(world.reference(old)).size == 5)
            try await world.expectNews(in: &replica)
            #expect(replica.named("two.txt").isEmpty)
            #expect(replica.named("b").isEmpty)
            let new = try #require(replica.named("new.txt").first)
            #expect(try await world.read(world.reference(new), revision: new.rev).count == 5)
        }
    }

    @Test("a look at a feed without news is one request", arguments: kinds(that: .counts))
    func quietFeed(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            try await world.somebodyElse(.makeFolder(path: ["a", "b"]))
            var replica = FeedReplica(of: world.provider)
            try await world.expectNews(in: &replica)
            try await world.look(&replica)
            let calls = try world.traffic.calls
            try await world.look(&replica)
            // Or, at a scan, at most one for each folder.
            let most = world.provider.traits.feed == .scan ? 3 : 1
            #expect((1...most).contains(try world.traffic.calls - calls))
        }
    }

    @Test(
        "waiting ends when something changes, and when it does not",
        arguments: conformingKinds
    )
    func waiting(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let cursor = try #require(replica.cursor)
            let news = try await world.provider.waitForChanges(
                since: cursor,
                atMost: .milliseconds(50)
            )
            // A scan does not know before it looks.
            if world.provider.traits.feed == .scan { #expect(news == .changed) }
            if world.provider.traits.feed == .longPoll {
                #expect(news == .quiet(backoff: nil))
                async let later = world.provider.waitForChanges(
                    since: cursor,
                    atMost: .seconds(60)
                )
                try await world.somebodyElse(.makeFolder(path: ["news"]))
                #expect(try await later == .changed)
            }
        }
    }

    @Test(
        "a lost cursor says so, and a new enumeration follows",
        arguments: kinds(that: .suffers(.lostCursors))
    )
    func lostCursor(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            try await world.somebodyElse(.makeFolder(path: ["kept"]))
            var replica = FeedReplica(of: world.provider)
            try await world.expectNews(in: &replica)
            try await world.befall(.lostCursors)
            let cursor = replica.cursor
            #expect(
                await world.failure { _ = try await world.provider.changes(since: cursor) }
                    == .cursorLost
            )
            var again = FeedReplica(of: world.provider)
            try await world.expectNews(in: &again)
            #expect(again.named("kept").count == 1)
        }
    }

    // MARK: Content

    @Test("what is uploaded is read back, whole and in ranges", arguments: conformingKinds)
    func roundTrip(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let bytes = SimulatedContent(seed: 3, size: 100_000).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "Grüße 🌋.bin", reservedID: nil)
            )
            #expect(item.size == 100_000)
            #expect(item.fileName == "Grüße 🌋.bin")
            #expect(item.contentHash == world.hash(bytes))
            if world.provider.traits.keepsModifiedTime {
                #expect(item.clientModifiedTime?.seconds == 1_700_000_000)
            }
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
            #expect(try await world.bytes(at: RemotePath(["Grüße 🌋.bin"])) == bytes)
            var replica = FeedReplica(of: world.provider)
            try await world.expectNews(in: &replica)
            let told = try #require(replica.items[item.id])
            #expect(told.rev == item.rev)
            #expect(told.contentHash == item.contentHash)
            #expect(told.clientModifiedTime == item.clientModifiedTime)
        }
    }

    @Test("an empty file is a file", arguments: conformingKinds)
    func emptyFile(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let item = try await world.upload("", as: "empty")
            #expect(item.size == 0)
            #expect(item.contentHash == world.hash([]))
            #expect(try await world.read(world.reference(item), revision: item.rev) == [])
        }
    }

    @Test("a revision is replaced, a stale one is not", arguments: conformingKinds)
    func replacing(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let first = try await world.upload("first", as: "note.txt")
            let place = world.reference(first)
            let second = try await world.upload(
                Array("second".utf8),
                to: .replace(place, revision: first.rev)
            )
            #expect(second.id == first.id)
            #expect(second.rev != first.rev)
            #expect(try await world.read(place, revision: second.rev) == Array("second".utf8))

            try await world.somebodyElse(
                .write(
                    path: ["note.txt"],
                    SimulatedContent("theirs"),
                    modifiedTime: Timestamp(seconds: 1_700_000_500)
                )
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
            #expect(try await world.bytes(at: RemotePath(["note.txt"])) == Array("theirs".utf8))
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

    /// A content that takes several parts, where there are such, and where it breaks off.
    private func large(_ traits: ProviderTraits) -> (bytes: [UInt8], breaksAt: Int64) {
        let hasParts = traits.largestSimpleUpload < .max
        let part = hasParts ? traits.uploadPartSize : 1 << 20
        let size = (hasParts ? traits.largestSimpleUpload : 0) + 3 * part + 12_345
        return (SimulatedContent(seed: 8, size: size).bytes, size - part)
    }

    @Test(
        "a large content that breaks off is nowhere to be seen, and is resumed",
        arguments: conformingKinds
    )
    func resuming(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let traits = world.provider.traits
            let (bytes, breaksAt) = large(traits)
            let target = UploadTarget.create(parent: world.root, name: "large", reservedID: nil)
            var upload = world.entry(bytes, to: target)
            upload.content = BreakingSource(bytes: bytes, breaksAt: breaksAt)
            let observer = RecordingObserver()
            #expect(
                await world.failure {
                    _ = try await world.provider.upload(upload, observer: observer)
                } == .localContent
            )
            #expect(try await world.names() == [])
            #expect(try await world.bytes(at: RemotePath(["large"])) == nil)
            let session = observer.session
            #expect((session != nil) == (traits.largestSimpleUpload < .max))
            if let session { #expect(session.confirmedBytes <= breaksAt) }
            if let session, kind.can(.counts) {
                // What was sent before the break may still be on its way.
                while try world.traffic.bytesIn < session.confirmedBytes { await Task.yield() }
            }
            upload.content = BytesSource(bytes)
            upload.session = session
            let item = try await world.provider.upload(upload, observer: observer)
            #expect(item.contentHash == world.hash(bytes))
            #expect(observer.session == nil)
            if session != nil, kind.can(.counts) {
                // Of all bytes that ever arrived at most a part came twice.
                let part = max(traits.uploadPartSize, 4 << 20)
                #expect(try world.traffic.bytesIn < Int64(bytes.count) + part)
            }
            #expect(try await world.bytes(at: RemotePath(["large"])) == bytes)
            #expect(try await world.truth().count == 1)
        }
    }

    @Test(
        "a session that the service forgot says so or is begun anew",
        arguments: kinds(that: .suffers(.lostSessions))
    )
    func lostSession(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let (bytes, breaksAt) = large(world.provider.traits)
            var upload = world.entry(
                bytes,
                to: .create(parent: world.root, name: "large", reservedID: nil)
            )
            upload.content = BreakingSource(bytes: bytes, breaksAt: breaksAt)
            let observer = RecordingObserver()
            _ = await world.failure {
                _ = try await world.provider.upload(upload, observer: observer)
            }
            let session = try #require(observer.session)
            upload.session = session
            try await world.befall(.lostSessions)
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
            #expect(try await world.bytes(at: RemotePath(["large"])) == bytes)
        }
    }

    @Test("a native document is exported", arguments: kinds(that: .documents))
    func exporting(_ kind: ConformingKind) async throws {
        try await kind.withWorld(.sample) { world in
            var replica = FeedReplica(of: world.provider)
            try await replica.catchUp(with: world.provider)
            let documents = replica.items.values.filter {
                $0.kind == .nativeDocument && $0.fileName.hasPrefix("Travel plan")
            }
            #expect(!documents.isEmpty)
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

    @Test(
        "a photo has a thumbnail, or it is said that there is none",
        arguments: conformingKinds
    )
    func thumbnail(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let picture = SamplePicture(width: 320, height: 240, seed: 1).jpeg
            var upload = world.entry(
                picture,
                to: .create(parent: world.root, name: "photo.jpg", reservedID: nil)
            )
            upload.mimeType = "image/jpeg"
            let photo = try await world.provider.upload(upload, observer: SilentUploadObserver())
            let place = world.reference(photo)
            guard kind.can(.thumbnails) else {
                #expect(photo.thumbnail != true)
                #expect(
                    await world.failure {
                        _ = try await world.provider.thumbnail(of: place, edge: 128)
                    } == .unsupported
                )
                return
            }
            let bytes = try await world.provider.thumbnail(of: place, edge: 128)
                .collect(atMost: 1 << 20)
            let isPicture = bytes.starts(with: [0xFF, 0xD8]) || bytes.starts(with: [0x89, 0x50])
            #expect(isPicture)
        }
    }
}
