import Foundation
import GRDB
import Logging
import OortModel
import Synchronization
import Testing

@testable import OortCatalog

/// What a page of news costs the catalog.
@Suite("the statements that a page of an enumeration takes")
struct ObservationCostTests {
    /// Counts what a connection executes.
    private final class Counter: Sendable {
        let count = Atomic(0)
    }

    private static func item(_ id: String, in parent: String, isFolder: Bool = false) -> Change {
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: id,
            parentID: ItemID(parent)
        )
        if !isFolder { (item.rev, item.size) = (Revision("1"), 0) }
        return .changed(item)
    }

    @Test("a new file takes two, and its folder is looked for once")
    func newFiles() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("oort-catalog-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let catalog = try Catalog(
            path: folder.appendingPathComponent("catalog.sqlite").path,
            logger: Logger(label: "test")
        )
        defer { try? catalog.close() }
        let account = try catalog.registerAccount(
            name: "work",
            service: "drive",
            names: NameRules(comparison: .exact, allowsDuplicates: true) { _, _, _ in nil }
        )
        try catalog.setIdentity(
            AccountIdentity(id: "me", displayName: "Me", email: nil, rootID: ItemID("root")),
            of: account.id
        )
        try await catalog.beginEnumeration(of: account.id)
        let counter = Counter()
        try await catalog.pool.writeWithoutTransaction { database in
            database.trace { _ in counter.count.add(1, ordering: .relaxed) }
        }
        func cost(_ changes: [Change]) async throws -> Int {
            let before = counter.count.load(ordering: .relaxed)
            var page = Observations(changes: changes)
            page.cursor = OortModel.Cursor("c")
            page.endsRun = false
            _ = try await catalog.apply(page, to: account.id)
            return counter.count.load(ordering: .relaxed) - before
        }
        let folders = ["d", "e"].map { Self.item($0, in: "root", isFolder: true) }
        let few = try await cost(
            folders + (0..<10).map { Self.item("few \($0)", in: $0 % 2 == 0 ? "d" : "e") }
        )
        let many = try await cost(
            (0..<1000).map { Self.item("many \($0)", in: $0 % 2 == 0 ? "d" : "e") }
        )
        // One that asks whether the name is free, and one that stores it.
        #expect(many <= 2 * 1000 + few)
        #expect(try catalog.children(of: account.root, after: nil, limit: 10).count == 2)
        let inside = try #require(try catalog.node(remoteID: ItemID("d"), account: account.id))
        #expect(try catalog.children(of: inside.inode, after: nil, limit: 1000).count == 505)
    }
}
