import GRDB
import OortModel
import Testing

@testable import OortCatalog

/// Catalogs as older versions left them.
@Suite("a catalog of an older version")
struct OldCatalogTests {
    private let fixture: TemporaryAccount

    init() throws { fixture = try TemporaryAccount(service: "drive", names: Rules.exact) }

    private var catalog: Catalog { fixture.catalog }
    private var root: Inode { fixture.account.root }

    private func item(_ name: String, _ id: String, in parent: String, made: Int64) -> Item {
        let isFolder = name.hasSuffix("/")
        var item = Item(
            id: ItemID(id),
            kind: isFolder ? .folder : .file,
            fileName: isFolder ? String(name.dropLast()) : name,
            parentID: ItemID(parent)
        )
        item.createdTime = Timestamp(seconds: made, nanoseconds: 5_000_000)
        (item.version, item.originalFileName) = ("1", item.fileName)
        guard !isFolder else { return item }
        (item.rev, item.size, item.tag) = (Revision("r" + id), 4, "0000000" + id)
        item.clientModifiedTime = Timestamp(seconds: 1_700_000_000)
        item.contentHash = ContentHash(algorithm: .md5, value: "0000000" + id)
        return item
    }

    private func node(_ id: String) throws -> Node {
        try #require(try catalog.node(remoteID: ItemID(id), account: fixture.account.id))
    }

    private func names(in folder: Inode) throws -> [String] {
        try catalog.children(of: folder, after: nil, limit: 100).map(\.name).sorted()
    }

    @Test("which has all of an item as JSON is taken over, with what waits to be sent")
    func details() async throws {
        let items = [
            item("d/", "d", in: "root", made: 10), item("a.txt", "1", in: "d", made: 20),
            item("f.txt", "2", in: "root", made: 200), item("f.txt", "3", in: "root", made: 100),
            item("moved", "4", in: "root", made: 30),
        ]
        try await fixture.page(items.map { .changed($0) })
        let folder = try node("d").inode
        _ = try catalog.create(.folder, named: "new", in: root)
        _ = try catalog.rename("moved", in: root, to: "here", in: folder, mode: .replace)
        var change = NodeAttributes()
        change.modified = Timestamp(seconds: 5)
        _ = try catalog.setAttributes(change, of: try node("1").inode)
        let operations = try await fixture.plan()
        #expect(operations.count == 2)
        let details = try items.map { try catalog.details(of: node($0.id.rawValue).inode) }
        let nodes = try items.map { try node($0.id.rawValue) }
        let names = try names(in: root)
        #expect(names == ["d", "f (2).txt", "f.txt", "new"])

        try becomeOlder(items)
        #expect(try items.map { try catalog.details(of: node($0.id.rawValue).inode) } == details)
        #expect(try items.map { try node($0.id.rawValue) } == nodes)
        #expect(try self.names(in: root) == names)
        #expect(try await fixture.plan() == operations)
        let index = try catalog.read { database in
            try database.text("SELECT sql FROM sqlite_master WHERE name = 'node_by_hash'", [])
        }
        #expect(index?.contains("substr(hash, -8)") == true)

        // Numbers are by when the items were made, which the old text says.
        try await fixture.page([.changed(item("f.txt", "5", in: "root", made: 150))])
        #expect(try node("3").name == "f.txt")
        #expect(try node("5").name == "f (2).txt")
        #expect(try node("2").name == "f (3).txt")
        // A modified time that was reported before is no news against the one that was set here.
        var again = items[1]
        again.version = "2"
        try await fixture.page([.changed(again)])
        try await fixture.plan()
        #expect(try node("1").modified == Timestamp(seconds: 5))
        #expect(try catalog.details(of: node("1").inode)?.version == "2")
        #expect(try text(of: "1").hasPrefix("{") == false)
        #expect(try text(of: "2").hasPrefix("{"))
        let document = try #require(try catalog.details(of: node("2").inode))
        #expect(document == details[2])
    }

    @Test("which knows nothing of people has each account enumerated once more, and loses nothing")
    func people() async throws {
        try await fixture.page([.changed(item("f.txt", "1", in: "root", made: 1))])
        _ = try catalog.create(.folder, named: "new", in: root)
        #expect(try catalog.account(fixture.account.id)?.cursor != nil)
        try fixture.temporary.reopen {
            let database = try DatabaseQueue(path: fixture.temporary.path)
            try database.write { database in
                try database.execute(
                    sql: """
                        DELETE FROM grdb_migrations
                            WHERE identifier = 'whose an item is and who changed it'
                        """
                )
            }
            try database.close()
        }
        #expect(try catalog.account(fixture.account.id)?.cursor == nil)
        #expect(try names(in: root) == ["f.txt", "new"])
        try fixture.temporary.reopen()
        var again = item("f.txt", "1", in: "root", made: 1)
        (again.owner, again.isShared) = ("Grace Other", true)
        try await fixture.page([.changed(again)])
        #expect(try catalog.account(fixture.account.id)?.cursor != nil)
        let details = try #require(try catalog.details(of: node("1").inode))
        #expect(details.owner == "Grace Other" && details.isShared)
        try fixture.temporary.reopen()
        #expect(try catalog.account(fixture.account.id)?.cursor != nil)
    }

