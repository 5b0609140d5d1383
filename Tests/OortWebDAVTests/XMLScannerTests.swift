import OortModel
import Testing

@testable import OortWebDAV

/// An answer is believed whole or not at all.
@Suite("the reader of XML")
struct XMLScannerTests {
    private static let whole = """
        <?xml version="1.0" encoding="utf-8"?>
        <D:multistatus xmlns:D="DAV:" xmlns:oc="http://owncloud.org/ns"><!-- one -->
        <D:response><D:href>/dav/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/>
        </D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
        <response xmlns="DAV:"><href>/dav/a%20b</href><propstat><prop><resourcetype/>
        <getetag>&quot;x&amp;y&#x41;&quot;</getetag><oc:id><![CDATA[<1>]]></oc:id></prop>
        <status>HTTP/2 200</status></propstat><propstat><prop><getcontenttype/></prop>
        <status>HTTP/1.1 404 Not Found</status></propstat></response></D:multistatus>
        """

    @Test("prefixes, references, CDATA and comments are read")
    func reads() throws {
        let responses = try Multistatus.responses(in: Array(("\n \n" + Self.whole + "\n").utf8))
        #expect(responses.count == 2)
        #expect(WebDAVEntries.isFolder(try #require(responses.first)) == true)
        let file = try #require(responses.last)
        #expect(file.href == "/dav/a%20b")
        #expect(file.text(.dav("getetag")) == "\"x&yA\"")
        #expect(file.text(.owncloud("id")) == "<1>")
        #expect(file.refused[.dav("getcontenttype")] == 404)
        #expect(WebDAVEntries.isFolder(file) == false)
    }

    @Test("an answer that is cut anywhere is none")
    func cut() {
        let bytes = Array(Self.whole.utf8)
        for count in 0..<bytes.count - 1 {
            #expect(throws: ProviderError.self) {
                try Multistatus.responses(in: Array(bytes[..<count]))
            }
        }
    }

    @Test("an answer with one byte changed is read or refused, and nothing else happens")
    func mutated() {
        let bytes = Array(Self.whole.utf8)
        for place in bytes.indices {
            for byte: UInt8 in [0, 0x26, 0x3C, 0x3E, 0x2F, 0x22, 0x3A, 0x80, 0xFF] {
                var changed = bytes
                changed[place] = byte
                _ = try? Multistatus.responses(in: changed)
            }
        }
    }

    @Test(
        "what WebDAV has no need of is refused",
        arguments: [
            "", "   ", "text", "<html><body>Log in</body></html>",
            "<!DOCTYPE x [<!ENTITY q \"&quot;\">]><D:multistatus xmlns:D=\"DAV:\"/>",
            "<D:multistatus xmlns:D=\"DAV:\"/>Warning: something in PHP",
            "<D:multistatus xmlns:D=\"DAV:\"/><x/>",
            "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>&q;</D:href></D:response>"
                + "</D:multistatus>",
            "<D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>&#1;</D:href></D:response>"
                + "</D:multistatus>",
            "<D:multistatus xmlns:D=\"DAV:\"><E:response/></D:multistatus>",
            "<D:multistatus xmlns:D=\"DAV:\"><a></b></D:multistatus>",
            "<?xml version=\"1.0\" encoding=\"utf-16\"?><D:multistatus xmlns:D=\"DAV:\"/>",
        ]
    )
    func refused(_ text: String) {
        #expect(throws: ProviderError.self) {
            try Multistatus.responses(in: Array(text.utf8))
        }
    }

    @Test("elements too deep in each other, and bytes that are no text, are refused")
    func hostile() {
        let deep = String(repeating: "<a>", count: 5000) + String(repeating: "</a>", count: 5000)
        let inner = "<D:multistatus xmlns:D=\"DAV:\">\(deep)</D:multistatus>"
        #expect(throws: ProviderError.self) { try Multistatus.responses(in: Array(inner.utf8)) }
        let broken = Array("<D:multistatus xmlns:D=\"DAV:\"><a".utf8) + [0xFF]
        #expect(throws: ProviderError.self) { try Multistatus.responses(in: broken) }
    }

    @Test("an empty list is a list")
    func empty() throws {
        let text = "<d:multistatus xmlns:d=\"DAV:\"/>"
        #expect(try Multistatus.responses(in: Array(text.utf8)).isEmpty)
    }

    @Test(
        "places are split before they are decoded",
        arguments: [
            ("/a/b%20c", ["a", "b c"]), ("http://x:80/a//b/", ["a", "b"]), ("/%2541", ["%41"]),
            ("/a+b", ["a+b"]), ("https://x", []), ("/", []), ("/%C3%A9", ["\u{E9}"]),
            ("/a:b;c", ["a:b;c"]),
        ]
    )
    func places(_ href: String, _ names: [String]) {
        #expect(PercentEncoding.names(ofReference: href) == names)
    }

    @Test(
        "places that cannot be asked for are left out",
        arguments: ["", "a/b", "/a%2Fb", "/a/../b", "/%", "/%zz", "/%FF", "/a%00"]
    )
    func noPlaces(_ href: String) { #expect(PercentEncoding.names(ofReference: href) == nil) }

    @Test("tags lose what servers and proxies put around them")
    func tags() {
        for text in ["\"x\"", "W/\"x\"", "x", " \"x-gzip\" ", "\"x\"-gzip"] {
            #expect(WebDAVEntries.tag(text) == "x")
        }
        #expect(WebDAVEntries.tag("\"\"") == nil)
        #expect(WebDAVEntries.tag("") == nil)
    }
}
