import Testing

@testable import OortFTP

@Suite("Addresses and paths of FTP")
struct FTPAddressTests {
    @Test("all parts of an address are read")
    func parts() {
        let all = FTPAddress("ada@nas.example.org:2121/home/ada")
        #expect(all?.user == "ada")
        #expect(all?.host == "nas.example.org")
        #expect(all?.port == 2121)
        #expect(all?.folder == "/home/ada")
        #expect(all?.security == .explicit)
        #expect(all?.base == "ftp://nas.example.org:2121/")
        let least = FTPAddress("nas")
        #expect(least?.user == nil && least?.port == nil && least?.folder == nil)
        #expect(least?.base == "ftp://nas:21/")
        #expect(FTPAddress("ftps://nas/~/here")?.folder == "here")
        #expect(FTPAddress("ftps://nas")?.base == "ftps://nas:990/")
        #expect(FTPAddress("ada@example.org@host")?.user == "ada@example.org")
        #expect(FTPAddress("[::1]:21")?.base == "ftp://[::1]:21/")
    }

    @Test(
        "what is no address is refused",
        arguments: [
            "", "@host", "host:0", "host:65536", "host:x", "host:+1", "ada:secret@host", "ho st",
            "-host", "[::1", "[x]", "host\u{1B}[2J", "http://host", "ho\nst", "a\rb@host",
        ]
    )
    func refused(text: String) { #expect(FTPAddress(text) == nil) }

    @Test("names that no command can hold are refused in words")
    func names() throws {
        let root = try #require(FTPPath(absolute: [0x2F]))
        for name in ["", ".", "..", "a/b", "a\nb", "a\rb", "a\u{0}b", "a\u{1B}b", "a\u{7F}"] {
            #expect(throws: (any Error).self) { try root.appending(name) }
        }
        for name in [" a ", "...", "ä", "a\"b", "*", "~", "-x", "%2F", "a\\b", "‛E4"] {
            #expect(throws: Never.self) { try root.appending(name) }
        }
        #expect(try root.appending("‛E4").bytes == [0x2F, 0xE4])
        #expect(FTPPath.problem([0x61, 0xFF]) != nil)
    }

    @Test("each byte is written for libcurl so that it comes back")
    func encoded() throws {
        let path = try #require(FTPPath(absolute: Array("/a b/%#?;ä".utf8)))
        #expect(path.encoded == "%2Fa%20b/%25%23%3F%3B%C3%A4")
        #expect(FTPPath(absolute: Array("a".utf8)) == nil)
        #expect(FTPPath(absolute: Array("/a/../b".utf8)) == nil)
        #expect(FTPPath(absolute: Array("//a//b/".utf8))?.bytes == Array("/a/b".utf8))
    }
}
