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
}
