import Foundation
import OortModel
import OortSimulators
import OortTesting
import Synchronization
import Testing

@testable import OortOneDrive

@Suite("OneDrive provider")
struct OneDriveProviderTests {
    let time = Timestamp(seconds: 1_700_000_000)

    // MARK: Feed

    @Test("the sample account is enumerated whole, a shared folder of another drive with it")
    func enumeration() async throws {
        try await OneDriveWorld.with(.sample()) { world in
            let (changes, cursor) = try await world.changes(since: nil)
            let items = changes.compactMap { if case .changed(let item) = $0 { item } else { nil } }
            #expect(items.count > 2400)
            let root = try await world.root
            #expect(!items.contains { $0.id == root.id })
            let choir = try #require(items.first { $0.fileName == "Choir (Grace)" })
            #expect(choir.kind == .folder && choir.parentID == root.id)
            let programme = try #require(items.first { $0.fileName == "Programme.txt" })
            #expect(programme.parentID == choir.id)
            #expect(try await world.text(programme).hasPrefix("1. Kyrie"))
            let notebook = try #require(items.first { $0.fileName == "Workshop notebook" })
            #expect(notebook.kind == .folder && notebook.permissions == [.read, .share])
            let listed = try await world.provider.children(of: world.reference(choir), page: nil)
            #expect(Set(listed.items.map(\.id)).isSuperset(of: [programme.id]))
            #expect(listed.items.allSatisfy { $0.parentID == choir.id })

            // Each item's parent is the root or an item.
            let ids = Set(items.map(\.id)).union([root.id])
            #expect(items.allSatisfy { $0.parentID.map(ids.contains) ?? false })

            let quiet = try await world.changes(since: cursor)
            #expect(quiet.changes.isEmpty)
        }
    }

