import OortGoogleDrive
import OortModel
import OortSimulators
import OortTesting
import Testing

/// What only Drive does, seen through its provider.
@Suite("Google Drive")
struct GoogleDriveTests {
    @Test("the whole account comes in pages, each item below a folder that came too")
    func enumeration() async throws {
        try await GoogleDriveWorld.with(.sample()) { world, service in
            let (items, _) = try await world.everything()
            for item in items.values {
                let parent = try #require(item.parentID)
                #expect(parent == world.rootID || items[parent] != nil, "\(item.fileName)")
            }
            let names = Set(items.values.map(\.fileName))
            #expect(
                names.isSuperset(of: ["Income/expenses.txt", "Evening song.txt", "Onion soup.txt"])
            )
            let shared = try #require(items.values.first { $0.fileName == "Shared with me" })
            #expect(shared.parentID == world.rootID)
            #expect(shared.permissions == .read)
            #expect(items.values.filter { $0.fileName == "Invoice.txt" }.count == 2)
            let drive = try #require(items.values.first { $0.fileName == "Choir" })
            #expect(drive.parentID == ItemID("oort:shared-drives"))
            let shortcut = try #require(items.values.first { $0.kind == .shortcut })
            #expect(items[try #require(shortcut.shortcutTarget)]?.fileName == "Notes")
            let all = service.account.withTree { $0.allItems.count }
            // All but two roots, and the two synthetic folders and the drive more.
            #expect(items.count == all - 2 + 3)
            let lists = try #require(world.simulator.counts["files.list"]?.calls)
            #expect(lists == all / 1000 + 2)
        }
    }

    @Test("an account of its own has no synthetic folders")
    func noSyntheticFolders() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let (items, _) = try await world.everything()
            #expect(items.isEmpty)
            let listing = try await world.provider.children(of: world.root, page: nil)
            #expect(listing.items.isEmpty)
        }
    }

    @Test("a listing of the root and of the synthetic folders shows what the enumeration shows")
    func listings() async throws {
        try await GoogleDriveWorld.with(.sample()) { world, _ in
            let (items, _) = try await world.everything()
            for folder in [
                world.rootID, ItemID("oort:shared-with-me"), ItemID("oort:shared-drives"),
            ] {
                let listing = try await world.provider.children(
                    of: ItemReference(id: folder, path: .root),
                    page: nil
                )
                let expected = items.values.filter { $0.parentID == folder }
                #expect(Set(listing.items.map(\.id)) == Set(expected.map(\.id)))
            }
        }
    }

    @Test("trashing is told as a removal, and a restored folder brings its contents back")
    func trashAndRestore() async throws {
        try await GoogleDriveWorld.with { world, service in
            world.somebodyElse(.write(path: ["a", "b", "c.txt"], .init("c"), modifiedTime: nil))
            var (_, cursor) = try await world.everything()
            let folder = try #require(world.somebodyElse(.trash(path: ["a"])))
            #expect(try await world.news(since: &cursor) == [.removed(ItemID(folder))])
            service.account.withTree { $0.restore(folder) }
            let names = try await world.news(since: &cursor).compactMap {
                if case .changed(let item) = $0 { item.fileName } else { nil }
            }
            #expect(names == ["a", "b", "c.txt"])
        }
    }

    @Test("a shared drive that is joined is listed, and one that is left is gone")
    func joiningDrives() async throws {
        try await GoogleDriveWorld.with { world, service in
            var (_, cursor) = try await world.everything()
            let drive = service.addDrive("Club")
            service.account.withTree {
                _ = $0.create("Rules.txt", in: drive, content: SimulatedContent("1"))
            }
            let joined = try await world.news(since: &cursor).compactMap {
                if case .changed(let item) = $0 { item.fileName } else { nil }
            }
            #expect(joined == ["Shared drives", "Club", "Rules.txt"])
            service.account.withTree {
                _ = $0.create("More.txt", in: drive, content: SimulatedContent("2"))
            }
            let more = try await world.news(since: &cursor).compactMap {
                if case .changed(let item) = $0 { item.fileName } else { nil }
            }
            #expect(more == ["More.txt"])
            service.leaveDrive(drive)
            let left = try await world.news(since: &cursor)
            #expect(left.contains(.removed(ItemID(drive))))
        }
    }

    @Test("a file that moves into a shared drive is not removed")
    func moveIntoDrive() async throws {
        try await GoogleDriveWorld.with { world, service in
            let drive = service.addDrive("Club")
            let file = try await world.upload("x", as: "x.txt")
            var (_, cursor) = try await world.everything()
            let moved = try await world.provider.move(
                Move(
                    item: world.reference(file),
                    oldParent: world.root,
                    parent: ItemReference(id: ItemID(drive), path: .root),
                    name: "x.txt",
                    modifiedTime: nil
                )
            )
            #expect(moved.parentID == ItemID(drive))
            for change in try await world.news(since: &cursor) {
                #expect(change != .removed(file.id))
            }
        }
    }

    @Test("a foreign or stale cursor is lost", arguments: ["", "{}", "12"])
    func lostCursor(_ text: String) async throws {
        try await GoogleDriveWorld.with { world, _ in
            let refusal = await world.failure {
                _ = try await world.provider.changes(since: Cursor(text))
            }
            #expect(refusal == .cursorLost)
        }
    }

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
            let parts = 1 + (size - 1) / (256 << 10)
            world.simulator.add(
                FaultRule(
                    .doneButNoAnswer,
                    at: "v2.uploads",
                    skipping: size > 5_000_000 ? parts : 0
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
            world.simulator.clearCalls()
            let session = try #require(sessions.session)
            upload.content = BytesSource(content)
            #expect(session.confirmedBytes == 10 * 256 << 10)
            upload.session = session
            let item = try await world.provider.upload(upload, observer: sessions)
            #expect(item.contentHash == upload.hash)
            #expect(item.id == ids[0])
            #expect(sessions.session == nil)
            let sent = try #require(world.simulator.counts["uploads"]?.bytesIn)
            #expect(sent == Int64(size) - session.confirmedBytes)
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

    @Test("ranges are cut at the end, and an empty file reads as empty")
    func reading() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("0123456789", as: "f")
            let empty = try await world.upload("", as: "e")
            for (item, range, text) in [
                (file, 2..<5 as Range<Int64>, "234"), (file, 8..<100, "89"), (file, 10..<20, ""),
                (file, 0..<Int64.max, "0123456789"), (empty, 0..<100, ""),
            ] {
                let bytes = try await world.provider.read(
                    world.reference(item),
                    revision: item.rev,
                    range: range
                ).collect(atMost: 100)
                #expect(String(decoding: bytes, as: UTF8.self) == text)
            }
            let refusal = await world.failure {
                _ = try await world.provider.read(
                    world.reference(file),
                    revision: Revision("old"),
                    range: 0..<5
                )
            }
            #expect(refusal == .preconditionFailed)
        }
    }

    @Test("whose bytes a download gave is asked after it was answered, however often it was tried")
    func revisionOfDownload() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("0123456789", as: "f")
            world.simulator.add(
                FaultRule(.status(503, retryAfterSeconds: nil), at: "files.get")
            )
            let before = world.simulator.calls.count
            _ = try await world.provider.read(
                world.reference(file),
                revision: file.rev,
                range: 2..<5
            )
            .collect(atMost: 100)
            // Two tries of the download, the second of which gave a part; then the item.
            #expect(world.simulator.calls[before...].map(\.status) == [503, 206, 200])
        }
    }

    @Test("native documents are exported, above 10 MB by their links")
    func export() async throws {
        try await GoogleDriveWorld.with { world, service in
            service.account.withTree { tree in
                for (name, size) in [("small", 10), ("large", 11_000_000)] {
                    tree.create(
                        name,
                        in: tree.rootID,
                        kind: .nativeDocument(.document),
                        content: SimulatedContent(String(repeating: "a", count: size))
                    )
                }
            }
            let items = try await world.provider.children(of: world.root, page: nil).items
            #expect(items.count == 2)
            for item in items {
                #expect(item.kind == .nativeDocument)
                let format = try #require(item.exports.first)
                #expect(format.fileExtension == "docx")
                let bytes = try await world.provider.export(world.reference(item), to: format)
                    .collect(atMost: 50 << 20)
                #expect(bytes.prefix(2).elementsEqual("PK".utf8))
            }
            #expect(world.simulator.counts["files.exportLink"]?.calls == 1)
        }
    }

    @Test("names are found exactly: neither by other case nor by other normal form")
    func exactNames() async throws {
        try await GoogleDriveWorld.with { world, _ in
            for name in ["caf\u{E9}", "cafe\u{301}", "CAF\u{C9}", "it's \\ a/name", "n", "n"] {
                _ = try await world.upload(name, as: name)
            }
            for (name, count) in [
                ("caf\u{E9}", 1), ("cafe\u{301}", 1), ("it's \\ a/name", 1), ("n", 2), ("N", 0),
            ] {
                let found = try await world.provider.items(named: name, in: world.root)
                #expect(found.count == count, "\(name)")
            }
            let nowhere = ItemReference(id: ItemID("nowhere"), path: .root)
            let refusal = await world.failure {
                _ = try await world.provider.items(named: "n", in: nowhere)
            }
            #expect(refusal == .parentNotFound)
            let long = String(repeating: "語", count: 3000)
            _ = try await world.upload("long", as: long)
            #expect(try await world.provider.items(named: long, in: world.root).count == 1)
        }
    }

    @Test("items of one name are listed as old as they are")
    func oldestFirst() async throws {
        try await GoogleDriveWorld.with { world, service in
            var made: [ItemID] = []
            // Ids say nothing of age.
            for number in 0..<6 {
                let time = Timestamp(seconds: 1_700_000_000 + Int64(number))
                service.account.withTree { $0.now = { time } }
                made.append(try await world.upload("\(number)", as: "n").id)
            }
            let page = try await world.provider.changes(since: nil)
            let told = page.changes.compactMap { change -> ItemID? in
                guard case .changed(let item) = change, item.fileName == "n" else { return nil }
                return item.id
            }
            #expect(told == made)
            let listing = try await world.provider.children(of: world.root, page: nil)
            #expect(listing.items.map(\.id) == made)
        }
    }

    @Test("many folders, moves and deletions go in one call each")
    func batches() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let provider = world.provider
            let made = await provider.createFolders(
                (0..<100).map { NewFolder(parent: world.root, name: "f\($0)") }
            )
            let folders = try made.map { try $0.get() }
            #expect(folders.map(\.fileName) == (0..<100).map { "f\($0)" })
            let target = folders[0]
            let moved = await provider.move(
                folders.dropFirst().map {
                    Move(
                        item: world.reference($0),
                        oldParent: world.root,
                        parent: world.reference(target),
                        name: $0.fileName + "!",
                        modifiedTime: nil
                    )
                }
            )
            #expect(try moved.allSatisfy { try $0.get().parentID == target.id })
            let gone = await provider.delete(
                folders.dropFirst().map { Deletion(item: world.reference($0)) }
            )
            for result in gone { try result.get() }
            #expect(
                try await provider.children(of: world.reference(target), page: nil).items.isEmpty
            )
            #expect(world.simulator.counts["batch"]?.calls == 3)
            #expect(world.simulator.counts["files.create"] == nil)
            #expect(world.simulator.counts["files.update"] == nil)
        }
    }

    @Test("of a batch, each answer stands for itself")
    func mixedBatch() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let file = try await world.upload("1", as: "a")
            let stale = try await world.upload("2", as: "b")
            let results = await world.provider.delete([
                Deletion(item: world.reference(file), revision: file.rev),
                Deletion(item: world.reference(stale), revision: Revision("old")),
                Deletion(item: ItemReference(id: ItemID("gone"), path: .root)),
            ])
            try results[0].get()
            try results[2].get()
            let error = #expect(throws: ProviderError.self) { try results[1].get() }
            #expect(error?.kind == .preconditionFailed)
        }
    }

    @Test("a folder cannot go below itself, nor into what is not there")
    func refusedMoves() async throws {
        try await GoogleDriveWorld.with { world, _ in
            let outer = try await world.provider.createFolder(
                NewFolder(parent: world.root, name: "outer")
            )
            let inner = try await world.provider.createFolder(
                NewFolder(parent: world.reference(outer), name: "inner")
            )
            for (item, parent, kind) in [
                (outer.id, inner.id, ProviderError.Kind.moveIntoItself),
                (outer.id, ItemID("nowhere"), .parentNotFound),
                (ItemID("gone"), outer.id, .notFound),
                (outer.id, ItemID("oort:shared-drives"), .noPermission),
            ] {
                let refusal = await world.failure {
                    _ = try await world.provider.move(
                        Move(
                            item: ItemReference(id: item, path: .root),
                            oldParent: world.root,
                            parent: ItemReference(id: parent, path: .root),
                            name: "x",
                            modifiedTime: nil
                        )
                    )
                }
                #expect(refusal == kind)
            }
        }
    }

    @Test("copies of files and of documents keep the time that they are given")
    func copies() async throws {
        try await GoogleDriveWorld.with { world, service in
            let file = try await world.upload("text", as: "f")
            let document = service.account.withTree { tree in
                tree.create(
                    "d",
                    in: tree.rootID,
                    kind: .nativeDocument(.document),
                    content: SimulatedContent("d")
                ).id
            }
            for id in [file.id, ItemID(document)] {
                let copy = try await world.provider.copy(
                    Copy(
                        item: ItemReference(id: id, path: .root),
                        parent: world.root,
                        name: "copy",
                        modifiedTime: Timestamp(seconds: 1000)
                    )
                )
                #expect(copy.id != id)
                #expect(copy.clientModifiedTime == Timestamp(seconds: 1000))
            }
        }
    }

    @Test("what asks for patience is waited out, whatever its status")
    func patience() async throws {
        try await GoogleDriveWorld.with { world, _ in
            world.simulator.add(FaultRule(.status(429, retryAfterSeconds: nil), at: "about.get"))
            world.simulator.add(FaultRule(.status(503, retryAfterSeconds: nil), at: "about.get"))
            world.simulator.add(FaultRule(.html(status: 502), at: "about.get"))
            _ = try await world.provider.quota()
            #expect(world.simulator.counts["about.get"]?.calls == 5)
        }
    }

    @Test("a thumbnail is fetched by its link")
    func thumbnail() async throws {
        try await GoogleDriveWorld.with(.sample()) { world, _ in
            let (items, _) = try await world.everything()
            let picture = try #require(items.values.first { $0.fileName == "IMG_0001.jpg" })
            #expect(picture.thumbnail == true)
            let bytes = try await world.provider.thumbnail(of: world.reference(picture), edge: 256)
                .collect(atMost: 1 << 20)
            #expect(!bytes.isEmpty)
            let text = try #require(items.values.first { $0.fileName == "Welcome.txt" })
            let refusal = await world.failure {
                _ = try await world.provider.thumbnail(of: world.reference(text), edge: 256)
            }
            #expect(refusal == .unsupported)
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
