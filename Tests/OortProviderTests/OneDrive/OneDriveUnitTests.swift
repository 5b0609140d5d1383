import Foundation
import OortModel
import OortTesting
import OortTransport
import Testing

@testable import OortOneDrive

@Suite("OneDrive's words")
struct OneDriveUnitTests {
    @Test(
        "QuickXorHash gives the published values",
        arguments: [
            ("", "AAAAAAAAAAAAAAAAAAAAAAAAAAA="),
            ("hello", "aCgDG9jwBgAAAAAABQAAAAAAAAA="),
            ("hello\n", "aCgDG9jwBgUAAAAABgAAAAAAAAA="),
        ]
    )
    func quickXor(text: String, hash: String) {
        var hasher = QuickXorHasher()
        hasher.update(Array(text.utf8)[...])
        #expect(hasher.finalize() == ContentHash(algorithm: .quickXor, value: hash))
    }

    @Test("the hash of a content does not depend on how it is cut")
    func hashOfParts() {
        let bytes = (0..<5000).map { UInt8(truncatingIfNeeded: $0 * 31 + $0 / 256) }
        var whole = QuickXorHasher()
        whole.update(bytes[...])
        for size in [1, 7, 159, 160, 161, 4096] {
            var cut = QuickXorHasher()
            for start in stride(from: 0, to: bytes.count, by: size) {
                cut.update(bytes[start..<min(start + size, bytes.count)])
            }
            #expect(cut.finalize() == whole.finalize(), "parts of \(size)")
        }
    }

