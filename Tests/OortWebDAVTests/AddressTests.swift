import Foundation
import OortModel
import OortTransport
import Synchronization
import Testing

@testable import OortWebDAV

@Suite("addresses as people paste them")
struct AddressTests {
    @Test(
        "an address is taken apart",
        arguments: [
            ("cloud.example.org", "https://cloud.example.org", [], nil),
            ("  https://Cloud.Example.org/  ", "https://cloud.example.org", [], nil),
            ("davs://ada@host:8443/a%20b", "https://host:8443", ["a b"], "ada"),
            ("webdavs://host/dav/?x=1#y", "https://host", ["dav"], nil),
            ("localhost:8080/dav", "http://localhost:8080", ["dav"], nil),
            ("http://127.0.0.1/dav", "http://127.0.0.1", ["dav"], nil),
            ("https://[::1]:8443/dav", "https://[::1]:8443", ["dav"], nil),
            ("https://ada%40example.org@host/", "https://host", [], "ada@example.org"),
        ] as [(String, String, [String], String?)]
    )
    func taken(_ text: String, _ origin: String, _ path: [String], _ user: String?) throws {
        let pasted = try PastedAddress(text)
        #expect(pasted.origin == origin)
        #expect(pasted.path == path)
        #expect(pasted.user == user)
    }

    @Test(
        "what would send a password to everybody, or is no address, is refused in words",
        arguments: [
            "", "http://cloud.example.org", "dav://cloud.example.org/dav",
            "https://ada:secret@host/", "ftp://host/", "https://", "https:///path",
            "https://host/%zz", "https://ho st/",
        ]
    )
    func refused(_ text: String) {
        #expect {
            _ = try PastedAddress(text)
        } throws: { error in
            let words = "\(error)"
            return words.hasSuffix(".") && !words.contains("secret")
        }
    }

    @Test(
        "a redirect to another host is refused, however its address is written",
        arguments: [
            "https://evil.example/status.php", "https://cloud.example.org.evil.example/status.php",
            "https://cloud.example.org:x@evil.example/status.php",
            "https://cloud.example.org@evil.example/status.php",
            "http://cloud.example.org/status.php",
        ]
    )
    func redirects(_ location: String) async {
        let asked = Asked()
        let redirect = Redirect(location: location, asked: asked)
        await #expect(throws: WebDAVSignInError.self) {
            try await WebDAVDiscovery.server(at: "https://cloud.example.org", http: redirect)
        }
        #expect(asked.hosts.withLock { $0 } == ["cloud.example.org"])
    }

    @Test("a redirect to another port of the host is followed")
    func otherPort() async throws {
        let redirect = Redirect(
            location: "https://cloud.example.org:8443/status.php",
            asked: Asked()
        )
        let server = try await WebDAVDiscovery.server(at: "cloud.example.org", http: redirect)
        #expect(server.address.origin == "https://cloud.example.org:8443")
    }

    @Test("a cloud's programs are looked for from the pasted place up")
    func bases() throws {
        let pasted = try PastedAddress("https://host/sub/cloud/index.php/apps/files?dir=%2FA%20b")
        #expect(pasted.bases.first == ["sub", "cloud"])
        #expect(pasted.bases.contains([]))
        #expect(try pasted.named(below: ["sub", "cloud"]).folder == ["A b"])
        let dav = try PastedAddress("https://host/remote.php/dav/files/ada/Sub")
        #expect(dav.bases.first == [])
        #expect(try dav.named(below: []).folder == ["Sub"])
        // What a folder of the server is called says nothing of what lies in the account.
        let below = try PastedAddress("https://host/webdav/index.php/apps/files?dir=/Sub")
        #expect(try below.named(below: ["webdav"]).folder == ["Sub"])
        #expect(
            try PastedAddress("https://host/s/cloud/").named(below: ["s", "cloud"]).folder == []
        )
    }

    @Test("the addresses of items are encoded byte for byte, and folders end in a slash")
    func urls() {
        let address = WebDAVAddress(origin: "https://host", files: ["d v"], folder: ["\u{FC}"])
        #expect(address.url(.root, isFolder: true) == "https://host/d%20v/%C3%BC/")
        let path = RemotePath(["a+b;c", "100%#?"])
        #expect(
            address.url(path, isFolder: false) == "https://host/d%20v/%C3%BC/a%2Bb%3Bc/100%25%23%3F"
        )
        #expect(WebDAVAddress(origin: "https://host", files: []).text == "https://host/")
    }

    @Test("a folder of an OpenCloud is young for as long as its tag may hide what is below")
    func youth() throws {
        let client = WebDAVClient(
            http: Redirect(location: "", asked: Asked()),
            address: WebDAVAddress(origin: "https://host", files: []),
            dialect: .infinitescale,
            abilities: WebDAVAbilities()
        )
        var folder = PlaceEntry.folder("folder")
        let head = HTTPResponseHead(
            status: 207,
            headers: [("Date", "Tue, 24 Nov 2026 08:30:00 GMT")],
            httpVersion: "1.1"
        )
        let answered = try #require(head.date)
        // What got stuck is passed on after eight minutes, and takes a while at each folder.
        for (seconds, isYoung) in [(0, true), (8 * 60 + 30, true), (11 * 60, false)] {
            folder.modifiedTime = Timestamp(seconds: answered.seconds - Int64(seconds))
            #expect(client.entries.isYoung(folder, head: head) == isYoung)
        }
    }

    @Test("names of uploads on their way are nobody else's")
    func temporaryNames() {
        var abilities = WebDAVAbilities()
        let old = "123E4567-E89B-12D3-A456-426614174000"
        let made = Timestamp(seconds: 1_795_000_000)
        let new = WebDAVNames.unique(at: made)
        #expect(UUID(uuidString: new) != nil)
        #expect(WebDAVNames.begun(WebDAVNames.temporary(new, abilities)) == made.seconds)
        #expect(WebDAVNames.begun(WebDAVNames.temporary(old, abilities)) == nil)
        for unique in [old, new] {
            for lists in [true, false] {
                abilities.listsDotNames = lists
                let name = WebDAVNames.temporary(unique, abilities)
                #expect(WebDAVNames.isTemporary(name))
                #expect(WebDAVNames.refusal(of: name, .plain, abilities) != nil)
            }
        }
        for name in ["oort-upload-", ".oort-upload-x", "oort-upload-" + old + "x", "a"] {
            #expect(!WebDAVNames.isTemporary(name))
        }
    }
}

/// The hosts that were asked, each once.
private final class Asked: Sendable {
    let hosts = Mutex<Set<String>>([])
}

/// A server that sends on from its usual port, and is a Nextcloud wherever else it is asked.
private struct Redirect: HTTPClient {
    let location: String
    let asked: Asked

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        let url = URL(string: request.url)
        let host = url?.host() ?? request.url
        _ = asked.hosts.withLock { $0.insert(host) }
        guard url?.scheme == "https", host == "cloud.example.org", url?.port == nil else {
            return answer(200, [], #"{"version":"34.0.1.2","productname":"Nextcloud"}"#)
        }
        return answer(302, [("Location", location)], "")
    }

    private func answer(
        _ status: Int,
        _ headers: [(name: String, value: String)],
        _ body: String
    ) -> HTTPStreamedResponse {
        HTTPStreamedResponse(
            HTTPResponse(
                head: HTTPResponseHead(status: status, headers: headers, httpVersion: "1.1"),
                body: Array(body.utf8)
            )
        )
    }
}
