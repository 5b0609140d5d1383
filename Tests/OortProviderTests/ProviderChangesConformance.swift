import OortModel
import OortSimulators
import OortTesting
import Testing

/// What every provider promises about changing the tree, also when calls fail.
@Suite("provider conformance: changing the tree", .timeLimit(.minutes(15)))
struct ProviderChangesConformance {
    @Test("folders hold folders, and a taken name is told", arguments: conformingServices)
    func folders(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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

    @Test("what is not there is not found, by either way", arguments: conformingServices)
    func missing(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let item = try await world.upload("x", as: "x.txt")
            let folder = try await world.folder("gone")
            world.somebodyElse(.trash(path: ["x.txt"]))
            world.somebodyElse(.trash(path: ["gone"]))
            let place = world.reference(item)
            let provider = world.provider
            #expect(await world.failure { _ = try await provider.item(place) } == .notFound)
            #expect(try await provider.items(named: "x.txt", in: world.root).isEmpty)
            #expect(
                await world.failure { _ = try await provider.items(named: "y", in: folder) }
                    == .parentNotFound
            )
            #expect(
                await world.failure { _ = try await world.upload("y", as: "y", in: folder) }
                    == .parentNotFound
            )
            try await provider.delete(Deletion(item: place))
        }
    }

    @Test(
        "what an upload made is known as that wherever somebody moved it",
        arguments: conformingServices
    )
    func lostUpload(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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
            world.somebodyElse(.move(from: ["lost.txt"], to: ["folder", "moved.txt"]))
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
            #expect(try await provider.isOutcome(moved, of: lost("lost.txt")))
            // With ids by the client nobody asks of another file.
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

    @Test("a move keeps the id and the content and replaces nothing", arguments: conformingServices)
    func moving(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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
            #expect(moved.clientModifiedTime?.seconds == 1_700_000_000)
            #expect(try await world.names() == ["folder"])
            #expect(try await world.names(in: folder) == ["b.txt"])
            let place = world.reference(moved, in: folder)
            #expect(try await world.read(place, revision: moved.rev) == Array("content".utf8))
            #expect((moved.rev != item.rev) == world.provider.traits.moveChangesRevision)

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

    @Test("a folder does not go below itself", arguments: conformingServices)
    func movingIntoItself(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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
        "a deletion takes all below, once, and only the named revision",
        arguments: conformingServices
    )
    func deleting(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let folder = try await world.folder("folder")
            let item = try await world.upload("one", as: "file.txt", in: folder)
            if world.provider.traits.replaceIsAtomic {
                world.somebodyElse(
                    .write(
                        path: ["folder", "file.txt"],
                        SimulatedContent("two"),
                        modifiedTime: nil
                    )
                )
                #expect(
                    await world.failure {
                        try await world.provider.delete(
                            Deletion(
                                item: world.reference(item, in: folder),
                                revision: item.rev
                            )
                        )
                    } == .preconditionFailed
                )
            }
            world.simulator.clearCalls()
            try await world.provider.delete(Deletion(item: folder))
            #expect(world.simulator.calls.count == 1)
            try await world.provider.delete(Deletion(item: folder))
            #expect(try await world.names().isEmpty)
        }
    }

    @Test("a copy moves no bytes and has an id of its own", arguments: conformingServices)
    func copying(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            guard world.provider.traits.copiesFiles else { return }
            let bytes = SimulatedContent(seed: 4, size: 1 << 20).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "a", reservedID: nil)
            )
            let folder = try await world.folder("folder")
            world.simulator.clearCalls()
            let copy = try await world.provider.copy(
                Copy(item: world.reference(item), parent: folder, name: "b")
            )
            #expect(copy.id != item.id)
            #expect(copy.fileName == "b")
            #expect(copy.contentHash == item.contentHash)
            let moved = world.simulator.counts.values.reduce(0) { $0 + $1.bytesIn + $1.bytesOut }
            #expect(moved < 100_000)
        }
    }

    @Test("times and descriptions are set where the traits say so", arguments: conformingServices)
    func attributes(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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
                #expect(changed.rev == item.rev)
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

    @Test("many at once are done in order, a bad one fails alone", arguments: conformingServices)
    func batches(_ service: ConformingService) async throws {
        try await service.withWorld { world in
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
            let left = world.simulator.account.withTree { tree in
                tree.descendants(of: tree.rootID).filter { $0.kind == .file }.count
            }
            #expect(left == count - (deletions.count - 1))
        }
    }

    // MARK: Faults

    @Test(
        "trouble that says it is passing is waited out",
        arguments: conformingServices,
        [
            Fault.status(429, retryAfterSeconds: 0), .status(503, retryAfterSeconds: 0),
            .expiredToken,
        ]
    )
    func patience(_ service: ConformingService, _ fault: Fault) async throws {
        try await service.withWorld { world in
            let first = try await world.upload("first", as: "a.txt")
            world.simulator.add(FaultRule(fault, at: "*"))
            _ = try await world.provider.item(world.reference(first))
            world.simulator.add(FaultRule(fault, at: "*"))
            let folder = try await world.folder("folder")
            world.simulator.add(FaultRule(fault, at: "*"))
            let second = try await world.upload("second", as: "b.txt", in: folder)
            world.simulator.add(FaultRule(fault, at: "*"))
            #expect(
                try await world.read(world.reference(second, in: folder), revision: second.rev)
                    == Array("second".utf8)
            )
            world.simulator.add(FaultRule(fault, at: "*"))
            try await world.provider.delete(Deletion(item: world.reference(first)))
            #expect(try await world.names() == ["folder"])
        }
    }

    @Test(
        "a fresh token that is refused in passing signs nobody out",
        arguments: conformingServices
    )
    func refusedTokens(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let cursor = try await world.provider.changes(since: nil).cursor
            world.simulator.add(FaultRule(.expiredToken, at: "*", times: 3))
            _ = try await world.provider.quota()
            world.simulator.clearFaults()
            world.simulator.add(FaultRule(.expiredToken, at: "*"))
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
        arguments: conformingServices,
        [
            Fault.doneButNoAnswer, .doneButStatus(500), .truncatedAnswer(bytes: 10),
            .html(status: 200), .cutDownload(afterBytes: 5), .noAnswer,
        ]
    )
    func lostAnswers(_ service: ConformingService, _ fault: Fault) async throws {
        try await service.withWorld { world in
            func attempt(_ body: () async throws -> Void) async {
                world.simulator.add(FaultRule(fault, at: "*"))
                do {
                    try await body()
                } catch let error as ProviderError {
                    #expect(error.isTransient, "\(error)")
                } catch {
                    Issue.record("another error: \(error)")
                }
                world.simulator.clearFaults()
            }
            await attempt {
                _ = try await world.provider.createFolder(
                    NewFolder(parent: world.root, name: "folder")
                )
            }
            #expect(try await world.names().count <= 1)
            await attempt { _ = try await world.upload("text", as: "a.txt") }
            let files = try await world.names().filter { $0 != "folder" }
            #expect(files.isEmpty || files == ["a.txt"])
            let item = try await world.upload("text", as: "b.txt")
            await attempt {
                _ = try await world.upload(
                    Array("next".utf8),
                    to: .replace(world.reference(item), revision: item.rev)
                )
            }
            #expect(try await world.provider.items(named: "b.txt", in: world.root).count == 1)
        }
    }

    @Test("a body that breaks off is an error, not a short file", arguments: conformingServices)
    func brokenDownload(_ service: ConformingService) async throws {
        try await service.withWorld { world in
            let bytes = SimulatedContent(seed: 5, size: 3 << 20).bytes
            let item = try await world.upload(
                bytes,
                to: .create(parent: world.root, name: "a", reservedID: nil)
            )
            world.simulator.add(FaultRule(.cutDownload(afterBytes: 1 << 20), at: "*", times: nil))
            let kind = await world.failure {
                _ = try await world.read(world.reference(item), revision: item.rev)
            }
            #expect(kind.map { ProviderError($0, detail: "").isTransient } == true)
        }
    }
}
