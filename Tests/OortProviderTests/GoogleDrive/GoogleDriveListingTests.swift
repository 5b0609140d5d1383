import OortModel
import OortSimulators
import OortTesting
import Testing

@testable import OortGoogleDrive

/// Listings of folders, and what one name stands for.
@Suite("Google Drive's listings")
struct GoogleDriveListingTests {
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

    @Test(
        "of folders that Drive does not have it is asked nothing",
        arguments: SyntheticFolder.allCases
    )
    func syntheticFolders(_ folder: SyntheticFolder) async throws {
        try await GoogleDriveWorld.with(.sample()) { world, _ in
            let reference = ItemReference(id: folder.id, path: .root)
            let before = world.simulator.calls.count
            let links = try #require(world.provider.links)
            #expect(try await links.links(of: reference, page: nil).links.isEmpty)
            let page = try await world.provider.webPages?.page(of: reference, isFolder: true)
            #expect(page?.hasPrefix("https://drive.google.com/drive/shared-") == true)
            #expect(world.simulator.calls.count == before)
        }
    }

    @Test("items of one name are listed as old as they are")
    func oldestFirst() async throws {
        try await GoogleDriveWorld.with { world, service in
            service.account.givesFullPages = true
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
}
