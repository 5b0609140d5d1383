import SwiftSFTP
import Testing

@Suite("Paths at a server")
struct SFTPPathTests {
    @Test(
        "what would lead elsewhere is not the name of an entry",
        arguments: ["", ".", "..", "/", "a/b", "../a", "a/", "a\0b"]
    )
    func noNames(_ text: String) {
        #expect {
            _ = try SFTPPath(name: text.utf8)
        } throws: {
            ($0 as? SFTPError)?.kind == .notSendable
        }
    }

    @Test(
        "any other bytes are a name",
        arguments: [
            [UInt8]("...".utf8), Array("a\\b".utf8), Array("..∕..".utf8), [0xFF, 0xFE], [0x0A],
        ]
    )
    func names(_ bytes: [UInt8]) throws {
        let name = try SFTPPath(name: bytes)
        #expect(try SFTPPath("/folder").appending(name).bytes == Array("/folder/".utf8) + bytes)
    }
}