    @Test("which knows nothing of tags gets them as items change, and its index of names stays")
    func tags() async throws {
        try await fixture.page([.changed(item("f.txt", "1", in: "root", made: 1))])
        while try await catalog.advanceSearchIndex() {}
        try fixture.temporary.reopen {
            let database = try DatabaseQueue(path: fixture.temporary.path)
            try database.write { database in
                try database.execute(
                    sql: """
                        DROP TRIGGER search_renamed;
                        DROP TRIGGER search_removed;
                        ALTER TABLE node DROP COLUMN tags;
                        ALTER TABLE search_stale DROP COLUMN tags;
                        CREATE TRIGGER search_renamed AFTER UPDATE OF name ON node
                            BEGIN SELECT 1; END;
                        CREATE TRIGGER search_removed AFTER DELETE ON node BEGIN SELECT 1; END;
                        DELETE FROM grdb_migrations WHERE identifier = 'tags';
                        """
                )
            }
            try database.close()
        }
        #expect(try await catalog.search(SearchQuery(words: ["f"])).unindexed == 0)
        #expect(try catalog.account(fixture.account.id)?.cursor != nil)
        var again = item("f.txt", "1", in: "root", made: 1)
        again.tags = TextList(["urgent"])
        try await fixture.page([.changed(again)])
        #expect(try catalog.details(of: node("1").inode)?.tags == "urgent")
        #expect(try await catalog.search(SearchQuery(words: ["urgent"])).hits.count == 1)
        while try await catalog.advanceSearchIndex() {}
        #expect(try await catalog.search(SearchQuery(words: ["urgent"])).hits.count == 1)
    }

    @Test("which did not note where rules held an item keeps it, unless they hold it where it lies")
    func heldItems() throws {
        func setRules(_ lines: String...) throws {
            try catalog.setIgnoreRules(IgnoreRules(lines), of: fixture.account.id)
        }
        try setRules("/a/", "*.tmp")
        let folder = try catalog.create(.folder, named: "a", in: root)
        let inner = try catalog.create(.file, named: "f", in: folder.inode)
        let draft = try catalog.create(.file, named: "x.tmp", in: root)
        func held() throws -> [Bool] {
            try [folder, inner, draft].map { try catalog.node($0.inode).isHeld }
        }
        try fixture.temporary.reopen {
            let database = try DatabaseQueue(path: fixture.temporary.path)
            try database.write { database in
                // Somebody else's rename took the folder out of its rule.
                try database.execute(
                    sql: """
                        UPDATE node SET name = 'b', name_key = 'b' WHERE name = 'a';
                        ALTER TABLE node DROP COLUMN held_at;
                        DELETE FROM grdb_migrations
                            WHERE identifier = 'where what stays here was when rules held it'
                        """
                )
            }
            try database.close()
        }
        try setRules("/a/", "*.tmp", "*.log")
        #expect(try held() == [true, true, true])
        try setRules("*.log")
        #expect(try held() == [true, true, false])
        try setRules()
        #expect(try held() == [false, false, false])
    }

    private func text(of id: String) throws -> String {
        try catalog.read { database in
            try database.text("SELECT details FROM node WHERE remote_id = ?", [id]) ?? ""
        }
    }

    /// Closes the catalog, writes it as an older version did, and opens it again.
    private func becomeOlder(_ items: [Item]) throws {
        try fixture.temporary.reopen {
            let database = try DatabaseQueue(path: fixture.temporary.path)
            try database.write { database in
                for item in items {
                    try database.execute(
                        sql: "UPDATE node SET details = ? WHERE remote_id = ?",
                        arguments: [try StoredItem(item).json(), item.id.rawValue]
                    )
                }
                try database.execute(
                    sql: """
                        DROP INDEX node_by_hash;
                        CREATE INDEX node_by_hash ON node(account, hash) WHERE hash IS NOT NULL;
                        DELETE FROM grdb_migrations
                            WHERE identifier = 'details without what columns have';
                        """
                )
            }
            try database.close()
        }
    }
}
