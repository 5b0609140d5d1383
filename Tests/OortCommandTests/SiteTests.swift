import FlyingSocks
import Foundation
import Testing

@testable import oort

@Suite("The page of oort web")
struct SiteTests {
    @Test(
        "what is put into a page is text",
        arguments: [
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            ("a\"b'c&d", "a&quot;b&#39;c&amp;d"),
            ("a\u{1B}[2Jb\nc\u{202E}d\u{0}", "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{0}"),
            ("e\u{301} 日本 👩‍👩‍👧", "e\u{301} 日本 👩‍👩‍👧"),
            ("\">\r\n<b", "&quot;&gt;\\r\\n&lt;b"),
        ]
    )
    func escaping(text: String, shown: String) {
        let html: HTML = "<p title=\"\(text)\">\(text)</p>"
        #expect(html.text == "<p title=\"\(shown)\">\(shown)</p>")
    }

    @Test("the lines of a file stay lines")
    func lines() {
        #expect(HTML.lines("a<b\n\tc\u{1B}d").text == "a&lt;b\n\tc\\u{1b}d")
    }

    @Test(
        "a path comes back from its address byte by byte",
        arguments: [
            ["drive", "a b+c%d?e#f&g=h"], ["x", "\u{1}\n\"<>'"], ["été", "e\u{301}"], ["..."],
            [".hidden", "a..", "..b"],
        ]
    )
    func addresses(names: [String]) throws {
        let path = try #require(SitePath("/m/" + names.joined(separator: "/"), below: "/m"))
        #expect(
            path.encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"<>&'".utf8.contains($0) }
        )
        let back = try #require(SitePath(encoded: path.encoded))
        #expect(back == path)
        #expect(
            try Array(back.absolute(below: "/m").utf8)
                == Array("/m/\(names.joined(separator: "/"))".utf8)
        )
    }

    @Test("a name that is no UTF-8 keeps its bytes, and cannot be told to the mount")
    func bytes() throws {
        let path = try #require(SitePath(encoded: "drive/a%FFb"))
        #expect(path.names.last == [0x61, 0xFF, 0x62])
        #expect(path.encoded == "drive/a%FFb")
        #expect(throws: Failure.self) { try path.absolute(below: "/m") }
    }

    @Test(
        "no address leads out of the mount",
        arguments: [
            "..", "../etc", "a/../..", "a/./b", "%2e%2e/etc/passwd", "a/%2E%2E", "a%2Fb", "a/%00",
            "a//b", "%2Fetc", "a%", "a%zz", "%2e", String(repeating: "a", count: 256),
        ]
    )
    func traversal(address: String) {
        #expect(SitePath(encoded: address) == nil)
    }

    @Test("a path of another folder is none of the mount")
    func elsewhere() {
        for path in ["/etc/passwd", "/mm/a", "/m/../etc", "m/a", "/m/./a"] {
            #expect(SitePath(path, below: "/m") == nil)
        }
        #expect(SitePath("/m", below: "/m") == .root)
    }

    @Test(
        "where a link leads is told by its text, and never out",
        arguments: [
            ("b", "a/b"), ("../c/d", "c/d"), ("/m/x/y", "x/y"), ("/m", ""), ("./b/", "a/b"),
            ("../../x", nil), ("/etc/passwd", nil), ("/mm/x", nil), ("/m/../etc", nil),
        ]
    )
    func links(target: String, place: String?) throws {
        let folder = try #require(SitePath(encoded: "a"))
        let found = SitePath(link: Array(target.utf8), in: folder, mountPoint: "/m")
        #expect(found?.encoded == place)
    }

    @Test(
        "ranges of a file of 1000 bytes",
        arguments: [
            (nil, ByteRange.whole), ("bytes=0-", .part(0..<1000)), ("bytes=0-0", .part(0..<1)),
            ("bytes=990-2000", .part(990..<1000)), ("bytes=-10", .part(990..<1000)),
            ("bytes=-5000", .part(0..<1000)), ("bytes=1000-", .unsatisfiable),
            ("bytes=5000-6000", .unsatisfiable), ("bytes=-0", .unsatisfiable),
            ("bytes=5-4", .whole), ("bytes=0-1,5-6", .whole), ("lines=0-1", .whole),
            ("bytes=a-b", .whole), ("bytes=", .whole), ("bytes=-", .whole),
            ("bytes=0-99999999999999999999999", .part(0..<1000)),
            ("bytes=99999999999999999999999-", .unsatisfiable),
        ] as [(String?, ByteRange)]
    )
    func ranges(field: String?, range: ByteRange) {
        #expect(ByteRange(field: field, size: 1000) == range)
    }

    @Test("an empty file has no range")
    func emptyRange() {
        #expect(ByteRange(field: "bytes=0-", size: 0) == .unsatisfiable)
        #expect(ByteRange(field: "bytes=-1", size: 0) == .unsatisfiable)
    }

    @Test(
        "what could run a script is text, in a sandbox, or saved",
        arguments: [
            ("a.html", "text/plain; charset=utf-8"), ("a.XHTML", "text/plain; charset=utf-8"),
            ("a.js", "text/plain; charset=utf-8"), ("a.svg", "image/svg+xml"),
            ("a.swf", "application/octet-stream"), ("html", "application/octet-stream"),
            ("a.jpg.exe", "application/octet-stream"), ("a.", "application/octet-stream"),
        ]
    )
    func types(name: String, type: String) {
        let kind = MediaKind.of(Array(name.utf8))
        #expect(kind.type == type)
        #expect(kind.policy.hasPrefix("sandbox; default-src 'none'"))
        #expect(kind.isShown == (type != "application/octet-stream"))
    }

    @Test("a picture is known by its bytes")
    func pictures() {
        #expect(MediaKind.ofPicture([0xFF, 0xD8, 0xFF, 0xE0]) == "image/jpeg")
        #expect(MediaKind.ofPicture(Array("<html>".utf8)) == nil)
        #expect(MediaKind.ofPicture([UInt8]()) == nil)
    }

    @Test("the token opens the page once, and no other does")
    func token() throws {
        let admission = SiteAdmission()
        #expect(admission.enter(with: "") == nil)
        let token = admission.makeToken()
        #expect(token.count == 64)
        #expect(admission.enter(with: "") == nil)
        #expect(admission.enter(with: String(token.dropLast())) == nil)
        let session = try #require(admission.enter(with: token))
        #expect(admission.enter(with: token) == nil)
        #expect(admission.session(of: session.cookie) != nil)
        #expect(admission.session(of: session.formToken) == nil)
        #expect(admission.session(of: nil) == nil)
    }

    @Test(
        "a form leads back to a page of this one only",
        arguments: [
            ("/files/a/b%20c", "/files/a/b%20c"), ("/pins", "/pins/"), (nil, "/"), ("", "/"),
            ("//evil.example/", "/"), ("https://evil.example/", "/"), ("/files/../x", "/"),
            ("/enter?token=x", "/"),
            ("/files/a\r\nSet-Cookie: x", "/files/a%0D%0ASet-Cookie%3A%20x"),
        ]
    )
    func back(text: String?, place: String) {
        #expect(Site.place(text) == place)
    }

    @Test("fields of a form")
    func forms() {
        let fields = PercentCoding.fields("a=1&b=x+y%26z&a=2&c&=d&e=%ff&f=%".utf8)
        #expect(fields == ["a": "1", "b": "x y&z", "c": "", "": "d"])
    }

    @Test("the user of the other end is found in the kernel's table")
    func owner() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1
               1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
            """
        #expect(
            SocketOwner.owner(of: ("127.0.0.1", 50000), connectedTo: ("127.0.0.1", 8080), in: table)
                == 1000
        )
        #expect(
            SocketOwner.owner(of: ("127.0.0.1", 50001), connectedTo: ("127.0.0.1", 8080), in: table)
                == nil
        )
    }

    @Test("texts side by side")
    func sides() {
        let rows = SideBySide.rows(["a", "b", "c", "d"], ["a", "x", "c", "d", "e"])
        #expect(
            rows == [
                .init(left: "a", right: "a"), .init(left: "b", right: "x"),
                .init(left: "c", right: "c"), .init(left: "d", right: "d"),
                .init(left: nil, right: "e"),
            ]
        )
        #expect(SideBySide.rows([], []).isEmpty)
        #expect(SideBySide.rows(["a"], []) == [.init(left: "a", right: nil)])
    }

    @Test("a taken port is named")
    func takenPort() throws {
        let first = try SiteServer(port: 0)
        let failure = #expect(throws: Failure.self) { _ = try SiteServer(port: first.port) }
        #expect(failure?.message == "Port \(first.port) is taken by another program.")
    }

    @Test("only a mount's own files are read")
    func walk() throws {
        let folder = try TemporaryFolder()
        let files = MountFiles(mountPoint: folder.path)
        #expect(throws: Failure.self) { try files.listing(.root, from: 0, count: 10) }
        #expect(throws: Failure.self) { try files.open(try #require(SitePath(encoded: "a"))) }
    }
}
