import Foundation
import OortModel
import OortSimulators
import OortTransport
import Testing

@Suite("objects at the simulated S3", .timeLimit(.minutes(15)))
struct S3StoreTests {
    private func keys(
        _ world: S3World,
        _ query: String,
        limit: Int = 1000
    ) async throws -> (keys: [String], prefixes: [String]) {
        var (keys, prefixes): ([String], [String]) = ([], [])
        var token = ""
        repeat {
            let answer = try await world.send(
                "GET",
                query: "list-type=2&max-keys=\(limit)&\(query)\(token)"
            )
            #expect(answer.head.status == 200)
            let page = answer.all("Contents").count + answer.all("CommonPrefixes").count
            #expect(page <= limit)
            #expect(answer.all("KeyCount") == ["\(page)"])
            keys += answer.all("Contents").compactMap {
                $0.components(separatedBy: "<Key>").last?.components(separatedBy: "</Key>").first
            }
            prefixes += answer.all("CommonPrefixes").map {
                $0.replacingOccurrences(of: "<Prefix>", with: "")
                    .replacingOccurrences(of: "</Prefix>", with: "")
            }
            token =
                answer.all("NextContinuationToken").first
                .map {
                    "&continuation-token="
                        + ($0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "")
                }
                ?? ""
        } while !token.isEmpty
        return (keys, prefixes)
    }

