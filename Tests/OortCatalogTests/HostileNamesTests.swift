import OortModel
import Testing

@testable import OortCatalog

@Suite("hostile names")
struct HostileNamesTests {
    @Test(
        "any name is shown as one that a folder can hold",
        arguments: [
            "/\u{301}", "a/\u{301}b", "\0\u{301}", "..\u{200D}", "..",
            "x" + String(repeating: "\u{301}", count: 10_000),
            "." + String(repeating: "\u{301}", count: 10_000),
            String(repeating: "../", count: 4000), "\u{202E}gnp.exe", "\r\n", "\u{FFFD}",
        ]
    )
    func shown(_ name: String) {
        for kind in [ItemKind.file, .folder] {
            let shown = ShownName.shown(Item(id: ItemID("1"), kind: kind, fileName: name))
            for one in [shown, ShownName.numbered(shown, 2)] {
                #expect((1...255).contains(one.utf8.count))
                #expect(!one.utf8.contains(0x2F))
                #expect(!one.utf8.contains(0))
                #expect(one != "." && one != "..")
            }
        }
    }

    @Test("a deletion of an item with NUL in its texts stands when the service tells it again")
    func nul() async throws {
        let fixture = try TemporaryAccount(service: "drive", names: Rules.exact)
        var item = Item(id: ItemID("1"), kind: .file, fileName: "\0", parentID: ItemID("root"))
        (item.originalFileName, item.owner, item.rev) = ("a\0b", "c\0d", Revision("r"))
        try await fixture.page([.changed(item)])
        let root = fixture.account.root
        let node = try #require(
            try fixture.catalog.node(remoteID: item.id, account: fixture.account.id)
        )
        #expect(node.name == "␀")
        let told = try #require(try fixture.catalog.details(of: node.inode))
        #expect(told.originalFileName == "a␀b")
        #expect(told.owner == "c␀d")
        _ = try fixture.catalog.unlink("␀", in: root)
        try await fixture.page([.changed(item)])
        #expect(try fixture.catalog.children(of: root, after: nil, limit: 10).isEmpty)
    }
}
