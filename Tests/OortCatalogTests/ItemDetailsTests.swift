import Foundation
import GRDB
import OortModel
import OortPlanner
import Testing

@testable import OortCatalog

@Suite("what the service said of an item and no column has")
struct ItemDetailsTests {
    private static let time = Timestamp(seconds: 1_700_000_000, nanoseconds: 120_000_000)

    private static var items: [Item] {
        var plain = Item(id: ItemID("1"), kind: .file, fileName: "a.txt")
        plain.rev = Revision("r")
        var same = plain
        (same.clientModifiedTime, same.serverModifiedTime) = (time, time)
        (same.createdTime, same.originalFileName, same.tag) = (time, "a.txt", "00ff")
        same.contentHash = ContentHash(algorithm: .md5, value: "00ff")
        (same.thumbnail, same.isOwn, same.version) = (true, true, "7")
        var other = same
        other.originalFileName = "o5:i3:x\u{1}é\n"
        (other.tag, other.version, other.thumbnail) = ("\"{AB},1\"", "", false)
        other.clientModifiedTime = Timestamp(seconds: -5, nanoseconds: 1)
        other.serverModifiedTime = Timestamp(seconds: .min, nanoseconds: 999_999_999)
        other.createdTime = Timestamp(seconds: .max)
        (other.permissions, other.description) = ([.read], "words")
        (other.owner, other.createdBy, other.modifiedBy) = ("Bob", "Grace é", "Bob")
        (other.isShared, other.sharedWith) = (true, TextList(["Bob", "g5:staff (group)"]))
        var theirs = plain
        (theirs.owner, theirs.createdBy, theirs.modifiedBy) = ("Bob", "Bob", "Bob")
        var changed = plain
        (changed.owner, changed.modifiedBy) = ("Bob", "Bob")
        var document = Item(id: ItemID("2"), kind: .nativeDocument, fileName: "d")
        document.exports = [
            ExportFormat(mimeType: "a/b", fileExtension: "docx"),
            ExportFormat(mimeType: "a/c", fileExtension: ""),
        ]
        var shortcut = Item(id: ItemID("3"), kind: .shortcut, fileName: "s")
        shortcut.shortcutTarget = ItemID("target")
        let folder = Item(id: ItemID("4"), kind: .folder, fileName: "{")
        return [plain, same, other, theirs, changed, document, shortcut, folder]
    }

    @Test("all of it comes back, from today's text and from an older version's", arguments: items)
    func roundTrip(_ item: Item) throws {
        var told = StoredItem(item)
        (told.description, told.revision, told.size) = (nil, nil, nil)
        func read(_ details: String, _ id: String) throws -> String {
            var item = StoredItem(Item(id: ItemID(id), kind: .file, fileName: told.fileName))
            (item.hash, item.mimeType) = (told.hash, told.mimeType)
            try item.read(details: details)
            (item.description, item.revision, item.size) = (nil, nil, nil)
            return try item.json()
        }
        let json = try told.json()
        #expect(try read(StoredItem(item).json(), "other") == json)
        for (hasName, hasHash) in [(true, true), (false, true), (true, false), (false, false)] {
            let details = StoredItem(item).details(hasName: hasName, hasHash: hasHash)
            #expect(try read(details, told.id) == json)
            #expect(!details.hasPrefix("{"))
        }
    }

    @Test(
        "a text that is none is reported",
        arguments: [
            "m", "m1.", "m1.0123456789", "v", "v3:ab", "v-1:", "v99999999999999999999:", "?",
        ]
    )
    func damaged(_ text: String) {
        #expect(throws: CatalogError.self) { try StoredItem(details: text, of: "1") }
    }

    @Test("a name and a tag that columns have are shown as told while the item is changed here")
    func changedHere() async throws {
        let fixture = try TemporaryAccount(service: "drive", names: Rules.exact)
        var item = Self.items[1]
        item.parentID = ItemID("root")
        try await fixture.page([.changed(item)])
        let node = try #require(
            try fixture.catalog.node(remoteID: item.id, account: fixture.account.id)
        )
        let root = fixture.account.root
        _ = try fixture.catalog.rename("a.txt", in: root, to: "b.txt", in: root, mode: .replace)
        _ = try fixture.catalog.stage(
            NewStagedContent(size: 3),
            account: fixture.account.id,
            modified: .now,
            of: node.inode
        ) { _ in }
        #expect(try fixture.catalog.node(node.inode).hash == nil)
        let details = try #require(try fixture.catalog.details(of: node.inode))
        #expect(details.originalFileName == "a.txt")
        #expect(details.tag == "00ff")
        #expect(details.serverModifiedTime == Self.time)
        #expect(details.hasModifiedTime)
    }

    @Test("a file is found by its content's hash without looking at others")
    func foundByHash() throws {
        let temporary = try TemporaryCatalog()
        let steps = try temporary.catalog.read { database in
            try Row.fetchAll(
                database,
                sql: "EXPLAIN QUERY PLAN \(Catalog.fileByHash)",
                arguments: ["md5:00ff", "md5:00ff", 1, 0]
            ).map { $0["detail"] as String }
        }
        #expect(steps.contains { $0.contains("SEARCH node USING INDEX node_by_hash") }, "\(steps)")
    }
}