    @Test("work in a shared folder goes to its drive, and deleting it deletes the shortcut only")
    func sharedFolder() async throws {
        try await OneDriveWorld.with(.sample()) { world in
            let (changes, cursor) = try await world.changes(since: nil)
            let choir = try #require(
                changes.lazy.compactMap { if case .changed(let item) = $0 { item } else { nil } }
                    .first { $0.fileName == "Choir (Grace)" }
            )
            let parent = world.reference(choir)
            let file = try await world.upload(
                Array("la".utf8),
                to: .create(parent: parent, name: "Notes.txt", reservedID: nil)
            )
            #expect(file.parentID == choir.id)
            let folder = try await world.provider.createFolder(
                NewFolder(parent: parent, name: "Scores")
            )
            #expect(folder.parentID == choir.id)
            let moved = try await world.provider.move(
                Move(
                    item: world.reference(file, at: choir.fileName, file.fileName),
                    oldParent: parent,
                    parent: world.reference(folder, at: choir.fileName, "Scores"),
                    name: "n.txt",
                    modifiedTime: nil
                )
            )
            #expect(moved.parentID == folder.id)
            let news = try await world.changes(since: cursor)
            #expect(news.changes.contains(.changed(moved)) || news.changes.count >= 2)

            let renamed = try await world.provider.move(
                Move(
                    item: parent,
                    oldParent: try await world.root,
                    parent: try await world.root,
                    name: "Singing",
                    modifiedTime: nil
                )
            )
            #expect(renamed.id == choir.id && renamed.fileName == "Singing")
            try await world.provider.delete(Deletion(item: parent))
            let end = try await world.changes(since: news.cursor)
            #expect(end.changes.contains(.removed(choir.id)))
            #expect(
                world.service.account.withTree { tree in
                    tree.item(at: ["Choir", "Programme.txt"], from: OneDriveSimulator.otherRoot)
                        != nil
                }
            )
        }
    }

    @Test("a folder whose items nobody counts is looked into before it counts as empty")
    func uncounted() async throws {
        try await OneDriveWorld.with { world in
            world.service.habits.countsChildren = false
            let root = try await world.root
            var kinds: [ProviderError.Kind?] = []
            for name in ["empty", "filled"] {
                let made = try await world.provider.createFolder(
                    NewFolder(parent: root, name: name, reservedID: nil)
                )
                let theirs = SimulatorEdit.write(
                    path: ["filled", "theirs.txt"],
                    SimulatedContent("theirs"),
                    modifiedTime: nil
                )
                if name.isSameText(as: "filled") { _ = theirs.apply(to: world.service) }
                do throws(ProviderError) {
                    try await world.provider.delete(
                        Deletion(item: world.reference(made), expectsNothing: true)
                    )
                    kinds.append(nil)
                } catch { kinds.append(error.kind) }
            }
            #expect(kinds == [nil, .preconditionFailed])
        }
    }

    @Test("changes of others come by the feed: new, moved, changed, deleted with all below")
    func changes() async throws {
        try await OneDriveWorld.with { world in
            func edit(_ edit: SimulatorEdit) -> String? { edit.apply(to: world.service) }
            _ = edit(.write(path: ["a", "b", "c.txt"], SimulatedContent("one"), modifiedTime: nil))
            let (_, start) = try await world.changes(since: nil)
            _ = edit(
                .write(path: ["a", "b", "c.txt"], SimulatedContent("two!"), modifiedTime: nil)
            )
            var (changes, cursor) = try await world.changes(since: start)
            #expect(changes.count == 1)
            guard case .changed(let file) = changes[0] else { return }
            #expect(file.size == 4)

            _ = edit(.move(from: ["a", "b"], to: ["d"]))
            (changes, cursor) = try await world.changes(since: cursor)
            #expect(changes.count == 1)
            _ = edit(.trash(path: ["d"]))
            (changes, cursor) = try await world.changes(since: cursor)
            #expect(Set(changes).contains(.removed(file.id)))
            #expect(changes.count == 2)
        }
    }

    @Test(
        "a delta link that is too old is a lost cursor",
        arguments: ["resyncChangesApplyDifferences", "resyncChangesUploadDifferences"]
    )
    func lostCursor(code: String) async throws {
        try await OneDriveWorld.with { world in
            _ = try await world.create("a.txt", "a")
            let (_, cursor) = try await world.changes(since: nil)
            world.service.expireDeltaLinks(code: code)
            let lost = await kind { _ = try await world.provider.changes(since: cursor) }
            #expect(lost == .cursorLost)
            let (changes, _) = try await world.changes(since: nil)
            #expect(changes.count == 1)
            let foreign = await kind { _ = try await world.provider.changes(since: Cursor("x")) }
            #expect(foreign == .cursorLost)
        }
    }

    // MARK: Reading

    @Test("ranges of a large file are what they should be")
    func ranges() async throws {
        try await OneDriveWorld.with { world in
            let content = SimulatedContent(seed: 5, size: 3_000_000)
            _ = SimulatorEdit.write(path: ["big.bin"], content, modifiedTime: nil)
                .apply(to: world.service)
            let item = try #require(
                try await world.provider.items(named: "BIG.bin", in: world.root).first
            )
            world.simulator.clearCalls()
            for range in [
                0..<10, 1_000_000..<1_600_000, 2_999_990..<4_000_000, 3_000_000..<3_000_001,
            ]
                as [Range<Int64>]
            {
                let stream = try await world.provider.read(
                    world.reference(item),
                    revision: item.rev,
                    range: range
                )
                let bytes = try await stream.collect(atMost: 1 << 22)
                #expect(bytes == content.bytes(in: range), "\(range)")
            }
            // The address came with the item.
            #expect(world.simulator.counts["item/get"]?.calls == nil)
        }
    }

    @Test("an address that ran out is asked for again", arguments: [true, false])
    func expiredAddress(tagsContent: Bool) async throws {
        try await OneDriveWorld.with { world in
            world.service.habits.tagsContent = tagsContent
            let item = try await world.create("a.txt", "hello")
            #expect(try await world.text(item) == "hello")
            world.service.expireDownloads()
            #expect(try await world.text(item) == "hello")
        }
    }

    @Test("a revision that is no longer current is refused", arguments: [true, false])
    func staleRead(tagsContent: Bool) async throws {
        try await OneDriveWorld.with { world in
            world.service.habits.tagsContent = tagsContent
            let item = try await world.create("a.txt", "hello")
            #expect(try await world.text(item) == "hello")
            // Same length, so that only the tag differs.
            _ = SimulatorEdit.write(path: ["a.txt"], SimulatedContent("HELLO"), modifiedTime: nil)
                .apply(to: world.service)
            #expect(await kind { _ = try await world.text(item) } == .preconditionFailed)
            // A rename changes the tag and not the content.
            let current = try await world.provider.item(world.reference(item))
            _ = SimulatorEdit.move(from: ["a.txt"], to: ["b.txt"]).apply(to: world.service)
            #expect(try await world.text(current) == "HELLO")
        }
    }

    @Test("reading what is gone, or is no file, is said as it is")
    func badReads() async throws {
        try await OneDriveWorld.with { world in
            let item = try await world.create("a.txt", "hello")
            try await world.provider.delete(Deletion(item: world.reference(item)))
            #expect(await kind { _ = try await world.text(item) } == .notFound)
            let folder = try await world.provider.createFolder(
                NewFolder(parent: world.root, name: "f")
            )
            let read = await kind {
                _ = try await world.provider.read(
                    world.reference(folder),
                    revision: nil,
                    range: 0..<1
                )
            }
            #expect(read == .notAFile)
            let file = try await world.create("b.txt", "b")
            let list = await kind {
                _ = try await world.provider.children(of: world.reference(file), page: nil)
            }
            #expect(list == .notAFolder)
            world.service.account.withTree { tree in
                _ = tree.update(tree.item(at: ["b.txt"])?.id ?? "") { $0.extra["malware"] = true }
            }
            world.service.expireDownloads()
            #expect(await kind { _ = try await world.text(file) } == .contentBlocked)
        }
    }

    @Test("pictures have thumbnails, texts have none")
    func thumbnails() async throws {
        try await OneDriveWorld.with(.sample()) { world in
            let photos = try #require(
                try await world.provider.items(named: "Photos", in: world.root).first
            )
            let album = try #require(
                try await world.provider.items(
                    named: "2026 Iceland",
                    in: world.reference(photos)
                ).first
            )
            let picture = try #require(
                try await world.provider.items(named: "map.png", in: world.reference(album)).first
            )
            let bytes = try await world.provider.thumbnail(of: world.reference(picture), edge: 128)
                .collect(atMost: 1 << 20)
            #expect(bytes.starts(with: [0xFF, 0xD8, 0xFF]), "OneDrive's pictures are JPEG")
            let text = try #require(
                try await world.provider.items(named: "Welcome.txt", in: world.root).first
            )
            let none = await kind {
                _ = try await world.provider.thumbnail(of: world.reference(text), edge: 128)
            }
            #expect(none == .unsupported)
        }
    }

    // MARK: Changing

    @Test("a move keeps id, time and content; a taken name is refused; case may change alone")
    func move() async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let file = try await world.create("a.txt", "a", time: time)
            _ = try await world.create("b.txt", "b")
            let folder = try await world.provider.createFolder(
                NewFolder(parent: root, name: "f", modifiedTime: time)
            )
            #expect(folder.clientModifiedTime == time)
            func move(_ item: Item, from: ItemReference, to: ItemReference, _ name: String)
                async throws -> Item
            {
                try await world.provider.move(
                    Move(
                        item: world.reference(item),
                        oldParent: from,
                        parent: to,
                        name: name,
                        modifiedTime: nil
                    )
                )
            }
            #expect(
                await kind { _ = try await move(file, from: root, to: root, "B.TXT") } == .nameTaken
            )
            let upper = try await move(file, from: root, to: root, "A.txt")
            #expect(upper.fileName == "A.txt" && upper.id == file.id)
            let moved = try await move(upper, from: root, to: world.reference(folder), "c.txt")
            #expect(
                moved.id == file.id && moved.clientModifiedTime == time && moved.rev == file.rev
            )
            #expect(moved.parentID == folder.id)
            let inner = try await world.provider.createFolder(
                NewFolder(parent: world.reference(folder), name: "inner")
            )
            let loop = await kind {
                _ = try await move(
                    folder,
                    from: root,
                    to: world.reference(inner, at: "f", "inner"),
                    "f"
                )
            }
            #expect(loop == .moveIntoItself)
            try await world.provider.delete(Deletion(item: world.reference(inner)))
            let gone = await kind {
                _ = try await move(
                    moved,
                    from: world.reference(folder),
                    to: world.reference(inner),
                    "x"
                )
            }
            #expect(gone == .parentNotFound)
            #expect(
                await kind { _ = try await move(moved, from: root, to: root, "x:y") }
                    == .nameRefused
            )
        }
    }

    @Test("a PATCH that lies is found out and done another way", arguments: [true, false])
    func lyingPatch(paddedIDsHelp: Bool) async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let file = try await world.create("a.txt", "a", time: time)
            let folder = try await world.provider.createFolder(NewFolder(parent: root, name: "f"))
            world.service.habits.patchLies = true
            world.service.habits.paddedIDsHelp = paddedIDsHelp
            let moved = try await world.provider.move(
                Move(
                    item: world.reference(file),
                    oldParent: root,
                    parent: world.reference(folder),
                    name: "b.txt",
                    modifiedTime: nil
                )
            )
            #expect(moved.fileName == "b.txt" && moved.parentID == folder.id && moved.id == file.id)
            let results = await world.provider.move([
                Move(
                    item: world.reference(moved, at: "f", "b.txt"),
                    oldParent: world.reference(folder),
                    parent: root,
                    name: "c.txt",
                    modifiedTime: time
                )
            ])
            #expect(try results.first?.get().fileName == "c.txt")
            // By a path that leads elsewhere nothing may be changed.
            if !paddedIDsHelp {
                let lost = await kind {
                    _ = try await world.provider.move(
                        Move(
                            item: world.reference(moved, at: "f"),
                            oldParent: root,
                            parent: root,
                            name: "d.txt",
                            modifiedTime: time
                        )
                    )
                }
                #expect(lost == .malformedAnswer)
                #expect(world.service.account.withTree { $0.item(at: ["f"]) != nil })
            }
        }
    }

    @Test("a delete of a revision spares a newer one; what is gone is a success")
    func delete() async throws {
        try await OneDriveWorld.with { world in
            let item = try await world.create("a.txt", "one")
            _ = SimulatorEdit.write(path: ["a.txt"], SimulatedContent("two"), modifiedTime: nil)
                .apply(to: world.service)
            let stale = await kind {
                try await world.provider.delete(
                    Deletion(item: world.reference(item), revision: item.rev)
                )
            }
            #expect(stale == .preconditionFailed)
            let current = try await world.provider.item(world.reference(item))
            world.service.habits.falsePreconditions = 1
            try await world.provider.delete(
                Deletion(item: world.reference(item), revision: current.rev)
            )
            #expect(
                await kind { _ = try await world.provider.item(world.reference(item)) } == .notFound
            )
            try await world.provider.delete(
                Deletion(item: world.reference(item), revision: item.rev)
            )
            try await world.provider.delete(Deletion(item: world.reference(item)))
        }
    }

    @Test("a copy is made at the service, with its time; a taken name is refused")
    func copy() async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let item = try await world.create("a.txt", "one", time: time)
            let copy = try await world.provider.copy(
                Copy(item: world.reference(item), parent: root, name: "b.txt", modifiedTime: time)
            )
            #expect(copy.id != item.id && copy.clientModifiedTime == time)
            #expect(copy.contentHash == item.contentHash)
            #expect(try await world.text(copy) == "one")
            let taken = await kind {
                _ = try await world.provider.copy(
                    Copy(item: world.reference(item), parent: root, name: "B.txt")
                )
            }
            #expect(taken == .nameTaken)
        }
    }

    @Test("time and description are set")
    func attributes() async throws {
        try await OneDriveWorld.with { world in
            let item = try await world.create("a.txt", "one")
            let changed = try await world.provider.setAttributes(
                of: world.reference(item),
                to: AttributeChange(modifiedTime: time, description: "mine")
            )
            #expect(changed.clientModifiedTime == time && changed.description == "mine")
            #expect(changed.rev == item.rev)
            let cleared = try await world.provider.setAttributes(
                of: world.reference(item),
                to: AttributeChange(description: "")
            )
            #expect(cleared.description == nil)
        }
    }

    @Test("fifty folders, moves and deletes are a few batches, each part with its own result")
    func batches() async throws {
        try await OneDriveWorld.with { world in
            let root = try await world.root
            let names = (0..<50).map { "folder \($0)" }
            let made = await world.provider.createFolders(
                (names + ["folder 7", "a:b"]).map { NewFolder(parent: root, name: $0) }
            )
            let folders = try made.prefix(50).map { try $0.get() }
            #expect(folders.map(\.fileName) == names)
            #expect(throws: ProviderError.self) { try made[50].get() }
            #expect(throws: ProviderError.self) { try made[51].get() }
            #expect(world.simulator.counts["batch"]?.calls == 3)
            world.service.habits.throttledBatchParts = 1
            let moves = await world.provider.move(
                folders.prefix(20).map {
                    Move(
                        item: world.reference($0),
                        oldParent: root,
                        parent: root,
                        name: $0.fileName + "!",
                        modifiedTime: time
                    )
                }
            )
            #expect(moves.count { if case .success = $0 { true } else { false } } == 19)
            guard case .failure(let error) = moves[0] else {
                Issue.record("not throttled")
                return
            }
            #expect(error.kind == .rateLimited(retryAfter: .seconds(1)))
            let deletions = await world.provider.delete(
                folders.map { Deletion(item: world.reference($0)) }
            )
            #expect(deletions.allSatisfy { if case .success = $0 { true } else { false } })
            let again = await world.provider.delete(
                folders.map { Deletion(item: world.reference($0)) }
            )
            #expect(again.allSatisfy { if case .success = $0 { true } else { false } })
            #expect(world.service.account.withTree { $0.children(of: $0.rootID).isEmpty })
        }
    }

    @Test("2,400 entries of a folder come in pages of a thousand")
    func paging() async throws {
        try await OneDriveWorld.with(.sample()) { world in
            let archive = try #require(
                try await world.provider.items(named: "Archive", in: world.root).first
            )
            let receipts = try #require(
                try await world.provider.items(named: "receipts", in: world.reference(archive))
                    .first
            )
            var names: Set<String> = []
            var page: PageToken?
            var pages = 0
            repeat {
                let listing = try await world.provider.children(
                    of: world.reference(receipts),
                    page: page
                )
                names.formUnion(listing.items.map(\.fileName))
                page = listing.next
                pages += 1
            } while page != nil
            #expect(names.count == 2400 && pages == 3)
        }
    }

    @Test("the sample's large file has the hash that is noted for it")
    func largeFileHash() async throws {
        // Counted on a smaller file of the same making: the two hashers agree.
        try await OneDriveWorld.with { world in
            let content = SimulatedContent(seed: 300, size: 3_000_001)
            _ = SimulatorEdit.write(path: ["f"], content, modifiedTime: nil).apply(
                to: world.service
            )
            let item = try #require(
                try await world.provider.items(named: "f", in: world.root).first
            )
            var hasher = world.provider.makeHasher()
            hasher.update(content.bytes[...])
            #expect(item.contentHash == hasher.finalize())
        }
    }
}
