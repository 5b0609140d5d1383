import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises about changing the tree, also when calls fail.
@Suite("provider conformance: changing the tree", .timeLimit(.minutes(15)))
struct ProviderChangesConformance {
    @Test("folders hold folders, and a taken name is told", arguments: conformingKinds)
    func folders(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let outer = try await world.folder("outer")
            let inner = try await world.folder("inner", in: outer)
            _ = try await world.upload("deep", as: "file.txt", in: inner)
            #expect(try await world.names() == ["outer"])
            #expect(try await world.names(in: outer) == ["inner"])
            #expect(try await world.names(in: inner) == ["file.txt"])
            guard world.provider.traits.refusesTakenNames else { return }
            #expect(
                await world.failure {
                    _ = try await world.provider.createFolder(
                        NewFolder(parent: world.root, name: "outer")
                    )
                } == .nameTaken
            )
            #expect(
                await world.failure {
                    _ = try await world.upload("other", as: "inner", in: outer)
                } == .nameTaken
            )
        }
    }

    @Test("what is not there is not found, by either way", arguments: conformingKinds)
    func missing(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            var replica = FeedReplica(of: provider)
            try await replica.catchUp(with: provider)
            let item = try await world.upload("x", as: "x.txt")
            let folder = try await world.folder("gone")
            try await world.expectNews(in: &replica)
            try await world.somebodyElse(.trash(path: ["x.txt"]))
            try await world.somebodyElse(.trash(path: ["gone"]))
            let place = world.reference(item)
            let first = await world.failure { _ = try await provider.item(place) }
            if provider.traits.feed == .scan {
                // It may be elsewhere until all folders were looked at.
                #expect(first == .notFound || first == .outcomeUnknown(retryAfter: nil))
            } else {
                #expect(first == .notFound)
            }
            #expect(try await provider.items(named: "x.txt", in: world.root).isEmpty)
            try await world.expectNews(in: &replica)
            #expect(await world.failure { _ = try await provider.item(place) } == .notFound)
            #expect(
                await world.failure { _ = try await provider.items(named: "y", in: folder) }
                    == .parentNotFound
            )
            #expect(
                await world.failure { _ = try await world.upload("y", as: "y", in: folder) }
                    == .parentNotFound
            )
            try await provider.delete(Deletion(item: place))
            try await provider.delete(Deletion(item: folder))
        }
    }

    @Test(
        "what somebody took away is nothing to write to, also before the feed told",
        arguments: conformingKinds
    )
    func writingToMissing(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            let item = try await world.upload("x", as: "x.txt")
            let folder = try await world.folder("gone")
            try await world.somebodyElse(.trash(path: ["x.txt"]))
            try await world.somebodyElse(.trash(path: ["gone"]))
            let place = world.reference(item)
            let written = await world.failure {
                _ = try await world.upload(
                    Array("y".utf8),
                    to: .replace(place, revision: item.rev)
                )
            }
            #expect(written == .preconditionFailed || written == .notFound)
            #expect(try await world.bytes(at: RemotePath(["x.txt"])) == nil)
            let inside = await world.failure { _ = try await world.folder("y", in: folder) }
            if provider.traits.makesMissingFolders {
                #expect(inside == nil || inside == .parentNotFound)
            } else {
                #expect(inside == .parentNotFound)
            }
            let sent = await world.failure { _ = try await world.upload("z", as: "z", in: folder) }
            #expect(sent == .parentNotFound || provider.traits.makesMissingFolders)
            let moved = await world.failure {
                _ = try await provider.move(
                    Move(
                        item: place,
                        oldParent: world.root,
                        parent: world.root,
                        name: "z.txt",
                        modifiedTime: nil
                    )
                )
            }
            #expect(moved != nil)
            #expect(try await world.bytes(at: RemotePath(["z.txt"])) == nil)
            try await provider.delete(Deletion(item: place, revision: item.rev))
            let deleted = await world.failure { try await provider.delete(Deletion(item: folder)) }
            // To a scan it may be elsewhere until all folders were looked at.
            #expect(
                deleted == nil || deleted == .preconditionFailed && provider.traits.feed == .scan
            )
        }
    }

    @Test(
        "what an upload made is known as that wherever somebody moved it",
        arguments: conformingKinds
    )
    func lostUpload(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            let created = Timestamp(seconds: 1_600_000_000)
            func send(_ name: String, created: Timestamp) async throws -> Item {
                var upload = world.entry(
                    Array("content".utf8),
                    to: .create(parent: world.root, name: name, reservedID: nil)
                )
                upload.createdTime = created
                return try await provider.upload(upload, observer: SilentUploadObserver())
            }
            _ = try await send("lost.txt", created: created)
            let other = try await send(
                "other.txt",
                created: Timestamp(seconds: created.seconds + 10)
            )
            try await world.somebodyElse(.move(from: ["lost.txt"], to: ["folder", "moved.txt"]))
            let folder = try #require(
                try await provider.items(named: "folder", in: world.root).first
            )
            let moved = try #require(
                try await provider.items(named: "moved.txt", in: world.reference(folder)).first
            )
            func lost(_ name: String) -> LostUpload {
                LostUpload(
                    folder: world.root,
                    name: name,
                    hash: world.hash(Array("content".utf8)),
                    modifiedTime: Timestamp(seconds: 1_700_000_000),
                    createdTime: created
                )
            }
            // A server of files keeps nothing that could identify it.
            let isKnown = try await provider.isOutcome(moved, of: lost("lost.txt"))
            #expect(isKnown || provider.traits.feed == .scan)
            // With ids chosen by the client, no other file is asked for.
            let hasClientIDs = provider.traits.takesClientIDs
            #expect(try await provider.isOutcome(other, of: lost("lost.txt")) == hasClientIDs)
            var wrong = lost("lost.txt")
            wrong.hash = world.hash(Array("other".utf8))
            #expect(try await !provider.isOutcome(moved, of: wrong))
            wrong = lost("nowhere.txt")
            wrong.createdTime = nil
            #expect(try await provider.isOutcome(moved, of: wrong) == hasClientIDs)
        }
    }

    @Test("a move keeps the id and the content and replaces nothing", arguments: conformingKinds)
    func moving(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let item = try await world.upload("content", as: "a.txt")
            let folder = try await world.folder("folder")
            let moved = try await world.provider.move(
                Move(
                    item: world.reference(item),
                    oldParent: world.root,
                    parent: folder,
                    name: "b.txt",
                    modifiedTime: item.clientModifiedTime
                )
            )
            #expect(moved.id == item.id)
            #expect(moved.fileName == "b.txt")
            if world.provider.traits.keepsModifiedTime {
                #expect(moved.clientModifiedTime?.seconds == 1_700_000_000)
            }
            #expect(try await world.names() == ["folder"])
            #expect(try await world.names(in: folder) == ["b.txt"])
            let place = world.reference(moved, in: folder)
            #expect(try await world.read(place, revision: moved.rev) == Array("content".utf8))
            #expect(moved.rev == item.rev || world.provider.traits.moveChangesRevision)

            let renamed = try await world.provider.move(
                Move(
                    item: place,
                    oldParent: folder,
                    parent: folder,
                    name: "B.TXT",
                    modifiedTime: item.clientModifiedTime
                )
            )
            #expect(renamed.fileName == "B.TXT")
            #expect(try await world.names(in: folder) == ["B.TXT"])

            guard world.provider.traits.refusesTakenNames else { return }
            _ = try await world.upload("other", as: "taken", in: folder)
            #expect(
                await world.failure {
                    _ = try await world.provider.move(
                        Move(
                            item: world.reference(renamed, in: folder),
                            oldParent: folder,
                            parent: folder,
                            name: "taken",
                            modifiedTime: nil
                        )
                    )
                } == .nameTaken
            )
        }
    }

    @Test("a folder does not go below itself", arguments: conformingKinds)
    func movingIntoItself(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let outer = try await world.folder("outer")
            let inner = try await world.folder("inner", in: outer)
            #expect(
                await world.failure {
                    _ = try await world.provider.move(
                        Move(
                            item: outer,
                            oldParent: world.root,
                            parent: inner,
                            name: "outer",
                            modifiedTime: nil
                        )
                    )
                } == .moveIntoItself
            )
        }
    }

    @Test(
        "a folder goes elsewhere with all below, which keeps its ids",
        arguments: conformingKinds
    )
    func movingFolders(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            var replica = FeedReplica(of: provider)
            try await replica.catchUp(with: provider)
            let outer = try await world.folder("outer")
            let inner = try await world.folder("inner", in: outer)
            let file = try await world.upload("deep", as: "file.txt", in: inner)
            let empty = try await world.folder("empty", in: outer)
            let other = try await world.folder("other")
            try await world.expectNews(in: &replica)
            let moved = try await provider.move(
                Move(
                    item: outer,
                    oldParent: world.root,
                    parent: other,
                    name: "moved",
                    modifiedTime: nil
                )
            )
            #expect(moved.id == outer.id)
            let place = world.reference(moved, in: other)
            #expect(try await world.names(in: place) == ["empty", "inner"])
            let below = try #require(try await provider.items(named: "inner", in: place).first)
            #expect(below.id == inner.id)
            let found = try #require(
                try await provider.items(
                    named: "file.txt",
                    in: world.reference(below, in: place)
                ).first
            )
            #expect(found.id == file.id)
            #expect(try await world.read(world.reference(found)) == Array("deep".utf8))
            let there = RemotePath(["other", "moved", "inner", "file.txt"])
            #expect(try await world.bytes(at: there) == Array("deep".utf8))
            try await world.expectNews(in: &replica)
            #expect(Set(replica.named("file.txt").map(\.id)) == [file.id])
            #expect(Set(replica.named("empty").map(\.id)) == [empty.id])
        }
    }

    @Test(
        "a deletion takes only the named revision",
        arguments: conformingKinds
    )
    func deletingRevisions(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            let item = try await world.upload("one", as: "file.txt")
            try await world.somebodyElse(
                .write(path: ["file.txt"], SimulatedContent("theirs"), modifiedTime: nil)
            )
            let kind = await world.failure {
                try await provider.delete(
                    Deletion(item: world.reference(item), revision: item.rev)
                )
            }
            // Where the service cannot refuse, what it deletes can be had back.
            guard kind == .preconditionFailed else {
                #expect(kind == nil && !provider.traits.replaceIsAtomic)
                #expect(provider.keepsDeleted(item.id))
                return
            }
            #expect(
                try await world.bytes(at: RemotePath(["file.txt"])) == Array("theirs".utf8)
            )
        }
    }

    @Test("a deletion takes all below, once, and again is done", arguments: conformingKinds)
    func deleting(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            var replica = FeedReplica(of: provider)
            try await replica.catchUp(with: provider)
            let folder = try await world.folder("folder")
            _ = try await world.upload("one", as: "file.txt", in: folder)
            let deep = try await world.folder("deep", in: folder)
            _ = try await world.upload("two", as: "file.txt", in: deep)
            try await world.expectNews(in: &replica)
            let calls = kind.can(.counts) ? try world.traffic.calls : 0
            try await provider.delete(Deletion(item: folder))
            if kind.can(.counts), provider.traits.feed != .scan {
                #expect(try world.traffic.calls == calls + 1)
            }
            try await provider.delete(Deletion(item: folder))
            #expect(try await world.names().isEmpty)
            #expect(try await world.truth().isEmpty)
            try await world.expectNews(in: &replica)
        }
    }

    @Test(
        "what somebody put into a folder is not lost with it unseen",
        arguments: conformingKinds
    )
    func deletingUnseen(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            var replica = FeedReplica(of: provider)
            try await replica.catchUp(with: provider)
            let folder = try await world.folder("folder")
            let deep = try await world.folder("deep", in: folder)
            _ = try await world.upload("one", as: "file.txt", in: deep)
            try await world.expectNews(in: &replica)
            let theirs = RemotePath(["folder", "deep", "theirs.txt"])
            try await world.somebodyElse(
                .write(path: theirs.parts, SimulatedContent("theirs"), modifiedTime: nil)
            )
            let refusal = await world.failure {
                try await provider.delete(Deletion(item: folder))
            }
            guard provider.traits.feed == .scan else {
                // The service's trash has it.
                #expect(refusal == nil && provider.keepsDeleted(folder.id))
                return
            }
            #expect(refusal == .preconditionFailed)
            #expect(try await world.bytes(at: theirs) == Array("theirs".utf8))
            try await world.expectNews(in: &replica)
            try await provider.delete(Deletion(item: folder))
            #expect(try await world.truth().isEmpty)
        }
    }

    @Test(
        "a folder in which nothing should be is not deleted with what lies in it",
        arguments: conformingKinds
    )
    func deletingEmpty(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            var replica = FeedReplica(of: provider)
            try await replica.catchUp(with: provider)
            let folders = [
                try await world.folder("empty"), try await world.folder("filled"),
                try await world.folder("empty, too"),
            ]
            try await world.expectNews(in: &replica)
            let theirs = RemotePath(["filled", "theirs.txt"])
            try await world.somebodyElse(
                .write(path: theirs.parts, SimulatedContent("theirs"), modifiedTime: nil)
            )
            let deletions = folders.map { Deletion(item: $0, expectsNothing: true) }
            let alone = await world.failure { try await provider.delete(deletions[1]) }
            guard alone == .preconditionFailed else {
                // Not every service can be asked before; its trash has what lay in the folder.
                #expect(alone == nil && provider.keepsDeleted(folders[1].id))
                return
            }
            let size = max(1, provider.traits.batchSizes.delete)
            var kinds: [ProviderError.Kind?] = []
            for start in stride(from: 0, to: deletions.count, by: size) {
                let some = Array(deletions[start..<min(start + size, deletions.count)])
                for result in await provider.delete(some) {
                    kinds.append(await world.failure { try result.get() })
                }
            }
            #expect(kinds == [nil, .preconditionFailed, nil])
            #expect(try await world.bytes(at: theirs) == Array("theirs".utf8))
            #expect(try await world.names() == ["filled"])
        }
    }

    @Test("a copy moves no bytes and has an id of its own", arguments: conformingKinds)
    func copying(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let bytes = SimulatedContent(seed: 4, size: 1 << 20).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "a", reservedID: nil)
            )
            let folder = try await world.folder("folder")
            let order = Copy(item: world.reference(item), parent: folder, name: "b")
            guard world.provider.traits.copiesFiles else {
                #expect(
                    await world.failure { _ = try await world.provider.copy(order) } == .unsupported
                )
                return
            }
            let before = kind.can(.counts) ? try world.traffic : nil
            let copy = try await world.provider.copy(order)
            #expect(copy.id != item.id)
            #expect(copy.fileName == "b")
            #expect(copy.contentHash == item.contentHash)
            #expect(try await world.bytes(at: RemotePath(["folder", "b"])) == bytes)
            #expect(try await world.bytes(at: RemotePath(["a"])) == bytes)
            guard let before else { return }
            let after = try world.traffic
            let moved = after.bytesIn + after.bytesOut - before.bytesIn - before.bytesOut
            #expect(moved < 100_000)
        }
    }

    @Test("times and descriptions are set where the traits say so", arguments: conformingKinds)
    func attributes(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let item = try await world.upload("x", as: "x.txt")
            let place = world.reference(item)
            let traits = world.provider.traits
            let time = Timestamp(seconds: 1_600_000_000)
            if traits.setsModifiedTime {
                let changed = try await world.provider.setAttributes(
                    of: place,
                    to: AttributeChange(modifiedTime: time)
                )
                #expect(changed.clientModifiedTime == time)
                #expect(changed.rev == item.rev || traits.timeChangesRevision)
                #expect(changed.contentHash == item.contentHash)
                #expect(try await world.read(place, revision: changed.rev) == Array("x".utf8))
            } else {
                #expect(
                    await world.failure {
                        _ = try await world.provider.setAttributes(
                            of: place,
                            to: AttributeChange(modifiedTime: time)
                        )
                    } == .unsupported
                )
            }
            if traits.setsDescription {
                let changed = try await world.provider.setAttributes(
                    of: place,
                    to: AttributeChange(description: "a note")
                )
                #expect(changed.description == "a note")
            }
        }
    }

    @Test("many at once are done in order, a bad one fails alone", arguments: conformingKinds)
    func batches(_ kind: ConformingKind) async throws {
        try await kind.withWorld { world in
            let provider = world.provider
            let count = min(120, max(1, provider.traits.batchSizes.upload))
            let folders = await provider.createFolders(
                (0..<min(20, max(1, provider.traits.batchSizes.createFolder))).map {
                    NewFolder(parent: world.root, name: "folder \($0)")
                }
            )
            for (index, result) in folders.enumerated() {
                #expect(try result.get().fileName == "folder \(index)")
            }
            let target = world.reference(try #require(try folders.first?.get()))

            var uploads = (0..<count).map { index in
                world.entry(
                    Array("content \(index)".utf8),
                    to: .create(parent: world.root, name: "file \(index)", reservedID: nil)
                )
            }
            uploads[0].content = BytesSource([])
            uploads[0].size = 0
            uploads[0].hash = world.hash([])
            let items = try await provider.upload(uploads).map { try $0.get() }
            for (index, item) in items.enumerated() {
                #expect(item.fileName == "file \(index)")
                #expect(item.contentHash == uploads[index].hash)
            }

            let moves = items.prefix(max(1, min(count, provider.traits.batchSizes.move))).map {
                Move(
                    item: world.reference($0),
                    oldParent: world.root,
                    parent: target,
                    name: "moved " + $0.fileName,
                    modifiedTime: nil
                )
            }
            for (index, result) in await provider.move(moves).enumerated() {
                #expect(try result.get().id == items[index].id)
            }

            var deletions = items.prefix(max(1, min(count, provider.traits.batchSizes.delete)))
                .map { Deletion(item: world.reference($0)) }
            deletions.append(
                Deletion(item: ItemReference(id: items[0].id, path: RemotePath(["not there"])))
            )
            for result in await provider.delete(deletions) { try result.get() }
            #expect(try await world.files().count == count - (deletions.count - 1))
        }
    }
}
