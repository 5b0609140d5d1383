import OortModel
import OortSimulators
import OortTesting
import Testing

/// The change feed, with the synthetic folders that only Drive has.
@Suite("Google Drive's change feed")
struct GoogleDriveChangesTests {
    @Test("the whole account comes in pages, each item below a folder that came too")
    func enumeration() async throws {
        try await GoogleDriveWorld.with(.sample()) { world, service in
            service.account.givesFullPages = true
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

    @Test("trashing is told as a removal, and a restored folder brings its contents back")
    func trashAndRestore() async throws {
        try await GoogleDriveWorld.with { world, service in
            world.somebodyElse(.write(path: ["a", "b", "c.txt"], .init("c"), modifiedTime: nil))
            var (_, cursor) = try await world.everything()
            let folder = try #require(
                SimulatorEdit.trash(path: ["a"]).apply(to: world.simulator.service)
            )
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
}