    @Test("listings come in the order of bytes, page by page, with folders taken together")
    func listing() async throws {
        try await S3World.with { (world) async throws in
            let all = ["a", "a-b", "a/", "a/b", "a/c/d", "a//e", "b", "\u{FFEE}", "\u{1F600}"]
            for key in all { try await world.put(key, key.hasSuffix("/") ? "" : key) }
            let order = all.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
            for limit in [1, 2, 1000] {
                #expect(try await keys(world, "", limit: limit).keys == order)
                let top = try await keys(world, "delimiter=%2F", limit: limit)
                #expect(top.keys == order.filter { !$0.contains("/") })
                #expect(top.prefixes == ["a/"])
                let inside = try await keys(world, "delimiter=%2F&prefix=a%2F", limit: limit)
                #expect(inside.keys == ["a/", "a/b"])
                #expect(inside.prefixes == ["a//", "a/c/"])
            }
            #expect(
                try await keys(world, "start-after=a%2Fb").keys == [
                    "a/c/d", "b", "\u{FFEE}", "\u{1F600}",
                ]
            )
            let encoded = try await world.send(
                "GET",
                query: "list-type=2&encoding-type=url&prefix=%EF%BF%AE"
            )
            #expect(encoded.all("Key") == ["%EF%BF%AE"])
            #expect(encoded.all("EncodingType") == ["url"])
            world.store.loseCursors()
            let lost = try await world.send("GET", query: "list-type=2&continuation-token=MC9h")
            #expect(lost.code == "InvalidArgument")
        }
    }

    @Test("a page may be empty, and not the last")
    func emptyPages() async throws {
        try await S3World.with { (world) async throws in
            try await world.put("a", "a")
            world.store.habits.emptyPages = 2
            let first = try await world.send("GET", query: "list-type=2")
            #expect(first.all("IsTruncated") == ["true"] && first.all("Key").isEmpty)
            #expect(try await keys(world, "").keys == ["a"])
        }
    }

    @Test("writes are refused where their condition does not hold, and nothing is changed")
    func conditions() async throws {
        try await S3World.with { (world) async throws in
            let one = try await world.put("a", "one", headers: [("If-None-Match", "*")])
            #expect(one.head.status == 200)
            #expect(one.tag == "\"\(SimulatedContent("one").md5)\"")
            let taken = try await world.put("a", "x", headers: [("If-None-Match", "*")])
            #expect(taken.head.status == 412 && taken.code == "PreconditionFailed")
            let two = try await world.put("a", "two", headers: [("If-Match", one.tag)])
            #expect(two.head.status == 200)
            #expect(
                try await world.put("a", "x", headers: [("If-Match", one.tag)]).code
                    == "PreconditionFailed"
            )
            let absent = try await world.put("b", "x", headers: [("If-Match", one.tag)])
            #expect(absent.head.status == 404 && absent.code == "NoSuchKey")
            #expect(
                try await world.send("DELETE", "a", headers: [("If-Match", one.tag)]).head.status
                    == 412
            )
            let source = ("x-amz-copy-source", "\(S3Simulator.bucket)/a")
            for refused in [
                [source, ("x-amz-copy-source-if-match", one.tag)], [source, ("If-Match", one.tag)],
                [source, ("x-amz-copy-source-if-none-match", two.tag)],
            ] {
                let answer = try await world.send(
                    "PUT",
                    refused[1].0 == "If-Match" ? "a" : "c",
                    headers: refused + [("x-amz-metadata-directive", "REPLACE")]
                )
                #expect(answer.head.status == 412, "\(refused)")
            }
            #expect(try await world.text("a") == "two")
            #expect(try await keys(world, "").keys == ["a"])
            world.store.habits.conflicts = 1
            let conflict = try await world.put("a", "x", headers: [("If-Match", two.tag)])
            #expect(conflict.head.status == 409 && conflict.code == "ConditionalRequestConflict")
        }
    }

    @Test("parts become an object at their end only, in order, each large enough, and once")
    func parts() async throws {
        try await S3World.with { (world) async throws in
            let begun = try await world.send("POST", "a", query: "uploads=")
            let id = try #require(begun.all("UploadId").first)
            let contents = [
                [UInt8](repeating: 1, count: 5 << 20), [UInt8](repeating: 2, count: 3),
            ]
            var tags: [String] = []
            for (index, content) in contents.enumerated() {
                let answer = try await world.send(
                    "PUT",
                    "a",
                    query: "partNumber=\(index + 1)&uploadId=\(id)",
                    body: content
                )
                tags.append(answer.tag)
            }
            let listed = try await world.send("GET", "a", query: "uploadId=\(id)&max-parts=1")
            #expect(
                listed.all("IsTruncated") == ["true"] && listed.all("NextPartNumberMarker") == ["1"]
            )
            #expect(try await world.send("GET", query: "uploads=").all("UploadId") == [id])
            #expect(try await world.text("a") == nil)
            func end(_ numbers: [Int], headers: [(name: String, value: String)] = []) async throws
                -> HTTPResponse
            {
                let parts = numbers.map {
                    "<Part><PartNumber>\($0)</PartNumber><ETag>\(tags[$0 - 1])</ETag></Part>"
                }.joined()
                return try await world.send(
                    "POST",
                    "a",
                    query: "uploadId=\(id)",
                    headers: [("Content-Type", "application/xml")] + headers,
                    body: Array("<CompleteMultipartUpload>\(parts)</CompleteMultipartUpload>".utf8)
                )
            }
            #expect(try await end([2, 1]).code == "InvalidPartOrder")
            world.store.habits.errorsInSuccess = 1
            let failed = try await end([1, 2])
            #expect(failed.head.status == 200 && failed.code == "InternalError")
            try await world.put("a", "taken")
            #expect(try await end([1, 2], headers: [("If-None-Match", "*")]).head.status == 412)
            let done = try await end([1, 2])
            #expect(done.head.status == 200)
            #expect(try await end([1, 2]).all("ETag") == done.all("ETag"))
            let head = try await world.send("HEAD", "a")
            #expect(head.head.header("Content-Length") == "\((5 << 20) + 3)")
            #expect(head.tag.hasSuffix("-2\""))
            #expect(
                try await world.send("GET", "a", query: "uploadId=\(id)").code == "NoSuchUpload"
            )
        }
    }

    @Test("what is deleted and replaced stays as a version, and comes back without its mark")
    func versions() async throws {
        try await S3World.with { (world) async throws in
            let first = try await world.put("f/a", "first").head.header("x-amz-version-id") ?? ""
            try await world.put("f/a", "second")
            let deleted = try await world.send("DELETE", "f/a")
            #expect(deleted.head.header("x-amz-delete-marker") == "true")
            let mark = deleted.head.header("x-amz-version-id") ?? ""
            let gone = try await world.send("GET", "f/a")
            #expect(gone.head.status == 404)
            #expect(gone.head.header("x-amz-delete-marker") == "true")
            #expect(try await world.text("f/a", query: "versionId=\(first)") == "first")
            let list = try await world.send("GET", query: "versions=&prefix=f%2F")
            #expect(list.all("Version").count == 2)
            #expect(list.all("DeleteMarker").count == 1)
            #expect(list.all("IsLatest") == ["true", "false", "false"])
            #expect(try await keys(world, "").keys.isEmpty)
            let undeleted = try await world.send("DELETE", "f/a", query: "versionId=\(mark)")
            #expect(undeleted.head.status == 204)
            #expect(try await world.text("f/a") == "second")
            world.store.habits.keepsVersions = false
            _ = try await world.send("DELETE", "f/a")
            #expect(world.store.account.withTree { $0.allItems.count } == 1)
        }
    }

    @Test("edits by somebody else are the bucket's, and an object is an item of the account")
    func edits() async throws {
        try await S3World.with(isSample: true) { (world) async throws in
            let count = world.store.account.withTree { tree in
                tree.descendants(of: tree.rootID).count { !$0.isFolder }
            }
            #expect(try await keys(world, "").keys.count == count)
            for edit: SimulatorEdit in [
                .write(path: ["new", "a"], SimulatedContent("a"), modifiedTime: nil),
                .makeFolder(path: ["empty"]),
                .trash(path: ["Documents"]),
                .move(from: ["Photos"], to: ["Pictures"]),
            ] { #expect(edit.apply(to: world.store) != nil) }
            #expect(try await keys(world, "prefix=new").keys == ["new/a"])
            #expect(try await keys(world, "prefix=empty").keys == ["empty/"])
            #expect(try await keys(world, "prefix=Documents").keys.isEmpty)
            #expect(try await keys(world, "prefix=Photos").keys.isEmpty)
            #expect(try await keys(world, "prefix=Pictures").keys.count == 13)
            let trashed = try await world.send(
                "GET",
                query: "versions=&prefix=Documents%2FShopping"
            )
            #expect(trashed.all("DeleteMarker").count == 1)
            // A deletion of an empty folder's only sign takes the folder away.
            _ = try await world.send("DELETE", "empty/")
            _ = try await world.send("DELETE", "new/a")
            #expect(
                world.store.account.withTree {
                    $0.item(at: ["empty"]) == nil && $0.item(at: ["new"]) == nil
                }
            )
            try await world.put(
                "Welcome.txt",
                "hello",
                headers: [("x-amz-meta-mtime", "1700000000.5")]
            )
            let item = world.store.account.withTree { $0.item(at: ["Welcome.txt"]) }
            #expect(
                item?.modifiedTime == Timestamp(seconds: 1_700_000_000, nanoseconds: 500_000_000)
            )
            #expect(item?.revisions.count == 2)
        }
    }

    @Test("many keys are deleted by one request, and each refusal is named")
    func deleteMany() async throws {
        try await S3World.with { (world) async throws in
            for key in ["a", "b&<", "c"] { try await world.put(key, key) }
            let xml = """
                <Delete xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a</Key></Object>\
                <Object><Key>b&amp;&lt;</Key></Object><Object><Key>c</Key><ETag>"0"</ETag></Object></Delete>
                """
            let body = Array(xml.utf8)
            #expect(
                try await world.send("POST", query: "delete=", body: body).code == "InvalidRequest"
            )
            let wrong = try await world.send(
                "POST",
                query: "delete=",
                headers: [("Content-MD5", "AAAAAAAAAAAAAAAAAAAAAA==")],
                body: body
            )
            #expect(wrong.code == "BadDigest")
            let sum = Self.base64(hex: SimulatedContent(body).md5)
            let done = try await world.send(
                "POST",
                query: "delete=",
                headers: [("Content-MD5", sum)],
                body: body
            )
            #expect(done.all("Deleted").count == 2)
            #expect(done.all("Code") == ["PreconditionFailed"])
            #expect(try await keys(world, "").keys == ["c"])
        }
    }

    private static func base64(hex: String) -> String {
        let digits = Array(hex)
        let bytes = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
        return Data(bytes).base64EncodedString()
    }

    @Test("what a store does on a bad day: no room, archived objects, hidden absence, opaque tags")
    func habits() async throws {
        try await S3World.with { (world) async throws in
            world.store.account.totalBytes = 3
            let full = try await world.put("a", "four")
            #expect(full.head.status == 403 && full.code == "QuotaExceeded")
            world.store.account.totalBytes = nil
            try await world.put("cold", "x", headers: [("x-amz-storage-class", "GLACIER")])
            #expect(try await world.send("GET", "cold").code == "InvalidObjectState")
            #expect(
                try await world.send("HEAD", "cold").head.header("x-amz-storage-class") == "GLACIER"
            )
            world.store.habits.hidesAbsence = true
            #expect(try await world.send("GET", "none").code == "AccessDenied")
            #expect(try await world.send("HEAD", "none").head.status == 403)
            world.store.habits.encrypts = true
            let sealed = try await world.put("sealed", "x")
            #expect(sealed.tag != "\"\(SimulatedContent("x").md5)\"")
            #expect(sealed.head.header("x-amz-server-side-encryption") == "aws:kms")
        }
    }

    @Test("ranges are given, and refused at and behind the end")
    func ranges() async throws {
        try await S3World.with { (world) async throws in
            try await world.put("a", "0123456789")
            try await world.put("empty", "")
            func range(_ key: String, _ text: String) async throws -> HTTPResponse {
                try await world.send("GET", key, headers: [("Range", text)])
            }
            let part = try await range("a", "bytes=2-4")
            #expect(part.head.status == 206 && part.body == Array("234".utf8))
            #expect(part.head.header("Content-Range") == "bytes 2-4/10")
            #expect(try await range("a", "bytes=-3").body == Array("789".utf8))
            for (key, text) in [("a", "bytes=10-"), ("empty", "bytes=0-")] {
                let refused = try await range(key, text)
                #expect(refused.head.status == 416 && refused.code == "InvalidRange")
            }
        }
    }
}