    @Test(
        "each kind of permission has its names, and the owner's none",
        arguments: [
            (#""roles":["owner"],"grantedToV2":{"user":{"displayName":"Me"}}"#, []),
            (#""roles":["read"],"grantedToV2":{"user":{"displayName":"Bob"}}"#, ["Bob"]),
            (#""roles":["read"],"grantedToV2":{"siteUser":{"displayName":"Bob"}}"#, ["Bob"]),
            (#""grantedToV2":{"group":{"displayName":"Staff"}}"#, ["Staff (group)"]),
            (#""grantedTo":{"user":{"displayName":"","email":"b@x"}}"#, ["b@x"]),
            (#""invitation":{"email":"guest@x"}"#, ["guest@x"]),
            (#""link":{"scope":"anonymous"}"#, ["anyone with the link"]),
            (#""link":{}"#, ["anyone with the link"]),
            (
                #""link":{"scope":"organization"}"#,
                ["everyone in the organization with the link"]
            ),
            (
                #""link":{"scope":"users"},"grantedToIdentitiesV2":[{"user":{"displayName":"A"}},{}]"#,
                ["A"]
            ),
            ("", []),
        ] as [(String, [String])]
    )
    func shares(_ fields: String, _ names: [String]) throws {
        let permission = try OneDriveAPI.decode(
            OneDriveShares.Permission.self,
            from: Array("{\(fields)}".utf8)
        )
        #expect(permission.names == names)
    }

    @Test("ids of personal drives are compared without case and leading zeros")
    func spelling() throws {
        let first = DriveAddress(drive: "F0978A1B2C3D4E5", item: "0f0978a1b2c3d4e5!s12")
        let second = DriveAddress(drive: "0f0978a1b2c3d4e5", item: "F0978A1B2C3D4E5!s12")
        #expect(first == second)
        #expect(first.drive == "0f0978a1b2c3d4e5")
        #expect(first.paddedPath == "/drives/0f0978a1b2c3d4e5/items/0F0978A1B2C3D4E5!s12")
        let business = DriveAddress(drive: "b!AbC-1", item: "01ABCDEF")
        #expect(business.drive == "b!AbC-1" && business.item == "01ABCDEF")
        #expect(business.paddedPath == nil)
    }

    @Test("an id survives its spelling, a shortcut's too")
    func itemIDs() throws {
        let plain = OneDriveItemID(
            DriveAddress(drive: "77aa88bb99cc0011", item: "77AA88BB99CC0011!7")
        )
        #expect(try OneDriveItemID(plain.itemID) == plain)
        let shortcut = OneDriveItemID(
            entry: plain.entry,
            target: DriveAddress(drive: "b!x", item: "01A")
        )
        #expect(try OneDriveItemID(shortcut.itemID) == shortcut)
        #expect(shortcut.isShortcut && !plain.isShortcut)
        for text in ["", "/", "a/", "a", "a/b>c", "a/b>c/d>e/f"] {
            #expect(throws: ProviderError.self) { try OneDriveItemID(ItemID(text)) }
        }
    }

    @Test(
        "names that OneDrive does not take are refused",
        arguments: [
            "a:b", "a*", "a?", "a<b", "a>b", "a|b", "a\\b", "a\"b", " a", "a ", "a.", "CON", "com1",
            "Lpt9", ".lock", "desktop.ini", "a_vti_b", "~$a.docx", "a\u{1}b", ".", "..",
        ]
    )
    func refused(name: String) {
        guard case .refused = OneDriveNames.refusal(of: name, kind: .file, depth: 1) else {
            Issue.record("\(name) is taken")
            return
        }
    }

    @Test("names that look odd and are fine are taken")
    func taken() {
        for name in ["#1 100%.txt", ".gitignore", "COM10", "a'b", "forms", "日本語", "~a"] {
            #expect(OneDriveNames.refusal(of: name, kind: .file, depth: 1) == nil, "\(name)")
        }
        #expect(OneDriveNames.refusal(of: "Forms", kind: .folder, depth: 0) != nil)
        let long = String(repeating: "𝄞", count: 128)
        #expect(OneDriveNames.refusal(of: long, kind: .file, depth: 1) == .tooLong)
        #expect(OneDriveNames.refusal(of: String(long.dropLast()), kind: .file, depth: 1) == nil)
    }

    @Test("a path of more than 400 units is too long")
    func longPath() throws {
        let above = RemotePath([
            String(repeating: "a", count: 200), String(repeating: "b", count: 190),
        ])
        let parent = ItemReference(id: ItemID("x"), path: above)
        try OneDriveNames.check("12345678", kind: .file, in: parent, isPersonal: true)
        #expect(throws: ProviderError.self) {
            try OneDriveNames.check("123456789", kind: .file, in: parent, isPersonal: true)
        }
    }

    @Test(
        "each error has its meaning",
        arguments: [
            (400, "invalidRequest", nil, ProviderError.Kind.badRequest),
            (400, "invalidRequest", "pathIsTooLong", .nameTooLong),
            (401, "InvalidAuthenticationToken", nil, .signedOut),
            (403, "accessDenied", nil, .noPermission),
            (403, "malwareDetected", nil, .contentBlocked),
            (404, "itemNotFound", nil, .notFound),
            (409, "nameAlreadyExists", nil, .nameTaken),
            (409, "resourceModified", nil, .preconditionFailed),
            (412, "resourceModified", nil, .preconditionFailed),
            (423, "notAllowed", "resourceLocked", .locked),
            (429, "activityLimitReached", nil, .rateLimited(retryAfter: .seconds(7))),
            (500, "generalException", nil, .outcomeUnknown(retryAfter: .seconds(7))),
            (503, "serviceNotAvailable", nil, .rateLimited(retryAfter: .seconds(7))),
            (507, "quotaLimitReached", nil, .quotaExceeded),
            (501, "notSupported", nil, .unsupported),
        ] as [(Int, String, String?, ProviderError.Kind)]
    )
    func errors(status: Int, code: String, inner: String?, kind: ProviderError.Kind) {
        let deeper =
            inner.map { ",\"innerError\":{\"code\":\"\($0)\",\"request-id\":\"r1\"}" } ?? ""
        let body = "{\"error\":{\"code\":\"\(code)\",\"message\":\"m\"\(deeper)}}"
        let error = OneDriveErrors.error(
            status: status,
            retryAfter: .seconds(7),
            requestID: nil,
            body: Array(body.utf8),
            about: .item
        )
        #expect(error.kind == kind)
        #expect(error.detail.contains(code))
    }

    @Test("an error that is not JSON goes by its status")
    func htmlError() {
        let error = OneDriveErrors.error(
            status: 502,
            retryAfter: nil,
            requestID: nil,
            body: Array("<html>".utf8),
            about: .item
        )
        #expect(error.kind == .outcomeUnknown(retryAfter: nil))
        for code in ["resyncRequired", "resyncChangesUploadDifferences"] {
            let body = "{\"error\":{\"code\":\"\(code)\",\"message\":\"\"}}"
            let lost = OneDriveErrors.error(
                status: 410,
                retryAfter: nil,
                requestID: nil,
                body: Array(body.utf8),
                about: .feed
            )
            #expect(lost.kind == .cursorLost)
        }
    }

    @Test(
        "bytes go to no address without encryption, unless the service itself is asked without it",
        arguments: [
            ("https://x.example/a", true), ("HTTPS://x.example/a", true),
            ("http://x.example/a", false), ("Http://127.0.0.1/a", false),
            ("ftp://x.example", false), ("", false),
            ("x", false), ("file:///etc/passwd", false), ("https:/x", false),
        ]
    )
    func encryption(_ address: String, _ isEncrypted: Bool) throws {
        let live = OneDriveAPI(client: NoClient(), endpoints: .live)
        #expect((try? live.presigned(address)) == (isEncrypted ? address : nil))
        let simulated = OneDriveAPI(
            client: NoClient(),
            endpoints: OneDriveEndpoints(graph: "http://127.0.0.1:1/v1.0", signIn: "")
        )
        let isHTTP = address.lowercased().hasPrefix("http://")
        #expect((try? simulated.presigned(address)) == (isEncrypted || isHTTP ? address : nil))
    }

    @Test("contents that repeat themselves have one QuickXorHash: it does not tell them apart")
    func collisions() {
        let contents = (1...2).map { number in
            [UInt8](String(repeating: "mine 1690356349 \(number) ", count: 20_000).utf8)
        }
        let hashes = contents.map { content in
            var hasher = QuickXorHasher()
            hasher.update(content[...])
            return hasher.finalize()
        }
        #expect(contents[0].count == contents[1].count && hashes[0] == hashes[1])
        #expect(!hashes[0].algorithm.tellsContentsApart)
    }

    @Test("a recorded item becomes a canonical one")
    func canonicalItem() throws {
        let json = """
            {"@odata.etag":"x","id":"F0978A1B2C3D4E5!s1","name":"Grüße.txt","size":5,
            "eTag":"\\"{A},3\\"","cTag":"\\"c:{A},2\\"","createdDateTime":"2025-10-01T10:00:00Z",
            "lastModifiedDateTime":"2025-10-02T10:00:00Z","file":{"mimeType":"text/plain",
            "hashes":{"quickXorHash":"aCgDG9jwBgAAAAAABQAAAAAAAAA=","sha1Hash":"x"}},
            "fileSystemInfo":{"createdDateTime":"2025-10-01T10:00:00Z",
            "lastModifiedDateTime":"2025-10-02T10:00:00Z"},
            "parentReference":{"driveId":"0f0978a1b2c3d4e5","driveType":"personal",
            "id":"F0978A1B2C3D4E5!s9","path":"/drive/root:/a"},"unknown":{"x":[1]}}
            """
        let wire = try OneDriveAPI.decode(DriveItemWire.self, from: Array(json.utf8))
        let item = try #require(OneDriveItems.item(wire, drive: "x", memory: OneDriveMemory()))
        #expect(item.id == ItemID("0f0978a1b2c3d4e5/F0978A1B2C3D4E5!s1"))
        #expect(item.parentID == ItemID("0f0978a1b2c3d4e5/F0978A1B2C3D4E5!s9"))
        #expect(item.kind == .file && item.fileName == "Grüße.txt" && item.size == 5)
        #expect(item.rev == Revision("\"c:{A},2\"") && item.tag == "\"{A},3\"")
        #expect(item.contentHash?.algorithm == .quickXor && item.mimeType == "text/plain")
        #expect(item.clientModifiedTime == Timestamp(rfc3339: "2025-10-02T10:00:00Z"))
    }

    @Test("a business file without cTag has one revision in the feed and in a listing")
    func businessRevision() throws {
        let feed = """
            {"id":"01A","name":"a","size":5,"eTag":"\\"{A},3\\"","file":{"hashes":{"quickXorHash":"h"}}}
            """
        let listed = """
            {"id":"01A","name":"a","size":5,"eTag":"\\"{A},3\\"","cTag":"\\"c:{A},2\\"",
            "file":{"hashes":{"quickXorHash":"h"}}}
            """
        let revisions = try [feed, listed].map { text in
            OneDriveItems.revision(
                try OneDriveAPI.decode(DriveItemWire.self, from: Array(text.utf8)),
                in: "b!x",
                isShortcut: false
            )
        }
        #expect(revisions[0] == revisions[1] && revisions[0] != nil)
    }

    @Test("random and malformed JSON is an error or an item, never a trap")
    func fuzz() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SeededNumbers(seed: seed)
        let valid = Array(
            """
            {"value":[{"id":"A1B2!s1","name":"a","size":5,"file":{"hashes":{"quickXorHash":"x"}},
            "parentReference":{"driveId":"a1b2c3d4","id":"A1B2C3D4!s9"},"remoteItem":{"id":"x"},
            "fileSystemInfo":{"lastModifiedDateTime":"2025-10-02T10:00:00Z"}}],
            "@odata.nextLink":"https://graph.microsoft.com/x"}
            """.utf8
        )
        for _ in 0..<2000 {
            var bytes = valid
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(contentsOf: Array("\u{0}\\ud800:{[9e999".utf8), at: place)
                }
            }
            guard let page = try? OneDriveAPI.decode(ItemPageWire.self, from: bytes) else {
                continue
            }
            for wire in page.value {
                _ = OneDriveItems.item(wire, drive: "x", memory: OneDriveMemory())
            }
            _ = OneDriveErrors.codes(in: bytes)
        }
        #expect(Bool(true), "seed \(seed)")
    }
}

/// A client that reaches nothing.
private struct NoClient: HTTPClient {
    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPStreamedResponse {
        throw .unreachable("nothing is reached")
    }
}
