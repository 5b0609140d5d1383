import GRDB
import OortModel
import Testing

@testable import OortCatalog

/// What an item of an enumerated account takes on the disk; names, ids, revisions and hashes are as long
/// as the service's.
@Suite("the size of the catalog")
struct CatalogSizeTests {
    private static let count = 3000

    @Test("at a service of ids and parents, an item takes no more than 450 bytes")
    func drive() async throws {
        let fixture = try TemporaryAccount(service: "drive", names: Rules.exact)
        var numbers = RandomNumbers(state: 5)
        func text(_ count: Int) -> String {
            let letters = "abcdefghijkmnpqrstuvwxyzABCDEFGH23456789"
            return String((0..<count).map { _ in letters.randomElement(using: &numbers) ?? "a" })
        }
        var folder = "root"
        let size = try await enumerate(fixture) { number in
            let isFolder = number % 20 == 0
            var item = Item(
                id: ItemID(text(33)),
                kind: isFolder ? .folder : .file,
                fileName: isFolder ? "folder \(number)" : "IMG_20240101_1\(number) (edited).jpg",
                parentID: ItemID(isFolder ? "root" : folder)
            )
            let time = Timestamp(
                seconds: 1_700_000_000 + Int64(number),
                nanoseconds: Int32(number % 1000 * 1_000_000)
            )
            (item.clientModifiedTime, item.createdTime) = (time, time)
            (item.isOwn, item.version, item.thumbnail) = (true, "\(number)", false)
            guard !isFolder else {
                folder = item.id.rawValue
                return item
            }
            item.mimeType = "image/jpeg"
            item.originalFileName = item.fileName
            (item.rev, item.size) = (Revision(text(52)), Int64(number) * 1000)
            item.tag = hex(32, &numbers)
            item.contentHash = item.tag.map { ContentHash(algorithm: .md5, value: $0) }
            return item
        }
        #expect(size <= 450)
    }

    @Test("at a service of paths, an item takes no more than 400 bytes")
    func dropbox() async throws {
        let fixture = try TemporaryAccount(service: "dropbox", names: Rules.folding)
        var numbers = RandomNumbers(state: 5)
        var folder = ""
        let size = try await enumerate(fixture) { number in
            let isFolder = number % 20 == 0
            let name = isFolder ? "Folder \(number)" : "IMG_20240101_1\(number) (edited).jpg"
            var item = Item(
                id: ItemID("id:" + hex(22, &numbers)),
                kind: isFolder ? .folder : .file,
                fileName: name,
                path: RemotePath(isFolder ? [name] : [folder, name])
            )
            item.isOwn = true
            guard !isFolder else {
                folder = name
                return item
            }
            let time = Timestamp(seconds: 1_700_000_000 + Int64(number))
            (item.clientModifiedTime, item.serverModifiedTime) = (time, time)
            item.thumbnail = true
            (item.rev, item.size) = (Revision(hex(27, &numbers)), Int64(number) * 1000)
            item.tag = hex(64, &numbers)
            item.contentHash = item.tag.map {
                ContentHash(algorithm: .dropboxContentHash, value: $0)
            }
            return item
        }
        #expect(size <= 400)
    }

    private func hex(_ count: Int, _ numbers: inout RandomNumbers) -> String {
        String((0..<count).map { _ in "0123456789abcdef".randomElement(using: &numbers) ?? "0" })
    }

    /// Bytes that each of the items takes.
    private func enumerate(
        _ fixture: TemporaryAccount,
        _ item: (Int) -> Item
    ) async throws -> Int64 {
        let before = try await bytes(fixture)
        var changes: [Change] = []
        for number in 0..<Self.count {
            changes.append(.changed(item(number)))
            guard changes.count == 1000 else { continue }
            try await fixture.page(changes, endsRun: number == Self.count - 1)
            changes = []
        }
        return try await (bytes(fixture) - before) / Int64(Self.count)
    }

    private func bytes(_ fixture: TemporaryAccount) async throws -> Int64 {
        try await fixture.catalog.readAsync { database in
            let pages = try database.number("PRAGMA page_count", []) ?? 0
            let free = try database.number("PRAGMA freelist_count", []) ?? 0
            return (pages - free) * (try database.number("PRAGMA page_size", []) ?? 0)
        }
    }
}
